"""The examples in the docstrings of what needs Flower."""

import doctest
import importlib
import pkgutil

import pytest

pytest.importorskip("flwr", reason="needs the extra flower: docs/how-to/flower.md")

import fltheory.flower as package

MODULES = [info.name for info in pkgutil.iter_modules(package.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(f"fltheory.flower.{name}"))
    assert failures == 0
