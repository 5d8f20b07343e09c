"""Every public name is documented."""

from __future__ import annotations

import importlib
import inspect

import pytest

import fltheory
from fltheory.report import public_names as module
from fltheory.report.public_names import description, public_names, undocumented


def test_every_public_name_has_a_docstring() -> None:
    assert undocumented() == ()


def test_a_name_without_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare() -> None:
        pass

    verify = importlib.import_module("fltheory.verify")
    monkeypatch.setattr(verify, "check", bare)
    assert undocumented() == ("fltheory.verify.check",)


def test_what_needs_a_missing_extra_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(f"{name} needs torch")

    hardware = importlib.import_module("fltheory.hardware")
    for name in public_names()["hardware"]:
        monkeypatch.delitem(vars(hardware), name, raising=False)
    monkeypatch.setattr(hardware, "__getattr__", absent)
    assert undocumented() == ()
    others = tuple(one for one in module._OPTIONAL if not one.startswith("hardware"))
    monkeypatch.setattr(module, "_OPTIONAL", others)
    with pytest.raises(ImportError, match="needs torch"):
        undocumented()


def test_every_public_subpackage_is_covered() -> None:
    names = {name for name in fltheory.__all__ if inspect.ismodule(getattr(fltheory, name))}
    inside = {"datasets", "models", "training"}
    assert names | {f"hardware.{name}" for name in inside} == set(public_names())
    assert "read_experiment" in public_names()["hardware.training"]
    assert public_names()["hardware.models"] == ("build",)
    assert public_names()["fedau"] == ("best_cutoff",)
    assert "check" in public_names()["verify"]


def test_a_user_can_look_over_them() -> None:
    """As many as in optax, the largest of the libraries that the house is compared with."""
    assert sum(len(names) for names in public_names().values()) <= 130


def test_every_name_has_an_example() -> None:
    """Those of Flower, which needs an environment of its own, are shown by its page."""
    pytest.importorskip("torch")
    without = {
        f"{package}.{name}"
        for package, names in public_names().items()
        if package != "flower"
        for name in names
        if ">>>" not in (inspect.getdoc(_public(package, name)) or "")
    }
    assert without == set()


def _public(package: str, name: str) -> object:
    return getattr(importlib.import_module(f"fltheory.{package}"), name)


def test_names_are_those_of_the_module() -> None:
    for package in ("algorithms", "fedau", "problems", "report", "theorems", "verify", "weights"):
        module = importlib.import_module(f"fltheory.{package}")
        listed = getattr(module, "__all__", None)
        own = [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
        ]
        assert public_names()[package] == tuple(sorted(listed or own))
        assert description(package) == (module.__doc__ or "").strip()


def test_other_modules_are_refused() -> None:
    with pytest.raises(ValueError, match=r"name must be of a module of fltheory, got 'nothing'"):
        description("nothing")
