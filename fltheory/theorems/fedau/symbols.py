"""FedAU's symbols: what each stands for, and its unit."""

from __future__ import annotations

import sympy as sp

from fltheory.grammar.units import LENGTH, LOSS, PURE

L = sp.Symbol("L", positive=True)
N = sp.Symbol("N", positive=True, integer=True)
I_steps = sp.Symbol("I", positive=True, integer=True)
T = sp.Symbol("T", positive=True, integer=True)
K = sp.Symbol("K", positive=True)
gamma = sp.Symbol("gamma", positive=True)
eta = sp.Symbol("eta", positive=True)
sigma = sp.Symbol("sigma", nonnegative=True)
delta = sp.Symbol("delta", nonnegative=True)
delta_h = sp.Symbol("delta_h", nonnegative=True)
G = sp.Symbol("G", nonnegative=True)
Psi_G = sp.Symbol("Psi_G", nonnegative=True)
F_0 = sp.Symbol("F_0", nonnegative=True)
Q = sp.Symbol("Q", positive=True)
P = sp.Symbol("P", positive=True)
e_max = sp.Symbol("e_max", nonnegative=True)
W = sp.Symbol("W", nonnegative=True)
R_c = sp.Symbol("R", nonnegative=True)
tau = sp.Symbol("tau", nonnegative=True)
s = sp.Symbol("s", positive=True)

b_K = sp.Symbol("b_K", nonnegative=True)
v_1 = sp.Symbol("v_1", nonnegative=True)
v_2 = sp.Symbol("v_2", nonnegative=True)
H_T = sp.Symbol("H_T", nonnegative=True)

start_term = sp.Symbol("A_start", nonnegative=True)
weight_term = sp.Symbol("A_weights", nonnegative=True)
noise_term = sp.Symbol("A_noise", nonnegative=True)
drift_term = sp.Symbol("A_drift", nonnegative=True)

MEANINGS = {
    L: "smoothness of every client",
    N: "clients",
    I_steps: "local_steps",
    T: "rounds; x_0 is the model before the first, omega_t the weights in round t = 0 .. T-1",
    gamma: "client_lr",
    eta: "server_lr",
    sigma: "clients' gradient noise, E||noise||^2 <= sigma^2",
    delta: "sup over clients and points of ||grad F_n - grad f||",
    F_0: "f(x_0) - f*",
    Q: "max over t of 1/N sum_n p_n (omega_t^n)^2, over all that may happen",
    W: "1/(NT) sum over t and n of E[(p_n omega_t^n - 1)^2]",
    e_max: "max over t of 1/N sum_n (p_n omega_t^n - 1)^2, over all that may happen",
    tau: "how far the past can move the probability that a client takes part: 0 for Bernoulli",
}
MEANINGS_OF_TERMS = {
    start_term: "where the run starts",
    weight_term: "the weight error on its own",
    noise_term: "noise and random participation",
    drift_term: "local models' drift",
}
MEANINGS_OF_LIMIT = {
    key: text for key, text in MEANINGS.items() if key not in (delta, F_0, W, e_max, T)
} | {
    P: "sum_n omega_n p_n",
    Q: "1/N sum_n p_n omega_n^2",
    delta_h: "sup over clients and points of ||grad F_n - grad h||",
}
MEANINGS_OF_WEIGHTS = {
    sp.Symbol("p_n"): "a client's probability to take part in a round",
    sp.Symbol("omega_t"): "omega_t^n, FedAU's weight of client n in round t",
    sp.Symbol("S_n"): "rounds from one participation of client n to the next, at most K",
    N: "clients",
    T: "rounds, t = 0 .. T-1",
    K: "cut-off",
    b_K: "1/N sum_n (1 - p_n)^(2K)",
    v_1: "1/N sum_n (1 - p_n)",
    v_2: "1/N sum_n (1 - p_n)^2",
    H_T: "1 + 1/2 + ... + 1/(T-1)",
    tau: MEANINGS[tau],
}

_GRADIENT = LOSS / LENGTH

UNITS = {
    L: LOSS / LENGTH**2,
    N: PURE,
    I_steps: PURE,
    T: PURE,
    K: PURE,
    gamma: LENGTH**2 / LOSS,
    eta: PURE,
    sigma: _GRADIENT,
    delta: _GRADIENT,
    delta_h: _GRADIENT,
    G: _GRADIENT,
    Psi_G: _GRADIENT**2,
    F_0: LOSS,
    Q: PURE,
    P: PURE,
    e_max: PURE,
    W: PURE,
    R_c: PURE,
    tau: PURE,
    s: PURE,
    b_K: PURE,
    v_1: PURE,
    v_2: PURE,
    H_T: PURE,
    start_term: _GRADIENT**2,
    weight_term: _GRADIENT**2,
    noise_term: _GRADIENT**2,
    drift_term: _GRADIENT**2,
}

QUANTITIES = {
    L: "L",
    N: "n_clients",
    I_steps: "local_steps",
    T: "rounds",
    K: "cutoff",
    gamma: "client_lr",
    eta: "server_lr",
    sigma: "sigma",
    delta: "sigma_G",
    F_0: "excess_loss",
    tau: "dependence",
    b_K: "mean_lasting_absence",
    v_1: "mean_absence",
    v_2: "mean_squared_absence",
    H_T: "harmonic_sum",
}
