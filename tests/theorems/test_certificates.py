"""Steps of proofs use up what they are given: nothing is left over but what is worked out here.

A claim weaker than what is given, or a given fact stronger than the paper's, follows as well: the
check of a step notices neither, and what is left over shows both. Where a step fails, what it is
given and what it claims are typed again from the paper.
"""

from __future__ import annotations

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.derivations.derivation import Equal, Implied
from fltheory.derivations.derivation_check import gap
from fltheory.theorems import scaffold
from fltheory.theorems.atlas import local_gd
from fltheory.theorems.atlas.fedavg_li import E
from fltheory.theorems.ca_fed import proof
from fltheory.theorems.ca_fed import statements as ca
from fltheory.theorems.fedau import proof as fedau_proof
from fltheory.theorems.fedau import setting as au
from fltheory.theorems.sa_fl import proof_4, proof_5
from fltheory.theorems.sa_fl.symbols import G_1, G_2, K, L, R, eta_bar, eta_c, eta_s, mu, q, sigma_G

STEPS = [(s, step) for s in theorems.registered() if s.derivation for step in s.derivation.steps]
CERTIFIED = [
    (s, step)
    for s, step in STEPS
    if isinstance(step.claim, Implied) and len(step.claim.multipliers) == len(step.claim.given)
]
root = sp.sqrt(30)
_d, _next, _X, _local, _noise = (
    getattr(proof, name) for name in ("_d", "_next", "_X", "_local", "_noise")
)
eta, t, at_minimiser = proof._eta, proof._time, proof._at_minimiser
per_round = ca.L * eta * (ca.E * ca.Q + 1)
b_t = eta * (1 - per_round) * (1 - ca.L * eta)
of_a_round = (
    2 * ca.L * eta**2 * ca.E * (ca.E * ca.Q + 2) * at_minimiser
    + 2 * _local
    + eta**2 * ca.E * _noise
)
alpha, p, w_0 = proof._alpha_2, proof._p_2, proof._start

# For (78), with kappa = eta_c K L at 1/16: 1 - 8/16 (1 + 15/16 (17/16)) = 1/512. For Lemma 2 of
# Khaled et al., with gamma L H at 1/4: 1/2 - 3/2 5/16 = 1/32. (5) leaves out the last distance.
LEFT = {
    ("sa-fl", "needed in (41)"): (sp.Rational(1, 8) - 1 / (2 * root)) / (L * K),
    ("sa-fl", "needed in (55)"): 1 - 1 / (4 * root),
    ("sa-fl", "needed in (52)"): 1 - 1 / root,
    ("sa-fl", "small server step to etabar <= 1"): 1 - 4 * L * mu / (L + mu) ** 2,
    ("sa-fl", "(84) to (85)"): proof_5.delta_bar * (1 - (1 - (1 - eta_bar) ** R) / eta_bar),
    ("sa-fl", "(85), if (83) adds etabar deltabar"): proof_5.delta_bar * (1 - eta_bar) ** R,
    ("sa-fl", "needed for (78)"): sp.Rational(1, 512),
    ("sa-fl", "(78), terms in G_3 and G_4"): (
        eta_c * K * mu / 2 * (proof_5.e - 2 * sigma_G / mu) ** 2
    ),
    ("ca-fed", "Lemma 2, from w_tj to w_t"): (
        per_round * (_local + 2 * ca.L * eta**2 * ca.E * at_minimiser)
    ),
    ("ca-fed", "Lemma 2 to (12), the start"): (w_0 - alpha) ** 2 - (w_0 - p) ** 2,
    ("ca-fed", "(23) where J_t is cut to t"): 1 / (2 * ca.H * t) - ca.C_P * ca.lambda_P**t,
    ("ca-fed", "(24) to (25)"): ca.M * ca.Q / 4 * (eta - 1 / t) ** 2,
    ("ca-fed", "gamma_t (1 - eta_t L)/2 from below"): b_t - eta / 4,
    ("ca-fed", "gamma_t (1 - eta_t L)/2 from above"): eta - b_t,
    ("local-gd", "Lemma 2, first to second inequality"): local_gd._D / 32,
    ("local-gd", "Lemmas 1 and 2 to (5)"): 2 * local_gd._R / (local_gd.gamma * local_gd.T),
    ("fedau", "printed limits, Option 1: negative, as in Option 2"): -sp.Rational(1, 16),
}


def left_of_one_round(convexity: sp.Expr) -> sp.Expr:
    """Add up what SCAFFOLD's recursions leave of each term of theirs.

    Of the controls h^2 C 9 - 8 - 2/3, of which mu h <= S/(15N) takes 5/15 and leaves 5 - 9/2 of
    N h^3 mu C/S; of the drift (81 - 4 - 9*2) beta^2 h^2 E, of the noise (12 - 1) h^2 sigma^2/K,
    and of the losses (37/81 - 1/25) h e, both over eta_g^2.
    """
    excess, lag, drift = scaffold._excess, scaffold._lag, scaffold._drift
    h, eta_g, n, s = scaffold.h, scaffold.eta_g, scaffold.N, scaffold.S
    controls = convexity * n * h**3 * lag / (2 * s) if convexity != 0 else h**2 * lag / 3
    return (
        controls
        + 59 * scaffold.beta**2 * h**2 * drift
        + 11 * h**2 * scaffold.sigma**2 / (scaffold.K * eta_g**2)
        + (sp.Rational(37, 81) - sp.Rational(1, 25)) * h * excess / eta_g**2
    )


def paper(statement) -> str:
    return statement.id.partition("/")[0].removesuffix("-submission")


def names(cases) -> list[str]:
    return [f"{s.id} {s.reading} {step.label}" for s, step in cases]


@pytest.mark.parametrize(("statement", "step"), CERTIFIED, ids=names(CERTIFIED))
def test_certificates_use_up_what_they_are_given(statement, step) -> None:
    check_what_is_left(statement, step)


def check_what_is_left(statement, step) -> None:
    claim = step.claim
    weighed = zip(claim.multipliers, claim.given, strict=True)
    rest = gap(claim.claimed) - sum(factor * gap(given) for factor, given in weighed)
    if step.label == "recursions to one round":
        convex = statement.id == "scaffold/convex"
        expected = left_of_one_round(sp.Integer(0) if convex else scaffold._convexity)
    else:
        expected = LEFT.get((paper(statement), step.label), sp.Integer(0))
    difference = (rest - expected).xreplace(dict(claim.under))
    assert sp.cancel(sp.together(sp.expand(difference))) == 0


# Under these alone steps are checked; those of a fraction's sign are the statement's own.
L_s, a_1, a_2, b_1, b_2 = L * eta_s, proof_4.a_1, proof_4.a_2, proof_4.b_1, proof_4.b_2
DOMAINS = {
    "sa-fl": {q <= 1, q > 0, mu <= L, eta_bar <= 1, L_s <= 1, 4 * L_s <= 1},
    "ca-fed": {ca.lambda_P < 1, p <= 1, alpha <= 1}
    | {p >= sp.Rational(1, 2), alpha >= sp.Rational(1, 2)},
    "fedau": set(),
    "scaffold": set(),
    "fedavg-li": {sp.Ge(E, 1, evaluate=False)},
    "scaffold-bias": set(),
    "local-gd": set(),
}


@pytest.mark.parametrize(("statement", "step"), STEPS, ids=names(STEPS))
def test_where_steps_are_claimed(statement, step) -> None:
    check_domain(statement, step)


def check_domain(statement, step) -> None:
    domain = set(getattr(step.claim, "domain", ()))
    if step.label.startswith("clearing the fraction"):
        domain = {relation for relation in domain if relation.rhs != 0}
    assert domain <= DOMAINS[paper(statement)]


GIVEN = {
    "(55) to (54)": {
        8 * sigma_G**2
        <= 2 * (1 - L_s) * sp.Max(a_1, a_2) + (4 - 16 * L_s) / K**2 * sp.Max(b_1, b_2)
    },
    "telescoping": {proof_4.F_min <= F for F in (proof_4.F_0, proof_4.F_1, proof_4.F_after)},
    "Lemma 3 to (12), J_t": {proof._delay <= proof._wanted + 1},
    "needed in Lemma B.3.3": {
        au.gamma * au.eta <= 1 / (2 * au.L * au.I_steps),
        au.gamma * au.eta <= au.N / (27 * au.L * au.I_steps * au.Q),
    },
    "bias at K = log_c T": {au.T >= 2},
    "Lemma 2, the factor eta_t/2": {_next <= _d - 2 * b_t * ca.E * _X + of_a_round},
}
CLAIMED = {
    "(55) to (54)": (
        8 * sigma_G**2 <= (1 - L_s) * (a_1 + a_2) + (2 - 8 * L_s) / K**2 * (b_1 + b_2)
    ),
    "Lemma 2, the factor eta_t/2": _next <= _d - eta / 2 * ca.E * _X + of_a_round,
    "bias at K = log_c T": fedau_proof._log_c_T**2 / au.T >= 1 / au.T,
}
FAILING = [
    (s, step)
    for s, step in STEPS
    if s.reading == "printed"
    and step.label in {*GIVEN, *CLAIMED}
    and isinstance(step.claim, Implied)
    and not step.claim.multipliers
]


@pytest.mark.parametrize(("statement", "step"), FAILING, ids=names(FAILING))
def test_steps_that_fail_are_given_and_claim_what_is_printed(statement, step) -> None:
    given = GIVEN.get(step.label)
    if given is not None:
        assert len(step.claim.given) == len(given)
        for relation in step.claim.given:
            assert any(equal(relation, one) for one in given), relation
    if step.label in CLAIMED:
        assert equal(step.claim.claimed, CLAIMED[step.label])


def equal(relation, other) -> bool:
    return sp.simplify(sp.expand(gap(relation) - gap(other))) == 0


# What Lemma 2 and Steps 1 and 2 of CA-Fed's proof have, and what (12) has; FedAU's last term.
of_gamma = ca.L * (ca.E * ca.Q + 2)
drift = sp.Rational(2, 3) * (ca.E - 1) * (2 * ca.E - 1) * ca.G**2
start, cut = 2 / ca.E * ca.D_0**2, ca.M * ca.Q * (ca.S_2 + ca.S_0) / 4
DIFFERING = {
    "Lemma 2 to (12), noise": (2 * ca.N_q * ca.S_2, ca.N_q * ca.S_2 / 2),
    "Lemma 2, Gamma": (4 * of_gamma, 2 * of_gamma),
    "Steps 1 and 2 to (12)": (
        (2 / ca.E * ca.D_B**2 + 2 * ca.N_q * ca.S_2 + cut) / ca.pi_q
        + (drift + 2 * of_gamma * ca.Gamma) * ca.S_2,
        (ca.N_q * ca.S_2 / 2 + start + cut) / ca.pi_q + (4 * of_gamma * ca.Gamma + drift) * ca.S_2,
    ),
    "drift at gamma = 1/(L I sqrt(T))": (
        au.gamma**2 * au.L**2 * au.I_steps * (au.I_steps * au.delta**2 + au.sigma**2),
        (au.delta**2 + au.sigma**2 / au.T) / au.T,
    ),
}


@pytest.mark.parametrize("label", DIFFERING)
def test_sides_that_differ_are_those_of_the_papers(label: str) -> None:
    (claim,) = (step.claim for s, step in STEPS if s.reading == "printed" and step.label == label)
    assert isinstance(claim, Equal)
    for side, expected in zip((claim.left, claim.right), DIFFERING[label], strict=True):
        assert sp.expand(side - expected) == 0


# Steps and rounds in terms of each other, as the theorems couple them.
SUBSTITUTIONS = {
    "sa-fl": {
        eta_c: {2 * eta_bar / (K * mu), 4 * eta_s * L / (K * (L + mu)), 2 * eta_s / K},
        eta_s: {(L + mu) * eta_bar / (2 * L * mu)},
        eta_bar: {2 * eta_s * L * mu / (L + mu)},
        proof_4.R_s: {(1 - q) * R},
        proof_4.R_c: {q * R},
        proof_4.S_s: {(1 - q) * R * G_1},
        proof_4.S_c: {q * R * G_2},
    },
    "ca-fed": {
        ca.kappa: {ca.L / ca.mu},
        eta: {1 / (2 * ca.L * (ca.E * ca.Q + 1) * (1 + proof._slack))},
    },
    "fedau": {
        au.gamma: {1 / (au.L * au.I_steps * sp.sqrt(au.T))},
        **{getattr(fedau_proof, name): {sp.Integer(1)} for name in ("_u", "_v", "_w")},
    },
    "local-gd": {local_gd.gamma: {sp.sqrt(local_gd.M / local_gd.T) / (4 * local_gd.L)}},
}


@pytest.mark.parametrize(("statement", "step"), STEPS, ids=names(STEPS))
def test_what_is_put_in_for_symbols(statement, step) -> None:
    check_substitutions(statement, step)


def check_substitutions(statement, step) -> None:
    for symbol, value in getattr(step.claim, "under", {}).items():
        allowed = SUBSTITUTIONS[paper(statement)][symbol]
        assert any(sp.simplify(value - one) == 0 for one in allowed), f"{symbol}: {value}"
