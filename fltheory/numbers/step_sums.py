"""The sums over step sizes in CA-Fed's Theorem 2 and its proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
from flint import arb

from fltheory.algorithms import Constant, Harmonic
from fltheory.algorithms.shared.step_sizes import StepSizes
from fltheory.engines.affine.numbers import raw_number
from fltheory.engines.enclosure.exact_setting import WideningNumber
from fltheory.exact_or_float import is_exact
from fltheory.numbers.enclosed_step_sums import Delays, delayed_sums, square_sum
from fltheory.participation.chain_structure import Mixing
from fltheory.validation import FloatArray

_TERMS = 1 << 19


@dataclass(frozen=True)
class StepSums:
    """Sums over rounds t = 1, 2, ... of step sizes eta_t.

    ``J_t = min{max{ceil(ln(2 C_P H t) / ln(1/lambda)), T_P}, t}``. Sums without an end are those
    of the statement, whose ``sum_t`` has none.

    Attributes
    ----------
    delayed, delayed_logs : float, or exact number
        ``sum eta_{t-J_t}^2`` and ``sum ln(t) eta_{t-J_t}^2``; eta_0 by the formula of eta_t.
    """

    delayed: Any
    delayed_logs: Any


@dataclass(frozen=True)
class FiniteStepSums:
    """Sums over rounds t = 1 .. T, with J_t at most t - 1.

    Attributes
    ----------
    steps, squares : float, or exact number
        ``sum eta_t``, ``sum eta_t^2``.
    unmixed : float
        ``sum eta_t C_P lambda^J_t`` over the rounds in which J_t is not cut to t - 1.
    delays : float
        ``sum J_t eta_{t-J_t}^2``.
    """

    steps: Any
    squares: Any
    unmixed: Any
    delays: Any


def inverse_squares(steps: StepSizes) -> Any:
    """Return ``sum 1/t^2 = pi^2/6``, in the numbers that the steps are in."""
    if is_exact(steps.at(1)):
        return WideningNumber(arb.pi() ** 2 / 6)
    return math.pi**2 / 6


def endless_squares(steps: StepSizes) -> Any:
    """Return the statement's ``sum eta_t^2``; infinite for steps that do not decrease.

    For an offset of zero it is infinite, too: with delays the statement asks for eta_0.
    """
    from scipy.special import zeta

    if not _falls(steps):
        return math.inf
    if is_exact(steps.scale):
        return steps.scale**2 * WideningNumber(square_sum(raw_number(steps.offset)))
    return steps.scale**2 * float(zeta(2, 1 + steps.offset))


def endless_sums(steps: StepSizes, mixing: Mixing, loss_change: Any) -> StepSums:
    """Return the statement's sums with delays; those without a limit are infinite.

    Harmonic step sizes: 2^19 terms, and the integral of the rest with J_t as it is there. Its
    error is below 1e-7 of the whole for rates up to 0.999. In exact numbers: an enclosure.

    Raises
    ------
    ValueError
        For a chain so slow that J_t is not small against t after so many rounds.
    """
    if not _falls(steps):
        return StepSums(math.inf, math.inf)
    if not is_exact(steps.scale):
        return _endless_sums(steps, mixing, loss_change)
    sums = delayed_sums(_exact_delays(mixing, loss_change), raw_number(steps.offset))
    delayed, logs = (steps.scale**2 * WideningNumber(each) for each in sums)
    return StepSums(delayed, logs)


def _falls(steps: StepSizes) -> TypeGuard[Harmonic]:
    """Say whether sums without an end are finite; of steps of another kind none is known here."""
    if not isinstance(steps, Harmonic | Constant):
        raise ValueError(f"step sizes must be Harmonic or Constant for endless sums, got {steps!r}")
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
        raise ValueError(f"participation must have a rate that mixes, got {mixing.rate!r}")
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
    """Return J_t before it is cut."""
    wanted = np.ceil(np.log(2 * mixing.factor * loss_change * t) / math.log(1 / mixing.rate))
    return np.asarray(np.maximum(wanted, mixing.onset))


def _at(steps: StepSizes, t: FloatArray) -> FloatArray:
    if isinstance(steps, Harmonic):
        return np.asarray(steps.scale / (t + steps.offset))
    return np.array([steps.at(int(each)) for each in t])
