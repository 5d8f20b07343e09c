"""Checkers with one place changed: of the checker itself, or of the tools that it stands on."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from fltheory.worst_case import proof
from fltheory.worst_case.proof import checker_tools


def mutant_of(
    checker: types.ModuleType, mutation: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> types.ModuleType:
    """Return a checker in which a piece of source, found in one place, is another."""
    old, new = mutation
    sources = {module: _source(module) for module in (checker, checker_tools)}
    assert sum(text.count(old) for text in sources.values()) == 1, "it must fit one place"
    if old in sources[checker_tools]:
        tools = _loaded("mutant_tools", sources[checker_tools].replace(old, new), monkeypatch)
        monkeypatch.setattr(proof, "checker_tools", tools)
    return _loaded("mutant", sources[checker].replace(old, new), monkeypatch)


def _source(module: types.ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def _loaded(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__package__ = proof.__name__
    # Its dataclasses look their module up.
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
    return module
