"""Theorems and implementations in your own tests.

``pytest --fltheory my_theorem.py`` makes a test of each statement in each of its regimes; see
`fltheory.testing.pytest_plugin`. `check_algorithm` checks an implementation of an algorithm
against its paper, law by law. Nothing here takes time to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fltheory.testing.cells import each_cell, rows_of

if TYPE_CHECKING:
    from fltheory.testing.conformance.cases.clients import QuadraticClient
    from fltheory.testing.conformance.own_runs import run_of
    from fltheory.testing.conformance.pytest_laws import LawCheck, conformance_laws
    from fltheory.testing.conformance.report import (
        ConformanceError,
        ConformanceReport,
        Finding,
        Outcome,
    )
    from fltheory.testing.conformance.specifications import conformance_algorithms
    from fltheory.testing.conformance.suite import check_algorithm

__all__ = [
    "ConformanceError",
    "ConformanceReport",
    "Finding",
    "LawCheck",
    "Outcome",
    "QuadraticClient",
    "check_algorithm",
    "conformance_algorithms",
    "conformance_laws",
    "each_cell",
    "rows_of",
    "run_of",
]

_HOMES = {
    "ConformanceError": "report",
    "ConformanceReport": "report",
    "Finding": "report",
    "Outcome": "report",
    "QuadraticClient": "cases.clients",
    "LawCheck": "pytest_laws",
    "check_algorithm": "suite",
    "conformance_algorithms": "specifications",
    "conformance_laws": "pytest_laws",
    "run_of": "own_runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.conformance.{_HOMES[name]}"), name)
