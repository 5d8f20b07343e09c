"""The examples in the package's docstrings."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import fltheory

EVERY = [
    info.name
    for info in pkgutil.walk_packages(fltheory.__path__, "fltheory.", onerror=lambda name: None)
]
OF_HARDWARE = [name for name in EVERY if name.startswith("fltheory.hardware")]
MODULES = [name for name in EVERY if not name.startswith(("fltheory.hardware", "fltheory.flower"))]


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(examples) >= 6


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0


@pytest.mark.parametrize("name", OF_HARDWARE)
def test_examples_of_hardware_are_true(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("torch", "sklearn"):
        pytest.importorskip(needed)
    monkeypatch.chdir(Path(fltheory.__file__).parents[1])  # where experiments/ is
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
