"""Claimed orders and directions as curves: the truth beside what is claimed of its course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fltheory.engines import Setting
from fltheory.learnability import LearningSetting
from fltheory.theorems.learning_claim import DecayClaim
from fltheory.theorems.statement import DirectionClaim, RateClaim, Statement, Theorem
from fltheory.validation import FloatArray
from fltheory.verify.bound_curve import BoundCurve, quantity_label
from fltheory.verify.check import AxisReading, axes_verdict, read_axes, worst_of
from fltheory.verify.curve_samples import (
    CurveSample,
    at_values,
    drawn_at,
    of_errors,
    sampled_run,
    sides_of,
)
from fltheory.verify.evaluation import evaluate
from fltheory.verify.learning_check import check_decay, measurements
from fltheory.verify.truth import Sampling
from fltheory.verify.verdict import Verdict

_ERROR_PROBABILITY = 1e-9


def order_curve(
    claim: Statement,
    setting: Setting | LearningSetting,
    *,
    replicas: int = 400,
    seed: int = 0,
) -> BoundCurve:
    """Follow a claimed order, or direction, over its variable; there is one verdict for all values.

    The claimed order is a line through the truth at the beginning of the last decade, over which
    slopes are fitted, or at the first value for a `DecayClaim`, where it is over all. Of a claimed
    direction the line is the truth at the value before, which the next is claimed to pass.

    Parameters
    ----------
    claim : RateClaim, DirectionClaim or DecayClaim
        Of several orders the one that decides the verdict is followed.
    setting : Setting, or learning problem
    replicas, seed : int
        For sampling: a run at each value, or draws of the quantity. With 0 replicas nothing is
        sampled where the truth can be computed.

    Raises
    ------
    ValueError
        For a statement without a variable of its own.

    Examples
    --------
    >>> from fltheory import theorems
    >>> claim = theorems.get("fedar/average-inactivity")
    >>> curve = order_curve(claim, claim.regimes["in rotation"].setting, replicas=0)
    >>> curve.verdict, curve.values.tolist()
    ('HOLDS', [1.0, 2.0, 4.0, 8.0])
    """
    sampling = Sampling(replicas or Sampling.replicas, seed, _ERROR_PROBABILITY)
    if isinstance(claim, DecayClaim):
        return _decay_curve(claim, setting, sampling, draw=replicas > 0)
    if not isinstance(claim, RateClaim):
        raise ValueError(f"claim must be about an order or a direction, got {claim.id}")
    if not isinstance(setting, Setting):
        raise ValueError(f"setting must be a Setting for {claim.id}, got {setting!r}")
    readings = read_axes(claim, setting, sampling)
    reading = worst_of(readings)
    is_direction = isinstance(claim, DirectionClaim)
    curve = _truth_along(claim, reading, axes_verdict(claim, readings))
    if curve.is_computed and replicas:
        drawn = _sample(claim, reading, setting, replicas, seed)
        curve = replace(curve, **({} if drawn is None else drawn.fields()))
    if is_direction:
        return replace(
            curve, bound=_value_before(curve.judged), bound_name=_before(reading), note=""
        )
    orders = reading.orders
    place = int(np.argmax(curve.values >= curve.values[-1] / 10))
    claimed = np.array(orders) / orders[place] * curve.judged[place]
    bounds = np.array([one.bound for one in reading.comparisons])
    parts = {"bound": bounds} if np.isfinite(bounds).all() else {}
    return replace(curve, bound=claimed, parts=parts, note=reading.text)


def _truth_along(claim: RateClaim, reading: AxisReading, verdict: Verdict) -> BoundCurve:
    """Return what was judged, computed or sampled."""
    quantity = claim.theorem.quantity
    return BoundCurve(
        f"{claim.id} ({claim.reading})",
        f"${reading.axis.variable}$",
        quantity_label(quantity),
        np.array(reading.grid, dtype=np.float64),
        np.full(len(reading.grid), np.nan),
        (verdict.outcome,) * len(reading.grid),
        bound_name="claimed order",
        **sides_of(reading.comparisons),
    )


def _sample(
    claim: RateClaim, reading: AxisReading, setting: Setting, replicas: int, seed: int
) -> CurveSample | None:
    theorem = claim.theorem
    settings = [reading.axis.schedule(setting, value) for value in reading.grid]
    if isinstance(theorem, Theorem):
        runs = [sampled_run(theorem, one, replicas, seed) for one in settings]
        return at_values(theorem, runs, settings)
    return drawn_at(theorem.quantity.sample, settings, replicas, seed)


def _before(reading: AxisReading) -> str:
    course = "exceeded" if reading.orders[-1] > reading.orders[0] else "undercut"
    return f"truth one value before, to be {course}"


def _value_before(values: FloatArray) -> FloatArray:
    return np.concatenate([[np.nan], values[:-1]])


def _decay_curve(claim: DecayClaim, problem: Any, sampling: Sampling, *, draw: bool) -> BoundCurve:
    verdict = check_decay(claim, problem, sampling)
    sizes: Sequence[int] = problem.sizes
    replicas = max(2, sampling.replicas // len(sizes))
    measured = measurements(claim.quantity, problem, replicas, sampling.seed)
    means = np.array([item.value for item in measured])
    sides: dict[str, Any] = {"truth": means, "truth_error": np.zeros(means.size)}
    if claim.quantity.is_sampled(problem):
        errors = np.array([item.standard_error for item in measured])
        sides = of_errors(means, errors, replicas, sampling.error_probability).fields()
    elif draw and claim.quantity.sample is not None:
        sample = partial(claim.quantity.sample, problem)
        drawn = drawn_at(sample, sizes, sampling.replicas, sampling.seed)
        sides |= {} if drawn is None else drawn.fields()
    constants = claim.constants(problem)
    orders = np.array(
        [float(evaluate(claim.order, {**constants, claim.variable: n})) for n in sizes]
    )
    return BoundCurve(
        f"{claim.id} ({claim.reading})",
        f"${claim.variable}$",
        quantity_label(claim.quantity),
        np.array(sizes, dtype=np.float64),
        orders / orders[0] * means[0],
        (verdict.outcome,) * len(sizes),
        bound_name="claimed order",
        note=f"in {claim.variable}: slope {verdict.truth:+.2f}, claimed {verdict.bound:+.2f}",
        **sides,
    )
