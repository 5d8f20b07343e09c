"""Curves for figures: bound, truth and samples of a statement over one variable.

Samples are means with simultaneous intervals. They are shown beside the truth that was judged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import sympy as sp

from fltheory.claims.comparison import Comparison
from fltheory.content import cached_by_content
from fltheory.decimals import how_many
from fltheory.engines import Setting, monte_carlo
from fltheory.engines.guard import rounds_now
from fltheory.engines.observables import Observable
from fltheory.engines.trajectory import FIELDS, Trajectory
from fltheory.evidence.evaluation import WithConstants, evaluate, theorem_values
from fltheory.evidence.truths import Sampling, Truth, shorter
from fltheory.evidence.verdict import Evidence, Grade, Outcome
from fltheory.grammar.quantities import BoundedQuantity
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

# ------------------------------------------------------------ bound and truth

_ROUNDING = 1e-9
_MOST_STRETCHES = 2  # number of ranges for one verdict in a title
_LEAST_DECIMAL = -4  # the smallest power of ten written as a decimal number


@dataclass(frozen=True, eq=False)
class BoundCurve(ReadOnlyArrays):
    """A statement's two sides over one variable.

    Attributes
    ----------
    name : str
        Id and reading.
    variable, quantity : str
        Labels of the axes, with mathematics between dollar signs.
    values : array, (n,)
    bound : array, (n,)
        NaN where the statement makes no claim.
    outcomes : tuple of Outcome
        The verdict at each value; empty if nothing was judged.
    truth, truth_error : array, (n,), or None
        Computed truth, with a bound on its rounding error, or None if it can only be sampled. A
        truth without an error bound is only for orientation and is NaN where unknown. Verdicts are
        then based on the sample.
    sampled, interval : array, (n,), or None
        Sampled mean and the half-width of its interval. They are None if nothing was sampled, and
        NaN at values that were not sampled.
    replicas : int or None
        Sample size.
    error_probability : float
        Probability that at least one of the intervals misses the truth.
    parts : mapping of str to array, (n,)
        Named terms of the bound.
    bound_name : str
        The kind of bound: upper bound, floor or claimed order.
    note : str
        Text to add to a title.
    labels : tuple of str
        Names of the values, if these are cases and not numbers.
    """

    name: str
    variable: str
    quantity: str
    values: FloatArray
    bound: FloatArray
    outcomes: tuple[Outcome, ...] = ()
    truth: FloatArray | None = None
    truth_error: FloatArray | None = None
    sampled: FloatArray | None = None
    interval: FloatArray | None = None
    replicas: int | None = None
    error_probability: float = 0.0
    parts: Mapping[str, FloatArray] = field(default_factory=dict)
    bound_name: str = "bound"
    note: str = ""
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.truth_error is None and self.sampled is None:
            raise ValueError("truth and truth_error must be given unless sampled is")

    @property
    def verdict(self) -> str:
        """The verdicts in a few words: the only one, or which verdict was reached at which values.

        If verdicts alternate too often for a title, this is the number of values for each verdict.
        """
        counts = {o: self.outcomes.count(o) for o in Outcome if o in self.outcomes}
        if len(counts) <= 1:
            return next((outcome.name for outcome in counts), "no claim")
        if self.labels:
            return ", ".join(f"{o.name} in {how_many(n, 'case')}" for o, n in counts.items())
        stretches = self._stretches()
        if max(map(len, stretches.values())) > _MOST_STRETCHES:
            several = f"of {len(self.outcomes)} values of {self._symbol}"
            return ", ".join(f"{o.name} at {n}" for o, n in counts.items()) + f" {several}"
        return ", ".join(f"{o.name} {' and '.join(found)}" for o, found in stretches.items())

    def _stretches(self) -> Mapping[Outcome, list[str]]:
        """Return the ranges of values at which each verdict was reached, in increasing order."""
        order = np.argsort(self.values, kind="stable")
        found: dict[Outcome, list[str]] = {}
        judged = [(float(self.values[place]), self.outcomes[place]) for place in order]
        least, most = judged[0][0], judged[-1][0]
        for outcome, group in groupby(judged, key=itemgetter(1)):
            values = [value for value, _ in group]
            found.setdefault(outcome, []).append(self._stretch(values, least, most))
        return found

    def _stretch(self, values: Sequence[float], least: float, most: float) -> str:
        first, last = _number(values[0]), _number(values[-1])
        if first == last:
            return f"at {self._symbol} = {first}"
        if values[0] == least:
            return f"for {self._symbol} <= {last}"
        if values[-1] == most:
            return f"for {self._symbol} >= {first}"
        return f"for {first} <= {self._symbol} <= {last}"

    @property
    def _symbol(self) -> str:
        """The letter of the variable, or its name if it has no letter."""
        letters = re.findall(r"\$[^$]*\$", self.variable)
        return letters[0] if letters else self.variable

    @property
    def is_computed(self) -> bool:
        """Whether the truth is computed at every value, with an error bound."""
        return self.truth_error is not None

    @property
    def judged(self) -> FloatArray:
        """The side compared with the bound: the truth if it is computed, otherwise the sample."""
        known = self.truth if self.is_computed else self.sampled
        assert known is not None
        return known

    @property
    def judged_error(self) -> FloatArray:
        """Half-widths of the intervals around the compared side."""
        error = self.truth_error if self.is_computed else self.interval
        assert error is not None
        return error

    @property
    def heading(self) -> str:
        """The statement and its verdicts, with the evidence if this is a sample."""
        found = f"{self.name}: {self.verdict}"
        if self.is_computed or not self.outcomes:
            return found
        return f"{found} (sampled, wrong with probability {at_most(self.error_probability)})"

    def relative(self) -> BoundCurve:
        """Return bound and truth over their minima, and the sample over the truth's minimum."""
        least = float(np.nanmin(self.judged))
        if not 0 < least < np.inf:
            raise ValueError(
                f"truth must be positive to be divided by its minimum, got a minimum of {least:g}"
            )
        return replace(
            self,
            quantity="relative to its minimum",
            bound=self.bound / np.nanmin(self.bound),
            truth=_over(self.truth, least),
            truth_error=_over(self.truth_error, least),
            sampled=_over(self.sampled, least),
            interval=_over(self.interval, least),
            parts={},
        )


class LabelledQuantity(Protocol):
    """A quantity that has labels for an axis."""

    @property
    def text(self) -> str:
        """The quantity as text."""
        ...

    @property
    def latex(self) -> str:
        """The quantity in LaTeX; empty if there is only text."""
        ...


def quantity_label(quantity: LabelledQuantity) -> str:
    """Return an axis label for a quantity, in LaTeX if available, otherwise as text."""
    return f"${quantity.latex}$" if quantity.latex else quantity.text


def at_most(error_probability: float) -> str:
    """Return an upper bound on an error probability as text, rounded up to one digit.

    >>> at_most(1e-3), at_most(1e-9 / 11), at_most(0.0021)
    ('at most 0.001', 'at most 1e-10', 'at most 0.003')
    """
    exponent = math.floor(math.log10(error_probability) + _ROUNDING)
    digit = math.ceil(error_probability / 10.0**exponent - _ROUNDING)
    mantissa, _, power = f"{digit * 10.0**exponent:.0e}".partition("e")
    if int(power) < _LEAST_DECIMAL:
        return f"at most {mantissa}e{int(power)}"
    return f"at most {float(mantissa) * 10.0 ** int(power):.{-int(power)}f}"


def _number(value: float) -> str:
    """Return a value for a title; counts are written in full, other numbers with three digits."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:.3g}"


def _over(values: FloatArray | None, least: float) -> FloatArray | None:
    return None if values is None else values / least


# ------------------------------------------------------------ samples

Parts = Mapping[str, sp.Expr]

FIGURE_ERROR_PROBABILITY = 1e-3


@dataclass(frozen=True, eq=False)
class CurveSample(ReadOnlyArrays):
    """Sampled means, the half-widths of their intervals, and how they were drawn.

    Attributes
    ----------
    means, intervals : array, (n,)
        Means and half-widths; NaN where nothing was sampled.
    replicas : int
    error_probability : float
        Probability that at least one of the intervals misses the truth.
    """

    means: FloatArray
    intervals: FloatArray
    replicas: int
    error_probability: float

    def fields(self) -> dict[str, Any]:
        """Return the sample as fields of a `BoundCurve`."""
        # An infinite interval cannot be plotted.
        return {
            "sampled": self.means,
            "interval": np.where(np.isfinite(self.intervals), self.intervals, np.nan),
            "replicas": self.replicas,
            "error_probability": self.error_probability,
        }


class _AboutARun(Protocol):
    @property
    def quantity(self) -> BoundedQuantity: ...

    @property
    def observe(self) -> Callable[[Setting], Sequence[Observable]]: ...


class _Judged(Protocol):
    @property
    def truth(self) -> float: ...

    @property
    def bound(self) -> float: ...

    @property
    def evidence(self) -> Evidence: ...

    @property
    def outcome(self) -> Outcome: ...


@dataclass(frozen=True)
class Drawing:
    """Options for plotting a curve, which are the arguments of `fltheory.verify.curve`.

    Attributes
    ----------
    sampling : Sampling
        How truths that cannot be computed are sampled.
    draws : int
        Number of runs, or of draws of the quantity, to show if the truth is computed. With 0, none
        are shown.
    variable : str or None
    points : int
    sampled_rounds : int or None
    parts : mapping of str to sympy expression, or None
    """

    sampling: Sampling
    draws: int
    variable: str | None = None
    points: int = 25
    sampled_rounds: int | None = None
    parts: Parts | None = None

    def run_of(
        self, theorem: _AboutARun, setting: Setting, rounds: int | None = None
    ) -> Truth | None:
        """Return a sample of a run of ``rounds`` rounds to plot, or None if ``draws`` is 0."""
        if not self.draws:
            return None
        return sampled_run(theorem, setting, self.draws, self.sampling.seed, rounds)


def left_side(quantity: BoundedQuantity, truth: Truth, setting: Setting) -> tuple[float, float]:
    """Return a quantity's value on a run, and the half-width of its interval."""
    error = quantity.error(truth.error(quantity.field), setting)
    return quantity.of(truth.trajectory, setting), error


def judged_curve(
    name: str,
    quantity: LabelledQuantity,
    variable: str,
    values: Sequence[float] | FloatArray,
    judged: Sequence[_Judged],
    drawn: CurveSample | None,
    *,
    computed: bool = True,
    bound_name: str = "bound",
    parts: Mapping[str, FloatArray] | None = None,
) -> BoundCurve:
    """Return the curve of judgements at each value; ``computed`` says if the truth was computed."""
    sides: dict[str, Any] = {}
    if computed:
        sides["truth"] = np.array([one.truth for one in judged])
        sides["truth_error"] = np.array([one.evidence.error for one in judged])
    if drawn is not None:
        sides |= drawn.fields()
    return BoundCurve(
        name,
        variable,
        quantity_label(quantity),
        np.asarray(values, dtype=np.float64),
        np.array([one.bound for one in judged]),
        tuple(one.outcome for one in judged),
        **sides,
        bound_name=bound_name,
        parts=parts or {},
    )


def plain_curve(variable: str, values: Sequence[int], sides: Sequence[Comparison]) -> BoundCurve:
    """Return a curve of only both sides, for a word-sized figure."""
    return BoundCurve(
        "",
        variable,
        "",
        np.array(values, dtype=np.float64),
        np.array([one.bound for one in sides]),
        **sides_of(sides),
    )


def parts_of(
    statement: WithConstants, settings: Sequence[Setting], parts: Parts | None
) -> Mapping[str, FloatArray]:
    """Return the values of named terms in each setting."""
    if not parts:
        return {}
    known = [theorem_values(statement, statement.constants(setting)) for setting in settings]
    return {
        name: np.array([float(evaluate(part, values)) for values in known])
        for name, part in parts.items()
    }


def sides_of(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return the judged truths, computed or sampled, as fields of a `BoundCurve`."""
    truth = np.array([one.truth for one in comparisons])
    error = np.array([one.evidence.error for one in comparisons])
    if all(one.evidence.replicas is None for one in comparisons):
        return {"truth": truth, "truth_error": error}
    chance = sum(one.evidence.error_probability for one in comparisons)
    replicas = max(one.evidence.replicas or 0 for one in comparisons)
    return CurveSample(truth, error, replicas, chance).fields()


def sampled_run(
    theorem: _AboutARun, setting: Setting, replicas: int, seed: int, rounds: int | None = None
) -> Truth:
    """Sample a setting's first rounds, by default all, with simultaneous intervals."""
    first = replace(setting, rounds=min(rounds or setting.rounds, setting.rounds))
    observe = () if theorem.quantity.field in FIELDS else tuple(theorem.observe(first))
    run = _run(first, replicas, seed, observe)
    return Truth(run, Grade.STATISTICAL, Sampling(replicas, seed, FIGURE_ERROR_PROBABILITY))


@cached_by_content(8, as_long_as=rounds_now)
def _run(setting: Setting, replicas: int, seed: int, observe: tuple[Observable, ...]) -> Trajectory:
    """Return a sampled run; recent runs are cached, as readings of a theorem share them."""
    return monte_carlo(
        setting,
        replicas=replicas,
        seed=seed,
        observe=observe,
    )


def along(quantity: BoundedQuantity, drawn: Truth, settings: Sequence[Setting]) -> CurveSample:
    """Return the quantity's means over initial parts of one sampled run, or NaN beyond its end."""
    assert drawn.sampling is not None
    run = drawn.trajectory
    errors = drawn.error(quantity.field)
    points = [
        (
            quantity.of(shorter(run, one.rounds), one),
            quantity.error(errors[: one.rounds + 1], one),
        )
        if one.rounds <= run.rounds
        else (np.nan, np.nan)
        for one in settings
    ]
    return _sample(points, drawn.sampling)


def at_values(
    quantity: BoundedQuantity, runs: Sequence[Truth], settings: Sequence[Setting]
) -> CurveSample:
    """Return the quantity's means over separate runs, with simultaneous intervals."""
    sampling = runs[0].sampling
    assert sampling is not None
    share = replace(sampling, error_probability=sampling.error_probability / len(runs))
    points = [
        left_side(quantity, replace(run, sampling=share), setting)
        for run, setting in zip(runs, settings, strict=True)
    ]
    return _sample(points, sampling)


def drawn_at(
    sample: Callable[[Any, int, np.random.Generator], FloatArray] | None,
    settings: Sequence[Any],
    replicas: int,
    seed: int,
) -> CurveSample | None:
    """Sample a quantity in each setting from separate random streams, or return None."""
    if sample is None or replicas == 0:
        return None
    seeds = np.random.SeedSequence(seed).spawn(len(settings))
    return of_draws(
        [
            sample(setting, replicas, np.random.default_rng(child))
            for setting, child in zip(settings, seeds, strict=True)
        ]
    )


def of_draws(draws: Sequence[FloatArray]) -> CurveSample:
    """Return means of independent draws at each value, with Student's t intervals."""
    replicas = draws[0].size
    means = np.array([draw.mean() for draw in draws])
    errors = np.array([draw.std(ddof=1) / np.sqrt(draw.size) for draw in draws])
    return of_errors(means, errors, replicas)


def of_errors(
    means: FloatArray,
    errors: FloatArray,
    replicas: int,
    error_probability: float = FIGURE_ERROR_PROBABILITY,
) -> CurveSample:
    """Return means with Student's t intervals from their standard errors."""
    from scipy.special import stdtrit

    quantile = -float(stdtrit(replicas - 1, error_probability / (2 * means.size)))
    return CurveSample(means, quantile * errors, replicas, error_probability)


def _sample(points: Sequence[tuple[float, float]], sampling: Sampling) -> CurveSample:
    means, intervals = np.array(points, dtype=np.float64).T
    return CurveSample(means, intervals, sampling.replicas, sampling.error_probability)
