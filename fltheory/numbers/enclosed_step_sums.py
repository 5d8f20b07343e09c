"""The sums over step sizes in CA-Fed's Theorem 2, enclosed.

``J_t`` is constant on blocks of rounds, ``J_t = j`` from one ``rate^-j / (2 C_P H)`` to the next.
The first terms are added one by one; of later blocks' terms ``f(t)``, which are convex in t,
midpoints and trapezoids give

``int_a^b f + (f(a) + f(b))/2 <= sum_{t=a}^b f(t) <= int_{a-1/2}^{b+1/2} f``.

Beyond some round T with J_T = j the logarithm is below its tangent: ``j <= J_t <= j + 1 + e (t -
T)`` with ``e = 1/(T ln(1/rate))``, so that ``t - J_t`` is at least ``(1 - e)(t - j - 1)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq

from fltheory.engines.enclosure.exact_setting import NoExactTwinError, widening_power

_FEWEST_TERMS = 1 << 14
_MOST_TERMS = 1 << 19
_TAIL_FROM = 1 << 40
_HALF = fmpq(1, 2)


@dataclass(frozen=True)
class Delays:
    """``J_t = max{ceil(ln(2 C_P H t) / ln(1/rate)), onset}``, before it is cut.

    Attributes
    ----------
    rate, scale : fmpq or arb
        ``scale`` is ``2 C_P H``.
    onset : int
    """

    rate: Any
    scale: Any
    onset: int

    def last(self, delay: int) -> int:
        """Return the last round with at most this delay.

        Raises
        ------
        NoExactTwinError
            If balls do not tell.
        """
        limit = widening_power(self.rate, -delay) / self.scale
        if isinstance(limit, fmpq):
            return int(limit.p) // int(limit.q)
        found = limit.floor().unique_fmpz()
        if found is None:
            raise NoExactTwinError(f"the last round with a delay of {delay} is not decided")
        return int(found)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first and the last round of each delay, and the delay, for ever."""
        before, delay = 0, self.onset
        while True:
            last = self.last(delay)
            if last > before:
                yield before + 1, last, delay
                before = last
            delay += 1

    def first(self, count: int) -> list[int]:
        """Return J_1, ..., J_count."""
        found: list[int] = []
        for first, last, delay in self.blocks():
            found += [delay] * (min(last, count) - first + 1)
            if last >= count:
                return found
        raise AssertionError("blocks have no end")


@dataclass(frozen=True)
class _Summand:
    """A convex function of the round t, its integral, and the integral from t on, for one shift c.

    All with ``c = j - offset``, so that ``t - J_t + offset = t - c``.
    """

    value: Callable[[Any, Any], Any]
    integral: Callable[[Any, Any], Any]
    beyond: Callable[[Any, Any], Any]


def _log_integral(t: Any, c: Any) -> Any:
    """Return an integral of ``ln(t)/(t - c)^2``."""
    if c == 0:
        return -(t.log() + 1) / t
    return -t.log() / (t - c) + ((t - c) / t).log() / c


_SQUARE = _Summand(
    lambda t, c: 1 / (t - c) ** 2, lambda t, c: -1 / (t - c), lambda t, c: 1 / (t - c)
)
# Both integrals vanish far away.
_LOGARITHM = _Summand(
    lambda t, c: t.log() / (t - c) ** 2, _log_integral, lambda t, c: -_log_integral(t, c)
)


def delayed_sums(delays: Delays, offset: Any) -> tuple[Any, Any]:
    """Return ``sum 1/(t - J_t + offset)^2`` and ``sum ln(t)/(t - J_t + offset)^2``, J_t at most t.

    Parameters
    ----------
    delays : Delays
    offset : fmpq
        Positive.

    Raises
    ------
    NoExactTwinError
        For a chain so slow that J_t is not small against t after 2^19 rounds.
    """
    slowest = (delays.scale * arb(_MOST_TERMS)).log() / -arb(delays.rate).log()
    if not 2 * slowest < _MOST_TERMS or not offset < _MOST_TERMS:
        raise NoExactTwinError("participation must have a rate that mixes")
    terms = _FEWEST_TERMS
    while terms < max(2 * delays.first(terms)[-1], offset):
        terms *= 2
    squares, logs = arb(0), arb(0)
    for t, delay in enumerate(delays.first(terms), start=1):
        term = 1 / arb(t - min(delay, t) + offset) ** 2
        squares += term
        logs += arb(t).log() * term
    for first, last, delay in delays.blocks():
        if last > terms:
            begin = max(first, terms + 1)
            squares += _block(_SQUARE, begin, last, delay - offset)
            logs += _block(_LOGARITHM, begin, last, delay - offset)
        if last >= _TAIL_FROM:
            return (
                squares + _tail(_SQUARE, delays, last, delay, offset),
                logs + _tail(_LOGARITHM, delays, last, delay, offset),
            )
    raise AssertionError("blocks have no end")


def _block(summand: _Summand, first: int, last: int, c: Any) -> Any:
    a, b, c = arb(first), arb(last), fmpq(c)
    ends = (summand.value(a, c) + summand.value(b, c)) / 2
    least = summand.integral(b, c) - summand.integral(a, c) + ends
    most = summand.integral(b + _HALF, c) - summand.integral(a - _HALF, c)
    return least.union(most)


def _tail(summand: _Summand, delays: Delays, last: int, delay: int, offset: Any) -> Any:
    slower = 1 / (last * -arb(delays.rate).log())
    near, far = fmpq(delay) - offset, fmpq(delay) + 1 - offset
    assert far <= last
    begin = arb(last + 1)
    least = summand.beyond(begin, near) + summand.value(begin, near) / 2
    most = summand.beyond(begin - _HALF, far) / (1 - slower) ** 2
    return least.union(most)


def square_sum(offset: Any) -> Any:
    """Return ``sum_{t >= 1} 1/(t + offset)^2``."""
    return arb(2).zeta(arb(offset) + 1)
