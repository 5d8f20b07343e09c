"""The package's public names, which are those that public modules list in ``__all__``.

Names are read from the source, so that modules that need an extra are listed without it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import fltheory

_OPTIONAL = ("flower", "hardware", "hardware.models", "hardware.training")
_NESTED = ("hardware.datasets", "hardware.models", "hardware.training")


@lru_cache(maxsize=1)
def public_names() -> Mapping[str, tuple[str, ...]]:
    """Return each module's public names, or its own definitions if it has no ``__all__``.

    Examples
    --------
    >>> "check" in public_names()["verify"]
    True
    """
    public = [name for name in fltheory.__all__ if find_spec(f"fltheory.{name}") is not None]
    return {name: tuple(sorted(_listed(_parsed(name)))) for name in sorted([*public, *_NESTED])}


def description(name: str) -> str:
    """Return the docstring of a public module.

    Examples
    --------
    >>> description("fedau")[:5]
    'FedAU'
    """
    return ast.get_docstring(_parsed(name)) or ""


def undocumented() -> tuple[str, ...]:
    """Return public classes, functions and modules that have no docstring of their own.

    Modules that need an extra that is not installed (torch, Flower) are skipped.
    """
    missing = [f"fltheory.{package}" for package in public_names() if not description(package)]
    for package, names in public_names().items():
        for name in names:
            try:
                thing = getattr(importlib.import_module(f"fltheory.{package}"), name)
            except ImportError:
                if package not in _OPTIONAL:
                    raise
                continue
            described = inspect.isclass(thing) or inspect.isroutine(thing)
            if described and not (inspect.getdoc(thing) or "").strip():
                missing.append(f"fltheory.{package}.{name}")
    return tuple(missing)


@cache
def _parsed(name: str) -> ast.Module:
    found = find_spec(f"fltheory.{name}")
    if found is None or found.origin is None:
        raise ValueError(f"name must be of a module of fltheory, got {name!r}")
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


def _listed(module: ast.Module) -> list[str]:
    """Return what a module lists in ``__all__``, or else the functions and classes it defines."""
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=names):
                return list(ast.literal_eval(names))
    defined = (
        statement.name
        for statement in module.body
        if isinstance(statement, ast.FunctionDef | ast.ClassDef)
    )
    return [name for name in defined if not name.startswith("_")]
