"""From FedAU's general descent lemma (Lemma B.3.3) to Theorems 1 and 2, step by step.

With phi_n = 1/N and e_t = 1/N sum_n (p_n omega_t^n - 1)^2, the lemma bounds E f(x_{t+1}) - f(x_t)
by terms without the gradient, plus ``gamma eta I [81/16 e_t + 15 L^2 I^2 gamma^2 + 27 gamma eta L I
Q_t/(8N) - 1/4] ||grad f(x_t)||^2``. This bounds the gradient only if the bracket is negative.
"""

from __future__ import annotations

import sympy as sp

from fltheory.derivations.derivation import Derivation, Equal, Implied, Step
from fltheory.theorems.fedau.setting import (
    F_0,
    G,
    I_steps,
    L,
    N,
    P,
    Q,
    T,
    W,
    delta,
    delta_h,
    eta,
    gamma,
    sigma,
)

_g, _u, _v, _w = sp.symbols("g u v w", nonnegative=True)
_ONE, _16TH = sp.Integer(1), sp.Rational(1, 16)
_MEANINGS = {
    _u: "81/N sum_n (p_n omega_t^n - 1)^2",
    _v: "240 gamma^2 L^2 I^2",
    _w: "27 gamma eta L I Q/N",
    _g: "the mean of E||grad||^2 over the rounds",
}
_TAKEN = (
    "Lemma B.3.3, with all its constants; u, v and w are shares of the printed limits.",
    "Summed over t = 0 .. T-1, E f(x_t) telescopes, and f >= f*.",
    "In every round and on every path, Q_t <= Q, and the weight error is within its bound.",
)
_WITHOUT_ERROR = _v / 16 + _w / 8
_POSITIVE = _u / 16 + _WITHOUT_ERROR


def _bracket(label: str, positive: sp.Expr, most: sp.Rational, share: sp.Rational = _ONE) -> Step:
    """Return the step that the bracket, ``positive - 1/4``, is at most ``most``."""
    shares = [(_u, _ONE, _16TH)] if positive.has(_u) else []
    shares += [(_v, _ONE, _16TH), (_w, share, sp.Rational(1, 8))]
    return Step(
        label,
        f"the bracket of Lemma B.3.3, which is the left side less 1/4, is at most {most}",
        Implied(
            claimed=sp.Le(positive, sp.Rational(1, 4) + most),
            given=tuple(sp.Le(symbol, limit) for symbol, limit, _ in shares),
            multipliers=tuple(multiplier for *_, multiplier in shares),
        ),
    )


def _free_terms(divergence: sp.Symbol, errors: sp.Expr, spread: sp.Expr) -> sp.Expr:
    """Return the lemma's terms without the gradient, over gamma eta I, averaged over rounds."""
    return (
        sp.Rational(3, 2)
        * (15 * L**2 * I_steps * gamma**2 * sigma**2 + sp.Rational(27, 8) * divergence**2)
        * errors
        + sp.Rational(5, 2) * gamma**2 * L**2 * I_steps * (sigma**2 + 6 * I_steps * divergence**2)
        + spread * (sp.Rational(17, 16) * sigma**2 + sp.Rational(27, 8) * I_steps * divergence**2)
    )


def _solved(label: str, free: sp.Expr, bound: sp.Expr) -> Step:
    return Step(
        label,
        "1/16 of the mean squared gradient is at most the other terms, so 16 times these terms "
        "bound it",
        Implied(
            claimed=sp.Le(_g, bound),
            given=(sp.Le(_16TH * _g, free),),
            multipliers=(sp.Integer(16),),
        ),
    )


_START = F_0 / (gamma * eta * I_steps * T)
_SPREAD = gamma * eta * L * Q / N
_FREE = _START + _free_terms(delta, W, _SPREAD)


def _bound(psi: sp.Expr) -> sp.Expr:
    return (
        16 * _START
        + (81 * (psi + delta**2) + 360 * gamma**2 * L**2 * I_steps * sigma**2) * W
        + _SPREAD * (17 * sigma**2 + 54 * I_steps * delta**2)
        + 40 * gamma**2 * L**2 * I_steps * (sigma**2 + 6 * I_steps * delta**2)
    )


_LIMIT_OF_LEMMA = 1 / (4 * L * I_steps)


def _step_of_lemma(largest: int, variance: int) -> Step:
    """Return the step that the limits on gamma eta imply Lemma B.3.3's condition."""
    given = (
        sp.Le(gamma * eta, 1 / (largest * L * I_steps)),
        sp.Le(gamma * eta, N / (variance * L * I_steps * Q)),
    )
    return Step(
        "needed in Lemma B.3.3",
        "the limits on gamma eta give gamma eta <= 1/(4LI), for which the lemma is stated",
        Implied(
            claimed=sp.Le(gamma * eta, _LIMIT_OF_LEMMA),
            given=given if largest < 4 else given[:1],
            multipliers=(sp.Integer(1),) if largest >= 4 else (),
        ),
    )


_ZERO = sp.Integer(0)
OPTION_1_PRINTED = Derivation(
    (
        _step_of_lemma(2, 27),
        _bracket("printed limits, Option 1: not positive", _POSITIVE, _ZERO),
        _bracket("printed limits, Option 1: negative, as in Option 2", _POSITIVE, -_16TH),
        Step(
            "at the printed limits, Option 1",
            "the bracket is zero, so no negative constant bounds it",
            Equal(_POSITIVE, sp.Rational(1, 4), under={_u: _ONE, _v: _ONE, _w: _ONE}),
        ),
    ),
    _TAKEN,
    _MEANINGS,
)
OPTION_1_DERIVED = Derivation(
    (
        _step_of_lemma(4, 54),
        _bracket("N/(54LIQ) for N/(27LIQ)", _POSITIVE, -_16TH, sp.Rational(1, 2)),
        _solved("to the bound", _FREE, _bound(_ZERO)),
    ),
    _TAKEN,
    _MEANINGS,
)
_OPTION_2 = (
    _bracket("printed limits, Option 2", _WITHOUT_ERROR, -_16TH),
    _solved("to the bound", _FREE + sp.Rational(81, 16) * G**2 * W, _bound(G**2)),
)
_TAKEN_2 = (
    *_TAKEN,
    "81/16 times the weight error of a round times ||grad f(x_t)||^2 is at most 81/16 times the "
    "same weight error times G^2.",
)
_MEANINGS_2 = {key: text for key, text in _MEANINGS.items() if key is not _u}
OPTION_2_PRINTED = Derivation((_step_of_lemma(2, 27), *_OPTION_2), _TAKEN_2, _MEANINGS_2)
OPTION_2_DERIVED = Derivation((_step_of_lemma(4, 27), *_OPTION_2), _TAKEN_2, _MEANINGS_2)

_SPREAD_H = gamma * eta * L * Q / P
THEOREM_1 = Derivation(
    (
        _bracket("phi_n = omega_n p_n/P", _WITHOUT_ERROR, -_16TH),
        _solved(
            "to the bound",
            _free_terms(delta_h, _ZERO, _SPREAD_H),
            _SPREAD_H * (17 * sigma**2 + 54 * I_steps * delta_h**2)
            + 40 * gamma**2 * L**2 * I_steps * (sigma**2 + 6 * I_steps * delta_h**2),
        ),
    ),
    (
        *_TAKEN[:2],
        "Algorithm 1 is the same with eta P/N for eta and N omega_n/P for omega_n; the weight "
        "error is then zero, and w <= 1 reads gamma eta <= P/(27LIQ).",
        "(h(x_0) - h*)/(gamma eta I T P/N) vanishes as T grows, and a mean over rounds has the "
        "same limit as the rounds.",
    ),
    _MEANINGS_2,
)

_log_c_T = sp.Symbol("l", nonnegative=True)
_DRIFT = gamma**2 * L**2 * I_steps * (I_steps * delta**2 + sigma**2)
_STEP_4 = {gamma: 1 / (L * I_steps * sp.sqrt(T))}


def _drift(noise: sp.Expr) -> Step:
    return Step(
        "drift at gamma = 1/(L I sqrt(T))",
        "Theorem 2's last term is the last term of the corollary without F_0",
        Equal(_DRIFT, (delta**2 + noise) / T, under=_STEP_4),
    )


_TAKEN_4 = (
    "Theorem 2, where Q is the largest value that is possible.",
    "The other terms of the step sizes: 1/min(a, b, c) <= 1/a + 1/b + 1/c.",
    "Theorem 3 with K = log_c T.",
)
COROLLARY_4_PRINTED = Derivation(
    (
        _drift(sigma**2 / T),
        Step(
            "bias at K = log_c T",
            "(1 - p)^(2K) = 1/T <= log_c(T)^2/T, where T >= 2",
            Implied(claimed=sp.Le(1 / T, _log_c_T**2 / T), given=(sp.Ge(T, 2),)),
        ),
    ),
    _TAKEN_4,
    {_log_c_T: "log_c T, which may be any positive number and is below 1 for T < c"},
)
COROLLARY_4_DERIVED = Derivation((_drift(sigma**2 / I_steps),), _TAKEN_4)
