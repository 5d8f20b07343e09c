"""Samples for figures: means with simultaneous intervals, beside the truth that was judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import sympy as sp

from fltheory.claims.shared.bound_curve import BoundCurve, LabelledQuantity, quantity_label
from fltheory.claims.shared.comparison import Comparison
from fltheory.content import cached_by_content
from fltheory.engines import Setting, monte_carlo
from fltheory.engines.observables import Observable
from fltheory.engines.trajectory import FIELDS, Trajectory
from fltheory.evidence.evaluation import WithConstants, evaluate, theorem_values
from fltheory.evidence.truths import Sampling, Truth, shorter
from fltheory.evidence.verdict import Evidence, Grade, Outcome
from fltheory.grammar.quantities import BoundedQuantity
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

Parts = Mapping[str, sp.Expr]

FIGURE_ERROR_PROBABILITY = 1e-3


@dataclass(frozen=True, eq=False)
class CurveSample(ReadOnlyArrays):
    """Sampled means, the half-widths of their intervals, and how they were drawn.

    Attributes
    ----------
    means, intervals : array, (n,)
        NaN where nothing was sampled.
    replicas : int
    error_probability : float
        That any of the intervals misses.
    """

    means: FloatArray
    intervals: FloatArray
    replicas: int
    error_probability: float

    def fields(self) -> dict[str, Any]:
        """Return them as fields of a `BoundCurve`."""
        # An interval without an end is none that can be drawn.
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
    """How a curve is drawn: see `fltheory.verify.curve`, whose arguments these are.

    Attributes
    ----------
    sampling : Sampling
        For truths that cannot be computed.
    draws : int
        Runs, or draws of the quantity, that are shown where the truth is computed; 0 for none.
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
        """Return a sample of a run to be shown, of so many rounds, if one is asked for."""
        if not self.draws:
            return None
        return sampled_run(theorem, setting, self.draws, self.sampling.seed, rounds)


def left_side(quantity: BoundedQuantity, truth: Truth, setting: Setting) -> tuple[float, float]:
    """Return a quantity on a run, and the half-width of the interval around it."""
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
    """Return the curve of what was judged at each value; ``computed`` says that it is the truth."""
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
    """Return both sides alone, for a drawing of the size of a word."""
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
    """Return the truths that were judged as fields of a `BoundCurve`: computed, or sampled."""
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
    """Sample a setting's first rounds, all by default; intervals over all of them hold together."""
    first = replace(setting, rounds=min(rounds or setting.rounds, setting.rounds))
    observe = () if theorem.quantity.field in FIELDS else tuple(theorem.observe(first))
    run = _run(first, replicas, seed, observe)
    return Truth(run, Grade.STATISTICAL, Sampling(replicas, seed, FIGURE_ERROR_PROBABILITY))


@cached_by_content(8)
def _run(setting: Setting, replicas: int, seed: int, observe: tuple[Observable, ...]) -> Trajectory:
    """Keep the last ones, as readings of a theorem share them."""
    return monte_carlo(
        setting,
        replicas=replicas,
        seed=seed,
        observe=observe,
    )


def along(quantity: BoundedQuantity, drawn: Truth, settings: Sequence[Setting]) -> CurveSample:
    """Return the quantity's means over the beginnings of one sampled run; NaN beyond its end."""
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
    """Return the quantity's means over runs of their own, whose intervals hold together."""
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
    """Draw a quantity in each setting, from a stream of its own; None where it is not drawn."""
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
    """Return means of independent draws at each value, with Student's intervals."""
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
    """Return means with Student's intervals from their standard errors."""
    from scipy.special import stdtrit

    quantile = -float(stdtrit(replicas - 1, error_probability / (2 * means.size)))
    return CurveSample(means, quantile * errors, replicas, error_probability)


def _sample(points: Sequence[tuple[float, float]], sampling: Sampling) -> CurveSample:
    means, intervals = np.array(points, dtype=np.float64).T
    return CurveSample(means, intervals, sampling.replicas, sampling.error_probability)
