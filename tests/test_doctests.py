"""The examples in the package's docstrings."""

import doctest
import importlib
import pkgutil

import pytest

import fltheory

MODULES = [
    info.name
    for info in pkgutil.walk_packages(fltheory.__path__, "fltheory.", onerror=lambda name: None)
    if not info.name.startswith(("fltheory.hardware", "fltheory.flower"))
]


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
