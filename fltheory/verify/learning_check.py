"""Check statements on PAC learnability: in fractions, or over decades of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from scipy.special import stdtrit

from fltheory.learnability import LearningSetting
from fltheory.theorems.learning_claim import (
    DecayClaim,
    DecayQuantity,
    LearningClaim,
    Measurement,
)
from fltheory.verify.evaluation import check_point_hypothesis, evaluate
from fltheory.verify.truth import Sampling
from fltheory.verify.verdict import (
    SLOPE_IS_MET,
    SLOPE_IS_MISSED,
    Evidence,
    Grade,
    HypothesisCheck,
    Outcome,
    Verdict,
)

_BOUND_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_LONGEST_FRACTION = 24


def check_learning_claim(claim: LearningClaim, setting: LearningSetting) -> Verdict:
    """Compare both sides, in fractions where both are fractions."""
    constants = claim.constants(setting)
    hypotheses = _hypotheses(claim, constants)
    found = claim.quantity.value(setting)
    bound = _exact(claim.bound, constants)
    if isinstance(found, Fraction) and bound is not None:
        evidence = Evidence(Grade.RATIONAL, 0.0)
        holds: bool | None = _compares(found, claim.direction, bound)
        truth, limit, detail = float(found), float(bound), _sides(found, bound)
    else:
        truth, error = found if isinstance(found, tuple) else (float(found), 0.0)
        limit = float(evaluate(claim.bound, constants))
        evidence = Evidence(Grade.EXACT, error)
        slack = error + _BOUND_ROUNDING * abs(limit)
        ends = {_compares(end, claim.direction, limit) for end in (truth - slack, truth + slack)}
        holds, detail = (ends.pop() if len(ends) == 1 else None), ""
    return Verdict(
        theorem=claim.id,
        reading=claim.reading,
        outcome=_outcome(hypotheses, holds),
        evidence=evidence,
        truth=truth,
        bound=limit,
        hypotheses=hypotheses,
        direction=claim.direction,
        detail=detail,
    )


def _hypotheses(
    claim: LearningClaim | DecayClaim, constants: Mapping[Any, Any]
) -> tuple[HypothesisCheck, ...]:
    return tuple(check_point_hypothesis(item, constants) for item in claim.hypotheses)


def _exact(expression: sp.Expr, constants: Mapping[Any, Any]) -> Fraction | None:
    """Evaluate in fractions; None where a symbol's value is a float."""
    values = {symbol: constants[symbol] for symbol in expression.free_symbols}
    if not all(isinstance(value, Fraction | int) for value in values.values()):
        return None
    exact = expression.subs({s: sp.Rational(v.numerator, v.denominator) for s, v in values.items()})
    return Fraction(int(exact.p), int(exact.q)) if exact.is_Rational else None


def _compares(left: Any, direction: str, right: Any) -> bool:
    relations = {"<=": left <= right, "<": left < right, ">=": left >= right, ">": left > right}
    return bool(relations[direction])


def _outcome(hypotheses: Sequence[HypothesisCheck], holds: bool | None) -> Outcome:
    if any(check.holds is False for check in hypotheses):
        return Outcome.INAPPLICABLE
    if holds is None or any(check.holds is None for check in hypotheses):
        return Outcome.UNDECIDED
    return Outcome.HOLDS if holds else Outcome.REFUTED


def _sides(truth: Fraction, bound: Fraction) -> str:
    """Return both sides as fractions, where they are short."""
    short = max(truth.denominator, bound.denominator) < 10**_LONGEST_FRACTION
    return f"{truth} against {bound}" if short else ""


@dataclass(frozen=True)
class Slope:
    """A slope over the logarithms of several sizes, with the half-width of an interval."""

    value: float
    half_width: float


def check_decay(claim: DecayClaim, setting: Any, sampling: Sampling) -> Verdict:
    """Fit the slope over all sizes, and judge it by the ends of its interval.

    An excess over the claimed slope of at most 0.05, at the upper end, counts as the claimed
    order; one of at least 0.25, at the lower end, as another. Sizes share the replicas equally.
    """
    constants = claim.constants(setting)
    hypotheses = _hypotheses(claim, constants)
    sizes: tuple[int, ...] = setting.sizes
    sampled = claim.quantity.is_sampled(setting)
    replicas = max(2, sampling.replicas // len(sizes))
    measured = measurements(claim.quantity, setting, replicas, sampling.seed)
    slope = fitted_slope(sizes, measured, replicas, sampling.error_probability)
    claimed = _claimed_slope(claim, constants, sizes)
    return Verdict(
        theorem=claim.id,
        reading=claim.reading,
        outcome=_outcome(hypotheses, _judged(slope, claimed)),
        evidence=Evidence(
            Grade.STATISTICAL if sampled else Grade.EXACT,
            slope.half_width,
            sampling.error_probability if sampled else 0.0,
            replicas if sampled else None,
            f"an order is a limit: read off {claim.variable} = {sizes[0]} .. {sizes[-1]}",
        ),
        truth=slope.value,
        bound=claimed,
        hypotheses=hypotheses,
        is_rate=True,
        detail=_decay_text(claim, sizes, measured, slope, sampling if sampled else None),
    )


@lru_cache(maxsize=32)
def measurements(
    quantity: DecayQuantity, setting: Any, replicas: int, seed: int
) -> tuple[Measurement, ...]:
    """Measure at every size; the last ones are kept, as readings share them."""
    seeds = np.random.SeedSequence(seed).spawn(len(setting.sizes))
    return tuple(
        quantity.measure(setting, size, replicas, np.random.default_rng(child))
        for size, child in zip(setting.sizes, seeds, strict=True)
    )


def fitted_slope(
    sizes: Sequence[int],
    measured: Sequence[Measurement],
    replicas: int,
    error_probability: float,
) -> Slope:
    """Return the least-squares slope of log(value) over log(size), and Student's interval.

    Sizes are sampled independently of each other; the logarithm's error is the relative error, to
    first order. NaN where a value has no logarithm.
    """
    logs = np.log(np.array(sizes, dtype=np.float64))
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    values = np.array([item.value for item in measured])
    errors = np.array([item.standard_error for item in measured])
    if (values <= 0).any():
        return Slope(math.nan, math.nan)
    spread = float(np.sqrt(((weights * errors / values) ** 2).sum()))
    quantile = -float(stdtrit(max(replicas - 1, 1), error_probability / 2))
    return Slope(float(weights @ np.log(values)), quantile * spread)


def _claimed_slope(
    claim: DecayClaim, constants: Mapping[sp.Symbol, Any], sizes: Sequence[int]
) -> float:
    first, last = (
        float(evaluate(claim.order, {**constants, claim.variable: size}))
        for size in (sizes[0], sizes[-1])
    )
    return math.log(last / first) / math.log(sizes[-1] / sizes[0])


def _judged(slope: Slope, claimed: float) -> bool | None:
    if slope.value + slope.half_width - claimed <= SLOPE_IS_MET:
        return True
    if slope.value - slope.half_width - claimed >= SLOPE_IS_MISSED:
        return False
    return None


def _decay_text(
    claim: DecayClaim,
    sizes: Sequence[int],
    measured: Sequence[Measurement],
    slope: Slope,
    sampling: Sampling | None,
) -> str:
    ends = f"{measured[0].value:.2g} at {sizes[0]}, {measured[-1].value:.2g} at {sizes[-1]}"
    remark = f"; {measured[-1].remark} there" if measured[-1].remark else ""
    width = ""
    if sampling is not None:
        width = (
            f" ± {slope.half_width:.2f} (missed with probability {sampling.error_probability:.0e})"
        )
    return f"in {claim.variable}: slope {slope.value:+.3f}{width}; {ends}{remark}"
