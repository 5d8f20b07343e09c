"""The package's public names: what every public module lists in ``__all__``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from functools import lru_cache

import fltheory

_OPTIONAL = ("hardware",)
_NESTED = ("hardware.datasets", "hardware.partitions")  # public too, and without torch


@lru_cache(maxsize=1)
def public_names() -> Mapping[str, tuple[str, ...]]:
    """Return the public names of each subpackage; of one without ``__all__`` its own functions.

    Examples
    --------
    >>> "check" in public_names()["verify"]
    True
    """
    found = {}
    for name in (*fltheory.__all__, *_NESTED):
        if name.startswith("_"):
            continue
        module = importlib.import_module(f"fltheory.{name}")
        listed = getattr(module, "__all__", None) or _own(module)
        found[name] = tuple(sorted(listed))
    return found


def undocumented() -> tuple[str, ...]:
    """Return public classes, functions and modules that have no docstring of their own.

    What needs an extra that is not installed (torch) is passed over.
    """
    missing = []
    for package, names in public_names().items():
        module = importlib.import_module(f"fltheory.{package}")
        for name in names:
            try:
                thing = getattr(module, name)
            except ImportError:
                if package not in _OPTIONAL:
                    raise
                continue
            described = inspect.isclass(thing) or inspect.isroutine(thing)
            if described and not (inspect.getdoc(thing) or "").strip():
                missing.append(f"fltheory.{package}.{name}")
    return tuple(missing)


def _own(module: object) -> list[str]:
    name = getattr(module, "__name__", "")
    return [
        key
        for key, thing in vars(module).items()
        if not key.startswith("_") and getattr(thing, "__module__", "") == name
    ]
