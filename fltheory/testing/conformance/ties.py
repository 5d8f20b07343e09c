"""Choices that papers leave open, or that rounding turns: cases with such show no fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.own_runs import Change, Play, Slip
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

_LEAST = 1e-8
# A change of the numbers by a part may change models by so many times that part.
_AMPLIFIED = 1e3
_ORDERS = 2


def steady(one: Specification, case: Case, rtol: float = 1e-9) -> bool:
    """Return whether numbers that differ a little lead to models that do.

    If not, a choice is a tie or nearly one there, which rounding turns, or an order that the
    paper leaves open. In single precision, for which ``rtol`` is 1e-4 or so, numbers differ more.
    """
    if not one.chooses:
        return True
    # Rounding to rtol/100 is what an implementation may do at most in a step.
    small = max(_LEAST, rtol / 100)
    nudges = _nudges(case.n_clients, small)
    x0 = case.x0 * (1 + np.concatenate([[0.0], np.sign(nudges[:, 0, 0])]) * small)[:, None]
    nudged = Play(one, x0, case.clients, case.trace, case.keywords, _nudged(nudges))
    with np.errstate(all="ignore"):
        models = nudged.models()
    size = float(np.abs(models[:, 0]).max()) + case.scale
    far = np.abs(models[:, 1:] - models[:, :1]).max()
    return bool(far <= max(_AMPLIFIED * _LEAST, rtol / 2, 30 * small) * size)


def _nudges(n: int, small: float) -> FloatArray:
    """Return by what clients' two numbers differ, (replicas, 2, N).

    Clients that tie come in one order, in the opposite one, and in some others.
    """
    rng, ascending = np.random.default_rng(n), np.arange(n)
    orders = [(ascending, ascending), (ascending, -ascending)]
    orders += [(rng.permutation(n), rng.permutation(n)) for _ in range(_ORDERS)]
    return np.array([s * small * (1 + np.array(o) / n) for o in orders for s in (1, -1)])


def _nudged(nudges: FloatArray) -> Slip:
    """Return an algorithm of which the first replica has the numbers given, and others nearly."""
    first, second = np.concatenate([np.zeros((1, *nudges.shape[1:])), nudges]).swapaxes(0, 1)
    sign = np.sign(first[:, :1]) * np.abs(first).min(axis=1, keepdims=True)

    def estimates(play: Play, plain: Change) -> Callable[..., Any]:
        def found(state: Any, who: Any) -> Any:
            counts, pi, correlation = plain(state, who)
            return counts, pi + first, correlation + second

        return found

    return Slip(
        "",
        names={
            "on_backend": lambda play, plain, known, like: (
                known if known.ndim == 2 else plain(known, like)
            ),
            "check_one_each": lambda *_: None,
        },
        algorithm={
            "target_weights": lambda play, alpha: alpha * (1 + first),
            "availability": lambda play, pi: pi if pi is None else pi * (1 + first),
            # Where all that is compared is exactly 0, nothing else tells a tie.
            "threshold": lambda play, threshold: threshold + sign,
            "prior": lambda play, prior: (prior[0] * (1 + sign), prior[1]),
            "_availability": estimates,
        },
    )
