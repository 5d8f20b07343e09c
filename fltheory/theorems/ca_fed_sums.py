"""The sums over step sizes in CA-Fed's Theorem 2 and its proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import zeta

from fltheory.algorithms import Constant, Harmonic
from fltheory.participation.chain_structure import Mixing
from fltheory.validation import FloatArray

_TERMS = 1 << 19


@dataclass(frozen=True)
class StepSums:
    """Sums over rounds t = 1, 2, ... of step sizes eta_t.

    ``J_t = min{max{ceil(ln(2 C_P H t) / ln(1/lambda)), T_P}, t}``. Sums without an end are those
    of the statement, whose ``sum_t`` has none; ``upto`` are those the proof needs, in which J_t
    is at most t - 1, as there is no model before the first.

    Attributes
    ----------
    squares : float
        ``sum eta_t^2``.
    delayed, delayed_logs : float
        ``sum eta_{t-J_t}^2`` and ``sum ln(t) eta_{t-J_t}^2``; eta_0 by the formula of eta_t.
    """

    squares: float
    delayed: float
    delayed_logs: float


@dataclass(frozen=True)
class FiniteStepSums:
    """Sums over rounds t = 1 .. T, with J_t at most t - 1.

    Attributes
    ----------
    steps, squares : float
        ``sum eta_t``, ``sum eta_t^2``.
    unmixed : float
        ``sum eta_t C_P lambda^J_t`` over the rounds in which J_t is not cut to t - 1.
    delays : float
        ``sum J_t eta_{t-J_t}^2``.
    """

    steps: float
    squares: float
    unmixed: float
    delays: float


@lru_cache(maxsize=256)
def endless_sums(steps: Harmonic | Constant, mixing: Mixing, loss_change: float) -> StepSums:
    """Return the statement's sums; those without a limit are infinite.

    Harmonic step sizes: 2^19 terms, and the integral of the rest with J_t as it is there. Its
    error is below 1e-7 of the whole for rates up to 0.999.

    Raises
    ------
    ValueError
        For a chain so slow that J_t is not small against t after so many rounds.
    """
    if isinstance(steps, Constant) or steps.offset == 0:
        return StepSums(math.inf, math.inf, math.inf)
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
        squares=steps.scale**2 * float(zeta(2, 1 + steps.offset)),
        delayed=float(terms.sum()) + tail,
        delayed_logs=float(np.log(t) @ terms) + tail * mean_log,
    )


@lru_cache(maxsize=256)
def finite_sums(
    steps: Harmonic | Constant, mixing: Mixing, loss_change: float, rounds: int
) -> FiniteStepSums:
    """Return the sums over the rounds of a run."""
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


def _at(steps: Harmonic | Constant, t: FloatArray) -> FloatArray:
    if isinstance(steps, Constant):
        return np.full(t.shape, steps.value)
    return np.asarray(steps.scale / (t + steps.offset))
