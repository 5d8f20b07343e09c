"""Certificates of refutation: writing them from a setting, and reading untrusted ones.

A certificate holds the statement's formulas, the definition of each of their symbols, the setting,
and two numbers between the sides of the inequality that the setting breaks, all as fractions in
JSON. The package's engines find the two numbers. The independent checker then decides whether the
numbers are right and whether every hypothesis is met. `read_certificate` also checks that the
formulas are those of the registered statement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from fltheory import participation as processes
from fltheory.algorithms import AdaFed, AveragedIterate, F3ast, LocalSgd, Unbiased
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.table import class_named
from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Inequality, Statement
from fltheory.decimals import as_fraction, normalised
from fltheory.engines import Setting
from fltheory.files.read_file import existing_file
from fltheory.files.whole_file import write_whole
from fltheory.grammar.quantities import rule_text
from fltheory.participation import Participation
from fltheory.problems import Ball, QuadraticProblem
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.theorems import get
from fltheory.verify.certificates.certificate_checker import (
    MOST_CHARACTERS,
    PARTICIPATIONS,
    VERSION,
    CertificateError,
    check_certificate,
    parsed,
)
from fltheory.verify.check import check
from fltheory.verify.safari.witness import Witness

# ------------------------------------------------------------ settings as text

Document = dict[str, Any]

_WHOLE = ("local_steps", "option", "clusters", "cutoff", "size", "excluded", "periods", "offsets",
          "active", "start")  # fmt: skip
_SHARES: Mapping[type, tuple[str, ...]] = {
    **dict.fromkeys((AdaFed, F3ast, Unbiased), ("target_weights",)),
    LocalSgd: ("aggregation_weights",),
}
_COUNTS = ("int", "tuple[int, ...]", int, tuple[int, ...])


def setting_text(setting: Setting) -> Document:
    """Return a setting in the format of certificates; a float means its shortest decimal.

    Raises
    ------
    ValueError
        If the clients are not quadratic, or if certificates do not support the participation.
    """
    problem = quadratic_for("to be certified", setting.problem)
    shares = problem.noise_shares
    alpha = problem.alpha if problem.target_weights is not None else [1] * problem.n_clients
    return {
        "algorithm": _algorithm_text(setting.algorithm),
        "problem": {
            "hessians": _text(problem.client_hessians),
            "optima": _text(problem.optima),
            "sigma": _text(problem.sigma),
            "server_sigma": _text(problem.server_sigma),
            "target_weights": _text(normalised(alpha)),
            **({} if shares is None else {"noise_shares": _text(shares)}),
        },
        "participation": _participation_text(setting.participation),
        "rounds": int(setting.rounds),
        "x0": _text(setting.x0),
    }


def _text(value: Any) -> Any:
    """Return numbers as text and lists of them as lists; infinity becomes None."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return [_text(item) for item in value]
    if is_dataclass(value):
        return _dataclass_text(value)
    if isinstance(value, float) and math.isinf(value):
        return None
    return str(as_fraction(value))


def _whole(value: Any) -> Any:
    if callable(value):
        raise ValueError(f"cutoff must be a number to be certified, got {value!r}")
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isinf(value):
        return None
    return np.asarray(value).astype(int).tolist()


def _dataclass_text(value: Any) -> Document:
    found = {
        item.name: (_whole if item.name in _WHOLE or item.type in _COUNTS else _text)(
            getattr(value, item.name)
        )
        for item in fields(value)
    }
    return found if isinstance(value, Ball) else {"name": type(value).__name__, **found}


def _algorithm_text(algorithm: Algorithm | Schedule) -> Document:
    found = _dataclass_text(algorithm)
    if isinstance(algorithm, AveragedIterate):
        found["weights"] = _text(algorithm.used_weights)
    if isinstance(algorithm, LocalSgd):
        # For the checker, the participants are the clients that take a step; models are averaged
        # after every E-th step.
        sampled, first = found.pop("sampled"), found.pop("first_average")
        if sampled != "steps" or first not in (None, str(algorithm.local_steps)):
            raise ValueError(
                "algorithm must have sampled = 'steps' and first_average = local_steps to be "
                f"certified, got sampled {sampled!r} and first_average {first}"
            )
    # If 1/3 were written as a decimal, three of them would not sum to one.
    for name in _SHARES.get(type(algorithm), ()):
        found[name] = _text(normalised(getattr(algorithm, name)))
    return found


def _participation_text(participation: Participation) -> Document:
    """Return the fields of a process in the checker's format."""
    kind = type(participation)
    if getattr(processes, kind.__name__, None) is not kind or kind.__name__ not in PARTICIPATIONS:
        raise ValueError(
            f"participation must be of a kind that certificates support, got {kind.__name__}"
        )
    given: Document = {"name": kind.__name__}
    for name in PARTICIPATIONS[kind.__name__]:
        value = getattr(participation, name)
        match name:
            case "transition":
                given[name] = [_text(normalised(row)) for row in value]
            case "sets":
                given[name] = [list(members) for members in value]
            case _:
                given[name] = _whole(value) if name in _WHOLE else _text(value)
    return given


def setting_from_text(document: Mapping[str, Any]) -> Setting:
    """Return a certificate's setting in float64, for the engines."""
    problem = document["problem"]
    clients = QuadraticProblem(
        _floats(problem["hessians"]),
        _floats(problem["optima"]),
        sigma=_floats(problem["sigma"]),
        server_sigma=_floats(problem["server_sigma"]),
        target_weights=_floats(problem["target_weights"]),
        noise_shares=_floats(problem.get("noise_shares")),
    )
    return Setting(
        _made(document["algorithm"]),
        clients,
        _participation(document["participation"], clients.n_clients),
        document["rounds"],
        _floats(document["x0"]),
    )


def _floats(value: Any) -> Any:
    """Convert texts to floats, and named kinds to objects of the library."""
    if isinstance(value, list):
        return [_floats(item) for item in value]
    if isinstance(value, Mapping):
        return _made(value)
    return float(Fraction(value)) if isinstance(value, str) and value[-1:].isdigit() else value


def _made(document: Mapping[str, Any]) -> Any:
    given = {name: _floats(value) for name, value in document.items() if name != "name"}
    for name, value in given.items():
        if name == "cutoff" and value is None:
            given[name] = math.inf
        elif isinstance(value, list):
            given[name] = tuple(value)
    if "name" not in document:
        return Ball(**given)
    return class_named(document["name"])(**given)


def _participation(document: Mapping[str, Any], n_clients: int) -> Participation:
    given = {name: _floats(document[name]) for name in PARTICIPATIONS[document["name"]]}
    if "sets" in given:
        clients = np.arange(n_clients)
        given["state_masks"] = [np.isin(clients, members) for members in given.pop("sets")]
    kind = getattr(processes, document["name"])
    if "n_clients" in signature(kind).parameters:
        given["n_clients"] = n_clients
    return kind(**given)


# ------------------------------------------------------------ certificates


@dataclass(frozen=True)
class Certified:
    """A certificate that has passed the check.

    Attributes
    ----------
    theorem : Inequality
    document : mapping
        The content of the file.
    truth, bound : Fraction
        Two numbers with ``truth > bound``: the left-hand side is at least ``truth``, and the
        theorem's bound is at most ``bound``.
    """

    theorem: Inequality
    document: Mapping[str, Any]
    truth: Fraction
    bound: Fraction

    @property
    def setting(self) -> Setting:
        """The setting in float64, for the engines."""
        return setting_from_text(self.document["setting"])

    @property
    def lines(self) -> tuple[str, ...]:
        """The setting in a few lines: algorithm, clients, participation, start."""
        setting = self.document["setting"]
        problem = setting["problem"]
        return (
            _in_a_line(setting["algorithm"]),
            f"clients: {_in_a_line(problem)}",
            f"participation: {_in_a_line(setting['participation'])}",
            f"x0 = {_in_a_line(setting['x0'])}, {setting['rounds']} rounds",
        )


def _in_a_line(value: Any) -> str:
    """Return JSON as readable text, with names first and without quotation marks."""
    if isinstance(value, list):
        return f"({', '.join(map(_in_a_line, value))})"
    if not isinstance(value, Mapping):
        return str(value)
    inner = ", ".join(f"{k} = {_in_a_line(v)}" for k, v in value.items() if k != "name")
    return f"{value['name']}({inner})" if "name" in value else inner


@checks_kinds
def certificate(theorem: Statement, refuting: Setting | Witness) -> dict[str, Any]:
    """Return the certificate that a setting refutes a theorem.

    Raises
    ------
    ValueError
        If the setting does not refute the theorem, because a hypothesis fails or because the truth
        does not exceed the bound by more than rounding error; if statements of this kind have no
        certificates; or if the checker does not support a symbol, the algorithm or the
        participation, or refuses the run as too long.

    Examples
    --------
    >>> from fltheory import theorems
    >>> statement = theorems.get("fedau/3-step")
    >>> refuting = statement.regimes["before an interval ends"].setting
    >>> found = certificate(statement, refuting)
    >>> Fraction(found["truth"]) > Fraction(found["bound"])
    True
    """
    statement = statement_text(theorem)
    setting = refuting.setting() if isinstance(refuting, Witness) else refuting
    text = refuting.setting_text() if isinstance(refuting, Witness) else setting_text(setting)
    verdict = check(theorem, setting)
    truth, bound = _round_numbers_between(verdict.bound, verdict.truth)
    document = {
        "version": VERSION,
        "theorem": theorem.id,
        "reading": theorem.reading,
        "statement": statement,
        "setting": text,
        "truth": str(truth),
        "bound": str(bound),
    }
    check_certificate(document)
    return document


def _round_numbers_between(bound: float, truth: float) -> tuple[Fraction, Fraction]:
    """Return numbers near one third and two thirds of the way, with as few digits as possible."""
    for digits in range(2, 18):
        low, high = (
            Fraction(f"{bound + share * (truth - bound):.{digits}g}") for share in (1 / 3, 2 / 3)
        )
        if bound < low < high < truth:
            return high, low
    raise ValueError(
        f"setting must violate the bound by more than rounding, got {truth} against {bound}"
    )


def statement_text(theorem: Statement) -> dict[str, Any]:
    """Return a statement's formulas and definitions of symbols in the checker's format.

    Raises
    ------
    ValueError
        If this kind of claim has no certificates, or if a symbol is not defined by a formula.
    """
    claim = theorem.for_certificate()
    along_run = claim.round_symbols
    definitions, used = _used(claim)
    known = {item.symbol for item in along_run}
    for symbol in used:
        if symbol not in claim.quantities and symbol not in known:
            raise ValueError(
                f"{claim.id} cannot be certified: the value of {symbol} must be a formula in "
                "numbers of a setting"
            )
    return {
        "symbols": {str(s): claim.quantities[s] for s in used if s not in known},
        "definitions": {str(s): str(e) for s, e in definitions.items()},
        "round_symbols": {
            str(item.symbol): rule_text(item.field, item.reduction, item.rounds)
            for item in along_run
            if item.symbol in used
        },
        "conditions": {item.name: str(item.condition) for item in claim.hypotheses},
        "quantity": claim.quantity.certified_text(claim.id),
        "bound": str(claim.bound),
    }


def _used(theorem: Inequality) -> tuple[dict[sp.Symbol, sp.Expr], list[sp.Symbol]]:
    """Return the definitions and the other symbols that the statement's formulas use."""
    formulas: list[sp.Basic] = [theorem.bound, *(h.condition for h in theorem.hypotheses)]
    names = {str(s): s for s in (*theorem.meanings, *theorem.definitions)}
    formulas += theorem.quantity.formulas(names)
    needed = _symbols(formulas)
    definitions: dict[sp.Symbol, sp.Expr] = {}
    for symbol in reversed(list(theorem.definitions)):
        if symbol in needed:
            definitions[symbol] = theorem.definitions[symbol]
            needed |= _symbols([theorem.definitions[symbol]])
    r = sp.Symbol("r")
    free = sorted(needed - {*definitions, r}, key=str)
    return dict(reversed(definitions.items())), free


def _symbols(formulas: Iterable[sp.Basic]) -> set[Any]:
    return {symbol for formula in formulas for symbol in formula.free_symbols}


def write_certificate(path: Path, document: Mapping[str, Any]) -> None:
    """Write a certificate as JSON."""
    write_whole(path, json.dumps(document, indent=1) + "\n")


def read_certificate(path: Path | str) -> Certified:
    """Read and check a certificate.

    Raises
    ------
    ValueError
        If the file is damaged, a formula differs from the registered one, a number is wrong, a
        hypothesis is not met, the bound is not exceeded, or the statement does not cover such a
        setting. The message names the first fault found.

    Examples
    --------
    >>> read_certificate("nowhere.json")
    Traceback (most recent call last):
    ValueError: certificate must be an existing file, got 'nowhere.json'
    """
    document = _document_of(path)
    found = get(document["theorem"], document["reading"])
    registered = statement_text(found)
    theorem = found.for_certificate()
    _compare_statement(document.get("statement"), registered)
    # The checker must run first, because nothing else here is safe for untrusted numbers.
    truth, bound = check_certificate(document)
    certified = Certified(theorem, document, truth, bound)
    theorem.constants(certified.setting)
    return certified


def _document_of(path: Path | str) -> dict[str, Any]:
    """Return a file's content, after checking that it names a statement."""
    text = _text_of(path)
    try:
        document = parsed(text)
        for name in ("theorem", "reading"):
            if not isinstance(document.get(name), str):
                raise CertificateError(f"{name}: the field is missing, or is not text")
    except CertificateError as error:
        why = error if text.strip() else "the file is empty"
        raise CertificateError(
            "certificate must be a file that fltheory falsify or prove wrote, "
            f"got {str(path)!r}: {why}"
        ) from error
    return document


def _text_of(path: Path | str) -> str:
    must_be = "certificate must be an existing file"
    try:
        content = existing_file(must_be, path, most_bytes=MOST_CHARACTERS).read_bytes()
    except OSError as error:
        raise ValueError(f"{must_be}, got {str(path)!r}: {error.strerror}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CertificateError(
            "certificate must be a file that fltheory falsify or prove wrote, "
            f"got {str(path)!r}: not JSON: {error}"
        ) from error


def _compare_statement(found: Any, registered: Mapping[str, Any]) -> None:
    if not isinstance(found, dict):
        raise CertificateError("statement: the field is missing")
    for name, text in registered.items():
        if found.get(name) != text:
            raise CertificateError(f"statement.{name}: differs from the registered statement's")
