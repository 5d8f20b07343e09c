"""CA-Fed's symbols: what each stands for, and its unit."""

from __future__ import annotations

import sympy as sp

from fltheory.grammar.units import LENGTH, LOSS, PURE

L = sp.Symbol("L", positive=True)
mu = sp.Symbol("mu", positive=True)
kappa = sp.Symbol("kappa", positive=True)
chi2 = sp.Symbol("chi2", nonnegative=True)
d_TV = sp.Symbol("d_TV", nonnegative=True)
Gamma = sp.Symbol("Gamma", nonnegative=True)
Gamma_B = sp.Symbol("Gamma_B", nonnegative=True)
excess_B = sp.Symbol("e_B", nonnegative=True)
r_min = sp.Symbol("r_min", nonnegative=True)
r_opt = sp.Symbol("r_opt", nonnegative=True)
r_0 = sp.Symbol("r_0", nonnegative=True)
rho = sp.Symbol("rho", positive=True)

E = sp.Symbol("E", positive=True, integer=True)
N = sp.Symbol("N", positive=True, integer=True)
M = sp.Symbol("M", positive=True, integer=True)
T = sp.Symbol("T", positive=True, integer=True)
T_P = sp.Symbol("T_P", nonnegative=True, integer=True)
C_P = sp.Symbol("C_P", positive=True)
lambda_P = sp.Symbol("lambda_P", positive=True)
D = sp.Symbol("D", nonnegative=True)
G = sp.Symbol("G", nonnegative=True)
H = sp.Symbol("H", positive=True)
Q = sp.Symbol("Q", positive=True)
pi_q = sp.Symbol("pi_q", positive=True)
N_q = sp.Symbol("N_q", nonnegative=True)
D_0 = sp.Symbol("D_0", nonnegative=True)
D_B = sp.Symbol("D_B", nonnegative=True)
eta_1 = sp.Symbol("eta_1", positive=True)
eta_s = sp.Symbol("eta_s", positive=True)
decay = sp.Symbol("r", nonnegative=True)
tv_start = sp.Symbol("tv_1", nonnegative=True)
S_1 = sp.Symbol("S_1", positive=True)
S_2 = sp.Symbol("S_2", positive=True)
S_0 = sp.Symbol("S_0", positive=True)
Y_0 = sp.Symbol("Y_0", nonnegative=True)
Y_1 = sp.Symbol("Y_1", positive=True)
S_2T = sp.Symbol("S_2T", positive=True)
V_T = sp.Symbol("V_T", nonnegative=True)
J_T = sp.Symbol("J_T", nonnegative=True)
upsilon = sp.Symbol("upsilon", nonnegative=True)
psi = sp.Symbol("psi", nonnegative=True)
phi = sp.Symbol("phi", real=True)

sigma = sp.Symbol("sigma", nonnegative=True)
sigma_least = sp.Symbol("sigma_min", nonnegative=True)
theta = sp.Symbol("theta", real=True)
q_least = sp.Symbol("q_min", nonnegative=True)

MEANINGS_OF_DECOMPOSITION = {
    L: "smoothness of every client",
    mu: "strong convexity of every client",
    chi2: "sum_k (alpha_k - p_k)^2/p_k, p_k = pi_k q_k/(pi'q)",
    d_TV: "1/2 sum_k |alpha_k - p_k|",
    Gamma: "max_k F_k(w*) - F_k*",
    Gamma_B: "Gamma', max_k F_k(w_B*) - F_k*",
    excess_B: "F_B(w) - F_B*, F_B = sum_k p_k F_k, at the w where the bound is tightest",
    r_min: "farthest of w*, w_B*, w_k* from the centre of W",
    rho: "radius of W, a ball",
}

MEANINGS_OF_CONVERGENCE = {
    L: "smoothness of every client",
    mu: "strong convexity of every client",
    E: "local_steps",
    T: "rounds; w_t is the model before round t = 1 .. T, w_1 = w_{0,0}",
    M: "states of the chain",
    lambda_P: "lambda(P) = (lambda_2(P) + 1)/2",
    C_P: "|[P^t]_ij - pi_j| <= C_P lambda(P)^t for t >= T_P, any such number",
    T_P: "whole number of (5), see C_P",
    D: "sup over W and k of ||grad F_k||",
    sigma: "clients' gradient noise, E||noise||^2 <= sigma^2",
    G: "sqrt(D^2 + sigma^2)",
    H: "sup over W and k of |F_k(w) - F_k(w_B*)|",
    Gamma: "max_k F_k(w*) - F_k*",
    Gamma_B: "Gamma', max_k F_k(w_B*) - F_k*",
    Q: "sum_k q_k",
    pi_q: "pi'q",
    N_q: "sum_k pi_k q_k^2 sigma_k^2, so that q'Sigma q = N_q sum_t eta_t^2",
    D_0: "||w_{0,0} - w*||",
    D_B: "||w_{0,0} - w_B*||",
    sp.Symbol("F_B"): "sum_k p_k F_k, p_k = pi_k q_k/sum_h pi_h q_h, least at w_B*",
    sp.Symbol("lambda"): "lambda(P) = (lambda_2(P) + 1)/2, of the chain's second eigenvalue",
    eta_1: "client_lr in the first round",
    eta_s: "server_lr",
    decay: "eta_t is of order t^-r",
    tv_start: "total variation between the first round's law and the stationary one",
    r_min: "farthest of w*, w_B*, w_k* from the centre of W",
    r_opt: "farthest of w_k* from the centre of W",
    r_0: "distance of w_{0,0} from the centre of W",
    rho: "radius of W, a ball",
    S_1: "sum over t = 1 .. T of eta_t",
    S_2: "sum over t >= 1 of eta_t^2",
    S_0: "sum over t >= 1 of 1/t^2",
    Y_1: "sum over t >= 1 of eta_{t-J_t}^2",
    Y_0: "sum over t >= 1 of ln(t) eta_{t-J_t}^2",
    S_2T: "sum over t = 1 .. T of eta_t^2",
    V_T: "sum of eta_t C_P lambda(P)^J_t over t = 1 .. T where J_t < t - 1",
    J_T: (
        "sum over t = 1 .. T of J_t eta_{t-J_t}^2, where J_t is the least whole number j with "
        "2 C_P H t lambda(P)^j <= 1, but from T_P to t - 1"
    ),
}

MEANINGS_OF_WEIGHTS = {
    sigma: "clients' gradient noise, E||noise||^2 <= sigma^2",
    theta: "theta*, the multiplier of ||y||_1 = Q s in (26), at the optimum",
    N: "clients",
    q_least: "the smallest aggregation weight",
    sigma_least: "the smallest of the clients' sigma_k; here all have one",
    sp.Symbol("pi"): "availability, a number for each client",
    sp.Symbol("alpha"): "target importance, a number for each client",
    sp.Symbol("q"): "aggregation weights, a number for each client; q* where (12) is smallest",
    Q: "sum_k q_k",
    sp.Symbol("p"): "biased importance, p_k = pi_k q_k/sum_h pi_h q_h",
    sp.Symbol("chi"): "chi^2 = sum_k (alpha_k - p_k)^2/p_k",
    sp.Symbol("nu"): (
        "nu_k = alpha_k^2/p_k, divided by their sum; <d, e> = sum_k d_k e_k/nu_k, |d|^2 = <d, d>"
    ),
}

_GRADIENT = LOSS / LENGTH
_STEP = LENGTH**2 / LOSS

UNITS = {
    L: LOSS / LENGTH**2,
    mu: LOSS / LENGTH**2,
    kappa: PURE,
    chi2: PURE,
    d_TV: PURE,
    Gamma: LOSS,
    Gamma_B: LOSS,
    excess_B: LOSS,
    r_min: LENGTH,
    r_opt: LENGTH,
    r_0: LENGTH,
    rho: LENGTH,
    E: PURE,
    N: PURE,
    M: PURE,
    T: PURE,
    T_P: PURE,
    C_P: PURE,
    lambda_P: PURE,
    D: _GRADIENT,
    G: _GRADIENT,
    H: LOSS,
    Q: PURE,
    pi_q: PURE,
    N_q: _GRADIENT**2,
    D_0: LENGTH,
    D_B: LENGTH,
    eta_1: _STEP,
    eta_s: PURE,
    decay: PURE,
    tv_start: PURE,
    S_1: _STEP,
    S_2: _STEP**2,
    S_0: PURE,
    Y_0: _STEP**2,
    Y_1: _STEP**2,
    S_2T: _STEP**2,
    V_T: _STEP,
    J_T: _STEP**2,
    upsilon: LENGTH**2,
    psi: LENGTH**2,
    phi: LENGTH**2,
    sigma: _GRADIENT,
    sigma_least: _GRADIENT,
    theta: LENGTH**2,
    q_least: PURE,
}

QUANTITIES = {
    L: "L",
    mu: "mu",
    E: "local_steps",
    N: "n_clients",
    T: "rounds",
    M: "chain_states",
    lambda_P: "chain_rate",
    C_P: "chain_factor",
    T_P: "chain_onset",
    D: "largest_gradient",
    G: "sqrt(largest_gradient**2 + sigma**2)",
    H: "largest_loss_change",
    Gamma: "Gamma",
    Gamma_B: "biased_Gamma",
    Q: "total_weight",
    q_least: "least_weight",
    pi_q: "mean_weight",
    N_q: "sigma**2*mean_squared_weight",
    D_0: "sqrt(squared_distance)",
    D_B: "sqrt(biased_squared_distance)",
    eta_1: "first_step",
    eta_s: "server_lr",
    decay: "step_decay",
    tv_start: "start_distance",
    r_min: "reach_of_minimisers",
    r_opt: "reach_of_optima",
    r_0: "reach_of_start",
    rho: "radius",
    chi2: "chi_square",
    d_TV: "total_variation",
    excess_B: "tightest_biased_excess",
    theta: "weight_multiplier",
    S_0: "inverse_square_sum",
    S_1: "step_sum",
    S_2: "step_square_sum",
    S_2T: "run_square_sum",
    V_T: "run_unmixed_sum",
    J_T: "run_delay_sum",
    Y_0: "delayed_log_sum",
    Y_1: "delayed_square_sum",
    sigma: "sigma",
    sigma_least: "sigma",
}
