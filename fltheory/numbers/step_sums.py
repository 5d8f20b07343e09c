"""The sums over step sizes in CA-Fed's Theorem 2 and its proof, in floats or enclosed.

``J_t`` is constant on blocks of rounds: ``J_t = j`` from one ``rate^-j / (2 C_P H)`` to the next.
The first terms are added one by one. The terms ``f(t)`` of later blocks are convex in t, so
midpoints and trapezoids give

``int_a^b f + (f(a) + f(b))/2 <= sum_{t=a}^b f(t) <= int_{a-1/2}^{b+1/2} f``.

Beyond a round T with J_T = j, the logarithm is below its tangent, so ``j <= J_t <= j + 1 + e (t -
T)`` with ``e = 1/(T ln(1/rate))``, so ``t - J_t`` is at least ``(1 - e)(t - j - 1)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
from flint import arb, fmpq

from fltheory.algorithms import Constant, Harmonic
from fltheory.algorithms.shared.step_sizes import StepSizes
from fltheory.engines.affine.numbers import raw_number
from fltheory.engines.enclosure.exact_setting import (
    NoExactTwinError,
    WideningNumber,
    widening_power,
)
from fltheory.exact_or_float import is_exact
from fltheory.participation.chain_structure import Mixing
from fltheory.validation import FloatArray

_FEWEST_TERMS = 1 << 14
_MOST_TERMS = 1 << 19
_TAIL_FROM = 1 << 40
_HALF = fmpq(1, 2)


@dataclass(frozen=True)
class Delays:
    """The delays ``J_t = max{ceil(ln(2 C_P H t) / ln(1/rate)), onset}``, before capping at t.

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
        """Return the last round whose delay is at most this one.

        Raises
        ------
        NoExactTwinError
            If the balls are too wide to decide.
        """
        limit = widening_power(self.rate, -delay) / self.scale
        if isinstance(limit, fmpq):
            return int(limit.p) // int(limit.q)
        found = limit.floor().unique_fmpz()
        if found is None:
            raise NoExactTwinError(f"the last round with a delay of {delay} is not decided")
        return int(found)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first and the last round of each delay, and the delay, without end."""
        before, delay = 0, self.onset
        while True:
            last = self.last(delay)
            if last > before:
                yield before + 1, last, delay
                before = last
            delay += 1

    def first(self, count: int) -> list[int]:
        """Return J_1, ..., J_count, capped at ``count``."""
        found: list[int] = []
        # For a slowly mixing chain, delays are in the millions, beyond any round of the run.
        for delay in range(self.onset, count):
            found += [delay] * (min(self.last(delay), count) - len(found))
            if len(found) == count:
                break
        return found + [count] * (count - len(found))


@dataclass(frozen=True)
class _Summand:
    """A convex function of the round t, its antiderivative, and the integral from t to infinity.

    All take a shift ``c = j - offset``, so that ``t - J_t + offset = t - c``.
    """

    value: Callable[[Any, Any], Any]
    integral: Callable[[Any, Any], Any]
    beyond: Callable[[Any, Any], Any]


def _log_integral(t: Any, c: Any) -> Any:
    """Return the antiderivative of ``ln(t)/(t - c)^2`` that vanishes at infinity."""
    if c == 0:
        return -(t.log() + 1) / t
    return -t.log() / (t - c) + ((t - c) / t).log() / c


_SQUARE = _Summand(
    lambda t, c: 1 / (t - c) ** 2, lambda t, c: -1 / (t - c), lambda t, c: 1 / (t - c)
)
# Both antiderivatives vanish at infinity.
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
        If the chain is so slow that J_t is not small compared with t after 2^19 rounds.
    """
    slowest = (delays.scale * arb(_MOST_TERMS)).log() / -arb(delays.rate).log()
    if not 2 * slowest < _MOST_TERMS or not offset < _MOST_TERMS:
        raise NoExactTwinError("participation must mix faster for infinite sums")
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


_TERMS = 1 << 19


@dataclass(frozen=True)
class StepSums:
    """Sums of step sizes eta_t over rounds t = 1, 2, ....

    ``J_t = min{max{ceil(ln(2 C_P H t) / ln(1/lambda)), T_P}, t}``. The sums run over all t >= 1,
    like ``sum_t`` in the statement.

    Attributes
    ----------
    delayed, delayed_logs : float, or exact number
        ``sum eta_{t-J_t}^2`` and ``sum ln(t) eta_{t-J_t}^2``, with eta_0 given by the formula for
        eta_t.
    """

    delayed: Any
    delayed_logs: Any


@dataclass(frozen=True)
class FiniteStepSums:
    """Sums over rounds t = 1 .. T, with J_t capped at t - 1.

    Attributes
    ----------
    steps, squares : float, or exact number
        ``sum eta_t``, ``sum eta_t^2``.
    unmixed : float
        ``sum eta_t C_P lambda^J_t`` over the rounds in which J_t is not capped at t - 1.
    delays : float
        ``sum J_t eta_{t-J_t}^2``.
    """

    steps: Any
    squares: Any
    unmixed: Any
    delays: Any


def inverse_squares(steps: StepSizes) -> Any:
    """Return ``sum 1/t^2 = pi^2/6``, in the number type of the steps."""
    if is_exact(steps.at(1)):
        return WideningNumber(arb.pi() ** 2 / 6)
    return math.pi**2 / 6


def endless_squares(steps: StepSizes) -> Any:
    """Return the statement's ``sum eta_t^2``, or infinity if steps do not decrease.

    It is also infinite for an offset of zero, because with delays the statement needs eta_0.
    """
    from scipy.special import zeta

    if not _falls(steps):
        return math.inf
    if is_exact(steps.scale):
        return steps.scale**2 * WideningNumber(square_sum(raw_number(steps.offset)))
    return steps.scale**2 * float(zeta(2, 1 + steps.offset))


def endless_sums(steps: StepSizes, mixing: Mixing, loss_change: Any) -> StepSums:
    """Return the statement's sums with delays; divergent ones are infinite.

    For harmonic step sizes, 2^19 terms are added, and the rest is an integral in which J_t is fixed
    at its value after these terms. The error is below 1e-7 of the whole for rates up to 0.999. In
    exact numbers, the sums are enclosed.

    Raises
    ------
    ValueError
        If the chain is so slow that J_t is not small compared with t even at the last of these
        terms.
    """
    if not _falls(steps):
        return StepSums(math.inf, math.inf)
    if not is_exact(steps.scale):
        return _endless_sums(steps, mixing, loss_change)
    sums = delayed_sums(_exact_delays(mixing, loss_change), raw_number(steps.offset))
    delayed, logs = (steps.scale**2 * WideningNumber(each) for each in sums)
    return StepSums(delayed, logs)


def _falls(steps: StepSizes) -> TypeGuard[Harmonic]:
    """Return whether infinite sums are known to be finite: only for harmonic step sizes."""
    if not isinstance(steps, Harmonic | Constant):
        raise ValueError(
            f"step sizes must be Harmonic or Constant for infinite sums, got {steps!r}"
        )
    return isinstance(steps, Harmonic) and steps.offset != 0


def _exact_delays(mixing: Mixing, loss_change: Any) -> Delays:
    scale: Any = 2 * mixing.factor * loss_change
    return Delays(raw_number(mixing.rate), raw_number(scale), mixing.onset)


@lru_cache
def _endless_sums(steps: Harmonic, mixing: Mixing, loss_change: float) -> StepSums:
    t = np.arange(1.0, _TERMS + 1)
    delay = np.minimum(_delays(t, mixing, loss_change), t)
    last = float(delay[-1])
    if last > _TERMS / 16:
        raise ValueError(
            f"participation must mix faster for infinite sums, got a rate of {mixing.rate!r}"
        )
    terms = (steps.scale / (t - delay + steps.offset)) ** 2
    behind = last - steps.offset
    first = _TERMS + 0.5 - behind
    tail = steps.scale**2 / first
    mean_log = math.log(_TERMS + 0.5)
    mean_log += math.log1p(behind / first) * first / behind if behind else 1.0
    return StepSums(
        delayed=float(terms.sum()) + tail,
        delayed_logs=float(np.log(t) @ terms) + tail * mean_log,
    )


def delays(mixing: Mixing, loss_change: Any, rounds: int) -> list[int]:
    """Return J_t for t = 1 .. T, at most t - 1 each."""
    if is_exact(loss_change):
        wanted = _exact_delays(mixing, loss_change).first(rounds)
    else:
        wanted = [int(j) for j in _delays(np.arange(1.0, rounds + 1), mixing, loss_change)]
    return [min(delay, t - 1) for t, delay in enumerate(wanted, start=1)]


def finite_sums(steps: StepSizes, mixing: Mixing, loss_change: Any, rounds: int) -> FiniteStepSums:
    """Return the sums over the rounds of a run."""
    if not is_exact(steps.at(1)):
        return _finite_sums(steps, mixing, loss_change, rounds)
    eta = [WideningNumber(arb(raw_number(steps.at(t)))) for t in range(1, rounds + 1)]
    powers: dict[int, Any] = {}
    nothing = WideningNumber(arb(0))
    unmixed = delayed = nothing
    for t, wanted in enumerate(_exact_delays(mixing, loss_change).first(rounds), start=1):
        delay = min(wanted, t - 1)
        delayed += delay * eta[t - delay - 1] ** 2
        if wanted == delay:
            if delay not in powers:
                powers[delay] = mixing.rate**delay
            unmixed += eta[t - 1] * mixing.factor * powers[delay]
    squares = sum((each**2 for each in eta), nothing)
    return FiniteStepSums(sum(eta, nothing), squares, unmixed, delayed)


@lru_cache
def _finite_sums(
    steps: StepSizes, mixing: Mixing, loss_change: float, rounds: int
) -> FiniteStepSums:
    t = np.arange(1.0, rounds + 1)
    wanted = _delays(t, mixing, loss_change)
    delay = np.minimum(wanted, t - 1)
    eta, earlier = _at(steps, t), _at(steps, t - delay)
    unmixed = np.where(wanted <= t - 1, eta * mixing.factor * mixing.rate**delay, 0.0)
    return FiniteStepSums(
        steps=float(eta.sum()),
        squares=float((eta**2).sum()),
        unmixed=float(unmixed.sum()),
        delays=float((delay * earlier**2).sum()),
    )


def _delays(t: FloatArray, mixing: Mixing, loss_change: float) -> FloatArray:
    """Return J_t before capping."""
    wanted = np.ceil(np.log(2 * mixing.factor * loss_change * t) / math.log(1 / mixing.rate))
    return np.asarray(np.maximum(wanted, mixing.onset))


def _at(steps: StepSizes, t: FloatArray) -> FloatArray:
    if isinstance(steps, Harmonic):
        return np.asarray(steps.scale / (t + steps.offset))
    return np.array([steps.at(int(each)) for each in t])
