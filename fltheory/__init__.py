"""Tell whether a convergence theorem is true as printed, where it applies, how loose it is.

A theory-verification toolkit for federated learning under partial participation. The
subpackages load when they are used:

- `fltheory.problems`, `fltheory.participation`: analytic client losses, and who shows up
- `fltheory.algorithms`: the papers' algorithms
- `fltheory.weights`: CA-Fed's optimal aggregation weights
- `fltheory.engines`: the truth, exact or sampled
- `fltheory.learnability`: PAC learnability, what is impossible and what a server's data revives
- `fltheory.fedau`: FedAU's best cut-off
- `fltheory.experiments`: papers' experiments, run again
- `fltheory.theorems`: the papers' statements as data
- `fltheory.verify`: verdicts
- `fltheory.report`: tables, pages and figures
- `fltheory.strategies`: settings drawn by Hypothesis
- `fltheory.hardware`: the same algorithms in torch, on images
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"

_SUBPACKAGES = (
    "algorithms",
    "engines",
    "fedau",
    "experiments",
    "hardware",
    "learnability",
    "participation",
    "problems",
    "report",
    "strategies",
    "theorems",
    "verify",
    "weights",
)

__all__ = ["__version__", *_SUBPACKAGES]


def __getattr__(name: str) -> ModuleType:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fltheory.{name}")
    raise AttributeError(f"module 'fltheory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
