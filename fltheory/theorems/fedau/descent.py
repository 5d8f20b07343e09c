"""FedAU: Lemma B.3.3, the general descent lemma on which every derived constant rests."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAU
from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Derivation, Equal, Implied, Step
from fltheory.engines import Setting
from fltheory.exact_or_float import number
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import GRADIENT, LOSS, PURE
from fltheory.theorems.fedau import regimes
from fltheory.theorems.fedau.setting import (
    F_0,
    FedAUSetting,
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
from fltheory.theorems.fedau.weights import INDEPENDENT, PAPER
from fltheory.validation import FloatArray


def _weights(setting: Setting) -> FloatArray:
    """Return omega_0^n: 1 for FedAU's, or the constant ones."""
    of = FedAUSetting(setting)
    return of.p / of.p if isinstance(of.algorithm, FedAU) else of.constant_weights


def _weight_error(setting: Setting) -> Any:
    p, n_clients = FedAUSetting(setting).p, setting.problem.n_clients
    return number(((p * _weights(setting) - 1) ** 2).sum()) / n_clients**2


def _weight_square(setting: Setting) -> Any:
    return number((FedAUSetting(setting).p * _weights(setting) ** 2).sum())


def _squared_gradient(setting: Setting) -> Any:
    problem = setting.problem
    every = np.arange(problem.n_clients)
    gradients = problem.client_gradients(np.stack([setting.x0] * problem.n_clients), every)
    gradient = (gradients * problem.alpha[:, None]).sum(axis=0)
    return number((gradient * gradient).sum())


E_w = symbol("E_w", "sum_n (p_n omega_t^n/N - 1/N)^2", PURE, _weight_error, nonnegative=True)
S_w = symbol("S_w", "sum_n p_n (omega_t^n)^2", PURE, _weight_square, positive=True)
F_t = symbol(
    "F_t",
    "f(x_t) - f*, x_t the model before the round",
    LOSS,
    lambda s: number(s.problem.excess_loss(s.x0)),
    nonnegative=True,
)
g_2 = symbol("g_2", "||grad f(x_t)||^2", GRADIENT**2, _squared_gradient, nonnegative=True)


def _bound() -> sp.Expr:
    """Return the right side, less f*, with phi_n = 1/N."""
    weighted = 3 * gamma * eta * I_steps * N / 2 * E_w
    drift = 5 * gamma**3 * eta * L**2 * I_steps**2 / 2
    square = gamma**2 * eta**2 * L * I_steps / N**2 * S_w
    slope = (
        sp.Rational(81, 16) * N * E_w
        + 15 * L**2 * I_steps**2 * gamma**2
        + 27 * gamma * eta * L * I_steps / (8 * N**2) * S_w
        - sp.Rational(1, 4)
    )
    return (
        F_t
        + weighted * (15 * L**2 * I_steps * gamma**2 * sigma**2 + 27 * delta**2 / 8)
        + drift * (sigma**2 + 6 * I_steps * delta**2)
        + square * (17 * sigma**2 / 16 + 27 * I_steps * delta**2 / 8)
        + gamma * eta * I_steps * slope * g_2
    )


DESCENT = Theorem(
    id="fedau/lemma-b-3-3",
    title="What one round of weighted averaging does to the loss: the general descent lemma",
    source=f"{PAPER}, Lemma B.3.3, by a restatement",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "E f(x_{t+1}) - f*",
        r"\mathbb E_t[f(x_{t+1})]-f^*",
        LOSS,
    ),
    bound=as_printed(_bound),
    hypotheses=(
        INDEPENDENT,
        Hypothesis("bounded divergence", sp.Lt(delta, sp.oo, evaluate=False), "Assumption 3"),
        Hypothesis(
            "small local steps",
            as_printed(lambda: sp.Le(gamma, 1 / (4 * sp.sqrt(15) * L * I_steps))),
            "Lemma B.3.3",
        ),
        Hypothesis(
            "small server steps",
            as_printed(lambda: sp.Le(gamma * eta, 1 / (4 * L * I_steps))),
            "Lemma B.3.3 itself",
        ),
        Hypothesis("one round", sp.Eq(T, 1), "Lemma B.3.3 is about one round"),
    ),
    regimes=regimes.DESCENT,
    kind=StatementKind.LEMMA,
    note=(
        "With phi_n = 1/N, as for Theorem 2, and the weights of the first round: 1 for FedAU's, or "
        "constant ones, which are as large as one likes. f* is taken off both sides. The text at "
        "hand is a restatement with all constants. For other phi_n it is the same of other target "
        "weights."
    ),
)

STATEMENTS: tuple[Statement, ...] = (DESCENT,)


# ------------------------------------------------------------ from the lemma to Theorems 1 and 2
# The lemma, with phi_n = 1/N and e_t = 1/N sum_n (p_n omega_t^n - 1)^2, bounds E f(x_{t+1}) -
# f(x_t) by terms free of the gradient and by ``gamma eta I [81/16 e_t + 15 L^2 I^2 gamma^2 + 27
# gamma eta L I Q_t/(8N) - 1/4] ||grad f(x_t)||^2``. Only a negative bracket bounds the gradient.

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
    "Q_t <= Q and the weight error as bounded, in every round and whatever happens.",
)
_WITHOUT_ERROR = _v / 16 + _w / 8
_POSITIVE = _u / 16 + _WITHOUT_ERROR


def _bracket(label: str, positive: sp.Expr, most: sp.Rational, share: sp.Rational = _ONE) -> Step:
    """Return that the bracket, which is ``positive`` less 1/4, is at most ``most``."""
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
    """Return the lemma's terms free of the gradient over gamma eta I, averaged over rounds."""
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
        "1/16 of the mean squared gradient is at most the other terms: 16 times them bound it",
        Implied(
            claimed=sp.Le(_g, bound),
            given=(sp.Le(_16TH * _g, free),),
            multipliers=(sp.Integer(16),),
        ),
    )


_START = F_0 / (gamma * eta * I_steps * T)
_SPREAD = gamma * eta * L * Q / N
_FREE = _START + _free_terms(delta, W, _SPREAD)


def _bound_of_proof(psi: sp.Expr) -> sp.Expr:
    return (
        16 * _START
        + (81 * (psi + delta**2) + 360 * gamma**2 * L**2 * I_steps * sigma**2) * W
        + _SPREAD * (17 * sigma**2 + 54 * I_steps * delta**2)
        + 40 * gamma**2 * L**2 * I_steps * (sigma**2 + 6 * I_steps * delta**2)
    )


_LIMIT_OF_LEMMA = 1 / (4 * L * I_steps)


def _step_of_lemma(largest: int, variance: int) -> Step:
    """Return that the limits on gamma eta give what Lemma B.3.3 asks for."""
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
            "the bracket is zero: no negative constant bounds it",
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
        _solved("to the bound", _FREE, _bound_of_proof(_ZERO)),
    ),
    _TAKEN,
    _MEANINGS,
)
_OPTION_2 = (
    _bracket("printed limits, Option 2", _WITHOUT_ERROR, -_16TH),
    _solved("to the bound", _FREE + sp.Rational(81, 16) * G**2 * W, _bound_of_proof(G**2)),
)
_TAKEN_2 = (
    *_TAKEN,
    "81/16 times a round's weight error times ||grad f(x_t)||^2 is at most 81/16 times that "
    "weight error times G^2.",
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
        "(h(x_0) - h*)/(gamma eta I T P/N) vanishes as T grows, and means over rounds have the "
        "limit of the rounds.",
    ),
    _MEANINGS_2,
)

_log_c_T = sp.Symbol("l", nonnegative=True)
_DRIFT = gamma**2 * L**2 * I_steps * (I_steps * delta**2 + sigma**2)
_STEP_4 = {gamma: 1 / (L * I_steps * sp.sqrt(T))}


def _drift(noise: sp.Expr) -> Step:
    return Step(
        "drift at gamma = 1/(L I sqrt(T))",
        "Theorem 2's last term is the last one of the corollary without F_0",
        Equal(_DRIFT, (delta**2 + noise) / T, under=_STEP_4),
    )


_TAKEN_4 = (
    "Theorem 2, with Q the largest that may happen.",
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
    {_log_c_T: "log_c T, which may be any positive number: below 1 for T < c"},
)
COROLLARY_4_DERIVED = Derivation((_drift(sigma**2 / I_steps),), _TAKEN_4)
