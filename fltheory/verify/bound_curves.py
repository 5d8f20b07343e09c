"""Bound and truth side by side, over the rounds or over a parameter.

What a figure of a theorem shows: the bound, the exact truth, the sampled mean with its
interval, and the verdict at every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.engines import Setting, Trajectory, monte_carlo
from fltheory.theorems.statement import PointClaim, Statement, Theorem
from fltheory.validation import FloatArray
from fltheory.verify.check import Comparison, compare_at_point, compare_with
from fltheory.verify.evaluation import evaluate, theorem_values
from fltheory.verify.shorter_runs import beginning, shorter
from fltheory.verify.truth import Sampling, Truth, truth_of
from fltheory.verify.verdict import Grade, Outcome

FIGURE_ERROR_PROBABILITY = 1e-3
VERDICT_ERROR_PROBABILITY = 1e-9
_NAMES_OF_ROUNDS = ("T", "R")


@dataclass(frozen=True, eq=False)
class BoundCurve:
    """A theorem's two sides over one variable.

    Attributes
    ----------
    name : str
        Id and reading.
    variable, quantity : str
        Labels of the axes; mathematics between dollars.
    values, bound : array, (n,)
    outcomes : tuple of Outcome
        The verdict at each value.
    truth, truth_error : array, (n,), or None
        Computed, with a bound on its rounding error; None where it can only be sampled.
    sampled, interval : array, (n,), or None
        Sampled mean and the half-width of its interval; None where nothing was sampled.
    replicas : int or None
        Sample size.
    error_probability : float
        That any of the intervals misses.
    parts : mapping of str to array, (n,)
        Named terms of the bound.
    """

    name: str
    variable: str
    quantity: str
    values: FloatArray
    bound: FloatArray
    outcomes: tuple[Outcome, ...]
    truth: FloatArray | None = None
    truth_error: FloatArray | None = None
    sampled: FloatArray | None = None
    interval: FloatArray | None = None
    replicas: int | None = None
    error_probability: float = 0.0
    parts: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.truth is None and self.sampled is None:
            raise ValueError("truth must be given where sampled is not, got neither")

    @property
    def verdict(self) -> str:
        """The verdicts in a few words: the one there is, or how many values have which."""
        counts = {o.name: self.outcomes.count(o) for o in Outcome if o in self.outcomes}
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{name} at {count}" for name, count in counts.items())


def rounds_curve(
    theorem: Statement,
    setting: Setting,
    *,
    points: int = 25,
    variable: str | None = None,
    replicas: int = 400,
    seed: int = 0,
    parts: Mapping[str, sp.Expr] | None = None,
) -> BoundCurve:
    """Follow a theorem's two sides over the rounds of one run.

    The step sizes stay those of ``setting``; only the number of rounds changes. Numbers of rounds
    of which the theorem does not speak are left out.

    Parameters
    ----------
    theorem : Theorem
    setting : Setting
        Its rounds are the last value.
    points : int
        Numbers of rounds to look at, at least 2, evenly spread over the logarithm.
    variable : str, optional
        What rounds are called on the axis; the statement's own T or R by default.
    replicas, seed : int
        For sampling; with 0 replicas nothing is sampled where the truth can be computed.
    parts : mapping of str to sympy expression, optional
        Terms of the bound to follow as well.

    Raises
    ------
    ValueError
        For a statement that is not an inequality over rounds, a number out of range, or a
        setting of which the theorem does not speak at all.

    Examples
    --------
    >>> from fltheory import theorems
    >>> theorem = theorems.get("sa-fl/5", reading="derived")
    >>> curve = rounds_curve(theorem, theorem.regimes["q small"].setting, points=3, replicas=0)
    >>> curve.verdict, curve.values.tolist()
    ('HOLDS', [1.0, 17.0, 300.0])
    """
    if not isinstance(theorem, Theorem):
        raise ValueError(f"theorem must be an inequality over rounds, got {theorem.id}")
    points = validation.whole_number("points", points, at_least=2)
    spread = np.geomspace(1, setting.rounds, min(points, setting.rounds))
    grid = np.unique(np.round(spread).astype(int))
    candidates = [replace(setting, rounds=int(r)) for r in grid]
    settings = [one for one in candidates if _speaks_of(theorem, one)]
    if not settings:
        raise ValueError(f"setting must be one of which {theorem.id} speaks, got {setting!r}")
    whole = _truths(theorem, setting, replicas, seed, len(settings))
    judged = [beginning(whole.judged, one.rounds) for one in settings]
    drawn = _drawn_along(theorem, whole.drawn, settings) if whole.drawn else None
    values = [one.rounds for one in settings]
    name = variable or _name_of_rounds(theorem)
    return _curve(theorem, name, values, settings, judged, drawn, parts or {})


def sweep_curve(
    theorem: Statement,
    make: Callable[[float], Setting],
    values: Sequence[float],
    *,
    variable: str,
    replicas: int = 400,
    seed: int = 0,
    parts: Mapping[str, sp.Expr] | None = None,
) -> BoundCurve:
    """Follow a theorem's two sides over a parameter.

    Parameters
    ----------
    theorem : Theorem or PointClaim
    make : callable
        The setting at a value of the parameter.
    values : sequence of float
    variable : str
        The parameter's name on the axis, mathematics between dollars.
    replicas, seed, parts
        As for `rounds_curve`. A claim that needs no run is not sampled.

    Raises
    ------
    ValueError
        For a claimed order, a claim about learning, or no values.
    """
    if not isinstance(theorem, Theorem | PointClaim):
        raise ValueError(f"theorem must be an inequality about an algorithm, got {theorem.id}")
    if len(values) == 0:
        raise ValueError("values must hold at least one value, got none")
    settings = [make(value) for value in values]
    if isinstance(theorem, PointClaim):
        return _point_curve(theorem, variable, values, settings, parts or {})
    runs = [_truths(theorem, setting, replicas, seed, len(values)) for setting in settings]
    drawn = None
    if all(run.drawn for run in runs):
        share = FIGURE_ERROR_PROBABILITY / len(values)
        drawn = _Drawn.of(
            [
                _with_interval(theorem, setting, run.drawn, share)
                for setting, run in zip(settings, runs, strict=True)
                if run.drawn
            ]
        )
    truths = [run.judged for run in runs]
    return _curve(theorem, variable, values, settings, truths, drawn, parts or {})


@dataclass(frozen=True, eq=False)
class _Truths:
    """What the verdict rests on, and the sample that is drawn, if there is one."""

    judged: Truth
    drawn: Trajectory | None


def _truths(theorem: Theorem, setting: Setting, replicas: int, seed: int, values: int) -> _Truths:
    """Compute or else sample; a verdict's sample is drawn too, with intervals of its own."""
    sampling = Sampling(replicas or Sampling.replicas, seed, VERDICT_ERROR_PROBABILITY / values)
    observe = theorem.observe(setting)
    truth = truth_of(setting, observe, sampling)
    if truth.sampling is not None or replicas == 0:
        return _Truths(truth, truth.trajectory if truth.sampling else None)
    run = monte_carlo(
        setting.algorithm,
        setting.problem,
        setting.participation,
        setting.rounds,
        setting.x0,
        replicas=replicas,
        seed=seed,
        observe=observe,
    )
    return _Truths(truth, run)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Sampled means, the half-widths of their intervals, and the sample size."""

    means: FloatArray
    intervals: FloatArray
    replicas: int

    @classmethod
    def of(cls, points: Sequence[tuple[float, float, int]]) -> _Drawn:
        means, intervals, replicas = zip(*points, strict=True)
        return cls(np.array(means), np.array(intervals), replicas[0])


def _with_interval(
    theorem: Theorem, setting: Setting, run: Trajectory, chance: float
) -> tuple[float, float, int]:
    assert run.replicas is not None
    quantity = theorem.quantity
    sampling = Sampling(run.replicas, 0, chance)
    errors = Truth(run, Grade.STATISTICAL, sampling).error(quantity.field)
    return quantity.of(run, setting), quantity.error(errors, setting), run.replicas


def _drawn_along(theorem: Theorem, run: Trajectory, settings: Iterable[Setting]) -> _Drawn:
    """Take the intervals of the whole run, so that they hold together."""
    assert run.replicas is not None
    sampling = Sampling(run.replicas, 0, FIGURE_ERROR_PROBABILITY)
    quantity = theorem.quantity
    errors = Truth(run, Grade.STATISTICAL, sampling).error(quantity.field)
    return _Drawn.of(
        [
            (
                quantity.of(shorter(run, one.rounds), one),
                quantity.error(errors[: one.rounds + 1], one),
                run.replicas,
            )
            for one in settings
        ]
    )


def _speaks_of(theorem: Theorem, setting: Setting) -> bool:
    """Tell whether the quantity is over any round, and the symbols have values."""
    if theorem.quantity.rounds.of(np.zeros(setting.rounds + 1)).size == 0:
        return False
    try:
        theorem.constants(setting)
    except ValueError:
        return False
    return True


def _name_of_rounds(theorem: Theorem) -> str:
    names = {str(symbol) for symbol in theorem.meanings}
    return f"${next((name for name in _NAMES_OF_ROUNDS if name in names), 'R')}$"


def _curve(
    theorem: Theorem,
    variable: str,
    values: Sequence[float] | FloatArray,
    settings: Sequence[Setting],
    truths: Sequence[Truth],
    drawn: _Drawn | None,
    parts: Mapping[str, sp.Expr],
) -> BoundCurve:
    judged = [compare_with(t, theorem, s) for t, s in zip(truths, settings, strict=True)]
    computed = all(truth.sampling is None for truth in truths)
    return BoundCurve(
        f"{theorem.id} ({theorem.reading})",
        variable,
        f"${theorem.quantity.latex}$",
        np.asarray(values, dtype=np.float64),
        np.array([one.bound for one in judged]),
        tuple(one.outcome for one in judged),
        truth=np.array([one.truth for one in judged]) if computed else None,
        truth_error=np.array([one.evidence.error for one in judged]) if computed else None,
        sampled=None if drawn is None else drawn.means,
        interval=None if drawn is None else drawn.intervals,
        replicas=None if drawn is None else drawn.replicas,
        error_probability=0.0 if drawn is None else FIGURE_ERROR_PROBABILITY,
        parts=_parts(theorem, settings, parts),
    )


def _point_curve(
    claim: PointClaim,
    variable: str,
    values: Sequence[float],
    settings: Sequence[Setting],
    parts: Mapping[str, sp.Expr],
) -> BoundCurve:
    judged: list[Comparison] = [compare_at_point(claim, setting) for setting in settings]
    return BoundCurve(
        f"{claim.id} ({claim.reading})",
        variable,
        claim.quantity.text,
        np.asarray(values, dtype=np.float64),
        np.array([one.bound for one in judged]),
        tuple(one.outcome for one in judged),
        truth=np.array([one.truth for one in judged]),
        truth_error=np.array([one.evidence.error for one in judged]),
        parts=_parts(claim, settings, parts),
    )


def _parts(
    theorem: Theorem | PointClaim, settings: Sequence[Setting], parts: Mapping[str, sp.Expr]
) -> Mapping[str, FloatArray]:
    if not parts:
        return {}
    known = [theorem_values(theorem, theorem.constants(setting)) for setting in settings]
    return {
        name: np.array([float(evaluate(part, values)) for values in known])
        for name, part in parts.items()
    }
