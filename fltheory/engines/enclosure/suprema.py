"""The supremum of a weighted square over a Euclidean ball, enclosed.

``sup sum_i w_i (y_i + o_i)^2`` over ``||y|| <= r``, ``w_i >= 0``, is a trust-region problem with
strong duality (`problems.ball`): every ``lam >= max_i w_i`` gives the upper bound

``phi(lam) = lam r^2 + sum_i lam w_i o_i^2 / (lam - w_i)``,

and ``y_i = w_i o_i / (lam - w_i)``, put onto the sphere, is a point of the ball. Both are off by
the square of what lam is off by, so that nothing need be known of how lam was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flint import arb, fmpq

from fltheory.engines.affine.numbers import InexactRoundError

_MOST_STEPS = 200


def largest_weighted_square(weights: Sequence[Any], offsets: Sequence[Any], radius: Any) -> Any:
    """Return the supremum: a fraction where the multiplier is one, else a ball.

    Parameters
    ----------
    weights, offsets : sequences of fmpq
        w, not negative, and o.
    radius : fmpq
        Positive.

    Raises
    ------
    InexactRoundError
        If numbers are balls that do not tell which case it is.

    Examples
    --------
    >>> from flint import fmpq
    >>> largest_weighted_square([fmpq(1), fmpq(9)], [fmpq(0), fmpq(1, 3)], fmpq(2))
    49
    """
    top = max(weights)
    pulled = [(w, o) for w, o in zip(weights, offsets, strict=True) if w != 0 and o != 0]

    def bound(lam: Any) -> Any:
        return lam * radius**2 + _sum(lam * w * o**2 / (lam - w) for w, o in pulled)

    def reach(lam: Any) -> Any:
        return _sum((w * o / (lam - w)) ** 2 for w, o in pulled)

    if all(w < top for w, _ in pulled) and reach(top) <= radius**2:
        return bound(top)
    # No component of y is longer than the radius: lam is at least this, and is this for one alone.
    least = max([top, *(w + w * abs(o) / radius for w, o in pulled)])
    if least > top and reach(least) == radius**2:
        return bound(least)
    lam = _multiplier(arb(least), pulled, radius)
    if not lam >= top:
        raise InexactRoundError("the multiplier of a supremum over a ball must be larger")
    size = reach(lam).sqrt()
    point = [w * o * radius / ((lam - w) * size) for w, o in pulled]
    reached = _sum(w * (y + o) ** 2 for y, (w, o) in zip(point, pulled, strict=True))
    return arb(reached.lower()).union(arb(bound(lam).upper()))


def _multiplier(least: Any, pulled: Sequence[tuple[Any, Any]], radius: Any) -> Any:
    """Return about the lam with ``||y|| = r``.

    By Newton's method on ``1/||y||``, which is concave: from below its steps stay below.
    """
    lam = arb(least.mid())
    for _ in range(_MOST_STEPS):
        square = _sum((w * o / (lam - w)) ** 2 for w, o in pulled)
        slope = _sum((w * o) ** 2 / (lam - w) ** 3 for w, o in pulled)
        step = (square.sqrt() / radius - 1) * square / slope
        following = arb((lam + step).mid())
        if not following > lam:
            return lam
        lam = following
    raise InexactRoundError("the multiplier of a supremum over a ball was not found")


def _sum(values: Iterable[Any]) -> Any:
    return sum(values, fmpq(0))
