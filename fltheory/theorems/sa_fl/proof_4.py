"""The last steps of the proof of SA-FL's Theorem 4, from one round to the bound and condition on q.

Numbers in brackets refer to equations in the appendix of the ICML version.
"""

from __future__ import annotations

import sympy as sp
from sympy.core.relational import Relational

from fltheory.derivations.derivation import Derivation, Equal, Implied, Step, deferred
from fltheory.theorems.sa_fl.quotient_condition import clearing_steps, quotient
from fltheory.theorems.sa_fl.symbols import (
    G_1,
    G_2,
    Delta_0,
    K,
    L,
    R,
    eta_c,
    eta_s,
    m,
    q,
    sigma,
    sigma_G,
    sigma_s,
)

F_now, F_next, A_1 = sp.symbols("F_r F_next A_1", real=True)
F_0, F_1, F_R, F_after = sp.symbols("F_0 F_1 F_R F_after", real=True)
fall, fall_s, fall_c = sp.symbols("T T_s T_c", real=True)
g, h, drift, A_2, mean = sp.symbols("g h A_3 A_2 M", nonnegative=True)
F_min = sp.Symbol("F_min", real=True)
R_s, R_c = sp.symbols("R_s R_c", positive=True)
S_s, S_gc, S_c = sp.symbols("S_s S_gc S_c", nonnegative=True)
a_1, a_2, b_1, b_2 = sp.symbols("a_1 a_2 b_1 b_2", nonnegative=True)

_MEANINGS = {
    F_now: "F(x_r); F_next: E F(x_{r+1}); F_0, F_1, F_R, F_after: F at x_0, x_1, x_R, x_{R+1}",
    F_min: "F(x*)",
    g: "||grad F(x_r)||^2",
    h: "||1/m sum_i sum_k grad F_i(x_{r,k}^i)||^2",
    drift: "sum over i, k of ||grad F(x_r) - grad F_i(x_{r,k}^i)||^2",
    R_s: "server rounds; R_c: client rounds",
    S_s: "sum of g over server rounds; S_gc: over client rounds",
    S_c: "sum of h over client rounds",
    fall: "sum of F(x_r) - F(x_{r+1}); T_s, T_c: over server and client rounds",
    mean: "mean of g over all rounds",
    a_1: "g in two server rounds, with a_2; b_1, b_2: h in two client rounds",
}
_TAKEN = (
    "(25), (29): descent lemma of an L-smooth function.",
    "(32) to (34): 2 <a, b> = ||a||^2 + ||b||^2 - ||a - b||^2; E Delta_r is the sum of "
    "the clients' gradients; Jensen over m K terms.",
    "(39), (40): ||a + b||^2 <= 2 ||a||^2 + 2 ||b||^2, smoothness and Assumption 5.",
    "(41): the drift lemma (Yang et al. 2021b, Lemma 2; Reddi et al. 2021, Lemma 3), which "
    "needs eta_c <= 1/(8LK).",
    "(43), (44): Young's inequality, and noise as martingale differences (Karimireddy et al. "
    "2020, Lemma 4).",
    "(51): in expectation over the coins, R_s = (1-q)R and R_c = qR.",
)
_BY_THE_LATER_PROOF = "The proof of the later version, with one sigma for all noise."

_DRIFT = 5 * K * eta_c**2 * (sigma**2 + 6 * K * sigma_G**2) + 30 * K**2 * eta_c**2 * g
_STILL = 5 * K * eta_c**2 * (sigma**2 + 6 * K * sigma_G**2)
_SERVER_GAIN = 1 - L * eta_s
_CLIENT_GAIN = 2 / K**2 - 8 * L * eta_s / K**2
_FACTORS_OF = (
    "F(x_r) - F(x_{r+1})",
    "||1/m sum_i sum_k grad F_i||^2",
    "sigma^2 + 6 K sigma_G^2",
    "sigma^2",
)
_FACTORS_48 = (
    4 / (K * eta_c),
    4 * L * eta_c / K - 2 / K**2,
    20 * K * L**2 * eta_c**2,
    4 * L * eta_c / m,
)
_FACTORS_50 = (2 / eta_s, -_CLIENT_GAIN, 80 * L**2 * eta_s**2 / K, 8 * L * eta_s / (m * K))
_COUPLED = {eta_c: 2 * eta_s / K}
_ROUNDS = {R_s: (1 - q) * R, R_c: q * R}


@deferred
def printed(
    bound: sp.Expr, q_condition: Relational, step_limit: Relational, noise: sp.Symbol = sigma_s
) -> Derivation:
    """Return the steps as printed: G_1 and G_2 are maxima, and sums run over r = 1 .. R."""
    maxima = Step(
        "(55) to (54)",
        "the condition with maxima in place of sums is enough (tested with two rounds of each "
        "kind)",
        Implied(
            given=(
                sp.Le(
                    8 * sigma_G**2,
                    2 * _SERVER_GAIN * sp.Max(a_1, a_2) + 2 * _CLIENT_GAIN * sp.Max(b_1, b_2),
                ),
            ),
            claimed=sp.Le(8 * sigma_G**2, _SERVER_GAIN * (a_1 + a_2) + _CLIENT_GAIN * (b_1 + b_2)),
            domain=(sp.Le(4 * L * eta_s, 1),),
        ),
    )
    return _as_printed(bound, q_condition, step_limit, noise, (maxima,))


@deferred
def printed_with_minima(
    bound: sp.Expr, q_condition: Relational, step_limit: Relational, noise: sp.Symbol
) -> Derivation:
    """Return the steps for the earlier version's statement: G_1 and G_2 are minima."""
    minima = Step(
        "(55) to (54)",
        "the condition with minima in place of sums is enough if 4 L eta_s <= 1",
        Implied(
            given=(
                sp.Le(
                    4 * R_c * sigma_G**2,
                    R_s * _SERVER_GAIN * G_1 + R_c * _CLIENT_GAIN * G_2,
                ),
                sp.Le(R_s * G_1, S_s),
                sp.Le(R_c * G_2, S_c),
            ),
            claimed=_condition_54(),
            domain=(sp.Le(4 * L * eta_s, 1), sp.Le(L * eta_s, 1)),
            multipliers=(sp.Integer(1), _SERVER_GAIN, _CLIENT_GAIN),
        ),
    )
    needed = Step(
        "needed in (54)",
        "the limit on eta_c gives 4 L eta_s <= 1",
        Implied(given=(step_limit,), claimed=sp.Le(4 * L * eta_s, 1), under=_COUPLED),
    )
    return _as_printed(bound, q_condition, step_limit, noise, (needed, minima))


@deferred
def derived(
    bound: sp.Expr, q_condition: Relational, step_limit: Relational, noise: sp.Symbol = sigma_s
) -> Derivation:
    """Return the steps that the proof supports: G_1 and G_2 are means, and r runs from 0 to R-1."""
    limit = step_limit.rhs
    cleared = q_condition.rhs - q_condition.lhs
    return _derivation(
        noise,
        *_server_round(noise, sign=-1),
        *_clients_round(),
        _quarter(step_limit, (30 * L**2 * K**2 * (limit + eta_c),)),
        _drift_limit(step_limit, (sp.Integer(1),)),
        _server_gain(step_limit, (L * K / 2,)),
        *_both_rounds(noise),
        _sum_of_falls(),
        _against_55(q * _CLIENT_GAIN, sp.expand(cleared).coeff(G_2)),
        Step(
            "condition on q to (54)",
            "with means, R times the registered condition is (54)",
            Equal(
                R * cleared,
                _gap_54(),
                under={S_s: (1 - q) * R * G_1, S_c: q * R * G_2, **_ROUNDS},
            ),
        ),
        _bound(bound, noise),
    )


@deferred
def repaired(bound: sp.Expr, step_limit: Relational, noise: sp.Symbol = sigma_s) -> Derivation:
    """Return the steps to the bound without a condition on q, which do not need (54).

    On the right of (51) and (52), 4 R_c sigma_G^2 stays, and two sums with factors of at most zero
    are dropped.
    """
    limit = step_limit.rhs
    return _derivation(
        noise,
        *_server_round(noise, sign=-1),
        *_clients_round(),
        _quarter(step_limit, (30 * L**2 * K**2 * (limit + eta_c),)),
        _drift_limit(step_limit, (sp.Integer(1),)),
        Step(
            "needed in (52)",
            "the limit on eta_c gives 4 L eta_s <= 1, so that both sums have factors of at most 0",
            Implied(
                given=(step_limit,),
                claimed=sp.Le(4 * L * eta_s, 1),
                multipliers=(2 * L * K,),
                under=_COUPLED,
            ),
        ),
        *_both_rounds(noise),
        _sum_of_falls(),
        Step(
            "(52) to the bound",
            "without the two sums, and with a total fall of F of at most F(x_0) - F(x*), R_s = "
            "(1-q)R and R_c = qR",
            Implied(
                given=(
                    sp.Le(mean, _mean_52(fall, noise)),
                    sp.Le(fall, Delta_0),
                    sp.Ge(S_s, 0, evaluate=False),
                    sp.Ge(S_c, 0, evaluate=False),
                ),
                claimed=sp.Le(mean, bound),
                domain=(sp.Le(4 * L * eta_s, 1), sp.Le(L * eta_s, 1)),
                multipliers=(
                    sp.Integer(1),
                    2 / (eta_s * R),
                    _SERVER_GAIN / R,
                    _CLIENT_GAIN / R,
                ),
                under=_ROUNDS,
            ),
        ),
    )


def _as_printed(
    bound: sp.Expr,
    q_condition: Relational,
    step_limit: Relational,
    noise: sp.Symbol,
    condition_steps: tuple[Step, ...],
) -> Derivation:
    numerator, _ = quotient(q_condition)
    return _derivation(
        noise,
        *_server_round(noise, sign=1),
        *_clients_round(),
        _quarter(step_limit),
        _drift_limit(step_limit),
        _server_gain(step_limit),
        *_both_rounds(noise),
        Step(
            "telescoping",
            "the sum of F(x_r) - F(x_{r+1}) over r = 1 .. R is at most F(x_0) - F(x*)",
            Implied(
                given=(sp.Le(F_min, F_0), sp.Le(F_min, F_1), sp.Le(F_min, F_after)),
                claimed=sp.Le(F_1 - F_after, F_0 - F_min),
            ),
        ),
        _against_55(_CLIENT_GAIN, -sp.expand(numerator).coeff(G_2)),
        *clearing_steps(q_condition, (sp.Le(q, 1),)),
        *condition_steps,
        _bound(bound, noise),
    )


def _derivation(noise: sp.Symbol, *steps: Step) -> Derivation:
    taken = _TAKEN if noise is sigma_s else (*_TAKEN, _BY_THE_LATER_PROOF)
    return Derivation(steps, taken, _MEANINGS)


def _server_round(noise: sp.Symbol, sign: int) -> tuple[Step, Step]:
    after = F_now - eta_s * g + L * eta_s**2 / 2 * g + L * eta_s**2 / 2 * noise**2
    moved = F_now + sign * eta_s * g + L / 2 * eta_s**2 * (g + noise**2)
    word = "+" if sign > 0 else "-"
    return (
        Step(
            "(26) to (27)",
            f"F + <grad F, {word}eta_s grad F> + L/2 eta_s^2 (||grad F||^2 + noise^2) is (27)",
            Equal(moved, after),
        ),
        Step(
            "(27) to (28)",
            "solved for ||grad F(x_r)||^2",
            Implied(
                given=(sp.Le(F_next, after),),
                claimed=sp.Le(g, _server_sum(F_now - F_next, g, sp.Integer(1), noise)),
                multipliers=(2 / eta_s,),
            ),
        ),
    )


def _clients_round() -> tuple[Step, ...]:
    before_36 = -K * eta_c / 2 * g - eta_c / (2 * K) * h
    bound_36 = before_36 + eta_c * K * sigma_G**2 + eta_c * K * L**2 * _DRIFT
    bound_44 = L * eta_c**2 * h + L * eta_c**2 * K / m * sigma**2
    one = sp.Integer(1)
    return (
        Step(
            "(34), (41) to (36)",
            "the sum over m K terms of (41), put into (34)",
            Implied(
                given=(
                    sp.Le(A_1, before_36 + eta_c / (2 * m) * drift),
                    sp.Le(drift, m * K * (2 * sigma_G**2 + 2 * L**2 * _DRIFT)),
                ),
                claimed=sp.Le(A_1, bound_36),
                multipliers=(one, eta_c / (2 * m)),
            ),
        ),
        Step(
            "(30), (36), (44) to (46)",
            "combined, with all terms in ||grad F(x_r)||^2 on the left",
            Implied(
                given=(
                    sp.Le(F_next, F_now + A_1 + A_2),
                    sp.Le(A_1, bound_36),
                    sp.Le(A_2, bound_44),
                ),
                claimed=_inequality_46(),
                multipliers=(one, one, one),
            ),
        ),
    )


def _inequality_46() -> Relational:
    return sp.Le(
        K * eta_c * _kept() * g,
        F_now
        - F_next
        - eta_c / (2 * K) * h
        + eta_c * K * sigma_G**2
        + eta_c * K * L**2 * _STILL
        + L * eta_c**2 * h
        + L * eta_c**2 * K / m * sigma**2,
    )


def _kept() -> sp.Expr:
    return sp.Rational(1, 2) - 30 * L**2 * K**2 * eta_c**2


def _quarter(step_limit: Relational, multipliers: tuple[sp.Expr, ...] = ()) -> Step:
    return Step(
        "needed in (47)",
        "the limit on eta_c gives 1/2 - 30 L^2 K^2 eta_c^2 >= 1/4",
        Implied(
            given=(step_limit,),
            claimed=sp.Ge(_kept(), sp.Rational(1, 4)),
            multipliers=multipliers,
        ),
    )


def _drift_limit(step_limit: Relational, multipliers: tuple[sp.Expr, ...] = ()) -> Step:
    return Step(
        "needed in (41)",
        "the limit on eta_c gives eta_c <= 1/(8LK), which the drift lemma needs",
        Implied(
            given=(step_limit,),
            claimed=sp.Le(eta_c, 1 / (8 * L * K)),
            multipliers=multipliers,
        ),
    )


def _server_gain(step_limit: Relational, multipliers: tuple[sp.Expr, ...] = ()) -> Step:
    return Step(
        "needed in (55)",
        "the limit on eta_c gives L eta_s <= 1, so that server rounds count with a positive sign",
        Implied(
            given=(step_limit,),
            claimed=sp.Le(L * eta_s, 1),
            multipliers=multipliers,
            under=_COUPLED,
        ),
    )


def _both_rounds(noise: sp.Symbol) -> tuple[Step, ...]:
    """Return the steps from (46) to (52)."""
    return (
        Step(
            "(46) to (48)",
            "divided by K eta_c / 4, with 1/2 - 30 L^2 K^2 eta_c^2 >= 1/4",
            Implied(
                given=(_inequality_46(), sp.Ge(_kept(), sp.Rational(1, 4))),
                claimed=sp.Le(g, _clients_sum(_FACTORS_48, F_now - F_next, h, sp.Integer(1))),
                multipliers=(4 / (K * eta_c), 4 * g),
            ),
        ),
        *(
            Step(
                f"(48) to (50), factor of {name}",
                f"{left} = {right} at eta_c = 2 eta_s/K",
                Equal(left, right, under=_COUPLED),
            )
            for name, left, right in zip(_FACTORS_OF, _FACTORS_48, _FACTORS_50, strict=True)
        ),
        Step(
            "(28), (50) to (52)",
            "summed over the server rounds and the client rounds, and divided by R",
            Implied(
                given=(
                    sp.Le(S_s, _server_sum(fall_s, S_s, R_s, noise)),
                    sp.Le(S_gc, _clients_sum(_FACTORS_50, fall_c, S_c, R_c)),
                ),
                claimed=sp.Le((S_s + S_gc) / R, _mean_52(fall_s + fall_c, noise)),
                multipliers=(1 / R, 1 / R),
            ),
        ),
    )


def _sum_of_falls() -> Step:
    return Step(
        "telescoping",
        "the sum of F(x_r) - F(x_{r+1}) over r = 0 .. R-1 is at most F(x_0) - F(x*)",
        Implied(
            given=(sp.Le(F_min, F_R),),
            claimed=sp.Le(F_0 - F_R, F_0 - F_min),
            multipliers=(sp.Integer(1),),
        ),
    )


def _server_sum(fallen: sp.Expr, gradients: sp.Expr, rounds: sp.Expr, noise: sp.Expr) -> sp.Expr:
    """Return the right-hand side of (28), for one round or summed over several."""
    return 2 / eta_s * fallen + (L * eta_s - 1) * gradients + L * eta_s * rounds * noise**2


def _clients_sum(
    factors: tuple[sp.Expr, ...], fallen: sp.Expr, gradients: sp.Expr, rounds: sp.Expr
) -> sp.Expr:
    """Return the right-hand side of (48) or (50), for one round or summed over several."""
    of_fall, of_gradients, of_drift, of_noise = factors
    return (
        of_fall * fallen
        + 4 * rounds * sigma_G**2
        + of_gradients * gradients
        + of_drift * rounds * (sigma**2 + 6 * K * sigma_G**2)
        + of_noise * rounds * sigma**2
    )


def _mean_52(fallen: sp.Expr, noise: sp.Symbol) -> sp.Expr:
    return (
        2 / eta_s * fallen / R
        + (L * eta_s - 1) * S_s / R
        + L * eta_s * R_s / R * noise**2
        + 4 * R_c / R * sigma_G**2
        + (8 * L * eta_s / K**2 - 2 / K**2) * S_c / R
        + 80 * R_c * L**2 * eta_s**2 / (K * R) * (sigma**2 + 6 * K * sigma_G**2)
        + 8 * L * R_c * eta_s / (m * K * R) * sigma**2
    )


def _condition_54() -> Relational:
    return sp.Le(4 * R_c * sigma_G**2, _SERVER_GAIN * S_s + _CLIENT_GAIN * S_c)


def _gap_54() -> sp.Expr:
    return _SERVER_GAIN * S_s + _CLIENT_GAIN * S_c - 4 * R_c * sigma_G**2


def _against_55(in_55: sp.Expr, registered: sp.Expr) -> Step:
    return Step(
        "(55) to the condition on q",
        "the factor of G_2 in the condition is that of (55)",
        Equal(registered, in_55),
    )


def _bound(bound: sp.Expr, noise: sp.Symbol) -> Step:
    return Step(
        "(52) to (53)",
        "(54), a total fall of F of at most F(x_0) - F(x*), R_s = (1-q)R and R_c = qR give the "
        "registered bound",
        Implied(
            given=(
                sp.Le(mean, _mean_52(fall, noise)),
                sp.Le(fall, Delta_0),
                _condition_54(),
            ),
            claimed=sp.Le(mean, bound),
            multipliers=(sp.Integer(1), 2 / (eta_s * R), 1 / R),
            under=_ROUNDS,
        ),
    )
