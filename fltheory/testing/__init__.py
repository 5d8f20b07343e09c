"""Theorems and implementations in your own tests.

``pytest --fltheory my_theorem.py`` makes one test per statement and regime; see
`fltheory.testing.pytest_plugin`. `check_algorithm` checks an implementation of an algorithm against
its paper, law by law. Importing this module is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fltheory.testing.cells import each_cell

if TYPE_CHECKING:
    from fltheory.testing.conformance.own_runs import run_of
    from fltheory.testing.conformance.suite import check_algorithm, conformance_laws

__all__ = [
    "check_algorithm",
    "conformance_laws",
    "each_cell",
    "run_of",
]

_HOMES = {
    "check_algorithm": "suite",
    "conformance_laws": "suite",
    "run_of": "own_runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.conformance.{_HOMES[name]}"), name)
