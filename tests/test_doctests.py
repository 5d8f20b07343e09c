"""The examples in docstrings, of the package and of the scripts that make pages."""

import doctest
import importlib
from pathlib import Path

import pytest

import fltheory

ROOT = Path(fltheory.__file__).parent
EVERY = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((*ROOT.rglob("*.py"), *ROOT.parent.glob("docs/scripts/*.py")))
    if ">>> " in path.read_text(encoding="utf-8")
]
OF_HARDWARE = [name for name in EVERY if name.startswith("fltheory.hardware")]
MODULES = [name for name in EVERY if not name.startswith(("fltheory.hardware", "fltheory.flower"))]


def test_there_are_examples() -> None:
    assert len(MODULES) >= 6
    assert OF_HARDWARE


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert failures == 0 < tried


@pytest.mark.parametrize("name", OF_HARDWARE)
def test_examples_of_hardware_are_true(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("torch", "sklearn"):
        pytest.importorskip(needed)
    monkeypatch.chdir(ROOT.parent)  # where experiments/ is
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert failures == 0 < tried
