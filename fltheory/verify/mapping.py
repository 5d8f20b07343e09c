"""Where a theorem applies, holds, is refuted, and how loose it is, over two parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.problems import QuadraticProblem
from fltheory.progress import Progress
from fltheory.theorems import RateClaim, Statement
from fltheory.validation import FloatArray
from fltheory.verify.check import check
from fltheory.verify.verdict import Outcome, Verdict

_ALMOST_NOWHERE = 0.05


@dataclass(frozen=True)
class MapAxis:
    """A parameter of a setting and the values it takes, in increasing order."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class RegionMap:
    """Verdicts over two parameters.

    Attributes
    ----------
    theorem, reading : str
    x, y : MapAxis
    verdicts : tuple of tuples of Verdict
        One row for each value of ``y``, one column for each of ``x``.
    """

    theorem: str
    reading: str
    x: MapAxis
    y: MapAxis
    verdicts: tuple[tuple[Verdict, ...], ...]

    @cached_property
    def looseness(self) -> FloatArray:
        """log10(bound/truth) of every cell, (len(y), len(x)); NaN where one is 0 or infinite."""
        return np.array([[_looseness(verdict) for verdict in row] for row in self.verdicts])

    def share(self, *outcomes: Outcome) -> float:
        """Return the share of cells with one of these verdicts."""
        cells = [verdict.outcome for row in self.verdicts for verdict in row]
        return sum(outcome in outcomes for outcome in cells) / len(cells)

    @property
    def summary(self) -> str:
        """How much of the map the theorem says anything about, in a line."""
        applies = 1 - self.share(Outcome.INAPPLICABLE)
        where = "almost nowhere, " if applies < _ALMOST_NOWHERE else ""
        parts = (Outcome.HOLDS, Outcome.REFUTED, Outcome.UNDECIDED)
        shares = ", ".join(f"{part.name} on {self.share(part):.1%}" for part in parts)
        return f"applies {where}on {applies:.1%} of the cells: {shares}"


def map_region(
    theorem: Statement,
    setting: Setting,
    x: MapAxis,
    y: MapAxis,
    *,
    progress: Progress | None = None,
) -> RegionMap:
    """Check a theorem on a setting with two of its parameters varied.

    Parameters
    ----------
    theorem : Theorem
    setting : Setting
        What stays as it is.
    x, y : MapAxis
        Parameters, see `parameters`.
    progress : callable, optional
        Called with (cells done, cells, name of the next cell).

    Raises
    ------
    ValueError
        For a claimed order, a parameter that does not exist or that the setting does not
        have, twice the same one, or a value out of range.
    """
    if isinstance(theorem, RateClaim):
        raise ValueError(f"theorem must be an inequality to be mapped, got {theorem.id}")
    if x.name == y.name:
        raise ValueError(f"y must be another parameter than x, got {y.name!r} twice")
    rows: list[tuple[Verdict, ...]] = []
    total = len(x.values) * len(y.values)
    for down, y_value in enumerate(y.values):
        row: list[Verdict] = []
        for across, x_value in enumerate(x.values):
            if progress is not None:
                name = f"{x.name} = {x_value:g}, {y.name} = {y_value:g}"
                progress(down * len(x.values) + across, total, name)
            cell = varied(varied(setting, x.name, x_value), y.name, y_value)
            row.append(check(theorem, cell))
        rows.append(tuple(row))
    return RegionMap(theorem.id, theorem.reading, x, y, tuple(rows))


def _looseness(verdict: Verdict) -> float:
    if not (0 < verdict.truth < math.inf and 0 < verdict.bound < math.inf):
        return math.nan
    return math.log10(verdict.bound / verdict.truth)


def varied(setting: Setting, name: str, value: float) -> Setting:
    """Return the setting with one parameter changed, and all that is tied to it.

    Raises
    ------
    ValueError
        For a parameter that does not exist, that the setting does not have, or a value out
        of range.
    """
    _known(name)
    return _PARAMETERS[name][1](setting, value)


def _known(name: str) -> None:
    if name not in _PARAMETERS:
        raise ValueError(f"parameter must be one of {', '.join(_PARAMETERS)}, got {name!r}")


def parameters() -> Mapping[str, str]:
    """Return what can be varied, and what it means."""
    return {name: meaning for name, (meaning, _, _) in _PARAMETERS.items()}


def default_axis(setting: Setting, name: str) -> MapAxis:
    """Return a parameter with values around the setting's own.

    Raises
    ------
    ValueError
        For a parameter that does not exist.
    """
    _known(name)
    return MapAxis(name, _PARAMETERS[name][2](setting))


def _safari(setting: Setting, name: str) -> Safari:
    if not isinstance(setting.algorithm, Safari):
        raise ValueError(f"{name} must belong to the algorithm, which is {setting.algorithm!r}")
    return setting.algorithm


def _with_algorithm(setting: Setting, algorithm: Safari) -> Setting:
    return Setting(algorithm, setting.problem, setting.participation, setting.rounds, setting.x0)


def _vary_q(setting: Setting, value: float) -> Setting:
    return _with_algorithm(setting, replace(_safari(setting, "q"), q=value))


def _vary_rounds(setting: Setting, value: float) -> Setting:
    return Setting(
        setting.algorithm, setting.problem, setting.participation, int(value), setting.x0
    )


def _vary_local_steps(setting: Setting, value: float) -> Setting:
    safari = _safari(setting, "local_steps")
    client_lr = safari.client_lr * safari.local_steps / value
    return _with_algorithm(setting, replace(safari, local_steps=int(value), client_lr=client_lr))


def _vary_step(setting: Setting, value: float) -> Setting:
    safari = _safari(setting, "step")
    scaled = replace(safari, client_lr=value * safari.client_lr, assist_lr=value * safari.assist_lr)
    return _with_algorithm(setting, scaled)


def _vary_distance(setting: Setting, value: float) -> Setting:
    x_star = setting.problem.x_star
    x0 = x_star + value * (setting.x0 - x_star)
    return Setting(setting.algorithm, setting.problem, setting.participation, setting.rounds, x0)


def _vary_heterogeneity(setting: Setting, value: float) -> Setting:
    problem = setting.problem
    if not isinstance(problem, QuadraticProblem):
        raise ValueError(f"heterogeneity must belong to a QuadraticProblem, got {problem!r}")
    spread = QuadraticProblem(
        problem.hessians,
        problem.x_star + value * (problem.optima - problem.x_star),
        sigma=problem.sigma,
        server_sigma=problem.server_sigma,
        target_weights=problem.target_weights,
    )
    return Setting(setting.algorithm, spread, setting.participation, setting.rounds, setting.x0)


def _factors(setting: Setting) -> tuple[float, ...]:
    return tuple(float(factor) for factor in np.geomspace(0.01, 100, 13))


def _rounds(setting: Setting) -> tuple[float, ...]:
    return tuple(float(round(r)) for r in np.geomspace(1, 10 * setting.rounds, 13))


_PARAMETERS: Mapping[
    str,
    tuple[str, Callable[[Setting, float], Setting], Callable[[Setting], tuple[float, ...]]],
] = {
    "q": (
        "probability of a clients' round",
        _vary_q,
        lambda setting: tuple(float(q) for q in np.linspace(0, 1, 13)),
    ),
    "rounds": ("communication rounds R", _vary_rounds, _rounds),
    "local_steps": (
        "local steps K, with eta_c K kept",
        _vary_local_steps,
        lambda setting: (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0),
    ),
    "step": ("factor on both step sizes", _vary_step, _factors),
    "distance": ("factor on x0 - x*", _vary_distance, _factors),
    "heterogeneity": (
        "factor on the clients' optima, so on sigma_G",
        _vary_heterogeneity,
        _factors,
    ),
}
