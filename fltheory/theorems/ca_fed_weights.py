"""CA-Fed: what Section III-D and Appendices D and E say of the aggregation weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import sympy as sp

from fltheory.engines import Setting
from fltheory.theorems import ca_fed_regimes
from fltheory.theorems.ca_fed import PAPER, THEOREM_2, convergence_constants
from fltheory.theorems.ca_fed_setting import CaFedSetting
from fltheory.theorems.ca_fed_symbols import MEANINGS_OF_WEIGHTS, S_2, UNITS, N, q_least, sigma
from fltheory.theorems.ca_fed_symbols import theta as theta_star
from fltheory.theorems.ca_fed_symbols import upsilon as upsilon_symbol
from fltheory.theorems.statement import Hypothesis, PointClaim, PointQuantity, Statement
from fltheory.theorems.units import PURE
from fltheory.validation import FloatArray
from fltheory.weights import OptimalWeights, optimal_for_convergence

_ROUNDINGS = 64 * float(np.finfo(np.float64).eps)


def weights_constants(setting: Setting) -> Mapping[sp.Symbol, float]:
    """Return the symbols' values for the claims about weights.

    Raises
    ------
    ValueError
        For a setting of another kind than CA-Fed's.
    """
    s = CaFedSetting(setting)
    found = _fastest(setting)
    return {
        sigma: s.problem.sigma,
        theta_star: math.nan if found is None else found.total_multiplier,
        N: s.problem.n_clients,
        q_least: float(s.q.min()),
    }


def _fastest(setting: Setting) -> OptimalWeights | None:
    """Return the weights that minimise (12), None where it has no unique minimiser."""
    s = CaFedSetting(setting)
    values = convergence_constants(setting)
    squares = values[S_2]
    if s.problem.sigma == 0 or math.isinf(squares) or s.pi.min() <= 0:
        return None
    upsilon = THEOREM_2.definitions[upsilon_symbol].xreplace(
        {symbol: sp.Float(value) for symbol, value in values.items()}
    )
    return optimal_for_convergence(
        s.pi, a=s.problem.sigma**2 * s.pi * squares, b=float(upsilon), total=s.total
    )


def _largest_inversion(setting: Setting) -> tuple[float, float]:
    """Return the largest ``q_i*/q_j*`` over clients with ``pi_i < pi_j``; 0 without such."""
    found = _fastest(setting)
    if found is None:
        return math.nan, 0.0
    pi = CaFedSetting(setting).pi
    ratios = [
        qi / qj if qj > 0 else math.inf
        for qi, pi_i in zip(found.q, pi, strict=True)
        for qj, pi_j in zip(found.q, pi, strict=True)
        if pi_i < pi_j and qi > 0
    ]
    largest = float(max(ratios, default=0.0))
    return largest, _ROUNDINGS * pi.size * largest


def convexity_ratio(pi: FloatArray, alpha: FloatArray, q: FloatArray) -> float:
    """Return a number that is at most 2 exactly where chi^2 is locally convex in q.

    Its second derivative along q + v, ``sum v = 0``, is with ``z_k = v_k/q_k`` a positive number
    times ``Var_nu z - (E_p z - E_nu z)(E_nu z - E_q z)``, where nu_k is proportional to
    ``alpha_k^2/p_k`` and q stands for q/Q: ``chi^2 + 1 = (pi'q) sum_k alpha_k^2/(pi_k q_k)``. Over
    ``Var_nu z = 1`` the product is at most half of what is returned, ``<d, e> + |d| |e|`` with
    ``d = p - nu``, ``e = nu - q``, ``<d, e> = sum d_k e_k/nu_k``.
    """
    p = pi * q / (pi @ q)
    nu = alpha**2 / p
    nu = nu / nu.sum()
    d, e = p - nu, nu - q / q.sum()
    return float((d * e / nu).sum() + math.sqrt((d * d / nu).sum() * (e * e / nu).sum()))


def _convexity_ratio(setting: Setting) -> tuple[float, float]:
    s = CaFedSetting(setting)
    if s.q.min() <= 0 or s.pi.min() <= 0:
        return math.nan, 0.0
    value = convexity_ratio(s.pi, s.problem.alpha, s.q)
    return value, _ROUNDINGS * s.pi.size * (value + 2)


APPENDIX_D = PointClaim(
    id="ca-fed/appendix-d",
    reading="printed",
    title="Where (12) is smallest, clients with smaller availability get smaller weights",
    source=f"{PAPER}, Section III-D and (27)",
    quantity=PointQuantity(
        _largest_inversion,
        "max q_i*/q_j* over clients with pi_i < pi_j",
        PURE,
        r"\max_{\pi_i<\pi_j}\frac{q_i^*}{q_j^*}",
    ),
    bound=sp.Integer(1),
    hypotheses=(
        Hypothesis("a unique minimiser", sp.Gt(sigma, 0, evaluate=False), "(27), over A_kk"),
    ),
    meanings=MEANINGS_OF_WEIGHTS,
    constants=weights_constants,
    units=UNITS,
    regimes=ca_fed_regimes.APPENDIX_D,
    note=(
        "To the letter: at the optimum q_k = a (lambda* pi_k - theta*) with positive constants a, "
        "lambda*, theta*. Equal noise everywhere."
    ),
)

APPENDIX_D_DERIVED = replace(
    APPENDIX_D,
    reading="derived",
    hypotheses=(
        *APPENDIX_D.hypotheses,
        Hypothesis("theta* not negative", sp.Ge(theta_star, 0, evaluate=False), "(26), (27)"),
    ),
    note=(
        "(27) has A_kk, which is in proportion to pi_k, in place of a constant a: q_k* is "
        "(lambda* - theta*/pi_k)/(sigma_k^2 sum eta_t^2), concave in pi_k and not affine. "
        "Stationarity of (26) in s gives theta* = (upsilon - 1/2 q*'Sigma q*)/Q, which is negative "
        "where noise outweighs upsilon; the less available clients then get the larger weights."
    ),
)

APPENDIX_E = PointClaim(
    id="ca-fed/appendix-e",
    reading="printed",
    title="The chi-square bias is convex in the aggregation weights",
    source=f"{PAPER}, Appendix E",
    quantity=PointQuantity(
        _convexity_ratio,
        "<p - nu, nu - q/Q> + |p - nu| |nu - q/Q|, nu_k ~ alpha_k^2/p_k",
        PURE,
        r"\langle p-\nu,\nu-\frac{q}{Q}\rangle+\|p-\nu\|\,\|\nu-\frac{q}{Q}\|",
    ),
    bound=sp.Integer(2),
    hypotheses=(Hypothesis("all clients get weight", sp.Gt(q_least, 0, evaluate=False), "(10)"),),
    meanings=MEANINGS_OF_WEIGHTS,
    constants=weights_constants,
    units=UNITS,
    regimes=ca_fed_regimes.APPENDIX_E,
    note=(
        "To the letter, on sum q = Q. The quantity is at most 2 exactly where the Hessian of "
        "chi^2 along sum q = Q is not negative at the setting's weights; norms are sum d^2/nu."
    ),
)

APPENDIX_E_DERIVED = replace(
    APPENDIX_E,
    reading="derived",
    hypotheses=(*APPENDIX_E.hypotheses, Hypothesis("two clients", sp.Le(N, 2), "Appendix E")),
    note=(
        "The appendix's 'direct inspection' holds for two clients: chi^2 is then, up to a "
        "constant, c_1/q_1 + c_2/q_2. From three clients on it is not convex in q everywhere; "
        "it is convex in p, and so (III-C) still has one minimum."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    APPENDIX_D,
    APPENDIX_D_DERIVED,
    APPENDIX_E,
    APPENDIX_E_DERIVED,
)
