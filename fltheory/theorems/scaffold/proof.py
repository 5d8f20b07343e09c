"""The last steps of SCAFFOLD's convex theorem: from three recursions to the bound.

The recursions are those of the server's model, of the controls' lag and of the local drift, as
restated; they are taken without a check. From them everything follows, constants included.
"""

from __future__ import annotations

import sympy as sp

from fltheory.derivations.derivation import Derivation, Implied, Step, deferred
from fltheory.theorems.scaffold.symbols import C_0, D_0, W_T, K, N, S, T, beta, eta_g, h, sigma

_distance, _next, _excess, _lag, _next_lag, _drift = sp.symbols("d d' e C C' E", nonnegative=True)
_before, _after, _sum, _mean = sp.symbols("V V' s q", nonnegative=True)
_weight = sp.Symbol("w", positive=True)
_convexity = sp.Symbol("mu", nonnegative=True)

_ONE = sp.Integer(1)
_LAG_WEIGHT = 9 * N * h**2 / S
NOISE = 12 * h * sigma**2 / (K * S) * (1 + S / eta_g**2)
_START = D_0**2 + _LAG_WEIGHT * C_0
BOUND = _START / (h * W_T) + NOISE

_MEANINGS = {
    _distance: "E||x^r - x*||^2; d' after the round",
    _excess: "E[f(x^r) - f(x*)]",
    _lag: "1/N sum_i E||E c_i - grad f_i(x*)||^2; C' after the round",
    _drift: "1/(KN) sum_{i,k} E||y_{i,k} - x^r||^2",
    _before: "d + 9 N h^2/S C; V' after the round",
    _weight: "w_r, so that w_{r-1} = (1 - mu h/2) w_r",
    _sum: "sum_{r<T} w_r E[f(x^r) - f(x*)]",
    _mean: "s/W_T",
}
_TAKEN = (
    "The server's step: d' <= (1 - mu h/2) d - 2 h e + 2 h beta E + variance, by perturbed strong "
    "convexity (lemmas/perturbed-strong-convexity).",
    "Its variance: 8 beta h^2 e + 8 h^2 C + 4 h^2 beta^2 E + 12 h^2 sigma^2/(KS).",
    "The lag: C' <= (1 - S/N) C + S/N (4 beta e + 2 beta^2 E), for uniform sampling.",
    "The drift: 3 beta h E <= 2/3 h^2 C + h e/(25 eta_g^2) + h^2 sigma^2/(K eta_g^2).",
)


def _one_round(convexity: sp.Expr) -> Step:
    shrink = 1 - convexity * h / 2
    noise = h * NOISE
    strongly = convexity != 0
    step_limit = (sp.Le(convexity * h, S / (15 * N)),) if strongly else ()
    of_step_limit = (5 * N * h**2 * _lag / S,) if strongly else ()
    return Step(
        "recursions to one round",
        "V = d + 9 N h^2/S C shrinks by 1 - mu h/2, less h e, plus noise",
        Implied(
            given=(
                sp.Le(
                    _next,
                    shrink * _distance
                    - 2 * h * _excess
                    + 2 * h * beta * _drift
                    + 8 * beta * h**2 * _excess
                    + 8 * h**2 * _lag
                    + 4 * h**2 * beta**2 * _drift
                    + 12 * h**2 * sigma**2 / (K * S),
                ),
                sp.Le(
                    _next_lag,
                    (1 - S / N) * _lag + S / N * (4 * beta * _excess + 2 * beta**2 * _drift),
                ),
                sp.Le(
                    3 * beta * h * _drift,
                    sp.Rational(2, 3) * h**2 * _lag
                    + h * _excess / (25 * eta_g**2)
                    + h**2 * sigma**2 / (K * eta_g**2),
                ),
                sp.Le(81 * beta * h, 1),
                sp.Le(1 / eta_g**2, 1),
                *step_limit,
            ),
            claimed=sp.Le(
                _next + _LAG_WEIGHT * _next_lag,
                shrink * (_distance + _LAG_WEIGHT * _lag) - h * _excess + noise,
            ),
            multipliers=(
                _ONE,
                _LAG_WEIGHT,
                _ONE,
                beta * h * _drift + sp.Rational(44, 81) * h * _excess,
                sp.Rational(37, 81) * h * _excess,
                *of_step_limit,
            ),
        ),
    )


def _weighed(convexity: sp.Expr) -> Step:
    shrink = 1 - convexity * h / 2
    return Step(
        "one round, weighed",
        "times w_r: the left side of a round is the right side of the next",
        Implied(
            given=(sp.Le(_after, shrink * _before - h * _excess + h * NOISE),),
            claimed=sp.Le(
                _weight * _after,
                _weight * shrink * _before - h * _weight * _excess + _weight * h * NOISE,
            ),
            multipliers=(_weight,),
        ),
    )


def _telescoped(total: sp.Expr, bound: sp.Expr) -> Step:
    return Step(
        "telescoped",
        "the sum over r < T, divided by h W_T, is the bound as stated",
        Implied(
            given=(
                sp.Le(h * _sum, _START + total * h * NOISE),
                sp.Le(_mean, _sum / total),
            ),
            claimed=sp.Le(_mean, bound),
            multipliers=(1 / (h * total), _ONE),
        ),
    )


@deferred
def strongly_convex() -> Derivation:
    """Return the last steps of the proof for strongly convex clients."""
    return Derivation(
        steps=(_one_round(_convexity), _weighed(_convexity), _telescoped(W_T, BOUND)),
        taken=_TAKEN,
        meanings=_MEANINGS,
    )


@deferred
def convex() -> Derivation:
    """Return those for convex clients."""
    return Derivation(
        steps=(
            _one_round(sp.Integer(0)),
            _weighed(sp.Integer(0)),
            _telescoped(T, _START / (h * T) + NOISE),
        ),
        taken=_TAKEN,
        meanings=_MEANINGS,
    )
