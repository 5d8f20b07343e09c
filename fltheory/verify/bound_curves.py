"""Bound and truth side by side, over the rounds, over a parameter or over cases.

What a figure of a theorem shows: the bound, the exact truth, the sampled mean with its
interval, and the verdict at every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from fltheory import validation
from fltheory.engines import Setting
from fltheory.engines.trajectory import FIELDS
from fltheory.theorems.learning_claim import LearningClaim
from fltheory.theorems.statement import PointClaim, Statement, Theorem
from fltheory.validation import FloatArray
from fltheory.verify.bound_curve import BoundCurve, quantity_label
from fltheory.verify.check import Comparison, compare_at_point, compare_with, left_side
from fltheory.verify.curve_samples import CurveSample, along, at_values, drawn_at, sampled_run
from fltheory.verify.evaluation import evaluate, theorem_values
from fltheory.verify.exact_beginnings import exact_beginning
from fltheory.verify.learning_check import check_learning_claim
from fltheory.verify.shorter_runs import beginning, shorter
from fltheory.verify.truth import Sampling, Truth, truth_of
from fltheory.verify.verdict import Verdict

VERDICT_ERROR_PROBABILITY = 1e-9
_NAMES_OF_ROUNDS = ("T", "R")
_FROM_BELOW = "bound from below"


def rounds_curve(
    theorem: Statement,
    setting: Setting,
    *,
    points: int = 25,
    variable: str | None = None,
    replicas: int = 400,
    seed: int = 0,
    sampled_rounds: int | None = None,
    parts: Mapping[str, sp.Expr] | None = None,
) -> BoundCurve:
    """Follow a theorem's two sides over the rounds of one run.

    The step sizes stay those of ``setting``; only the number of rounds changes. Numbers of rounds
    of which the theorem does not speak are left out. Where the truth of the whole run can only be
    sampled, verdicts rest on that sample, and the truth of the first rounds is still computed
    where an enumeration reaches.

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
    sampled_rounds : int, optional
        Sample so many of the first rounds only, where the truth can be computed.
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
    theorem = _over_rounds(theorem)
    settings = [one for one in _shorter_settings(theorem, setting, points) if _speaks(theorem, one)]
    if not settings:
        raise ValueError(f"setting must be one of which {theorem.id} speaks, got {setting!r}")
    whole = _Truths.of(theorem, setting, replicas, seed, len(settings), sampled_rounds)
    judged = [beginning(whole.judged, one.rounds) for one in settings]
    values = [one.rounds for one in settings]
    drawn = None if whole.drawn is None else along(theorem, whole.drawn, settings)
    name = variable or _name_of_rounds(theorem)
    curve = _theorem_curve(theorem, name, values, settings, judged, drawn, parts)
    if whole.judged.sampling is None:
        return curve
    return replace(curve, truth=_beginning(theorem, setting, settings))


def quantity_curve(
    theorem: Statement,
    setting: Setting,
    *,
    points: int = 25,
    variable: str | None = None,
    replicas: int = 400,
    seed: int = 0,
) -> BoundCurve:
    """Follow a theorem's quantity over the rounds of a run of which it need not speak.

    To be drawn beside those of which it does: there is no bound and no verdict.

    Parameters
    ----------
    theorem, setting, points, variable, replicas, seed
        As for `rounds_curve`.

    Raises
    ------
    ValueError
        For a statement that is not an inequality over rounds, or one whose quantity has no
        meaning for the setting.

    Examples
    --------
    >>> from fltheory import theorems
    >>> theorem = theorems.get("sa-fl/5")
    >>> other = theorems.get("scaffold/strongly-convex").regimes["uniform sampling"].setting
    >>> quantity_curve(theorem, other, points=2, replicas=0).verdict
    'no claim'
    """
    theorem = _over_rounds(theorem)
    settings = _shorter_settings(theorem, setting, points)
    sampling = Sampling(replicas or Sampling.replicas, seed, VERDICT_ERROR_PROBABILITY)
    observe = () if theorem.quantity.field in FIELDS else tuple(theorem.observe(setting))
    truth = truth_of(setting, observe, sampling)
    sides: dict[str, Any]
    if truth.sampling is None:
        drawn = sampled_run(theorem, setting, replicas, seed) if replicas else None
        known = [left_side(theorem, beginning(truth, one.rounds), one) for one in settings]
        values, errors = np.array(known).T
        sides = {"truth": values, "truth_error": errors}
    else:
        drawn = truth
        sides = {"truth": _beginning(theorem, setting, settings)}
    if drawn is not None:
        sides |= along(theorem, drawn, settings).fields()
    return BoundCurve(
        _name(theorem),
        variable or _name_of_rounds(theorem),
        quantity_label(theorem.quantity),
        np.array([float(one.rounds) for one in settings]),
        np.full(len(settings), np.nan),
        **sides,
    )


def sweep_curve(
    theorem: Statement,
    make: Callable[[float], Any],
    values: Sequence[float] | FloatArray,
    *,
    variable: str,
    replicas: int = 400,
    seed: int = 0,
    parts: Mapping[str, sp.Expr] | None = None,
) -> BoundCurve:
    """Follow a theorem's two sides over a parameter.

    Parameters
    ----------
    theorem : Theorem, PointClaim or LearningClaim
    make : callable
        The setting, or the learning problem, at a value of the parameter.
    values : sequence of float
    variable : str
        The parameter's name on the axis, mathematics between dollars.
    replicas, seed, parts
        As for `rounds_curve`. A claim that needs no run is sampled if its quantity says how.

    Raises
    ------
    ValueError
        For a claimed order, or no values.
    """
    if not isinstance(theorem, Theorem | PointClaim | LearningClaim):
        raise ValueError(f"theorem must be an inequality about an algorithm, got {theorem.id}")
    if len(values) == 0:
        raise ValueError("values must hold at least one value, got none")
    settings = [make(value) for value in values]
    if isinstance(theorem, LearningClaim):
        verdicts = [check_learning_claim(theorem, one) for one in settings]
        drawn = drawn_at(theorem.quantity.sample, settings, replicas, seed)
        bound_name = _FROM_BELOW if theorem.direction in (">", ">=") else "bound"
        return _curve(theorem, variable, values, verdicts, drawn, bound_name=bound_name)
    if isinstance(theorem, PointClaim):
        judged = [compare_at_point(theorem, one) for one in settings]
        drawn = drawn_at(theorem.quantity.sample, settings, replicas, seed)
        shown = _parts(theorem, settings, parts)
        return _curve(theorem, variable, values, judged, drawn, parts=shown)
    runs = [_Truths.of(theorem, one, replicas, seed, len(values)) for one in settings]
    samples = [run.drawn for run in runs if run.drawn is not None]
    drawn = at_values(theorem, samples, settings) if len(samples) == len(runs) else None
    truths = [run.judged for run in runs]
    return _theorem_curve(theorem, variable, values, settings, truths, drawn, parts)


def cases_curve(
    theorem: Statement,
    cases: Mapping[str, Any],
    *,
    replicas: int = 400,
    seed: int = 0,
    parts: Mapping[str, sp.Expr] | None = None,
) -> BoundCurve:
    """Follow a theorem's two sides over named settings: choices of weights, say.

    Parameters
    ----------
    theorem : Theorem, PointClaim or LearningClaim
    cases : mapping of str to setting, or learning problem
    replicas, seed, parts
        As for `sweep_curve`.

    Raises
    ------
    ValueError
        As for `sweep_curve`.

    Examples
    --------
    >>> from fltheory import theorems
    >>> claim = theorems.get("pac/1")
    >>> cases = {name: regime.setting for name, regime in claim.regimes.items()}
    >>> curve = cases_curve(claim, cases)
    >>> curve.labels[0], curve.verdict
    ('two clients with one sample', 'HOLDS at 5, INAPPLICABLE at 1')
    """
    settings = list(cases.values())
    places = np.arange(float(len(settings)))
    curve = sweep_curve(
        theorem,
        lambda place: settings[int(place)],
        places,
        variable="",
        replicas=replicas,
        seed=seed,
        parts=parts,
    )
    return replace(curve, labels=tuple(cases))


def _over_rounds(theorem: Statement) -> Theorem:
    if not isinstance(theorem, Theorem):
        raise ValueError(f"theorem must be an inequality over rounds, got {theorem.id}")
    return theorem


def _name(statement: Statement) -> str:
    return f"{statement.id} ({statement.reading})"


def _name_of_rounds(theorem: Theorem) -> str:
    names = {str(symbol) for symbol in theorem.meanings}
    return f"${next((name for name in _NAMES_OF_ROUNDS if name in names), 'R')}$"


def _shorter_settings(theorem: Theorem, setting: Setting, points: int) -> list[Setting]:
    """Return runs of fewer rounds, those that have any of which the quantity is."""
    points = validation.whole_number("points", points, at_least=2)
    spread = np.geomspace(1, setting.rounds, min(points, setting.rounds))
    grid = np.unique(np.round(spread).astype(int))
    counted = [r for r in grid if theorem.quantity.rounds.of(np.zeros(r + 1)).size]
    return [replace(setting, rounds=int(r)) for r in counted]


def _speaks(theorem: Theorem, setting: Setting) -> bool:
    """Tell whether the symbols have values."""
    try:
        theorem.constants(setting)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class _Truths:
    """What the verdict rests on, and the sample that is drawn, if there is one."""

    judged: Truth
    drawn: Truth | None

    @classmethod
    def of(
        cls,
        theorem: Theorem,
        setting: Setting,
        replicas: int,
        seed: int,
        values: int,
        rounds: int | None = None,
    ) -> _Truths:
        """Compute or else sample; a sample on which the verdict rests is the one drawn."""
        sampling = Sampling(replicas or Sampling.replicas, seed, VERDICT_ERROR_PROBABILITY / values)
        truth = truth_of(setting, theorem.observe(setting), sampling)
        if truth.sampling is not None:
            return cls(truth, truth)
        return cls(
            truth, sampled_run(theorem, setting, replicas, seed, rounds) if replicas else None
        )


def _beginning(
    theorem: Theorem, setting: Setting, settings: Sequence[Setting]
) -> FloatArray | None:
    """Return the quantity over the rounds that an enumeration reaches, NaN beyond them."""
    if theorem.quantity.field not in FIELDS:
        return None
    run = exact_beginning(setting)
    if run is None or run.rounds < settings[0].rounds:
        return None
    return np.array(
        [
            theorem.quantity.of(shorter(run, one.rounds), one)
            if one.rounds <= run.rounds
            else np.nan
            for one in settings
        ]
    )


def _curve(
    statement: Theorem | PointClaim | LearningClaim,
    variable: str,
    values: Sequence[float] | FloatArray,
    judged: Sequence[Comparison] | Sequence[Verdict],
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
        _name(statement),
        variable,
        quantity_label(statement.quantity),
        np.asarray(values, dtype=np.float64),
        np.array([one.bound for one in judged]),
        tuple(one.outcome for one in judged),
        **sides,
        bound_name=bound_name,
        parts=parts or {},
    )


def _theorem_curve(
    theorem: Theorem,
    variable: str,
    values: Sequence[float] | FloatArray,
    settings: Sequence[Setting],
    truths: Sequence[Truth],
    drawn: CurveSample | None,
    parts: Mapping[str, sp.Expr] | None,
) -> BoundCurve:
    return _curve(
        theorem,
        variable,
        values,
        [compare_with(t, theorem, s) for t, s in zip(truths, settings, strict=True)],
        drawn,
        computed=all(truth.sampling is None for truth in truths),
        parts=_parts(theorem, settings, parts),
    )


def _parts(
    theorem: Theorem | PointClaim, settings: Sequence[Setting], parts: Mapping[str, sp.Expr] | None
) -> Mapping[str, FloatArray]:
    if not parts:
        return {}
    known = [theorem_values(theorem, theorem.constants(setting)) for setting in settings]
    return {
        name: np.array([float(evaluate(part, values)) for values in known])
        for name, part in parts.items()
    }
