"""What modules declare as they are read: names that are there, frozen classes, kinds of symbols.

These tests go through every module of the packages whose wrong versions are drawn by
`benchmarks/code_mutants.py`, and call nothing of it.
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

import sympy as sp

PACKAGES = (
    "engines",
    "algorithms",
    "weights",
    "numbers",
    "claims",
    "evidence",
    "theorems",
    "worst_case",
)
# What grows as a round is read or a path is walked.
WRITTEN_TO = {"Space", "ComingRound"}
# Of these packages, what holds arrays or lists is compared by identity.
COMPARED = ("engines", "algorithms", "weights", "numbers", "theorems")
ARRAYS = {"NDArray", "ndarray", "ArrayLike", "FloatArray", "Masks", "Entries", "ClientIndices"}
# Without equality of their own, or without a hash: sequences may be lists, problems hold arrays.
WITHOUT_VALUE = ARRAYS | {"Any", "Mapping", "list", "dict", "Sequence", "Participation", "Problem"}
WITHOUT_VALUE |= {"MultinomialProblem"}
# Their fields of any kind are numbers, or tuples of them.
OF_NUMBERS = {"Delays", "DescentTerms", "StepSums", "FiniteStepSums"}


@cache
def modules() -> Mapping[str, ModuleType]:
    """Import every module of the packages."""
    names = [
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages(
            import_module(f"fltheory.{package}").__path__, f"fltheory.{package}."
        )
    ]
    return {name: import_module(name) for name in names}


@cache
def dataclasses_of_the_package() -> Mapping[str, type]:
    found = [
        member
        for name, module in list(modules().items())
        for member in vars(module).values()
        if inspect.isclass(member)
        and member.__module__ == name
        and "__dataclass_params__" in vars(member)
    ]
    return {f"{one.__module__}.{one.__name__}": one for one in found}


def test_modules_and_classes_are_found() -> None:
    assert len(modules()) > 150
    assert len(dataclasses_of_the_package()) > 110


def test_dataclasses_are_frozen() -> None:
    loose = {
        one.__name__
        for one in dataclasses_of_the_package().values()
        if not one.__dataclass_params__.frozen  # type: ignore[attr-defined]
    }
    assert loose == WRITTEN_TO


def test_what_has_no_value_is_compared_by_identity() -> None:
    """An array has no truth value, and a list no hash: such classes would raise when compared."""
    classes = {
        name: one
        for name, one in dataclasses_of_the_package().items()
        if name.split(".")[1] in COMPARED
    }
    without = set(WITHOUT_VALUE)
    while True:
        found = {one.__name__ for one in classes.values() if without & words_of_fields(one)}
        if found <= without:
            break
        without |= found
    compared = {
        one.__name__
        for one in classes.values()
        if without & words_of_fields(one) and one.__dataclass_params__.eq  # type: ignore[attr-defined]
    }
    assert compared == OF_NUMBERS


def words_of_fields(kind: type) -> set[str]:
    """Return the names in the types of fields, but in those of functions."""
    types = " ".join(str(field.type) for field in dataclasses.fields(kind))
    return set(re.findall(r"\w+", re.sub(r"Callable\[\[.*?\], [^|]*", "", types)))


def symbols() -> Iterator[tuple[str, sp.Symbol]]:
    for name, module in modules().items():
        for member in vars(module).values():
            if isinstance(member, sp.Symbol):
                yield name, member


def test_symbols_are_assumed_to_be_something_and_never_not_to_be() -> None:
    """Every quantity of the papers is a real number; what is known beside is its sign or kind."""
    found = list(symbols())
    assert len(found) > 300
    for name, symbol in found:
        assert all(symbol._assumptions.generator.values()), f"{name}: {symbol}"
        assert symbol.is_extended_real, f"{name}: {symbol}"
