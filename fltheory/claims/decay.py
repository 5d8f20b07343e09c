"""Claims on PAC learnability about the order in which a quantity decays with the sample size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fltheory.claims.at_point import of_learning
from fltheory.claims.comparison import Trial, decided
from fltheory.claims.curves import BoundCurve, Drawing, drawn_at, of_errors, quantity_label
from fltheory.claims.rate_axis import KnownDecay
from fltheory.claims.statement import Basis, lost_in
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import (
    SLOPE_IS_MET,
    SLOPE_IS_MISSED,
    Evidence,
    Grade,
    Outcome,
    Verdict,
)
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.fields import Check, must_be
from fltheory.learnability.system import LearningSetting
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class Measurement:
    """A quantity at one sample size.

    Attributes
    ----------
    value : float
    standard_error : float
        Zero if the quantity is not sampled.
    remark : str
        A further finding, in a few words.
    """

    value: float
    standard_error: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class DecayQuantity:
    """A number that a learning problem determines, as a function of the sample size.

    Attributes
    ----------
    measure : callable
        Measures the quantity, given the problem, the size, a number of replicas and a generator.
    is_sampled : callable
        Returns whether the quantity is sampled for a problem.
    text : str
    sample : callable, optional
        Returns independent estimates, (replicas,), for figures. The arguments are those of
        ``measure``.
    latex : str
        The quantity in LaTeX; by default, its text.
    known_decay : callable, optional
        Takes the problem and returns a power of the size such that the quantity is known to be at
        least a multiple of that power, or None. Only such a power can refute a claimed order,
        because a slope is known only up to the largest size. Without this function, no problem can
        refute an order of the quantity.
    """

    measure: Callable[[Any, int, int, np.random.Generator], Measurement]
    is_sampled: Callable[[Any], bool]
    text: str
    sample: Callable[[Any, int, int, np.random.Generator], FloatArray] | None = None
    latex: str = ""
    known_decay: Callable[[Any], KnownDecay | None] | None = None

    def known_decay_on(self, problem: Any) -> KnownDecay | None:
        """Return the quantity's known decay on a problem, or None if it is unknown."""
        return None if self.known_decay is None else self.known_decay(problem)


@dataclass(frozen=True, kw_only=True)
class DecayClaim(Basis):
    """A claim that a quantity has some order in a number of samples.

    Attributes
    ----------
    variable : sympy symbol
        The number of samples.
    order : sympy expression
        The claimed order as a function of the variable, without logarithms, because the claims hide
        these.

    The other attributes are those of `LearningClaim`.
    """

    why_not_certified: ClassVar[str] = "no single number of samples can break an order"
    searched_where: ClassVar[str] = "met every hypothesis"
    search_raises: ClassVar[str] = "ratio of actual to claimed growth over a decade"
    search_budget: ClassVar[int] = 100

    quantity: DecayQuantity
    variable: sp.Symbol
    order: sp.Expr
    checks: ClassVar[Mapping[str, Check]] = {"quantity": must_be(DecayQuantity)}

    def _formulas(self) -> tuple[sp.Basic, ...]:
        return (self.order, *super()._formulas())

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """The claim's assertions."""
        left = self.quantity.text, self.quantity.latex
        return (Assertion(*left, Relation.OF_ORDER, self.order, self.variable),)

    def verdict(self, setting: Setting | LearningSetting, sampling: Sampling) -> Verdict:
        """Return the verdict, from a slope fitted over all sizes and the ends of its interval.

        An excess over the claimed slope of at most 0.05, at the upper end, counts as the claimed
        order. A different order must be shown by a limit, not by a slope. The claim is refuted if
        the quantity is known to stay above a multiple of a higher power, and undecided if only the
        slope exceeds the claimed one. Sizes share the replicas equally. Intervals are Student's t
        intervals, so they are asymptotic. If all draws of a size agree, no verdict is reached.
        """
        problem: Any = of_learning(setting)
        # This comes first, because a problem that the claim is not about has no sizes.
        hypotheses = self.hypotheses_without_run(problem)
        sizes, sampled = problem.sizes, self.quantity.is_sampled(problem)
        replicas, measured = self._measured(problem, sampling)
        slope = fitted_slope(sizes, measured, replicas, sampling.error_probability)
        orders = self._orders(problem)
        claimed = math.log(orders[-1] / orders[0]) / math.log(sizes[-1] / sizes[0])
        blind = sampled and any(item.standard_error == 0 for item in measured)
        known = self.quantity.known_decay_on(problem)
        remark = "; intervals are Student's, asymptotic" if sampled else ""
        where = f"{self.variable} = {sizes[0]} .. {sizes[-1]}"
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=decided(hypotheses, None if blind else _judged(slope, claimed, known)),
            evidence=Evidence(
                Grade.STATISTICAL if sampled else Grade.FLOAT64,
                slope.half_width,
                sampling.error_probability if sampled else 0.0,
                replicas if sampled else None,
                f"an order is a limit: read off {where}{remark}",
                why_not_exact="" if sampled else "its slope is fitted to floats",
            ),
            truth=slope.value,
            bound=claimed,
            hypotheses=hypotheses,
            relation=Relation.OF_ORDER,
            detail=_decay_text(self, sizes, measured, slope, sampling if sampled else None)
            + (f"; {known.why}" if known is not None else ""),
        )

    def _measured(self, problem: Any, sampling: Sampling) -> tuple[int, tuple[Measurement, ...]]:
        """Return the replicas per size, and the measured quantity at all sizes."""
        replicas = max(2, sampling.replicas // len(problem.sizes))
        return replicas, measurements(self.quantity, problem, replicas, sampling.seed)

    def _orders(self, problem: Any) -> FloatArray:
        """Return the claimed order at every size."""
        known = self.constants(problem)
        at_sizes = ({**known, self.variable: size} for size in problem.sizes)
        return np.array([float(evaluate(self.order, values)) for values in at_sizes])

    @property
    def why_not_searched(self) -> str:
        """Why the claim cannot be refuted: missing hypotheses or no known decay of the quantity."""
        if self.quantity.known_decay is None:
            return (
                "an order in the number of samples can be refuted only by a limit, and no limit of "
                "this quantity is known"
            )
        return lost_in(self)

    def trial(self, setting: Any, sampling: Sampling) -> Trial:
        """Evaluate the hypotheses, then the known decay, or the decay as far as it is computed.

        If the quantity is sampled and no decay is known, nothing could be refuted, so nothing is
        sampled.
        """
        problem = of_learning(setting)
        checks = self.hypotheses_without_run(problem)
        if not all(check.holds for check in checks):
            return Trial.unmet(checks)
        known = self.quantity.known_decay_on(problem)
        if known is None and self.quantity.is_sampled(problem):
            return Trial(0.0, applies=True)
        verdict = self.verdict(problem, sampling)
        exponent = verdict.truth if known is None else known.exponent
        growth = 10.0 ** (exponent - verdict.bound)
        refutes = verdict.outcome is Outcome.REFUTED
        return Trial.applied(growth, refutes, remark=verdict.detail)

    def curve(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Compute both sides over the numbers of samples."""
        problem: Any = of_learning(setting)
        sampling = drawing.sampling
        verdict, sizes = self.verdict(problem, sampling), problem.sizes
        replicas, measured = self._measured(problem, sampling)
        means = np.array([item.value for item in measured])
        sides: dict[str, Any] = {"truth": means, "truth_error": np.zeros(means.size)}
        if self.quantity.is_sampled(problem):
            errors = np.array([item.standard_error for item in measured])
            sides = of_errors(means, errors, replicas, sampling.error_probability).fields()
        elif drawing.draws and self.quantity.sample is not None:
            sample = partial(self.quantity.sample, problem)
            drawn = drawn_at(sample, sizes, sampling.replicas, sampling.seed)
            sides |= {} if drawn is None else drawn.fields()
        orders = self._orders(problem)
        return BoundCurve(
            self.name,
            f"${self.variable}$",
            quantity_label(self.quantity),
            np.array(sizes, dtype=np.float64),
            orders / orders[0] * means[0],
            (verdict.outcome,) * len(sizes),
            bound_name="claimed order",
            note=f"in {self.variable}: slope {verdict.truth:+.2f}, claimed {verdict.bound:+.2f}",
            **sides,
        )


@dataclass(frozen=True)
class Slope:
    """A slope over the logarithms of several sizes and the half-width of its interval."""

    value: float
    half_width: float


@cached_by_content(32)
def measurements(
    quantity: DecayQuantity, setting: Any, replicas: int, seed: int
) -> tuple[Measurement, ...]:
    """Measure the quantity at every size; recent results are cached, as readings share them."""
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
    """Return the least-squares slope of log(value) over log(size), with a Student's t interval.

    Sizes are sampled independently of each other. To first order, the logarithm's error is the
    relative error. The slope is NaN if a value has no logarithm.
    """
    from scipy.special import stdtrit

    logs = np.log(np.array(sizes, dtype=np.float64))
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    values = np.array([item.value for item in measured])
    errors = np.array([item.standard_error for item in measured])
    if (values <= 0).any():
        return Slope(math.nan, math.nan)
    spread = float(np.sqrt(((weights * errors / values) ** 2).sum()))
    quantile = -float(stdtrit(max(replicas - 1, 1), error_probability / 2))
    return Slope(float(weights @ np.log(values)), quantile * spread)


def _judged(slope: Slope, claimed: float, known: KnownDecay | None) -> bool | None:
    if known is not None and known.exponent - claimed >= SLOPE_IS_MISSED:
        return False
    return True if slope.value + slope.half_width - claimed <= SLOPE_IS_MET else None


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
