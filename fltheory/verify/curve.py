"""Truth and bound over the rounds, or over the variable of a claimed order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fltheory.engines import Setting
from fltheory.learnability import LearningSetting
from fltheory.theorems.statement import RateClaim, Statement, Theorem
from fltheory.verify.bound_curve import BoundCurve
from fltheory.verify.check import (
    AxisReading,
    Comparison,
    axes_verdict,
    check,
    left_side,
    read_axes,
    worst_of,
)
from fltheory.verify.curve_samples import sides_of
from fltheory.verify.evaluation import evaluate, theorem_values
from fltheory.verify.shorter_runs import beginning
from fltheory.verify.truth import Sampling, truth_of
from fltheory.verify.verdict import Verdict

_POINTS = 24


def check_with_curve(
    statement: Statement, setting: Setting | LearningSetting, sampling: Sampling
) -> tuple[Verdict, BoundCurve | None]:
    """Check a statement as `check` does, and return its curve along with the verdict.

    The truth behind both is computed once. What is claimed without a run has no curve.
    """
    if isinstance(statement, RateClaim) and isinstance(setting, Setting):
        readings = read_axes(statement, setting, sampling)
        return axes_verdict(statement, readings), _curve_of(worst_of(readings))
    verdict = check(
        statement,
        setting,
        replicas=sampling.replicas,
        seed=sampling.seed,
        error_probability=sampling.error_probability,
    )
    if isinstance(statement, Theorem) and isinstance(setting, Setting):
        return verdict, over_rounds(statement, setting, sampling)
    return verdict, None


def over_rounds(theorem: Theorem, setting: Setting, sampling: Sampling) -> BoundCurve:
    """Return both sides of a theorem for runs of 1 up to the setting's number of rounds.

    A shorter run is the beginning of the longer one: hyper-parameters stay as they are. Rounds
    are equally far apart on a logarithmic scale. Those for which the quantity is over no rounds
    at all, or of which the theorem does not speak, are left out.
    """
    truth = truth_of(setting, theorem.observe(setting), sampling)
    comparisons: dict[int, Comparison] = {}
    for rounds in _rounds_between(1, setting.rounds):
        first = beginning(truth, rounds)
        if theorem.quantity.rounds.of(first.trajectory.squared_distance).size:
            shorter = replace(setting, rounds=rounds)
            bound = _bound(theorem, shorter)
            if bound is not None:
                left, error = left_side(theorem, first, shorter)
                comparisons[rounds] = Comparison(left, bound, truth.evidence(error), ())
    return _curve("rounds", tuple(comparisons), tuple(comparisons.values()))


def _rounds_between(first: int, last: int) -> list[int]:
    return [int(r) for r in np.unique(np.rint(np.geomspace(first, last, _POINTS)))]


def _bound(theorem: Theorem, setting: Setting) -> float | None:
    try:
        values = theorem_values(theorem, theorem.constants(setting))
    except ValueError:
        return None
    return float(evaluate(theorem.bound, values))


def _curve_of(reading: AxisReading) -> BoundCurve:
    return _curve(str(reading.axis.variable), reading.grid, reading.comparisons)


def _curve(variable: str, values: Sequence[int], sides: Sequence[Comparison]) -> BoundCurve:
    return BoundCurve(
        "",
        variable,
        "",
        np.array(values, dtype=np.float64),
        np.array([one.bound for one in sides]),
        **sides_of(sides),
    )
