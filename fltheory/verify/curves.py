"""Bound and truth side by side, over the rounds, over a parameter, over cases or a variable.

What a figure of a statement shows: the bound, the exact truth, the sampled mean with its
interval, and the verdict at every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.bound_curve import BoundCurve
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.learnability.system import LearningSetting
from fltheory.validation import FloatArray

VERDICT_ERROR_PROBABILITY = 1e-9


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
    return theorem.curve_over_rounds(
        setting,
        points=points,
        variable=variable,
        sampling=_sampling(replicas, seed),
        draws=replicas,
        sampled_rounds=sampled_rounds,
        parts=parts,
    )


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
    return theorem.quantity_over_rounds(
        setting,
        points=points,
        variable=variable,
        sampling=_sampling(replicas, seed),
        draws=replicas,
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
    if len(values) == 0:
        raise ValueError("values must hold at least one value, got none")
    return theorem.curve_over(
        [make(value) for value in values],
        np.asarray(values, dtype=np.float64),
        variable=variable,
        sampling=_sampling(replicas, seed),
        draws=replicas,
        parts=parts,
    )


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
    ('two clients with one sample', 'HOLDS in 5 cases, INAPPLICABLE in 1 case')
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
    ('UNDECIDED', [1.0, 2.0, 4.0, 8.0])
    """
    return claim.curve_of_order(setting, sampling=_sampling(replicas, seed), draws=replicas)


def _sampling(replicas: int, seed: int) -> Sampling:
    return Sampling(replicas or Sampling.replicas, seed, VERDICT_ERROR_PROBABILITY)
