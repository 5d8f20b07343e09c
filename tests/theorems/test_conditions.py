"""Every hypothesis of every statement, typed again from the papers, with where they have it."""

from __future__ import annotations

import pytest
import sympy as sp
from sympy.core.relational import Equality

from fltheory import theorems
from fltheory.derivations.derivation_check import gap

STATEMENTS = [s for s in theorems.registered() if getattr(s, "hypotheses", ())]
WITH_AXES = [s for s in theorems.registered() if hasattr(s, "axes")]

# Both of Theorem 4's G_1 and G_2 with their factors, over the same with sigma_G.
G_OF_4 = "4*sigma_G**2 - 4*(1/(2*K**2) - 2*L*eta_s**2/K**2)*G_2"
GROWTH = "(1 + 30*L*etabar/mu*(1 + 2*L*etabar/mu))"
N_OF_5 = f"4*etabar/mu**2*{GROWTH}*G_3 - 4/mu*G_4"
D_OF_5 = "(1/(L+mu) - (L+mu)**2*etabar/(4*L**2*mu**2))*G_3"
CONDITIONS = {
    "sa-fl": {
        ("smooth clients", "Assumption 3"): "L < oo",
        ("bounded gradient dissimilarity", "Assumption 5"): "sigma_G < oo",
        ("small client step", "Theorem 4"): "eta_c <= 1/(4*sqrt(30*L*K))",
        ("small client step", "below (46)"): "eta_c <= 1/(2*sqrt(30)*L*K)",
        ("small client step", "local drift, (75)"): "eta_c <= 1/(8*L*K)",
        ("small client step", "local drift, (75), and (78)"): "eta_c <= 1/(16*L*K)",
        ("coupled step sizes", "Theorem 4"): "Eq(eta_c, 2*eta_s/K)",
        ("coupled step sizes", "Theorem 5"): "Eq(K*eta_c*mu/2, 2*L*eta_s*mu/(L + mu))",
        ("few client rounds", "Theorem 4"): f"q <= 1/(1 + ({G_OF_4})/((1 - L*eta_s)*G_1))",
        ("positive denominator in 'few client rounds'", "Theorem 4"): "(1 - L*eta_s)*G_1 > 0",
        ("positive denominator in 'few client rounds'", "Theorem 5"): f"{D_OF_5} > 0",
        ("few client rounds", "(54), in expectation"): (
            "4*q*sigma_G**2 <= (1 - q)*(1 - L*eta_s)*G_1 + q*(2/K**2 - 8*L*eta_s/K**2)*G_2"
        ),
        ("few client rounds", "Theorem 5"): f"q <= 1/(1 + ({N_OF_5})/({D_OF_5}))",
        ("few client rounds", "(81), from (78) and (80)"): (
            f"(16*q*etabar/mu**2*{GROWTH} - (1-q)*(1/(L*mu) - (L+mu)**2*etabar/(4*L**2*mu**2)))*G_3"
            " <= 4*q/mu*G_4"
        ),
        ("few client rounds", "4 q sigma_G^2, (52)"): (
            "q <= 1/sqrt(R)",
            "q <= 1/sqrt(m*K*R)",
        ),
        ("few client rounds", "4 q sigma_G^2/mu^2, (78)"): "q <= log(R)/R",
        ("strongly convex clients", "Theorem 5"): "mu > 0",
        ("small server step", "Theorem 5"): "eta_s <= 2/(L + mu)",
        ("quiet server", "Corollary 1, constant 1"): "sigma_s**2 <= sigma**2/(m*K)",
        ("large enough step", "(85) and (1-x)^R"): "etabar >= log(R)/R",
        (
            "steps of no larger order",
            "the noise's terms in the bound, of the order of the steps",
        ): "etabar <= 10*log(R)/R",
        ("step size of the corollary", "Corollary 1"): "(eta_s*sqrt(R) - 1)**2 <= 1/10**18",
        (
            "step size of the corollary",
            "the earlier version, and 2 Delta_0/(R eta_s)",
        ): "(eta_s*sqrt(R/(m*K)) - 1)**2 <= 1/10**18",
        (
            "share of client rounds of order 1 - 1/(mK)",
            "Corollary 1, constant 1/2",
        ): "q >= (1 - 1/(m*K))/2",
        (
            "few server rounds",
            "Appendix A.1, R_s = O(R/(mK)), constant 1",
        ): "1 - q <= 1/(m*K)",
        (
            "rounds in proportion to (mK)^3",
            "the third term of the bound, R >= (mK)^3 L^2",
        ): "m*K*L*eta_s <= 1",
        (
            "enough server rounds",
            "Appendix A.1, on R_s/R_c",
        ): f"({G_OF_4.replace('eta_s**2', 'eta_s')})/((1 - L*eta_s)*G_1) <= (1 - q)/q",
        ("positive denominator in 'enough server rounds'", "Appendix A.1, on R_s/R_c"): (
            "(1 - L*eta_s)*G_1 > 0",
            "q > 0",
        ),
        (
            "few server rounds",
            "Appendix A.1, on R_s/R_c, c = 1",
        ): "(1 - q)/q <= 1/(m*K*(1 - 1/(m*K)))",
        ("more than one step a round", "for a positive denominator"): "m*K > 1",
        ("the clients alone", "Remark 5"): "Eq(q, 1)",
        ("the clients alone", "Remark 6"): "Eq(q, 1)",
        ("the server alone", "Remark 5"): "Eq(q, 0)",
        ("small server step", "SGD's classic bound"): "eta_s <= 1/L",
    },
    "ca-fed": {
        ("smooth clients", "Assumption 3"): "L < oo",
        ("minimisers inside W", "Assumption 2"): "r_min < rho",
        ("strongly convex clients", "Assumption 4"): "mu > 0",
        ("initial model in W", "Section II"): "r_0 <= rho",
        ("steps that sum to infinity", "(11)"): "r <= 1",
        ("summable squared steps, times ln(t)", "(11)"): "r > 1/2",
        ("rounds beyond T_P", "Theorem 2"): "T >= T_P",
        ("small steps", "Lemma 2"): "eta_1 <= 1/(2*L*(E*Q + 1))",
        ("no server step size", "(20)"): "Eq(eta_s, 1)",
        ("steps that do not increase", "(e) of Lemma 3's proof"): ("r >= 0", "r_eta <= 0"),
        ("stationary start", "Lemma 2: E 1(k in A_t) = pi_k"): "Eq(tv_1, 0)",
        ("local models stay in W, apart from noise", "(7) at w_{t,j}^k"): "rho >= L/mu*r_opt",
        ("no noise between local steps", "(7) at w_{t,j}^k"): "Eq((E - 1)*sigma, 0)",
        ("equal noise of all clients", "(27), sigma_k^2 in A_kk"): "Eq(sigma_min, sigma)",
        ("a unique minimiser", "(27), over A_kk"): "sigma_min > 0",
        ("convex clients", "Lemma 2"): "mu >= 0",
        ("convex clients", "Lemma 3"): "mu >= 0",
        ("stationary start", "E 1(k in A_t) = pi_k"): "Eq(tv_1, 0)",
        ("steps of at most 1/L", "gradient descent"): "eta_1 <= 1/L",
        ("theta* not negative", "(26), (27)"): "theta >= 0",
        ("all clients get weight", "(10)"): "q_min > 0",
        ("two clients", "Appendix E"): "N <= 2",
    },
    "fedau": {
        ("small server steps", "Lemma B.3.3 itself"): "gamma*eta <= 1/(4*L*I)",
        ("one round", "Lemma B.3.3 is about one round"): "Eq(T, 1)",
        ("participation independent of the past", "Assumption 4"): "Eq(tau, 0)",
        ("bounded divergence", "Assumption 3"): ("delta_h < oo", "delta < oo"),
        ("small local steps", "Lemma B.3.3"): "gamma <= 1/(4*sqrt(15)*L*I)",
        ("small local steps", "Theorem 2"): "gamma <= 1/(4*sqrt(15)*L*I)",
        ("small server steps", "Lemma B.3.3 with phi_n = omega_n p_n/P"): (
            "gamma*eta <= Min(N/(4*L*I*P), P/(27*L*I*Q))"
        ),
        ("small server steps", "Theorem 2"): "gamma*eta <= Min(1/(2*L*I), N/(27*L*I*Q))",
        ("small server steps", "Lemma B.3.3"): "gamma*eta <= Min(1/(4*L*I), N/(27*L*I*Q))",
        ("small server steps", "Lemma B.3.3; N/(54LIQ) for a coefficient of -1/16"): (
            "gamma*eta <= Min(1/(4*L*I), N/(54*L*I*Q))"
        ),
        ("nearly optimal weights", "Assumption 5, Option 1"): "e_max <= 1/81",
        ("bounded global gradient", "Assumption 5, Option 2"): "G < oo",
        ("bounded global gradient", "Assumption 5, Option 2, at x_0 .. x_{T-1}"): "G < oo",
        ("two rounds", "Theorem 3"): "T >= 2",
        ("rounds beyond the cut-off", "floor(t/K) >= 1"): "T > K",
    },
    "scaffold": {
        ("smooth clients", "Lemma 15"): "beta < oo",
        ("smooth clients", "Lemma 19"): "beta < oo",
        ("strongly convex clients", "Lemma 15"): "mu > 0",
        ("convex clients", "Lemma 15"): "mu >= 0",
        ("server step of at least one", "Lemma 15"): "eta_g >= 1",
        ("server step of at least one", "Lemma 19"): "eta_g >= 1",
        ("small effective step", "Lemma 15"): "h <= 1/(81*beta)",
        ("small effective step", "Lemma 19"): "h <= (S/N)**(2/3)/(24*beta)",
        ("mu h at most S/(15N)", "Lemma 15"): "mu*h <= S/(15*N)",
        ("clients drawn uniformly", "Algorithm 1"): "Eq(d_U, 0)",
        ("draws independent of each other", "Algorithm 1"): "Eq(m, 0)",
        ("warm start by all clients", "Lemma 19"): "Eq(k, 0)",
        (
            "option I with an additional pass over the local data, or option II",
            "Algorithm 1",
        ): "o >= 2",
        ("controls that average K gradients", "12 h^2 sigma^2/(KS)"): "o >= 2",
        ("controls that average K gradients", "70 beta h sigma^2/(KS)"): "o >= 2",
    },
    "lemmas": {
        ("strongly convex", "Lemma 5"): "mu <= L",
        ("strongly convex clients", "Theorem 5"): "mu > 0",
        ("bounded variance", "Lemma 4"): "s < oo",
        ("bounded noise", "Lemma 4"): "sigma < oo",
        ("steps that do not expand", "eta_c of Theorem 5"): "eta <= 2/L",
        ("small local steps", "below (41)"): "eta <= 1/(8*L*K)",
        ("bounded dissimilarity", "Assumption 5"): "sigma_G < oo",
    },
    "fedar": {
        ("a finite bound", "Assumption 7"): "nu < oo",
        (
            "the bound on inactivity is that of the paper (our copy of the text lacks the formula)",
            "Assumption 7",
        ): "nu <= nu_7",
        ("a schedule, not chance", "Assumption 7"): "Eq(r, 0)",
        ("a bound that the schedule keeps", "Assumption 7"): "ell <= nu",
    },
    "pac": {
        (
            "two concepts agree at one point and differ at another",
            "'non-trivial', Theorem 1",
        ): "Eq(agree, 1)",
        ("one sample per client", "a client is then a sample"): "n <= 1",
        ("a target in Q's support", "below Assumption 2"): "c <= t",
        ("Assumption 1 for P", "Assumption 1"): "alpha_P < oo",
        ("Assumption 1 for Q", "Assumption 1"): "alpha_Q < oo",
        ("Assumption 2 with beta > 0", "Assumption 2"): "beta > 0",
        ("one Q for all n", "Section 3.2: S_Q ~ Q for some Q"): "N_Q <= 1",
        ("alpha does not grow with n", "(15) to (1)"): "g_alpha <= 1/20",
        ("eps_P(h_Q*) = O(A(n_T, delta))", "Theorem 3"): "g_offset <= 1/20",
        ("enough samples", "log(m/d_H) > 0"): "m >= 2*d_H",
        ("no worse on the server's data", "Lemma 2"): "r <= 0",
        ("no noise near the target", "Assumption 1, (23) to (24)"): "Eq(beta_P, 1)",
    },
    "fedavg-li": {
        ("smooth clients", "Assumption 1"): "L < oo",
        ("strongly convex clients", "Assumption 2"): "mu > 0",
        ("bounded gradients", "Assumption 4"): "G < oo",
        ("step sizes 2/(mu (gamma + t))", "Theorem 1"): "Eq(beta, 2/mu)",
        ("offset gamma of the step sizes", "Theorem 1"): (
            "Eq(gamma_0, gamma)",
            "Eq(gamma_0, gamma + 1)",
        ),
        ("averages after every E steps", "Section 2"): "Eq(t_1, E)",
        ("T divisible by E", "Section 3.2"): "Eq(rest, 0)",
        ("averages over all clients with weights p", "Section 3.2"): "Eq(d_0, 1)",
        ("drawn by p, with replacement", "Assumption 5"): "Eq(d_I, 1)",
        ("drawn uniformly, without replacement", "Assumption 6"): "Eq(d_II, 1)",
        ("equal p", "Assumption 6"): "Eq(d_p, 0)",
        ("full batch", "Theorem 4"): "Eq(S, 0)",
        ("more than one local step", "Theorem 4"): "E > 1",
        ("the shift does not cancel to first order", "Theorem 4: a constructed problem"): "v > 0",
        ("small steps", "Theorem 4: small enough"): "eta <= 1/L",
        (
            "first order outweighs second order",
            "Theorem 4: small enough",
        ): "V*eta*(E - 2) <= 3*v/2",
    },
    "local-gd": {
        ("smooth clients", "Assumption 1"): "L < oo",
        ("exact gradients", "Algorithm 1"): "Eq(s, 0)",
        ("equal weights, a constant step", "Algorithm 1"): "Eq(d, 1)",
        ("small steps", "Lemma 1"): "gamma <= 1/(4*L)",
        ("small steps", "above (6)"): "gamma <= 1/(4*L)",
        ("small steps", "Lemma 2"): "gamma <= 1/(4*L*H)",
        ("small steps", "Theorem 1"): "gamma <= 1/(4*L*H)",
        ("averages in the step from t_p", "Algorithm 1"): "Eq(t_1, H + 1)",
        ("averages in the step to t_p", "Lemma 2's V_t at t_p"): "Eq(t_1, H)",
        ("step size", "Corollary 1"): "Eq(gamma, sqrt(M)/(4*L*sqrt(T)))",
        ("few local steps", "Corollary 1"): "H <= sqrt(T)/sqrt(M)",
    },
    "proxskip": {
        ("strongly convex clients", "Assumption 2"): "mu > 0",
        ("small steps", "Theorem 6"): "gamma <= 1/L",
        ("small steps", "gamma <= 1/A"): "gamma <= 1/L",
        ("steps of at most 1/mu", "Theorem 5"): "gamma <= 1/mu",
        ("exact gradients", "Theorem 6"): "Eq(s, 0)",
    },
    "fedprox": {
        ("smooth clients", "Theorem 4"): "L < oo",
        ("mu_bar above 0", "Theorem 4"): "mu_bar > 0",
        ("not stationary", "Theorem 4"): "B < oo",
        ("rho above 0", "Theorem 4"): "rho > 0",
        ("exact gradients", "Definition 2"): "Eq(s, 0)",
        ("one round", "Theorem 4"): "Eq(T, 1)",
    },
    "fednova": {
        ("weights that sum to one", "Assumption 3"): "Eq(W, 1)",
        ("smooth clients", "Assumption 1"): "L < oo",
        ("step size", "Theorem 1"): "Eq(eta, sqrt(m/(tau*T)))",
        ("small steps", "Theorem 1: small enough"): "eta*L*tau_max <= 1",
    },
    "fedawe": {
        ("every client is available at some time", "Assumption 1"): "delta > 0",
        ("smooth clients", "Assumption 2"): "L < oo",
        ("clients that do not differ too much", "Assumption 4"): "beta < oo",
        ("a small product of steps", "Lemma 3"): "eta_l*eta_g <= 9/(100*s*L)",
        ("small local steps", "Lemma 5"): "eta_l <= 1/(4*s*L)",
        ("a small product of steps", "(11)"): (
            "eta_l*eta_g <= (1 - sqrt(rho))*delta"
            "/(80*s*(L + 1)*(sqrt(rho) + 1)*sqrt((beta**2 + 1)*(1 + L**2)))"
        ),
        ("small local steps", "(11)"): ("eta_l <= delta/(200*s*L*sqrt((beta**2 + 1)*(1 + L**2)))"),
        ("a small product of steps", "the end of Theorem 1's proof"): (
            "eta_l*eta_g <= (1 - sqrt(rho))*delta/(80*s*L*(sqrt(rho) + 1)*sqrt(beta**2 + 1))"
        ),
        ("small local steps", "the end of Theorem 1's proof"): (
            "eta_l <= delta/(200*s*L*sqrt(beta**2 + 1))"
        ),
        (
            "no small server steps",
            "the convention at the end of Theorem 1's proof",
        ): "eta_g >= 1",
        ("local step", "Corollary 1"): "Eq(eta_l, 1/(sqrt(T)*s*L))",
        ("server step", "Corollary 1"): "Eq(eta_g, sqrt(s*delta*m))",
    },
    "scaffold-bias": {
        ("strong convexity", "Section 3"): "mu > 0",
        ("smoothness", "Section 3"): "L < oo",
        ("one loss for all", "Section 3"): "Eq(sigma_G, 0)",
        ("everybody takes part", "Section 3"): "Eq(d_0, 1)",
        ("at least two clients", "Section 3"): "N >= 2",
        ("at least two local steps", "Section 3"): "H >= 2",
        ("option II", "Section 3"): "Eq(o, 2)",
        ("a server's factor of one", "Section 3"): "Eq(eta_g, 1)",
        ("bounded noise", "Assumption 3"): "B_e < oo",
    },
}


def typed(text: str, condition) -> sp.Basic:
    """Read a relation, with the condition's own symbols for their names."""
    names = {str(symbol): symbol for symbol in condition.free_symbols}
    return sp.sympify(text, locals=names, evaluate=False)


def same(found, text: str) -> bool:
    expected = typed(text, found)
    if type(found) is not type(expected):
        return False
    if isinstance(found, Equality):
        return {sp.simplify(side) for side in found.args} == {
            sp.simplify(side.doit()) for side in expected.args
        }
    if found.has(sp.oo):
        return bool(found.args == expected.args)
    return bool(sp.simplify(gap(found) - gap(expected).doit()) == 0)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.id} {s.reading}")
def test_hypotheses(statement) -> None:
    check(statement.id, statement.hypotheses)


@pytest.mark.parametrize("statement", WITH_AXES, ids=lambda s: f"{s.id} {s.reading}")
def test_hypotheses_of_orders(statement) -> None:
    for axis in statement.axes:
        check(statement.id, axis.hypotheses)


def check(identifier: str, hypotheses) -> None:
    paper = identifier.partition("/")[0].removesuffix("-submission")
    for hypothesis in hypotheses:
        allowed = CONDITIONS[paper][hypothesis.name, hypothesis.source]
        texts = (allowed,) if isinstance(allowed, str) else allowed
        assert any(same(hypothesis.condition, text) for text in texts), hypothesis.condition
