"""CA-Fed's symbols."""

from __future__ import annotations

from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP

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
    "F_B(w) - F_B*, F_B = sum_k p_k F_k, at the w where the bound is tightest",
    LOSS,
    "tightest_biased_excess",
    nonnegative=True,
)
r_min = symbol(
    "r_min",
    "farthest of w*, w_B*, w_k* from the centre of W",
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
    "|[P^t]_ij - pi_j| <= C_P lambda(P)^t for t >= T_P, any such number",
    PURE,
    "chain_factor",
    positive=True,
)
T_P = symbol(
    "T_P", "whole number of (5), see C_P", PURE, "chain_onset", nonnegative=True, integer=True
)
D = symbol("D", "sup over W and k of ||grad F_k||", GRADIENT, "largest_gradient", nonnegative=True)
sigma = symbol(
    "sigma",
    "max_k sigma_k, of the clients' gradient noise, E||noise||^2 <= sigma_k^2",
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
decay = symbol("r", "eta_t is of order t^-r", PURE, "step_decay", nonnegative=True)
tv_start = symbol(
    "tv_1",
    "total variation between the first round's law and the stationary one",
    PURE,
    "start_distance",
    nonnegative=True,
)
r_opt = symbol(
    "r_opt", "farthest of w_k* from the centre of W", LENGTH, "reach_of_optima", nonnegative=True
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
    "sum over t = 1 .. T of J_t eta_{t-J_t}^2, where J_t is the least whole number j with "
    "2 C_P H t lambda(P)^j <= 1, but from T_P to t - 1",
    STEP**2,
    "run_delay_sum",
    nonnegative=True,
)
theta = symbol(
    "theta",
    "theta*, the multiplier of ||y||_1 = Q s in (26), at the optimum",
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
F_B = symbol("F_B", "sum_k p_k F_k, p_k = pi_k q_k/sum_h pi_h q_h, least at w_B*", LOSS, real=True)
lambda_of_chain = symbol(
    "lambda", "lambda(P) = (lambda_2(P) + 1)/2, of the chain's second eigenvalue", PURE, real=True
)
pi = symbol("pi", "availability, a number for each client", PURE, real=True)
alpha = symbol("alpha", "target importance, a number for each client", PURE, real=True)
q = symbol(
    "q", "aggregation weights, a number for each client; q* where (12) is smallest", PURE, real=True
)
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
    "of [14], Lemma 1, by memory: (sum_{i >= 2} n_i^2)^(1/2) ||U||_F ||U^-1||_F over the "
    "chain's Jordan blocks, of sizes n_i",
    PURE,
    "cited_chain_factor",
    positive=True,
)
T_P_cited = symbol(
    "T_P",
    "of [14]: 0 for a chain that is diagonalisable",
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
