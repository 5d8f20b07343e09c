"""CA-Fed: Theorems 1, 2 and 3.

Rodio, Faticanti, Marfoq, Neglia and Leonardi, "Federated Learning under Heterogeneous and
Correlated Client Availability" (INFOCOM 2023; we use the longer version).

Conventions
-----------
``w_t`` is the model before round t = 1 .. T, so that ``w_1`` is the initial model ``w_{0,0}`` and
the averaged iterate has the weights ``eta_1 .. eta_T``. ``sum_t`` without limits is over all t >=
1, as in (11), which is the reading with the largest bound. W is a ball. D, G and H are the suprema
over W, although by Lemma 1 they may be any bounds over W. Theorems 1 and 3 are true for every w if
they are true where their bound is tightest, so they are checked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import sympy as sp

from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import written_in
from fltheory.engines import Setting
from fltheory.engines.observables import BiasedExcessLoss, Observable
from fltheory.exact_or_float import ROUNDINGS, is_exact, largest_norm, number
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, Looseness, PointQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, Weight
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP
from fltheory.numbers.of_setting import view_of
from fltheory.numbers.projected_averaging import MUST_BE, ProjectedAveraging, printed_upsilon
from fltheory.numbers.step_sums import StepSums
from fltheory.theorems.ca_fed import regimes

# ------------------------------------------------------------ symbols

kappa = symbol("kappa", "condition number", PURE, positive=True)
upsilon = symbol("upsilon", "as printed below (12)", LENGTH**2, nonnegative=True)
psi = symbol("psi", "as printed below (12)", LENGTH**2, nonnegative=True)
phi = symbol(
    "phi", "as printed below (12): 2EDGQ sum_t ln(2 C_P H t) eta_{t-J_t}^2", LENGTH**2, real=True
)
L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", positive=True)
chi2 = symbol(
    "chi2",
    "sum_k (alpha_k - p_k)^2/p_k, p_k = pi_k q_k/(pi'q)",
    PURE,
    "chi_square",
    nonnegative=True,
)
d_TV = symbol("d_TV", "1/2 sum_k |alpha_k - p_k|", PURE, "total_variation", nonnegative=True)
Gamma = symbol("Gamma", "max_k F_k(w*) - F_k*", LOSS, "Gamma", nonnegative=True)
Gamma_B = symbol(
    "Gamma_B", "Gamma', max_k F_k(w_B*) - F_k*", LOSS, "biased_Gamma", nonnegative=True
)
excess_B = symbol(
    "e_B",
    "F_B(w) - F_B* with F_B = sum_k p_k F_k, at the w where the bound is tightest",
    LOSS,
    "tightest_biased_excess",
    nonnegative=True,
)
r_min = symbol(
    "r_min",
    "largest distance of w*, w_B* and the w_k* from the centre of W",
    LENGTH,
    "reach_of_minimisers",
    nonnegative=True,
)
rho = symbol("rho", "radius of W, a ball", LENGTH, "radius", positive=True)
E = symbol("E", "local_steps", PURE, "local_steps", positive=True, integer=True)
T = symbol(
    "T",
    "rounds; w_t is the model before round t = 1 .. T, w_1 = w_{0,0}",
    PURE,
    "rounds",
    positive=True,
    integer=True,
)
M = symbol("M", "states of the chain", PURE, "chain_states", positive=True, integer=True)
lambda_P = symbol("lambda_P", "lambda(P) = (lambda_2(P) + 1)/2", PURE, "chain_rate", positive=True)
C_P = symbol(
    "C_P",
    "any number with |[P^t]_ij - pi_j| <= C_P lambda(P)^t for t >= T_P",
    PURE,
    "chain_factor",
    positive=True,
)
T_P = symbol("T_P", "integer in (5), see C_P", PURE, "chain_onset", nonnegative=True, integer=True)
D = symbol("D", "sup over W and k of ||grad F_k||", GRADIENT, "largest_gradient", nonnegative=True)
sigma = symbol(
    "sigma",
    "max_k sigma_k, where the gradient noise of client k has E||noise||^2 <= sigma_k^2",
    GRADIENT,
    "sigma",
    nonnegative=True,
)
G = symbol(
    "G", "sqrt(D^2 + sigma^2)", GRADIENT, "sqrt(largest_gradient**2 + sigma**2)", nonnegative=True
)
H = symbol(
    "H", "sup over W and k of |F_k(w) - F_k(w_B*)|", LOSS, "largest_loss_change", positive=True
)
Q = symbol("Q", "sum_k q_k", PURE, "total_weight", positive=True)
pi_q = symbol("pi_q", "pi'q", PURE, "mean_weight", positive=True)
N_q = symbol(
    "N_q",
    "sum_k pi_k q_k^2 sigma_k^2, so that q'Sigma q = N_q sum_t eta_t^2",
    GRADIENT**2,
    "sigma**2*mean_squared_weight",
    nonnegative=True,
)
D_0 = symbol("D_0", "||w_{0,0} - w*||", LENGTH, "sqrt(squared_distance)", nonnegative=True)
D_B = symbol("D_B", "||w_{0,0} - w_B*||", LENGTH, "sqrt(biased_squared_distance)", nonnegative=True)
eta_1 = symbol("eta_1", "client_lr in the first round", STEP, "first_step", positive=True)
eta_s = symbol("eta_s", "server_lr", PURE, "server_lr", positive=True)
decay = symbol("r", "eta_t is of order t^(-r)", PURE, "step_decay", nonnegative=True)
tv_start = symbol(
    "tv_1",
    "total variation distance between the distribution of the first round and the stationary "
    "distribution",
    PURE,
    "start_distance",
    nonnegative=True,
)
r_opt = symbol(
    "r_opt",
    "largest distance of the w_k* from the centre of W",
    LENGTH,
    "reach_of_optima",
    nonnegative=True,
)
r_0 = symbol(
    "r_0", "distance of w_{0,0} from the centre of W", LENGTH, "reach_of_start", nonnegative=True
)
S_1 = symbol("S_1", "sum over t = 1 .. T of eta_t", STEP, "step_sum", positive=True)
S_2 = symbol("S_2", "sum over t >= 1 of eta_t^2", STEP**2, "step_square_sum", positive=True)
S_0 = symbol("S_0", "sum over t >= 1 of 1/t^2", PURE, "inverse_square_sum", positive=True)
Y_1 = symbol(
    "Y_1", "sum over t >= 1 of eta_{t-J_t}^2", STEP**2, "delayed_square_sum", positive=True
)
Y_0 = symbol(
    "Y_0", "sum over t >= 1 of ln(t) eta_{t-J_t}^2", STEP**2, "delayed_log_sum", nonnegative=True
)
S_2T = symbol("S_2T", "sum over t = 1 .. T of eta_t^2", STEP**2, "run_square_sum", positive=True)
V_T = symbol(
    "V_T",
    "sum of eta_t C_P lambda(P)^J_t over t = 1 .. T where J_t < t - 1",
    STEP,
    "run_unmixed_sum",
    nonnegative=True,
)
J_T = symbol(
    "J_T",
    "sum over t = 1 .. T of J_t eta_{t-J_t}^2, where J_t is the smallest integer j with 2 C_P H t "
    "lambda(P)^j <= 1, but at least T_P and at most t - 1",
    STEP**2,
    "run_delay_sum",
    nonnegative=True,
)
theta = symbol(
    "theta",
    "theta*, the multiplier of the constraint ||y||_1 = Q s in (26), at the optimum",
    LENGTH**2,
    "weight_multiplier",
    real=True,
)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
q_least = symbol("q_min", "the smallest aggregation weight", PURE, "least_weight", nonnegative=True)
sigma_least = symbol(
    "sigma_min",
    "the smallest of the clients' sigma_k",
    GRADIENT,
    "least_sigma",
    nonnegative=True,
)
F_B = symbol(
    "F_B",
    "sum_k p_k F_k with p_k = pi_k q_k/sum_h pi_h q_h; its minimiser is w_B*",
    LOSS,
    real=True,
)
lambda_of_chain = symbol(
    "lambda",
    "lambda(P) = (lambda_2(P) + 1)/2, where lambda_2 is the chain's second eigenvalue",
    PURE,
    real=True,
)
pi = symbol("pi", "availability, one number per client", PURE, real=True)
alpha = symbol("alpha", "target importance, one number per client", PURE, real=True)
q = symbol("q", "aggregation weights, one number per client; q* minimises (12)", PURE, real=True)
p = symbol("p", "biased importance, p_k = pi_k q_k/sum_h pi_h q_h", PURE, real=True)
chi = symbol("chi", "chi^2 = sum_k (alpha_k - p_k)^2/p_k", PURE, real=True)
nu = symbol(
    "nu",
    "nu_k = alpha_k^2/p_k, divided by their sum; <d, e> = sum_k d_k e_k/nu_k, |d|^2 = <d, d>",
    PURE,
    real=True,
)

C_P_cited = symbol(
    "C_P",
    "from [14], Lemma 1, quoted from memory: (sum_{i >= 2} n_i^2)^(1/2) ||U||_F ||U^-1||_F over "
    "the chain's Jordan blocks, whose sizes are n_i",
    PURE,
    "cited_chain_factor",
    positive=True,
)
T_P_cited = symbol(
    "T_P",
    "from [14]: 0 for a chain that is diagonalisable",
    PURE,
    "chain_onset",
    nonnegative=True,
    integer=True,
)
Y_1_cited = symbol(
    "Y_1", "sum over t >= 1 of eta_{t-J_t}^2", STEP**2, "cited_delayed_square_sum", positive=True
)
Y_0_cited = symbol(
    "Y_0",
    "sum over t >= 1 of ln(t) eta_{t-J_t}^2",
    STEP**2,
    "cited_delayed_log_sum",
    nonnegative=True,
)


# ------------------------------------------------------------ the theorems

PAPER = "CA-Fed (arXiv 2301.04632, later version)"
# Some dozens of operations on each of the d + N input numbers (`condition` counts these).

HALF = sp.Rational(1, 2)


def of_ca_fed(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if it is not one of CA-Fed's."""
    if not view_of(setting).averaging.averages:
        raise ValueError(MUST_BE.format(repr(setting.algorithm)))
    return setting


def _least_sums(setting: Setting) -> StepSums:
    of = view_of(setting).averaging
    return of.endless(of.participation.cited_factor.at_least)


# A C_P below that of [14] for every eigenbasis, and the sums that are computed with it.
_LEAST_CITED = {
    C_P: symbol(
        "C_P",
        number=lambda setting: view_of(setting).averaging.participation.cited_factor.at_least,
        real=True,
    ),
    Y_1: symbol("Y_1", number=lambda setting: _least_sums(setting).delayed, real=True),
    Y_0: symbol("Y_0", number=lambda setting: _least_sums(setting).delayed_logs, real=True),
}


def _excess_with_one_kappa(setting: Setting) -> Any:
    of = view_of(setting).averaging
    return number(of.objective.excess_loss(of.tightest_point(_factor(of, 1))))


_EXCESS_WITH_ONE_KAPPA = symbol(
    "e_B",
    "F_B(w) - F_B* with F_B = sum_k p_k F_k, at the w where the bound is tightest",
    LOSS,
    _excess_with_one_kappa,
    nonnegative=True,
)


def _factor(s: ProjectedAveraging, kappas: int) -> float:
    return 2 * (s.problem.L / s.problem.mu) ** kappas


def _excess_at_tightest_point(setting: Setting, kappas: int = 2) -> tuple[float, float]:
    """Return ``F(w) - F*``, and an estimate of its rounding error.

    The rounding of w itself matters if ``w - w*`` is only rounding error, as it is if p is alpha.
    """
    s = view_of(setting).averaging
    value = number(s.problem.excess_loss(s.tightest_point(_factor(s, kappas))))
    if is_exact(value):
        return value, 0.0
    condition = s.problem.L / s.problem.mu * (s.problem.dim + s.problem.n_clients)
    spread = largest_norm(s.problem.optima - s.problem.x_star)
    of_w = s.problem.L * (ROUNDINGS * condition * spread) ** 2
    return value, ROUNDINGS * condition * value + of_w


def _looseness(bias: Callable[[ProjectedAveraging], float], kappas: int = 2) -> Looseness:
    """Return a function for the largest truth/bound over W; ``bias`` is without powers of kappa."""

    def largest_ratio(setting: Setting) -> float:
        s = view_of(setting).averaging
        factor = _factor(s, kappas)
        return s.largest_ratio(factor, factor * float(s.problem.L / s.problem.mu) ** 2 * bias(s))

    return Looseness("W", largest_ratio)


def _bias_in_chi_square(s: ProjectedAveraging) -> float:
    return float(s.chi_square) * float(s.problem.Gamma)


def _bias_in_total_variation(s: ProjectedAveraging) -> float:
    return 4 * float(s.total_variation) ** 2 * float(s.Gamma_B)


def _observe_biased_excess(setting: Setting) -> Sequence[Observable]:
    return (BiasedExcessLoss(tuple(view_of(setting).averaging.p.tolist())),)


INTERIOR = Hypothesis("minimisers inside W", sp.Lt(r_min, rho, evaluate=False), "Assumption 2")
SMOOTH = Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 3")
CONVEX = Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Assumption 4")
_STARTS_IN_W = Hypothesis("initial model in W", sp.Le(r_0, rho), "Section II")
_DIVERGENT = Hypothesis("steps that sum to infinity", sp.Le(decay, 1), "(11)")
_SUMMABLE = Hypothesis("summable squared steps, times ln(t)", sp.Gt(decay, HALF), "(11)")
_LONG_ENOUGH = Hypothesis("rounds beyond T_P", sp.Ge(T, T_P), "Theorem 2")

_ONE_IN_VAIN = (
    "At kappa = 1, the bound is attained in the limit (regime 'nearly attained'). For larger "
    "kappa, steps (a) and (b) lose a factor kappa in both terms; see the reading 'sharper'."
)
_OPTIMIZATION = as_printed(lambda: 2 * kappa**2 * excess_B)

THEOREM_1 = PointClaim(
    id="ca-fed/1",
    title="The total error is at most an optimization error and a bias in chi-square",
    source=f"{PAPER}, Theorem 1",
    quantity=PointQuantity(
        _excess_at_tightest_point,
        "F(w) - F* at the w where the bound is tightest",
        LOSS,
        "F(w)-F^*",
        certified="tightest_excess",
        looseness=_looseness(_bias_in_chi_square),
    ),
    bound=as_printed(lambda: _OPTIMIZATION + 2 * kappa**4 * chi2 * Gamma),
    hypotheses=(INTERIOR, SMOOTH, CONVEX),
    domain=of_ca_fed,
    definitions={kappa: L / mu},
    derivation=written_in("fltheory.theorems.ca_fed.proof", "THEOREM_1"),
    regimes=regimes.DECOMPOSITION,
    note=(
        "Checked to the letter; the proof gives the same. Step (b) needs grad F(w*) = 0 and "
        "step (f) needs grad F_k(w_k*) = 0; the proof names the second condition in both places. "
        f"{_ONE_IN_VAIN}"
    ),
)

THEOREM_3 = replace(
    THEOREM_1,
    id="ca-fed/3",
    title="The total error is at most an optimization error and a bias in total variation",
    source=f"{PAPER}, Theorem 3",
    quantity=replace(THEOREM_1.quantity, looseness=_looseness(_bias_in_total_variation)),
    bound=as_printed(lambda: _OPTIMIZATION + 8 * kappa**4 * d_TV**2 * Gamma_B),
    derivation=written_in("fltheory.theorems.ca_fed.proof", "THEOREM_3"),
    note=f"Checked to the letter; the proof gives the same. {_ONE_IN_VAIN}",
)


def _sharper(
    theorem: PointClaim, bias: Callable[[ProjectedAveraging], float], bound: sp.Expr, name: str
) -> PointClaim:
    quantity = replace(
        theorem.quantity,
        value=partial(_excess_at_tightest_point, kappas=1),
        certified="",
        looseness=_looseness(bias, kappas=1),
    )
    return replace(
        theorem,
        reading="sharper",
        quantity=quantity,
        bound=bound,
        read_as={excess_B: _EXCESS_WITH_ONE_KAPPA},
        derivation=written_in("fltheory.theorems.ca_fed.proof", name),
        note=(
            "Both terms lose one factor of kappa, under the same assumptions. Steps (a) and (b) "
            "go from F(w) - F* to ||grad F(w)||^2 and back to ||w - w*||^2, which costs a factor "
            "L^2/(2 mu); using smoothness directly costs only L/2. The kappa of step (g) cannot "
            "be saved in this way: 2 L (F_k - F_k*) bounds ||grad F_k||^2 only if F_k is smooth "
            "beyond W."
        ),
    )


THEOREM_1_SHARPER = _sharper(
    THEOREM_1,
    _bias_in_chi_square,
    as_printed(lambda: 2 * kappa * excess_B + 2 * kappa**3 * chi2 * Gamma),
    "THEOREM_1_SHARPER",
)
THEOREM_3_SHARPER = _sharper(
    THEOREM_3,
    _bias_in_total_variation,
    as_printed(lambda: 2 * kappa * excess_B + 8 * kappa**3 * d_TV**2 * Gamma_B),
    "THEOREM_3_SHARPER",
)


_PSI_OF_DRIFT = as_printed(lambda: sp.Rational(2, 3) * (E - 1) * (2 * E - 1) * G**2)
_LETTERS = (F_B, lambda_of_chain, D_B, r_opt, H, Gamma)
_DEFINITIONS = {
    upsilon: printed_upsilon(E, M, Q, D_0, S_2, S_0),
    psi: 4 * L * (E * Q + 2) * Gamma * S_2 + _PSI_OF_DRIFT * S_2,
    phi: 2 * E * D * G * Q * (sp.log(2 * C_P * H) * Y_1 + Y_0),
}

THEOREM_2 = Theorem(
    id="ca-fed/2",
    title="Weighted averaging under Markov availability: the biased objective's error",
    source=f"{PAPER}, Theorem 2",
    quantity=BoundedQuantity(
        "biased_excess_loss",
        "last",
        RoundRange(0, 0),
        "E[F_B(wbar_T) - F_B*]",
        r"\mathbb E[F_B(\bar w_{T,0})-F_B^*]",
        LOSS,
    ),
    bound=as_printed(
        lambda: ((HALF * N_q * S_2 + upsilon) / pi_q + psi + phi / sp.log(1 / lambda_P)) / S_1
    ),
    hypotheses=(
        INTERIOR,
        SMOOTH,
        CONVEX,
        _STARTS_IN_W,
        _DIVERGENT,
        _SUMMABLE,
        _LONG_ENOUGH,
    ),
    domain=of_ca_fed,
    read_as={C_P: C_P_cited, T_P: T_P_cited, Y_1: Y_1_cited, Y_0: Y_0_cited},
    tightest=_LEAST_CITED,
    symbols=_LETTERS,
    definitions=_DEFINITIONS,
    observe=_observe_biased_excess,
    derivation=written_in("fltheory.theorems.ca_fed.proof", "PRINTED"),
    regimes=regimes.THEOREM_2,
    note=(
        "Checked to the letter. The statement differs from the proof as follows: upsilon contains "
        "w* where the proof has w_B*; any server step size and any initial distribution of the "
        "chain are allowed; there is no limit on eta_t; the factors are 1/2 in front of q'Sigma q "
        "and 4L(EQ+2) where Lemma 2 has 2 and 2L(EQ+2); and ln(2 C_P H t), which may be negative, "
        "stands where Lemma 3 has J_t ln(1/lambda). Sums without limits run over all t >= 1. C_P "
        "and T_P are those of [14], Lemma 1. We did not have that text and quote the formula from "
        "memory. The formula does not say which eigenbasis of the chain to take. To refute, we "
        "take the product of the clients' eigenbases, in closed form. To confirm, we take a C_P "
        "that is smaller than that of any eigenbasis."
    ),
)

THEOREM_2_ANY_FACTOR = replace(
    THEOREM_2,
    reading="any C_P",
    read_as={},
    tightest={},
    derivation=None,
    note=(
        "This reading claims more than is printed: it allows any C_P and T_P that satisfy (5), "
        "not only those of [14]. Smaller values are known: sum_k max(pi_k, 1 - pi_k) and 0 for "
        "independent clients. They make the bound smaller, so a refutation of this reading says "
        "nothing about the printed bound. All else is as printed."
    ),
)

THEOREM_2_DERIVED = replace(
    THEOREM_2_ANY_FACTOR,
    reading="derived",
    bound=as_printed(
        lambda: (
            (
                (2 * N_q * S_2T + 2 / E * D_B**2 + 4 * M * Q * H * V_T) / pi_q
                + 4 * L * (E * Q + 2) * Gamma * S_2T
                + _PSI_OF_DRIFT * S_2T
                + 8 * E * D * G * Q * J_T
            )
            / S_1
        )
    ),
    hypotheses=(
        INTERIOR,
        SMOOTH,
        CONVEX,
        _STARTS_IN_W,
        _LONG_ENOUGH,
        Hypothesis("small steps", sp.Le(eta_1, 1 / (2 * L * (E * Q + 1))), "Lemma 2"),
        Hypothesis(
            "steps that do not increase", sp.Ge(decay, 0, evaluate=False), "(e) of Lemma 3's proof"
        ),
        Hypothesis("no server step size", sp.Eq(eta_s, 1), "(20)"),
        Hypothesis("stationary start", sp.Eq(tv_start, 0), "Lemma 2: E 1(k in A_t) = pi_k"),
        Hypothesis(
            "local models stay in W, apart from noise",
            sp.Ge(rho, L / mu * r_opt),
            "(7) at w_{t,j}^k",
        ),
        Hypothesis(
            "no noise between local steps",
            as_printed(lambda: sp.Eq((E - 1) * sigma, 0, evaluate=False)),
            "(7) at w_{t,j}^k",
        ),
    ),
    definitions={},
    derivation=written_in("fltheory.theorems.ca_fed.proof", "DERIVED"),
    note=(
        "This is what Lemmas 2 and 3 and Steps 1 and 2 give: w_B* from Lemma 2 on, J_t itself, "
        "and H times the distance from stationarity, which (23) replaces by 1/(2t). The last step "
        "of Lemma 2 replaces the factor gamma_t (1 - eta_t L) by eta_t/2 in front of a sum over "
        "A_t that may be negative. This reading keeps the factor through both steps, until it "
        "stands in front of F_B - F_B*, which is never negative. That costs a factor 4 in the "
        "terms of M and of J_t. Sums end at T, as in the proof. Gamma is correct as printed, even "
        "though Lemma 2 has the clients' losses at w_B*. Their mean weighted by p is smallest at "
        "w_B*, so it is at most Gamma. Gamma' may be larger. The proof also uses (7) at local "
        "models, which noise may drive out of W if there are several local steps."
    ),
)

_WRONG_MINIMISER = Refutation(
    "In upsilon of (12), ||w_0 - w*|| has w* where Lemma 2 and Step 1 of the proof have w_B*, the "
    "minimiser of F_B.",
    Weight.MISPRINT,
    "w_B* in place of w* in upsilon",
    "derived",
    ("started at the optimum",),
    ("ca-fed-2-start.json",),
    answer="A slip: the proof has w_B* throughout.",
)
_NO_SERVER_STEP = Refutation(
    "(20) has no server step size, so the proof covers only eta_s = 1. With a small eta_s, the "
    "model hardly moves, but the bound still falls, because it does not contain eta_s.",
    Weight.MISSING_HYPOTHESIS,
    "eta_s = 1",
    "derived",
    ("small server step",),
    ("ca-fed-2-server-step.json",),
    answer="The analysis takes eta_s = 1; a server step size can be absorbed into eta_t.",
)
_NEGATIVE_LOGARITHM = Refutation(
    "Below (12), ln(2 C_P H t) stands where Lemma 3 has J_t ln(1/lambda). If losses are measured "
    "in a large unit, this logarithm is negative for the smallest H that (8) allows.",
    Weight.MISPRINT,
    "J_t in place of the logarithm, or an H of at least 1/(2 C_P), which (8) also allows",
    "derived",
    (),
    ("ca-fed-2-units.json",),
    answer="H can be any upper bound in (8); it can be chosen so large that the logarithm is "
    "positive.",
)
_FAULTS_WITH_ANY_FACTOR = (
    replace(_WRONG_MINIMISER, certificates=("ca-fed-2-any-start.json",)),
    replace(_NO_SERVER_STEP, certificates=("ca-fed-2-any-server-step.json",)),
    replace(
        _NEGATIVE_LOGARITHM,
        regimes=("other units",),
        certificates=("ca-fed-2-any-units.json",),
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    THEOREM_1,
    THEOREM_1_SHARPER,
    replace(THEOREM_2, refutations=(_WRONG_MINIMISER, _NO_SERVER_STEP, _NEGATIVE_LOGARITHM)),
    replace(THEOREM_2_ANY_FACTOR, refutations=_FAULTS_WITH_ANY_FACTOR),
    THEOREM_2_DERIVED,
    THEOREM_3,
    THEOREM_3_SHARPER,
)
