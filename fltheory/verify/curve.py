"""Truth and bound over the rounds, or over the variable of a claimed order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fltheory.engines import Setting
from fltheory.learnability import LearningSetting
from fltheory.theorems.statement import DirectionClaim, RateClaim, Statement, Theorem
from fltheory.verify.check import (
    AxisReading,
    check,
    left_side,
    rate_verdict,
    read_axes,
    worst_of,
)
from fltheory.verify.evaluation import evaluate, theorem_values
from fltheory.verify.shorter_runs import beginning
from fltheory.verify.truth import Sampling, truth_of
from fltheory.verify.verdict import Verdict

_POINTS = 24


@dataclass(frozen=True)
class Curve:
    """Both sides of an inequality at several values of one variable.

    Attributes
    ----------
    variable : str
        What varies: ``"rounds"``, or the variable of a claimed order.
    at : tuple of int
        Its values, in increasing order.
    truth, bound : tuple of float
        Both sides at each; infinite or NaN where they are so.
    error : tuple of float
        Half-width of the interval around each truth.
    """

    variable: str
    at: tuple[int, ...]
    truth: tuple[float, ...]
    bound: tuple[float, ...]
    error: tuple[float, ...]


def check_with_curve(
    statement: Statement, setting: Setting | LearningSetting, sampling: Sampling
) -> tuple[Verdict, Curve | None]:
    """Check a statement as `check` does, and return its curve along with the verdict.

    The truth behind both is computed once. What is claimed without a run has no curve.
    """
    is_order = isinstance(statement, RateClaim) and not isinstance(statement, DirectionClaim)
    if isinstance(statement, RateClaim) and is_order and isinstance(setting, Setting):
        readings = read_axes(statement, setting, sampling)
        return rate_verdict(statement, readings), _curve_of(worst_of(readings))
    verdict = check(
        statement,
        setting,
        replicas=sampling.replicas,
        seed=sampling.seed,
        error_probability=sampling.error_probability,
    )
    if isinstance(statement, Theorem) and isinstance(setting, Setting):
        return verdict, over_rounds(statement, setting, sampling)
    if isinstance(statement, DirectionClaim) and isinstance(setting, Setting):
        return verdict, _curve_of(worst_of(read_axes(statement, setting, sampling)))
    return verdict, None


def over_rounds(theorem: Theorem, setting: Setting, sampling: Sampling) -> Curve:
    """Return both sides of a theorem for runs of 1 up to the setting's number of rounds.

    A shorter run is the beginning of the longer one: hyper-parameters stay as they are. Rounds
    are equally far apart on a logarithmic scale. Those for which the quantity is over no rounds
    at all, or of which the theorem does not speak, are left out.
    """
    truth = truth_of(setting, theorem.observe(setting), sampling)
    points = []
    for rounds in _rounds_between(1, setting.rounds):
        first = beginning(truth, rounds)
        if theorem.quantity.rounds.of(first.trajectory.squared_distance).size:
            shorter = replace(setting, rounds=rounds)
            bound = _bound(theorem, shorter)
            if bound is not None:
                points.append((rounds, *left_side(theorem, first, shorter), bound))
    at, truths, errors, bounds = zip(*points, strict=True) if points else ((), (), (), ())
    return Curve("rounds", at, truths, bounds, errors)


def _rounds_between(first: int, last: int) -> list[int]:
    return [int(r) for r in np.unique(np.rint(np.geomspace(first, last, _POINTS)))]


def _bound(theorem: Theorem, setting: Setting) -> float | None:
    try:
        values = theorem_values(theorem, theorem.constants(setting))
    except ValueError:
        return None
    return float(evaluate(theorem.bound, values))


def _curve_of(reading: AxisReading) -> Curve:
    return Curve(
        variable=str(reading.axis.variable),
        at=reading.grid,
        truth=tuple(item.truth for item in reading.comparisons),
        bound=tuple(item.bound for item in reading.comparisons),
        error=tuple(item.evidence.error for item in reading.comparisons),
    )
