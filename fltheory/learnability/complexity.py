"""The complexity term A(m, delta) of SA-FL's Lemma 1 and Theorem 3, as printed and as it must be.

As printed, ``(1/m) log(1/delta)`` stands inside the logarithm, where delta hardly counts; a sample
of m fails with probability exponentially small in m and no smaller, so no bound of this form holds
for all delta. In the uniform Bernstein bounds of the works that the lemma cites the term stands
outside, and m/d is at least one.
"""

from __future__ import annotations

import math

from fltheory import validation


def printed_complexity(m: int, delta: float, d: int = 1) -> float:
    """Return ``(d/m) log(m/d + (1/m) log(1/delta))``; it is negative for m well below d.

    Raises
    ------
    ValueError
        For m or d below 1, or a delta outside (0, 1).
    """
    _check(m, delta, d)
    return d / m * math.log(m / d - math.log(delta) / m)


def cited_complexity(m: int, delta: float, d: int = 1) -> float:
    """Return ``(d/m) log(max(m, d)/d) + (1/m) log(1/delta)``.

    Raises
    ------
    ValueError
        As `printed_complexity`.
    """
    _check(m, delta, d)
    return d / m * math.log(max(m, d) / d) - math.log(delta) / m


def _check(m: int, delta: float, d: int) -> None:
    validation.whole_number("m", m, at_least=1)
    validation.whole_number("d", d, at_least=1)
    validation.real_number("delta", delta, "inside (0, 1)", lambda chance: 0 < chance < 1)
