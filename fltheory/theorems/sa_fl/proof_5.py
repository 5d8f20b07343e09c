"""The last steps of the proof of SA-FL's Theorem 5, from one round to the bound and condition on q.

Numbers in brackets refer to equations in the appendix of the ICML version.
"""

from __future__ import annotations

import sympy as sp
from sympy.core.relational import Relational

from fltheory.derivations.derivation import Derivation, Equal, Implied, Step, deferred
from fltheory.theorems.sa_fl.quotient_condition import clearing_steps, quotient
from fltheory.theorems.sa_fl.symbols import (
    D_0,
    G_3,
    G_4,
    K,
    L,
    R,
    eta_bar,
    eta_c,
    eta_s,
    m,
    mu,
    q,
    sigma,
    sigma_G,
    sigma_s,
)

a, b, n, e, f = sp.symbols("a b n e f", nonnegative=True)
d, d_next, d_server, d_clients, V, W = sp.symbols("d d_next d_s d_c V W", nonnegative=True)
inner = sp.Symbol("u", real=True)
delta_bar = sp.Symbol("deltabar", nonnegative=True)
r = sp.Symbol("r", nonnegative=True, integer=True)

_MEANINGS = {
    d: (
        "E||x_r - x*||^2; d_next: the same for x_{r+1}; d_s, d_c: d_next after a server or a "
        "client round"
    ),
    inner: "<x_r - x*, grad F(x_r)>",
    V: "E||1/m sum_i sum_k grad F_i(x_{r,k}^i)||^2",
    W: "1/m sum_i sum_k E||x_r - x_{r,k}^i||^2",
    delta_bar: "the paper's deltabar, the bound's second part",
}
_TAKEN = (
    "(56), (57): the server's gradient is unbiased, its noise at most sigma_s^2.",
    "(58): Bubeck et al. 2015, Lemma 3.11: u >= L mu/(L+mu) d + G_3/(L+mu).",
    "(61): mean and noise separated without the factor 2 of the lemma on martingale "
    "differences; valid on quadratic clients with additive noise.",
    "(63): Karimireddy et al. 2020, Lemma 5 (perturbed strong convexity).",
    "(68) to (70): ||a + b||^2 <= 2 ||a||^2 + 2 ||b||^2, Jensen, smoothness, Assumption 5.",
    "(75): the drift lemma (Yang et al. 2021b, Lemma 2; Reddi et al. 2021, Lemma 3), which "
    "needs eta_c <= 1/(8LK).",
)

_MEANINGS_WITH_ANY_NOISE = {
    a: "E||1/m sum_i sum_k [grad F_i(x_{r,k}^i) - grad F_i(x_r)]||^2",
    b: "||1/m sum_i sum_k grad F_i(x_r)||^2",
    n: "E||1/m sum_i sum_k noise||^2",
    V: "E||Delta_r||^2, noise included",
}
_MEANINGS_WITHOUT_A_CONDITION = _MEANINGS_WITH_ANY_NOISE | {
    e: "||x_r - x*||, where d = e^2 is before the expectation over x_r",
    f: "F(x_r) - F(x*)",
}
_TAKEN_WITH_ANY_NOISE = (
    *_TAKEN[:2],
    "(60): ||X + Y||^2 <= 2 ||X||^2 + 2 ||Y||^2, where X is the local drift of the gradients and "
    "Y consists of the gradients at x_r and the noise. Given x_r, the noise is orthogonal to "
    "these gradients.",
    *_TAKEN[3:],
)
_TAKEN_WITHOUT_A_CONDITION = (
    *_TAKEN_WITH_ANY_NOISE,
    "For (78): F_i - F has gradients of at most sigma_G (Assumption 5), so G_4 >= f - sigma_G e "
    "for any participants; F is mu-strongly convex and L-smooth, so f >= mu e^2/2 and G_3 <= 2 L "
    "f.",
)

_ONE = sp.Integer(1)
_DOMAIN = (sp.Le(mu, L), sp.Le(q, 1), sp.Le(eta_bar, 1))
_STEPS = {eta_c: 2 * eta_bar / (K * mu), eta_s: (L + mu) * eta_bar / (2 * L * mu)}
_STILL = 5 * K * eta_c**2 * (sigma**2 + 6 * K * sigma_G**2)
_DRIFT = _STILL + 30 * K**2 * eta_c**2 * G_3
_FACTOR = 2 * eta_c * K * L * (1 + K * eta_c * L)
_GROWTH = 1 + 30 * L * eta_bar / mu * (1 + 2 * L * eta_bar / mu)
_SERVER_81 = (L + mu) / (2 * L * mu) * ((L + mu) * eta_bar / (2 * L * mu) - 2 / (L + mu))


def _residual_83(noise: int = 1) -> sp.Expr:
    return (
        4 * q * eta_c**2 * K**2 * sigma_G**2
        + noise * q * K * eta_c**2 / m * sigma**2
        + q * _FACTOR * _STILL
        + (1 - q) * eta_s**2 * sigma_s**2
    )


_RESIDUAL_83 = _residual_83()
_RESIDUAL_WITHOUT_A_CONDITION = _residual_83(2) + 2 * q * K * eta_c * sigma_G**2 / mu


@deferred
def printed(bound: sp.Expr, q_condition: Relational, server_step: Relational) -> Derivation:
    """Return the steps as printed, with 4 q etabar^2/mu^2 in (81) and 1/(L+mu) in the condition."""
    over, under = quotient(q_condition)
    clients_81 = 4 * q * eta_bar / mu**2 * _GROWTH
    bracket = sp.Le((clients_81 + (1 - q) * _SERVER_81) * G_3 - 4 * q / mu * G_4, 0)
    by_server_step = {
        eta_c: 4 * eta_s * L / (K * (L + mu)),
        eta_bar: 2 * eta_s * L * mu / (L + mu),
    }
    restated = 4 * eta_bar * _GROWTH * G_3 - 4 / mu * G_4
    return _derivation(
        *_one_round(),
        Step(
            "needed in (75)",
            "the statement's hypotheses give eta_c <= 1/(8LK), which the drift lemma needs",
            Implied(
                given=(server_step, q_condition),
                claimed=sp.Le(eta_c, 1 / (8 * L * K)),
                domain=(sp.Le(mu, L), sp.Le(q, 1), sp.Gt(q, 0)),
                under=by_server_step,
            ),
        ),
        *_both_rounds(server_step, clients_81),
        Step(
            "(81) to the condition on q, G_3 of clients",
            "N has the clients' part of (81), divided by q",
            Equal(over, clients_81 / q * G_3 - 4 / mu * G_4, domain=_DOMAIN),
        ),
        Step(
            "(81) to the condition on q, G_3 of server",
            "D has the server's part of (81) with a minus sign",
            Equal(under / G_3, -_SERVER_81, domain=_DOMAIN),
        ),
        Step(
            "main text to appendix",
            "N is the same where the appendix restates the theorem",
            Equal(over, restated, domain=_DOMAIN),
        ),
        *clearing_steps(q_condition, _DOMAIN),
        _step_83("the condition in brackets below (83)", clients_81, bracket),
        Step(
            "(84) to (85)",
            "the sum of (1 - etabar)^j deltabar over j = 0 .. R-1 is at most deltabar",
            Implied(
                claimed=sp.Le(delta_bar * (1 - (1 - eta_bar) ** R) / eta_bar, delta_bar),
                domain=(sp.Le(eta_bar, 1),),
            ),
        ),
        *_rounds(bound),
    )


@deferred
def derived(
    bound: sp.Expr, q_condition: Relational, server_step: Relational, client_step: Relational
) -> Derivation:
    """Return the steps with (81) as it follows from (80), and the condition that this needs.

    In (61) the noise is counted twice, as in the lemma on martingale differences.
    """
    clients_81 = 16 * q * eta_bar / mu**2 * _GROWTH
    bracket = (clients_81 + (1 - q) * _SERVER_81) * G_3 - 4 * q / mu * G_4
    steps = (
        _server_round(),
        *_clients_round_with_any_noise(),
        Step(
            "needed in (75)",
            "the hypotheses give eta_c <= 1/(8LK), which the drift lemma needs",
            Implied(
                given=(client_step,),
                claimed=sp.Le(eta_c, 1 / (8 * L * K)),
                multipliers=(_ONE,),
            ),
        ),
        *_both_rounds(server_step, clients_81, noise=2),
        Step(
            "(81) to the condition on q",
            "the registered condition says that the terms in G_3 and G_4 are at most zero",
            Equal(q_condition.rhs - q_condition.lhs, -bracket),
        ),
        _step_83("the registered condition", clients_81, q_condition, noise=2),
        *_rounds(bound, _residual_83(2)),
    )
    return Derivation(steps, _TAKEN_WITH_ANY_NOISE, _MEANINGS | _MEANINGS_WITH_ANY_NOISE)


@deferred
def repaired(bound: sp.Expr, server_step: Relational, client_step: Relational) -> Derivation:
    """Return the steps to the bound without a condition on q.

    Two things differ from the paper's argument. In (61), the noise is separated together with the
    gradients at x_r, to which it is orthogonal. So it counts twice, for every kind of noise. And no
    condition is assumed: G_4 is bounded below by Assumption 5, which makes F_i - F
    sigma_G-Lipschitz.
    """
    return Derivation(
        (
            _server_round(),
            *_clients_round_with_any_noise(),
            Step(
                "needed in (75)",
                "the limit on eta_c is half of the 1/(8LK) which the drift lemma needs",
                Implied(
                    given=(client_step,),
                    claimed=sp.Le(2 * eta_c, 1 / (8 * L * K)),
                    multipliers=(sp.Integer(2),),
                ),
            ),
            *_gradients_paid_by_losses(client_step),
            *_both_rounds_without_a_condition(server_step),
            *_rounds(bound, _RESIDUAL_WITHOUT_A_CONDITION),
        ),
        _TAKEN_WITHOUT_A_CONDITION,
        _MEANINGS | _MEANINGS_WITHOUT_A_CONDITION,
    )


def _derivation(*steps: Step) -> Derivation:
    return Derivation(steps, _TAKEN, _MEANINGS)


def _server_58() -> sp.Expr:
    return (
        (1 - 2 * eta_s * L * mu / (L + mu)) * d
        + eta_s * (eta_s - 2 / (L + mu)) * G_3
        + eta_s**2 * sigma_s**2
    )


def _clients_65() -> sp.Expr:
    return (
        (1 - eta_c * K * mu / 2) * d
        + eta_c**2 * V
        + K * eta_c**2 / m * sigma**2
        - 2 * eta_c * K * G_4
        + 2 * eta_c * L * W
    )


def _clients_73(noise: int = 1) -> sp.Expr:
    return (
        (1 - eta_c * K * mu / 2) * d
        + 4 * eta_c**2 * K**2 * sigma_G**2
        + 4 * eta_c**2 * K**2 * G_3
        + noise * K * eta_c**2 / m * sigma**2
        - 2 * eta_c * K * G_4
        + 2 * eta_c * L * (1 + K * eta_c * L) * W
    )


def _clients_75(noise: int = 1) -> sp.Expr:
    return _clients_73(noise) + _FACTOR * _DRIFT - 2 * eta_c * L * (1 + K * eta_c * L) * W


def _clients_77(noise: int = 1) -> sp.Expr:
    return (
        (1 - eta_c * K * mu / 2) * d
        + 4 * eta_c**2 * K**2 * sigma_G**2
        + _gradient_of_a_round() * G_3
        + noise * K * eta_c**2 / m * sigma**2
        - 2 * eta_c * K * G_4
        + _FACTOR * _STILL
    )


def _one_round() -> tuple[Step, ...]:
    """Return the steps from (57) to (77)."""
    return (
        _server_round(),
        Step(
            "(63) to (65)",
            "the sum over k of F_i(x_r) - F_i(x*) + mu/4 d has K terms",
            Equal(
                d
                + eta_c**2 * V
                + K * eta_c**2 / m * sigma**2
                - 2 * eta_c * (K * G_4 + K * mu / 4 * d - L * W),
                _clients_65(),
            ),
        ),
        Step(
            "(65), (70) to (73)",
            "(70) put into (65)",
            Implied(
                given=(
                    sp.Le(d_next, _clients_65()),
                    sp.Le(V, 2 * K * L**2 * W + 4 * K**2 * sigma_G**2 + 4 * K**2 * G_3),
                ),
                claimed=sp.Le(d_next, _clients_73()),
                multipliers=(_ONE, eta_c**2),
            ),
        ),
        *_drift_steps(),
    )


def _server_round() -> Step:
    return Step(
        "(57) to (58)",
        "with u >= L mu/(L+mu) d + G_3/(L+mu)",
        Implied(
            given=(
                sp.Le(d_next, d + eta_s**2 * G_3 + eta_s**2 * sigma_s**2 - 2 * eta_s * inner),
                sp.Ge(inner, L * mu / (L + mu) * d + G_3 / (L + mu)),
            ),
            claimed=sp.Le(d_next, _server_58()),
            multipliers=(_ONE, 2 * eta_s),
        ),
    )


def _drift_steps(noise: int = 1) -> tuple[Step, Step]:
    return (
        Step(
            "(73) to (75)",
            "the drift lemma put into (73)",
            Implied(
                given=(sp.Le(d_next, _clients_73(noise)), sp.Le(W, K * _DRIFT)),
                claimed=sp.Le(d_next, _clients_75(noise)),
                multipliers=(_ONE, 2 * eta_c * L * (1 + K * eta_c * L)),
            ),
        ),
        Step(
            "(75) to (77)",
            "terms in G_3 combined",
            Equal(_clients_75(noise), _clients_77(noise)),
        ),
    )


def _clients_round_with_any_noise() -> tuple[Step, ...]:
    """Return the steps from (60) to (77), with the noise of (61) counted twice."""
    after_60 = d + eta_c**2 * V - 2 * eta_c * (K * G_4 + K * mu / 4 * d - L * W)
    return (
        Step(
            "(60) to (70)",
            "||Delta_r||^2 by local drift of gradients, gradients at x_r and noise",
            Implied(
                given=(
                    sp.Le(V, 2 * a + 2 * (b + n)),
                    sp.Le(a, K * L**2 * W),
                    sp.Le(b, 2 * K**2 * sigma_G**2 + 2 * K**2 * G_3),
                    sp.Le(n, K / m * sigma**2),
                ),
                claimed=sp.Le(V, _deltas_70()),
                multipliers=(_ONE, sp.Integer(2), sp.Integer(2), sp.Integer(2)),
            ),
        ),
        Step(
            "(63), (70) to (73)",
            "put into (63), whose sum over k has K terms",
            Implied(
                given=(sp.Le(d_next, after_60), sp.Le(V, _deltas_70())),
                claimed=sp.Le(d_next, _clients_73(2)),
                multipliers=(_ONE, eta_c**2),
            ),
        ),
        *_drift_steps(2),
    )


def _deltas_70() -> sp.Expr:
    return 2 * K * L**2 * W + 4 * K**2 * sigma_G**2 + 4 * K**2 * G_3 + 2 * K / m * sigma**2


def _gradients_paid_by_losses(client_step: Relational) -> tuple[Step, Step]:
    """Return the steps that bound the terms in G_3 and G_4 of (78), without a condition on q."""
    kappa = eta_c * K * L
    sixteenth = sp.Rational(1, 16)
    slope = 8 + 120 * (kappa + sixteenth) + 120 * (kappa**2 + kappa / 16 + sixteenth**2)
    growth = 8 * kappa * (1 + 15 * kappa * (1 + kappa))
    return (
        Step(
            "needed for (78)",
            "the limit on eta_c gives 8 k (1 + 15 k (1 + k)) <= 1 for k = eta_c K L",
            Implied(
                given=(client_step,),
                claimed=sp.Le(growth, 1),
                multipliers=(L * K * slope,),
            ),
        ),
        Step(
            "(78), terms in G_3 and G_4",
            "4 eta_c^2 K^2 [..] G_3 - 2 eta_c K G_4 <= 2 eta_c K sigma_G^2/mu",
            Implied(
                given=(
                    sp.Ge(G_4, f - sigma_G * e),
                    sp.Ge(f, mu / 2 * e**2),
                    sp.Le(G_3, 2 * L * f),
                    sp.Le(growth, 1),
                ),
                claimed=_gradients_paid(),
                multipliers=(2 * eta_c * K, eta_c * K, _gradient_of_a_round(), eta_c * K * f),
            ),
        ),
    )


def _both_rounds_without_a_condition(server_step: Relational) -> tuple[Step, ...]:
    """Return the steps from (77) to (83)."""
    paid = _gradients_paid()
    clients_83 = _clients_77(2) - (paid.lhs - paid.rhs)
    server_83 = (1 - 2 * eta_s * L * mu / (L + mu)) * d + eta_s**2 * sigma_s**2
    return (
        _contraction(server_step),
        Step(
            "(77) to (83), clients",
            "a client round without terms in G_3 and G_4",
            Implied(
                given=(sp.Le(d_clients, _clients_77(2)), paid),
                claimed=sp.Le(d_clients, sp.expand(clients_83)),
                multipliers=(_ONE, _ONE),
            ),
        ),
        Step(
            "(58) to (83), server",
            "eta_s <= 2/(L+mu) takes the term in G_3 away",
            Implied(
                given=(sp.Le(d_server, _server_58()), server_step),
                claimed=sp.Le(d_server, server_83),
                multipliers=(_ONE, eta_s * G_3),
            ),
        ),
        Step(
            "(83)",
            "a client round with probability q, a server's with 1 - q",
            Implied(
                given=(sp.Le(d_server, server_83), sp.Le(d_clients, sp.expand(clients_83))),
                claimed=sp.Le(
                    q * d_clients + (1 - q) * d_server,
                    (1 - eta_bar) * d + _RESIDUAL_WITHOUT_A_CONDITION,
                ),
                domain=(sp.Le(q, 1),),
                multipliers=(1 - q, q),
                under=_STEPS,
            ),
        ),
    )


def _both_rounds(server_step: Relational, clients_81: sp.Expr, noise: int = 1) -> tuple[Step, ...]:
    """Return the steps from (77) to (81)."""
    mixed_80 = (
        (1 - eta_bar) * d
        + _gradient_of_clients() * G_3
        - 2 * q * eta_c * K * G_4
        + _gradient_of_server() * G_3
        + _residual_83(noise)
    )
    return (
        _contraction(server_step),
        Step(
            "(58), (77) to (80)",
            "a client round with probability q, a server's with 1 - q",
            Implied(
                given=(sp.Le(d_server, _server_58()), sp.Le(d_clients, _clients_77(noise))),
                claimed=sp.Le(q * d_clients + (1 - q) * d_server, mixed_80),
                domain=(sp.Le(q, 1),),
                multipliers=(1 - q, q),
                under=_STEPS,
            ),
        ),
        Step(
            "(80) to (81), G_3 of clients",
            "4 q eta_c^2 K^2 [..] is etabar times the clients' part of the bracket",
            Equal(_gradient_of_clients(), eta_bar * clients_81, _STEPS, _DOMAIN),
        ),
        Step(
            "(80) to (81), G_3 of server",
            "(1-q) eta_s (eta_s - 2/(L+mu)) is etabar times the server's part of the bracket",
            Equal(_gradient_of_server(), eta_bar * (1 - q) * _SERVER_81, _STEPS, _DOMAIN),
        ),
        Step(
            "(80) to (82), G_4",
            "2 q eta_c K = 4 q etabar/mu",
            Equal(2 * q * eta_c * K, 4 * q * eta_bar / mu, _STEPS, _DOMAIN),
        ),
    )


def _contraction(server_step: Relational) -> Step:
    small = sp.Le(2 * eta_s * L * mu / (L + mu), 1)
    return Step(
        "small server step to etabar <= 1",
        "eta_s <= 2/(L+mu) gives etabar = 2 eta_s L mu/(L+mu) <= 1",
        Implied(given=(server_step,), claimed=small, multipliers=(2 * L * mu / (L + mu),)),
    )


def _gradients_paid() -> Relational:
    return sp.Le(
        _gradient_of_a_round() * G_3 - 2 * eta_c * K * G_4, 2 * eta_c * K * sigma_G**2 / mu
    )


def _gradient_of_a_round() -> sp.Expr:
    return 4 * eta_c**2 * K**2 * (1 + 15 * eta_c * K * L * (1 + eta_c * K * L))


def _gradient_of_clients() -> sp.Expr:
    return q * _gradient_of_a_round()


def _gradient_of_server() -> sp.Expr:
    return (1 - q) * eta_s * (eta_s - 2 / (L + mu))


def _step_83(
    condition_text: str, clients_81: sp.Expr, condition: Relational, noise: int = 1
) -> Step:
    bracket = clients_81 + (1 - q) * _SERVER_81
    before = (1 - eta_bar) * d + eta_bar * bracket * G_3 - 4 * q * eta_bar / mu * G_4
    return Step(
        "(82) to (83)",
        f"{condition_text} makes the terms in G_3 and G_4 at most zero",
        Implied(
            given=(sp.Le(d_next, before + _residual_83(noise)), condition),
            claimed=sp.Le(d_next, (1 - eta_bar) * d + _residual_83(noise)),
            multipliers=(_ONE, eta_bar),
        ),
    )


def _rounds(bound: sp.Expr, residual: sp.Expr = _RESIDUAL_83) -> tuple[Step, ...]:
    """Return the steps from (83) to the registered bound."""
    after = [(1 - eta_bar) ** n * D_0**2 + (1 - (1 - eta_bar) ** n) * delta_bar for n in (r, r + 1)]
    return (
        Step(
            "(83), one round more",
            "if d <= (1-etabar)^r D_0^2 + (1 - (1-etabar)^r) deltabar holds in round r, it holds "
            "in round r+1, provided that (83) adds at most etabar deltabar",
            Implied(
                given=(
                    sp.Le(d_next, (1 - eta_bar) * d + eta_bar * delta_bar),
                    sp.Le(d, after[0]),
                ),
                claimed=sp.Le(d_next, after[1]),
                domain=(sp.Le(eta_bar, 1),),
                multipliers=(_ONE, 1 - eta_bar),
            ),
        ),
        Step(
            "(85), if (83) adds etabar deltabar",
            "(1 - (1-etabar)^R) deltabar <= deltabar",
            Implied(
                claimed=sp.Le((1 - (1 - eta_bar) ** R) * delta_bar, delta_bar),
                domain=(sp.Le(eta_bar, 1),),
            ),
        ),
        Step(
            "(83), (85) to the bound",
            "(1-etabar)^R D_0^2 and what (83) adds, over etabar, are the registered bound",
            Equal(
                (1 - eta_bar) ** R * D_0**2 + residual / eta_bar,
                bound,
                _STEPS,
                _DOMAIN,
            ),
        ),
    )
