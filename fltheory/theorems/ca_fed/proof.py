"""The proofs of CA-Fed's Theorems 1 to 3 (Appendices A to C), step by step."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from fltheory.derivations.derivation import Derivation, Equal, Implied, Step
from fltheory.theorems.ca_fed.statements import (
    C_P,
    D_0,
    D_B,
    J_T,
    S_0,
    S_1,
    S_2,
    S_2T,
    V_T,
    D,
    E,
    G,
    Gamma,
    Gamma_B,
    H,
    L,
    M,
    N_q,
    Q,
    chi2,
    d_TV,
    excess_B,
    kappa,
    lambda_P,
    mu,
    pi_q,
)

# ------------------------------------------------------------ Theorems 1 and 3

_excess, _of_minimiser, _gradient, _gradient_B, _mean = sp.symbols(
    "e e_* g g_B m_B", nonnegative=True
)
_total, _first, _second = sp.symbols("s s_1 s_2", nonnegative=True)

_ONE = sp.Integer(1)
_KAPPA = {kappa: L / mu}
_MEANINGS = {
    _excess: "F(w) - F*",
    _of_minimiser: "F(w_B*) - F*",
    _gradient: "||grad F(w)||^2",
    _gradient_B: "||grad F(w_B*)||^2",
    _total: "||w - w*||^2; s_1 = ||w - w_B*||^2, s_2 = ||w_B* - w*||^2",
    _mean: "sum_k p_k (F_k(w_B*) - F_k*)",
}
_TAKEN = (
    "(a), (g): strong convexity, F - F* <= ||grad F||^2/(2 mu) and mu/2 ||v - v*||^2 <= F - F*.",
    "(b), (f): smoothness and a gradient of zero at the minimiser; so F - F* <= L/2 ||w - w*||^2.",
    "(c): ||a + b||^2 <= 2 ||a||^2 + 2 ||b||^2.",
    "(e): grad F_B(w_B*) = 0, so grad F(w_B*) = sum_k (alpha_k - p_k) grad F_k(w_B*).",
)

_SPLIT = Step(
    "(a) to (d)",
    "F(w) - F* <= 2 kappa^2 (F_B(w) - F_B*) + 2 kappa^2 (F(w_B*) - F*)",
    Implied(
        given=(
            sp.Le(_excess, _gradient / (2 * mu)),
            sp.Le(_gradient, L**2 * _total),
            sp.Le(_total, 2 * _first + 2 * _second),
            sp.Le(mu / 2 * _first, excess_B),
            sp.Le(mu / 2 * _second, _of_minimiser),
        ),
        claimed=sp.Le(_excess, 2 * kappa**2 * (excess_B + _of_minimiser)),
        multipliers=(
            _ONE,
            1 / (2 * mu),
            L**2 / (2 * mu),
            2 * L**2 / mu**2,
            2 * L**2 / mu**2,
        ),
        under=_KAPPA,
    ),
)

_SHORTER = Step(
    "(a) to (d) without the gradient",
    "F(w) - F* <= 2 kappa (F_B(w) - F_B*) + 2 kappa (F(w_B*) - F*): the other kappa is not needed",
    Implied(
        given=(
            sp.Le(_excess, L / 2 * _total),
            sp.Le(_total, 2 * _first + 2 * _second),
            sp.Le(mu / 2 * _first, excess_B),
            sp.Le(mu / 2 * _second, _of_minimiser),
        ),
        claimed=sp.Le(_excess, 2 * kappa * (excess_B + _of_minimiser)),
        multipliers=(_ONE, L / 2, 2 * L / mu, 2 * L / mu),
        under=_KAPPA,
    ),
)


def _last(label: str, bias: sp.Expr, factor: sp.Expr = 2 * kappa**2) -> Step:
    return Step(
        label,
        f"{factor} times the bound on F(w_B*) - F* is the bias as stated".replace("**", "^"),
        Implied(
            given=(
                sp.Le(_excess, factor * (excess_B + _of_minimiser)),
                sp.Le(_of_minimiser, bias / factor),
            ),
            claimed=sp.Le(_excess, factor * excess_B + bias),
            multipliers=(_ONE, factor),
        ),
    )


_BIAS_1 = 2 * kappa**4 * chi2 * Gamma
_BIAS_3 = 8 * kappa**4 * d_TV**2 * Gamma_B

_OF_BIAS_1 = (
    Step(
        "(i) to (j)",
        "the mean of F_k(w_B*) - F_k*, weighted by p, is at most Gamma",
        Implied(
            given=(
                sp.Le(_gradient_B, 2 * L**2 / mu * chi2 * _mean),
                sp.Le(_mean, Gamma),
            ),
            claimed=sp.Le(_gradient_B, 2 * L**2 / mu * chi2 * Gamma),
            multipliers=(_ONE, 2 * L**2 / mu * chi2),
        ),
    ),
    Step(
        "(j) to F(w_B*) - F*",
        "F(w_B*) - F* <= kappa^2 chi^2 Gamma",
        Implied(
            given=(
                sp.Le(_of_minimiser, _gradient_B / (2 * mu)),
                sp.Le(_gradient_B, 2 * L**2 / mu * chi2 * Gamma),
            ),
            claimed=sp.Le(_of_minimiser, _BIAS_1 / (2 * kappa**2)),
            multipliers=(_ONE, 1 / (2 * mu)),
            under=_KAPPA,
        ),
    ),
)
THEOREM_1 = Derivation(
    steps=(_SPLIT, _SHORTER, *_OF_BIAS_1, _last("(d) to (10)", _BIAS_1)),
    taken=(
        *_TAKEN,
        "(i): Cauchy-Schwarz.",
        "(j): w_B* minimises F_B, and a mean weighted by p is at most the maximum.",
    ),
    meanings=_MEANINGS,
)
THEOREM_1_SHARPER = replace(
    THEOREM_1,
    steps=(_SHORTER, *_OF_BIAS_1, _last("(d) to (10), one kappa less", _BIAS_1 / kappa, 2 * kappa)),
)

_ROOT = 2 * L * sp.sqrt(2 / mu) * d_TV * sp.sqrt(Gamma_B)

_OF_BIAS_3 = (
    Step(
        "Appendix C, squared",
        "||grad F(w_B*)||^2 <= 8 L^2/mu d_TV^2 Gamma'",
        Equal(_ROOT**2, 8 * L**2 / mu * d_TV**2 * Gamma_B),
    ),
    Step(
        "Appendix C to F(w_B*) - F*",
        "F(w_B*) - F* <= 4 kappa^2 d_TV^2 Gamma'",
        Implied(
            given=(
                sp.Le(_of_minimiser, _gradient_B / (2 * mu)),
                sp.Le(_gradient_B, 8 * L**2 / mu * d_TV**2 * Gamma_B),
            ),
            claimed=sp.Le(_of_minimiser, _BIAS_3 / (2 * kappa**2)),
            multipliers=(_ONE, 1 / (2 * mu)),
            under=_KAPPA,
        ),
    ),
)
THEOREM_3 = Derivation(
    steps=(_SPLIT, _SHORTER, *_OF_BIAS_3, _last("(d) to (13)", _BIAS_3)),
    taken=(*_TAKEN, "Appendix C: sum_k |alpha_k - p_k| sqrt(v_k) <= 2 d_TV sqrt(max_k v_k)."),
    meanings={key: text for key, text in _MEANINGS.items() if key is not _mean},
)
THEOREM_3_SHARPER = replace(
    THEOREM_3,
    steps=(_SHORTER, *_OF_BIAS_3, _last("(d) to (13), one kappa less", _BIAS_3 / kappa, 2 * kappa)),
)


# ------------------------------------------------------------ Theorem 2

_d, _next, _local, _steps, _noise, _excess_of_average = sp.symbols(
    "d d_next Z P s e_T", nonnegative=True
)
_at_minimiser, _eta, _slack, _norm = sp.symbols("C eta z g", nonnegative=True)
_inner, _squares = sp.symbols("u B", real=True)
_delay, _time = sp.symbols("J t", positive=True, integer=True)
_wanted = sp.Symbol("j", positive=True)
_X = sp.Symbol("X", real=True)
_alpha_2, _p_2 = sp.symbols("alpha_2 p_2", positive=True)
_start = sp.Symbol("w_0", real=True)
_mean_at_minimiser, _mean_at_w = sp.symbols("B_1 B_2", nonnegative=True)
_X_now, _X_then, _F_then, _F_now = sp.symbols("A_1 A_2 A_3 A_4", real=True)

_GAMMA_T = 2 * _eta - 2 * L * _eta**2 * (E * Q + 1)
_WEIGHT = _GAMMA_T * (1 - L * _eta) / 2
_CAP = {_eta: 1 / (2 * L * (E * Q + 1) * (1 + _slack))}
_ROUND = 2 * L * _eta**2 * E * (E * Q + 2) * _at_minimiser + 2 * _local + _eta**2 * E * _noise
_DRIFT_SUM = E * (E - 1) * (2 * E - 1) * G**2 / 6

_MEANINGS_2 = {
    _d: "E||w_t - w_B*||^2; d_next: of w_{t+1}",
    _eta: "eta_t, which is 1/(2L(EQ+1)(1+z)) with z >= 0 under Lemma 2's condition",
    _inner: "sum over A_t and j of q_k <w_t - w_B*, grad F_k(w_tj)>",
    _squares: "sum over A_t and j of q_k ||grad F_k(w_tj)||^2",
    _norm: "||gbar_t||^2",
    _steps: "sum over A_t and j of q_k (F_k(w_tj) - F_k*)",
    _local: "sum over A_t and j of q_k ||w_tj - w_t||^2",
    _at_minimiser: "sum over A_t of q_k (F_k(w_B*) - F_k*), on average pi'q B_1",
    _noise: "sum over A_t of q_k^2 sigma_k^2",
    _X: "sum over A_t of q_k (F_k(w_t) - F_k(w_B*)), which may be negative",
    _delay: "J_t",
    _wanted: "ln(2 C_P H t)/ln(1/lambda)",
    _time: "a round",
    _mean_at_minimiser: "sum_k p_k (F_k(w_B*) - F_k*), the minimum of F_B - sum_k p_k F_k*",
    _mean_at_w: "sum_k p_k (F_k(w*) - F_k*)",
    _start: "w_{0,0}; alpha_2, p_2: the second client's target and biased importance",
    _excess_of_average: "E[F_B(wbar_T) - F_B*]",
    _X_now: "sum over rounds of b_t E[X_t], b_t = gamma_t (1 - eta_t L)/2",
    _X_then: "the same with w_{t-J_t} for w_t",
    _F_then: "pi'q times the sum of b_t E[F_B(w_{t-J_t}) - F_B*]",
    _F_now: "the same with w_t for w_{t-J_t}",
}
_TAKEN_2 = (
    "Projections do not increase distances, and w_B* is in W.",
    "E[A_2] = 0, where gbar_t is the mean of g_t given A_t and w_t. Then A_3 <= E sum q_k^2 "
    "sigma_k^2 if noise does not grow over local steps, as on quadratic clients with eta_t <= 1/L.",
    "Convexity and smoothness of every client, at w_tj and w_t.",
    "Z <= eta_t^2 E(E-1)(2E-1) G^2/6 sum over A_t of q_k, which needs local models in W.",
    "E 1(k in A_t) = pi_k in every round, because the chain starts in its stationary distribution.",
    "(22), (21) and sum over A_d of q_k <= Q give Lemma 3's bound with J_t, for step sizes that "
    "do not increase. Step 2 works in the same way.",
    "Jensen's inequality for the averaged iterate.",
)

_OF_A_1_AND_A_3 = sp.Le(
    _next,
    _d - _GAMMA_T * _steps + 2 * _eta * E * _at_minimiser + _local + _eta**2 * E * _noise,
)
_ONE_ROUND = (
    Step(
        "Lemma 2, A_1 and A_3",
        "d_next <= d - gamma P + 2 eta E C + Z + eta^2 E s, gamma = 2 eta (1 - L eta (EQ+1))",
        Implied(
            given=(
                sp.Le(_next, _d - 2 * _eta * _inner + _eta**2 * _norm + _eta**2 * E * _noise),
                sp.Ge(
                    2 * _eta * _inner,
                    2 * _eta * (_steps - E * _at_minimiser) - _local - _eta**2 * _squares,
                ),
                sp.Le(_norm, E * Q * _squares),
                sp.Le(_squares, 2 * L * _steps),
            ),
            claimed=_OF_A_1_AND_A_3,
            multipliers=(_ONE, _ONE, _eta**2, _eta**2 * (E * Q + 1)),
        ),
    ),
    Step(
        "Lemma 2, from w_tj to w_t",
        "d_next <= d - gamma (1 - eta L) E X + 2 L eta^2 E (EQ+2) C + 2 Z + eta^2 E s",
        Implied(
            given=(
                _OF_A_1_AND_A_3,
                sp.Ge(
                    _steps,
                    (1 - L * _eta) * E * (_X + _at_minimiser) - _local / (2 * _eta),
                ),
            ),
            claimed=sp.Le(_next, _d - 2 * _WEIGHT * E * _X + _ROUND),
            multipliers=(_ONE, _GAMMA_T),
            under=_CAP,
        ),
    ),
)

_HALF_STEP = Step(
    "Lemma 2, the factor eta_t/2",
    "gamma_t (1 - eta_t L) >= eta_t/2 gives d_next <= d - eta/2 E X + ..., although X may have "
    "either sign",
    Implied(
        given=(sp.Le(_next, _d - 2 * _WEIGHT * E * _X + _ROUND),),
        claimed=sp.Le(_next, _d - _eta / 2 * E * _X + _ROUND),
        under=_CAP,
    ),
)

_GAMMA_AT_W_B = (
    "Lemma 2, Gamma for losses at w_B*",
    "sum p_k (F_k(w_B*) - F_k*) <= Gamma: F_B is least at w_B*, and a mean is at most the largest",
    Implied(
        given=(sp.Le(_mean_at_minimiser, _mean_at_w), sp.Le(_mean_at_w, Gamma)),
        claimed=sp.Le(_mean_at_minimiser, Gamma),
        multipliers=(_ONE, _ONE),
    ),
)
_PER_ROUND_GAMMA = sp.expand(2 / E * 2 * L * E * (E * Q + 2))
_DRIFT_OF_12 = sp.Rational(2, 3) * (E - 1) * (2 * E - 1) * G**2
_DRIFT_STEP = Step(
    "Lemma 2, drift",
    "2/E times 2 Z has 2/3 (E-1)(2E-1) G^2 eta_t^2 for each sum of q_k",
    Equal(2 / E * 2 * _DRIFT_SUM, _DRIFT_OF_12),
)

_STATED_WITHOUT_PHI = (N_q * S_2 / 2 + 2 / E * D_0**2 + M * Q * (S_2 + S_0) / 4) / pi_q + (
    4 * L * (E * Q + 2) * Gamma + _DRIFT_OF_12
) * S_2

PRINTED = Derivation(
    steps=(
        *_ONE_ROUND,
        _HALF_STEP,
        Step(
            "Lemma 2, noise",
            "2/E times eta^2 E s: Lemma 2 has 2 sum pi_k q_k^2 sigma_k^2",
            Equal(2 / E * E * N_q, 2 * N_q),
        ),
        Step(
            "Lemma 2 to (12), noise",
            "this term equals 1/2 q'Sigma q",
            Equal(2 * N_q * S_2, N_q * S_2 / 2),
        ),
        _DRIFT_STEP,
        Step(
            "Lemma 2, Gamma",
            "2/E times 2 L eta^2 E (EQ+2) C: Lemma 2 has 2L(EQ+2) Gamma",
            Equal(_PER_ROUND_GAMMA, 2 * L * (E * Q + 2)),
        ),
        Step(
            "Lemma 2 to (12), Gamma",
            "psi has 4L(EQ+2) Gamma",
            Equal(_PER_ROUND_GAMMA, 4 * L * (E * Q + 2)),
        ),
        Step(*_GAMMA_AT_W_B),
        Step(
            "Lemma 2 to (12), the start",
            "||w_{0,0} - w_B*|| <= ||w_{0,0} - w*|| (compared on the same losses)",
            Implied(
                claimed=sp.Le((_start - _p_2) ** 2, (_start - _alpha_2) ** 2),
                domain=(sp.Le(_p_2, 1), sp.Le(_alpha_2, 1)),
            ),
        ),
        Step(
            "(23) where J_t is cut to t",
            "C_P lambda^t <= 1/(2Ht)",
            Implied(
                claimed=sp.Le(C_P * lambda_P**_time, 1 / (2 * H * _time)),
                domain=(sp.Lt(lambda_P, 1),),
            ),
        ),
        Step(
            "(24) to (25)",
            "eta_t M Q/(2t) <= M Q/4 (eta_t^2 + 1/t^2)",
            Implied(
                claimed=sp.Le(_eta * M * Q / (2 * _time), M * Q / 4 * (_eta**2 + 1 / _time**2))
            ),
        ),
        Step(
            "Lemma 3 to (12), J_t",
            "J_t <= ln(2 C_P H t)/ln(1/lambda), although J_t is the smallest integer above that",
            Implied(given=(sp.Le(_delay, _wanted + 1),), claimed=sp.Le(_delay, _wanted)),
        ),
        Step(
            "Steps 1 and 2 to (12)",
            "C_2 over pi'q, with C_1 as in Lemma 2, is the part of (12) without phi",
            Equal(
                (
                    2 / E * D_B**2
                    + 2 * N_q * S_2
                    + (_DRIFT_OF_12 + 2 * L * (E * Q + 2) * Gamma) * pi_q * S_2
                    + M * Q * (S_2 + S_0) / 4
                )
                / pi_q,
                _STATED_WITHOUT_PHI,
            ),
        ),
    ),
    taken=_TAKEN_2,
    meanings=_MEANINGS_2,
)

_C_3 = E * D * G * Q * pi_q * J_T
_LEMMA_2_SUM = (
    E * N_q * S_2T + 2 * L * E * (E * Q + 2) * pi_q * Gamma * S_2T + 2 * _DRIFT_SUM * pi_q * S_2T
)
_BOUND_DERIVED = (
    (2 * N_q * S_2T + 2 / E * D_B**2 + 4 * M * Q * H * V_T) / pi_q
    + 4 * L * (E * Q + 2) * Gamma * S_2T
    + _DRIFT_OF_12 * S_2T
    + 8 * E * D * G * Q * J_T
) / S_1

DERIVED = Derivation(
    steps=(
        *_ONE_ROUND,
        Step(
            "gamma_t (1 - eta_t L)/2 from below",
            "b_t >= eta_t/4",
            Implied(claimed=sp.Ge(_WEIGHT, _eta / 4), under=_CAP),
        ),
        Step(
            "gamma_t (1 - eta_t L)/2 from above",
            "b_t <= eta_t",
            Implied(claimed=sp.Le(_WEIGHT, _eta), under=_CAP),
        ),
        _DRIFT_STEP,
        Step(*_GAMMA_AT_W_B),
        Step(
            "Lemmas 2 and 3, Steps 1 and 2 to the bound",
            "the weights are b_t throughout; b_t >= eta_t/4 is used only at the end, where "
            "nothing is negative",
            Implied(
                given=(
                    sp.Le(2 * E * _X_now, D_B**2 + _LEMMA_2_SUM),
                    sp.Le(_X_then - _X_now, _C_3),
                    sp.Le(_F_then - _X_then, M * Q * H * V_T),
                    sp.Le(_F_now - _F_then, _C_3),
                    sp.Le(pi_q * S_1 * _excess_of_average / 4, _F_now),
                ),
                claimed=sp.Le(_excess_of_average, _BOUND_DERIVED),
                multipliers=(
                    2 / (E * pi_q * S_1),
                    4 / (pi_q * S_1),
                    4 / (pi_q * S_1),
                    4 / (pi_q * S_1),
                    4 / (pi_q * S_1),
                ),
            ),
        ),
    ),
    taken=_TAKEN_2,
    meanings=_MEANINGS_2,
)
