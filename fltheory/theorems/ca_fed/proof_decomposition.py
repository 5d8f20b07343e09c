"""The proofs of CA-Fed's Theorems 1 and 3 (Appendices A and C), step by step."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from fltheory.derivations.derivation import Derivation, Equal, Implied, Step
from fltheory.theorems.ca_fed.symbols import Gamma, Gamma_B, L, chi2, d_TV, excess_B, kappa, mu

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
    "F(w) - F* <= 2 kappa (F_B(w) - F_B*) + 2 kappa (F(w_B*) - F*): one kappa was spent in vain",
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
        "the mean over p of F_k(w_B*) - F_k* is at most Gamma",
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
        "(j): w_B* minimises F_B, and a mean over p is at most the maximum.",
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
