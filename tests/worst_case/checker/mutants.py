"""Checkers with one place changed: of the front end itself, or of the kernel that it stands on."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from fltheory.worst_case import checker as folder
from fltheory.worst_case.checker import kernel


def mutant_of(
    checker: types.ModuleType, mutation: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> types.ModuleType:
    """Return a checker in which a piece of source, found in one place, is another."""
    old, new = mutation
    sources = {module: _source(module) for module in (checker, kernel)}
    assert sum(text.count(old) for text in sources.values()) == 1, "it must fit one place"
    if old in sources[kernel]:
        changed = _loaded("mutant_kernel", sources[kernel].replace(old, new), monkeypatch)
        monkeypatch.setattr(folder, "kernel", changed)
    return _loaded("mutant", sources[checker].replace(old, new), monkeypatch)


def _source(module: types.ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def _loaded(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__package__ = folder.__name__
    # Its dataclasses look their module up.
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
    return module
