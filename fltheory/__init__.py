"""Find out whether a convergence theorem is true as printed, where it applies, how loose it is.

A theory-verification toolkit for federated learning under partial participation. Most people need
only what is here (``import fltheory as fl``):

>>> import fltheory as fl
>>> theorem = fl.theorem("sa-fl/5", reading="derived")
>>> fl.check(theorem, theorem.regimes["q = 0"].setting).outcome.name
'HOLDS'

- `fl.theorem`, `fl.check`, `fl.falsify`, `fl.map_region`: a statement, its verdict on a setting,
  a search for a refutation, a map of where it applies
- `fl.compare`: all statements about a setting, side by side
- `fl.Setting`, `fl.quadratic`: problem, algorithm, participation, rounds and start together;
  quadratic clients with constants that you prescribe
- `fl.read_setting`, `fl.write_setting`: a setting as a TOML file
- `fl.truth`, `fl.exact`, `fl.paths`, `fl.stationary`, `fl.monte_carlo`: the true error of a run,
  by the best engine for it (`truth`), or by the one that you name
- `fl.optimal_weights`: CA-Fed's aggregation weights for given availability

The rest is in subpackages, which load when they are used:

- `fltheory.problems`, `fltheory.participation`: analytic client losses, and who takes part
- `fltheory.algorithms`: the papers' algorithms
- `fltheory.weights`: CA-Fed's optimal aggregation weights
- `fltheory.engines`: the truth, exact or sampled
- `fltheory.learnability`: PAC learnability: what is impossible, and how a server's data help
- `fltheory.logs`: logs of who was online, read, described and fitted
- `fltheory.fedau`: FedAU's best cut-off
- `fltheory.theorems`: the papers' statements as data
- `fltheory.worst_case`: bounds proved for every client loss of a class
- `fltheory.verify`: verdicts
- `fltheory.sweep`: statements over grids and random draws of settings, into a store
- `fltheory.report`: tables, pages and figures
- `fltheory.strategies`: settings drawn by Hypothesis
- `fltheory.testing`: theorems as tests of your own, with pytest
- `fltheory.hardware`: the same algorithms in torch, on images
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fltheory.engines import (
        Setting,
        exact,
        monte_carlo,
        read_setting,
        stationary,
        write_setting,
    )
    from fltheory.engines.history.paths import paths
    from fltheory.problems import quadratic
    from fltheory.theorems import get as theorem
    from fltheory.verify import compare, falsify, map_region, truth
    from fltheory.verify.check import check
    from fltheory.weights import optimal as optimal_weights

__version__ = "0.2.0"

_SUBPACKAGES = (
    "algorithms",
    "engines",
    "fedau",
    "flower",
    "hardware",
    "learnability",
    "logs",
    "participation",
    "problems",
    "report",
    "strategies",
    "testing",
    "theorems",
    "verify",
    "weights",
    "worst_case",
    "sweep",
)
# Where each name here comes from, and what it is called there.
_NAMES: Mapping[str, tuple[str, str]] = {
    **{
        name: ("engines", name)
        for name in (
            "Setting",
            "exact",
            "monte_carlo",
            "paths",
            "read_setting",
            "stationary",
            "write_setting",
        )
    },
    **{name: ("verify", name) for name in ("check", "compare", "falsify", "map_region", "truth")},
    "quadratic": ("problems", "quadratic"),
    "theorem": ("theorems", "get"),
    "optimal_weights": ("weights", "optimal"),
}

__all__ = [
    "Setting",
    "__version__",
    "check",
    "compare",
    "exact",
    "falsify",
    "map_region",
    "monte_carlo",
    "optimal_weights",
    "paths",
    "quadratic",
    "read_setting",
    "stationary",
    "theorem",
    "truth",
    "write_setting",
    *_SUBPACKAGES,
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"fltheory.{name}")
    if name in _NAMES:
        package, there = _NAMES[name]
        return getattr(importlib.import_module(f"fltheory.{package}"), there)
    raise AttributeError(f"module 'fltheory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
