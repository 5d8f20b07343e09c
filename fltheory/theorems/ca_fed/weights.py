"""CA-Fed: statements of Section III-D and Appendices D and E about the aggregation weights."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import sympy as sp

from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.exact_or_float import ROUNDINGS, is_exact, largest, number, root, with_rounding
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import PURE
from fltheory.numbers.of_setting import view_of
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.theorems.ca_fed import regimes
from fltheory.theorems.ca_fed.statements import (
    PAPER,
    N,
    Q,
    alpha,
    chi,
    nu,
    of_ca_fed,
    p,
    pi,
    q,
    q_least,
    sigma,
    sigma_least,
)
from fltheory.theorems.ca_fed.statements import theta as theta_star
from fltheory.validation import FloatArray

_LETTERS = (sigma, theta_star, N, q_least, sigma_least, pi, alpha, q, Q, p, chi, nu)


def _largest_inversion(setting: Setting, by_noise: bool = False) -> tuple[float, float]:
    """Return the largest ``q_i*/q_j*`` over clients with ``pi_i < pi_j``, or 0 if there are none.

    ``by_noise`` multiplies each weight by the client's squared noise level.
    """
    s = view_of(setting).averaging
    found = s.fastest
    if found is None:
        return math.nan, 0.0
    q, pi = found[0], s.pi
    if by_noise:
        q = q * s.problem.client_sigmas**2
    above = [
        (qi, qj)
        for qi, pi_i in zip(q, pi, strict=True)
        for qj, pi_j in zip(q, pi, strict=True)
        if pi_i < pi_j and qi > 0
    ]
    if not above:
        return 0, 0.0
    if any(qj == 0 for _, qj in above):
        return math.inf, 0.0
    worst = largest([qi / qj for qi, qj in above])
    return with_rounding(worst, pi.size)


def _convergence_bend(setting: Setting) -> tuple[float, float]:
    """Return a number that is at most 1 if and only if (12) is locally convex in q.

    The Hessian of ``(1/2 q'Aq + B)/l``, ``l = pi'q``, times l is ``A^(1/2) M A^(1/2)`` with
    ``M = I - u c' - c u' + (c'c + 2B) u u'``, ``c = A^(1/2) q`` and ``u = A^(-1/2) pi/l``, so that
    ``u'c`` is one. Orthogonally to u and c, M is the identity; on their span it has the trace
    ``(c'c + 2B) u'u`` and the determinant ``2B u'u``. The returned number is 1 minus the smallest
    eigenvalue of M.
    """
    s = view_of(setting).averaging
    terms = s.convergence_terms
    if terms is None:
        return math.nan, 0.0
    a, b = terms
    steep = (s.pi**2 / a).sum() / (s.pi @ s.q) ** 2
    trace, determinant = ((a * s.q**2).sum() + 2 * b) * steep, 2 * b * steep
    # The smaller root, without cancellation; by the Cauchy-Schwarz inequality both are real.
    least = 2 * determinant / (trace + root(trace**2 - 4 * determinant))
    value = number(1 - least)
    return with_rounding(value, s.pi.size, 1 + abs(value))


def convexity_ratio(pi: FloatArray, alpha: FloatArray, q: FloatArray) -> Any:
    """Return a number that is at most 2 if and only if chi^2 is locally convex in q.

    With ``z_k = v_k/q_k``, its second derivative along q + v, ``sum v = 0``, is a positive number
    times ``Var_nu z - (E_p z - E_nu z)(E_nu z - E_q z)``, where nu_k is proportional to
    ``alpha_k^2/p_k`` and q stands for q/Q: ``chi^2 + 1 = (pi'q) sum_k alpha_k^2/(pi_k q_k)``. Over
    ``Var_nu z = 1`` the product is at most half of the returned number, ``<d, e> + |d| |e|`` with
    ``d = p - nu``, ``e = nu - q``, ``<d, e> = sum d_k e_k/nu_k``.
    """
    p = pi * q / (pi @ q)
    nu = alpha**2 / p
    nu = nu / nu.sum()
    d, e = p - nu, nu - q / q.sum()
    return number((d * e / nu).sum() + root((d * d / nu).sum() * (e * e / nu).sum()))


def _all_count(s: ProjectedAveraging) -> bool:
    """Return whether all weights and availabilities, which are divisors, are positive."""
    return bool(min(s.q.min(), s.pi.min()) > 0)


def _convexity_ratio(setting: Setting) -> tuple[float, float]:
    s = view_of(setting).averaging
    if not _all_count(s):
        return math.nan, 0.0
    value = convexity_ratio(s.pi, s.problem.alpha, s.q)
    return with_rounding(value, s.pi.size, value + 2)


def summand_curvature_ratio(pi: FloatArray, alpha: FloatArray, q: FloatArray) -> Any:
    """Return a number that is at most 1 if and only if each summand of chi^2 is locally convex.

    With ``z = v_k/q_k`` and ``y = pi'v/pi'q`` the second derivative of ``(p_k - alpha_k)^2/p_k``
    along q + v, ``sum v = 0``, is twice ``b z^2 - (b + p_k) z y + p_k y^2``, ``b = alpha_k^2/p_k``.
    The returned number is the largest ``(b + p_k) z y/(b z^2 + p_k y^2)``. With three or more
    clients, z and y are independent unless all other clients are equally available. With two
    clients, one number determines both.
    """
    n_clients = q.size
    p = pi * q / (pi @ q)
    b = alpha**2 / p
    y = pi / (pi @ q)
    y = y - y.sum() / n_clients
    ratios = [0 * y[0]]
    for k in range(n_clients):
        # The component along e_k minus its mean, and the component of y orthogonal to it.
        along = y[k] * n_clients / (n_clients - 1)
        across = (y * y).sum() - y[k] * along
        tie = 0 if is_exact(across) else ROUNDINGS * (y * y).sum()
        if n_clients > 2 and across > tie:
            if b[k] == 0:
                return math.inf
            ratio = (b[k] + p[k]) / (2 * root(b[k] * p[k]))
        else:
            slope = along * q[k]
            ratio = (b[k] + p[k]) * slope / (b[k] + p[k] * slope**2)
        ratios.append(ratio)
    return number(largest(ratios))


def _summand_curvature_ratio(setting: Setting) -> tuple[float, float]:
    s = view_of(setting).averaging
    if not _all_count(s):
        return math.nan, 0.0
    value = summand_curvature_ratio(s.pi, s.problem.alpha, s.q)
    return with_rounding(value, s.pi.size)


def _bend_in_share(setting: Setting) -> tuple[float, float]:
    """Return a number that is at most 1 if and only if each f_k is locally convex in p_k.

    ``f_k(p) = (p - alpha_k)^2/p`` has ``p f_k''(p) = 2 alpha_k^2/p^2``.
    """
    s = view_of(setting).averaging
    if not _all_count(s):
        return math.nan, 0.0
    p = s.pi * s.q / (s.pi @ s.q)
    value = number(largest(list(1 - 2 * s.problem.alpha**2 / p**2)))
    return with_rounding(value, s.pi.size, 1 + abs(value))


APPENDIX_D = PointClaim(
    id="ca-fed/appendix-d",
    title="At the minimum of (12), clients that are less available get smaller weights",
    source=f"{PAPER}, Section III-D and (27)",
    quantity=PointQuantity(
        _largest_inversion,
        "max q_i*/q_j* over clients with pi_i < pi_j",
        PURE,
        r"\max_{\pi_i<\pi_j}\frac{q_i^*}{q_j^*}",
        certified="weight_inversion",
    ),
    bound=sp.Integer(1),
    hypotheses=(
        Hypothesis("a unique minimiser", sp.Gt(sigma_least, 0, evaluate=False), "(27), over A_kk"),
    ),
    domain=of_ca_fed,
    symbols=_LETTERS,
    regimes=regimes.APPENDIX_D,
    note=(
        "Checked to the letter: at the optimum q_k = a (lambda* pi_k - theta*) with positive "
        "constants a, lambda*, theta*. Each client has its own sigma_k, as in Assumption 5."
    ),
    kind=StatementKind.REMARK,
)

APPENDIX_D_DERIVED = replace(
    APPENDIX_D,
    reading="derived",
    hypotheses=(
        *APPENDIX_D.hypotheses,
        Hypothesis("theta* not negative", sp.Ge(theta_star, 0, evaluate=False), "(26), (27)"),
        Hypothesis(
            "equal noise of all clients",
            sp.Eq(sigma_least, sigma),
            "(27), sigma_k^2 in A_kk",
        ),
    ),
    note=(
        "The remark has a constant a where (27) has A_kk, which is proportional to pi_k. So q_k* "
        "is (lambda* - theta*/pi_k)/(sigma_k^2 sum eta_t^2), which is concave in pi_k, not "
        "affine. Setting the derivative of (26) in s to zero gives theta* = (upsilon - 1/2 "
        "q*'Sigma q*)/Q. This is negative if noise outweighs upsilon, and then clients that are "
        "less available get larger weights. If noise differs between clients, it is sigma_k^2 "
        "q_k*, not q_k* itself, that grows with pi_k."
    ),
)

APPENDIX_D_BY_NOISE = replace(
    APPENDIX_D_DERIVED,
    reading="any noise",
    title="At the minimum of (12), sigma_k^2 q_k* grows with availability",
    quantity=PointQuantity(
        partial(_largest_inversion, by_noise=True),
        "max sigma_i^2 q_i*/(sigma_j^2 q_j*) over clients with pi_i < pi_j",
        PURE,
        r"\max_{\pi_i<\pi_j}\frac{\sigma_i^2q_i^*}{\sigma_j^2q_j^*}",
    ),
    hypotheses=APPENDIX_D_DERIVED.hypotheses[:-1],
    note=(
        "This is (27) with A_kk = sigma_k^2 pi_k sum eta_t^2 written out: sigma_k^2 q_k* is "
        "proportional to (lambda* - theta*/pi_k)+, whatever the noise of each client is."
    ),
)

CONVERGENCE = PointClaim(
    id="ca-fed/appendix-d-convex",
    title="(12) is convex in the aggregation weights",
    source=f"{PAPER}, Section III-D and Appendix D",
    quantity=PointQuantity(
        _convergence_bend,
        "1 - lambda_min(M), M = A^(-1/2) (pi'q d^2 f/dq^2) A^(-1/2)",
        PURE,
        r"1-\lambda_{\min}(A^{-\frac12}(\pi^\top q\,\nabla^2f(q))A^{-\frac12})",
    ),
    bound=sp.Integer(1),
    hypotheses=APPENDIX_D.hypotheses,
    domain=of_ca_fed,
    symbols=(
        *_LETTERS,
        symbol("f", "(1/2 q'Aq + B)/(pi'q) + C, (12) as a function of q", PURE, real=True),
        symbol("A", "Sigma, diagonal: sigma_k^2 pi_k sum_t eta_t^2; B is upsilon", PURE, real=True),
    ),
    regimes=regimes.CONVERGENCE,
    note=(
        "Checked to the letter, with one sigma_k per client. The quantity is at most 1 if and only "
        "if the Hessian in q has no direction of negative curvature at the setting's weights. The "
        "sentence 'L* tends to infinity as s tends to 0' is not needed, because sum q = Q keeps s "
        "above 1/Q."
    ),
    kind=StatementKind.REMARK,
)

APPENDIX_E = PointClaim(
    id="ca-fed/appendix-e",
    title="The chi-square bias is convex in the aggregation weights",
    source=f"{PAPER}, Appendix E",
    quantity=PointQuantity(
        _convexity_ratio,
        "<p - nu, nu - q/Q> + |p - nu| |nu - q/Q|",
        PURE,
        r"\langle p-\nu,\nu-\frac{q}{Q}\rangle+\|p-\nu\|\,\|\nu-\frac{q}{Q}\|",
        certified="weight_convexity",
    ),
    bound=sp.Integer(2),
    hypotheses=(Hypothesis("all clients get weight", sp.Gt(q_least, 0, evaluate=False), "(10)"),),
    domain=of_ca_fed,
    symbols=_LETTERS,
    regimes=regimes.APPENDIX_E,
    note=(
        "Checked to the letter, on sum q = Q. The quantity is at most 2 if and only if the Hessian "
        "of chi^2, restricted to sum q = Q, has no direction of negative curvature at the "
        "setting's weights."
    ),
    kind=StatementKind.REMARK,
)

APPENDIX_E_TWO_CLIENTS = replace(
    APPENDIX_E,
    reading="two clients",
    hypotheses=(*APPENDIX_E.hypotheses, Hypothesis("two clients", sp.Le(N, 2), "Appendix E")),
    note=(
        "For two clients chi^2 is, up to a constant, c_1/q_1 + c_2/q_2, which is convex, though "
        "its summands are not (see ca-fed/appendix-e-summands)."
    ),
)

APPENDIX_E_DERIVED = replace(
    APPENDIX_E,
    reading="derived",
    title="The chi-square bias is convex in the biased importance p",
    quantity=PointQuantity(
        _bend_in_share,
        "max over k of 1 - p_k d^2 chi^2/dp_k^2",
        PURE,
        r"\max_k\left(1-p_k\frac{\partial^2\chi^2}{\partial p_k^2}\right)",
        certified="share_curvature",
    ),
    bound=sp.Integer(1),
    note=(
        "As a function of p, the sum has one summand per p_k, whose second derivative is 2 "
        "alpha_k^2/p_k^3. The quantity is at most 1 if and only if none of these derivatives is "
        "negative. So chi^2 is convex in p for any number of clients, and (III-C) still has a "
        "single minimum. As a function of q, chi^2 is convex for two clients (the reading 'two "
        "clients'), but not everywhere for three or more."
    ),
)

SUMMANDS = replace(
    APPENDIX_E,
    id="ca-fed/appendix-e-summands",
    title="Every summand of the chi-square bias is convex in the aggregation weights",
    symbols=(
        *_LETTERS,
        symbol("b_k", "alpha_k^2/p_k", PURE, real=True),
        symbol("z", "v_k/q_k, for a step v of the weights with sum_k v_k = 0", PURE, real=True),
        symbol("y", "pi'v/pi'q", PURE, real=True),
        symbol("f_k", "f_k(p) = (p - alpha_k)^2/p", PURE, real=True),
    ),
    quantity=PointQuantity(
        _summand_curvature_ratio,
        "max over k of (b_k + p_k) z y/(b_k z^2 + p_k y^2)",
        PURE,
        r"\max_k\frac{(b_k+p_k)zy}{b_kz^2+p_ky^2}",
        certified="summand_curvature",
    ),
    bound=sp.Integer(1),
    regimes=regimes.SUMMANDS,
    kind=StatementKind.STEP,
    note=(
        "Checked to the letter: (f_k o g_k)(q) = (p_k - alpha_k)^2/p_k, on sum q = Q, 'by direct "
        "inspection'. Let v be a step with sum v = 0, z = v_k/q_k and y = pi'v/pi'q. The quantity "
        "is at most 1 if and only if no summand has negative curvature at the setting's weights. "
        "With three or more clients this is true only if p_k = alpha_k, because the discriminant "
        "is (b_k - p_k)^2."
    ),
)

SUMMANDS_DERIVED = replace(
    SUMMANDS,
    reading="derived",
    quantity=PointQuantity(
        _bend_in_share,
        "max over k of 1 - p_k f_k''(p_k)",
        PURE,
        r"\max_k\left(1-p_kf_k''(p_k)\right)",
        certified="share_curvature",
    ),
    note=(
        "The quantity is at most 1 if and only if no f_k has negative curvature. As a function of "
        "p_k, f_k'' = 2 alpha_k^2/p_k^3, so every f_k is convex everywhere, and so is their sum. "
        "The weights q enter only through p_k = pi_k q_k/(pi'q), so (III-C) still has a single "
        "minimum."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    replace(
        APPENDIX_D,
        refutations=(
            Refutation(
                "The text after (27) takes theta* > 0 for granted. Setting the derivative of (26) "
                "in s to zero gives theta* = (upsilon - 1/2 q*'Sigma q*)/Q, which is negative if "
                "noise outweighs upsilon.",
                Weight.MISSING_HYPOTHESIS,
                "theta* >= 0",
                "derived",
                ("noisy gradients",),
                ("ca-fed-appendix-d.json",),
                answer="The remark is about the usual case, in which upsilon outweighs the noise.",
            ),
            Refutation(
                "The remark has one constant a for all clients, but (27) divides by A_kk, which "
                "contains the client's own sigma_k. So a rare client with little noise can get a "
                "larger weight.",
                Weight.MISSING_HYPOTHESIS,
                "equal noise of all clients, or sigma_k^2 q_k* in place of q_k*",
                "derived",
                ("unequal noise",),
                ("ca-fed-appendix-d-noise.json",),
                answer="The remark takes all sigma_k to be equal; (27) itself keeps them apart.",
            ),
        ),
    ),
    APPENDIX_D_DERIVED,
    APPENDIX_D_BY_NOISE,
    CONVERGENCE,
    replace(
        APPENDIX_E,
        refutations=(
            Refutation(
                "Appendix E calls each summand convex in q 'by direct inspection'. The summands "
                "are not convex, and with three or more clients their sum need not be either.",
                Weight.GAP,
                "convexity in p in place of convexity in q, which is true only for two clients",
                "derived",
                ("rare majority",),
                ("ca-fed-appendix-e.json",),
                answer="Convexity in p is enough for (III-C); the weights follow from p.",
            ),
        ),
    ),
    APPENDIX_E_DERIVED,
    APPENDIX_E_TWO_CLIENTS,
    replace(
        SUMMANDS,
        refutations=(
            Refutation(
                "f_k is convex in p_k and g_k is linear-fractional in q. But f_k falls for p_k < "
                "alpha_k and rises for p_k > alpha_k, so f_k o g_k has negative curvature on one "
                "side of alpha_k.",
                Weight.GAP,
                "convexity of f_k in p_k, not of f_k o g_k in q",
                "derived",
                tuple(SUMMANDS.regimes),
                ("ca-fed-appendix-e-summands.json",),
                answer="The step is not needed if convexity in p is used.",
            ),
        ),
    ),
    SUMMANDS_DERIVED,
)
