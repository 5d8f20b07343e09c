"""SCAFFOLD's symbols: what each stands for, and its unit."""

from __future__ import annotations

import sympy as sp

from fltheory.grammar.units import LENGTH, LOSS, PURE

beta = sp.Symbol("beta", positive=True)
mu = sp.Symbol("mu", real=True)
sigma = sp.Symbol("sigma", nonnegative=True)
eta_l = sp.Symbol("eta_l", positive=True)
eta_g = sp.Symbol("eta_g", positive=True)
h = sp.Symbol("h", positive=True)
K = sp.Symbol("K", positive=True, integer=True)
S = sp.Symbol("S", positive=True)
N = sp.Symbol("N", positive=True, integer=True)
T = sp.Symbol("T", positive=True, integer=True)
W_T = sp.Symbol("W_T", positive=True)
D_0 = sp.Symbol("D_0", nonnegative=True)
C_0 = sp.Symbol("C_0", nonnegative=True)
F_0 = sp.Symbol("F_0", nonnegative=True)
option = sp.Symbol("o", positive=True, integer=True)
cold = sp.Symbol("k", nonnegative=True, integer=True)
unlike = sp.Symbol("d_U", nonnegative=True)
memory = sp.Symbol("m", nonnegative=True, integer=True)

MEANINGS = {
    beta: "smoothness of every client",
    sigma: "clients' gradient noise, E||noise||^2 <= sigma^2",
    h: "effective step K eta_l eta_g",
    eta_l: "client_lr, step size of local SGD",
    eta_g: "server_lr",
    K: "local_steps",
    S: "participants in a round; their expected number where it varies",
    N: "clients",
    T: "rounds, one less where the controls are made in a round of their own",
    unlike: "total variation between a round's participants and a uniform draw of S of N",
    memory: "1 if who takes part depends on earlier rounds, else 0",
}
MEANINGS_OF_CONVEX = {
    **MEANINGS,
    mu: "strong convexity of every client",
    D_0: "||x^0 - x*||",
    C_0: "1/N sum_i ||c_i^0 - grad f_i(x*)||^2, here with c_i^0 = 0",
    option: "1 if a control is a gradient at the server's model, 2 if the mean along the way",
}
MEANINGS_OF_NONCONVEX = {
    **MEANINGS,
    F_0: "f(x^0) - min f",
    cold: "1 if the controls start at zero, 0 if every client makes its own at x^0",
    option: "1 if a control is a gradient at the server's model, 2 if the mean along the way",
}

_GRADIENT = LOSS / LENGTH
_CURVATURE = LOSS / LENGTH**2

UNITS = {
    beta: _CURVATURE,
    mu: _CURVATURE,
    sigma: _GRADIENT,
    eta_l: PURE / _CURVATURE,
    eta_g: PURE,
    h: PURE / _CURVATURE,
    K: PURE,
    S: PURE,
    N: PURE,
    T: PURE,
    W_T: PURE,
    D_0: LENGTH,
    C_0: _GRADIENT**2,
    F_0: LOSS,
    option: PURE,
    cold: PURE,
    unlike: PURE,
    memory: PURE,
}

QUANTITIES = {
    beta: "L",
    mu: "mu",
    sigma: "sigma",
    eta_l: "client_lr",
    eta_g: "server_lr",
    K: "local_steps",
    S: "participants",
    N: "n_clients",
    T: "rounds - is_warm",
    D_0: "sqrt(squared_distance)",
    C_0: "control_gap",
    F_0: "excess_loss",
    option: "option",
    cold: "1 - is_warm",
    unlike: "distance_from_uniform",
    memory: "has_memory",
}
