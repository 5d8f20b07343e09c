"""SA-FL's symbols: what each stands for, and its unit."""

from __future__ import annotations

import sympy as sp

from fltheory.grammar.units import LENGTH, LOSS, PURE

L = sp.Symbol("L", positive=True)
mu = sp.Symbol("mu", positive=True)
sigma = sp.Symbol("sigma", nonnegative=True)
sigma_s = sp.Symbol("sigma_s", nonnegative=True)
sigma_G = sp.Symbol("sigma_G", extended_nonnegative=True)
eta_c = sp.Symbol("eta_c", positive=True)
eta_s = sp.Symbol("eta_s", positive=True)
eta_bar = sp.Symbol("etabar", positive=True)
q = sp.Symbol("q", nonnegative=True)
K = sp.Symbol("K", positive=True, integer=True)
m = sp.Symbol("m", positive=True, integer=True)
R = sp.Symbol("R", positive=True, integer=True)
Delta_0 = sp.Symbol("Delta_0", nonnegative=True)
D_0 = sp.Symbol("D_0", nonnegative=True)
G_1, G_2, G_3 = sp.symbols("G_1 G_2 G_3", nonnegative=True)
G_4 = sp.Symbol("G_4", real=True)

MEANINGS = {
    L: "smoothness of every client",
    mu: "strong convexity of every client",
    sigma: "clients' gradient noise, E||noise||^2 <= sigma^2",
    sigma_s: "server's gradient noise",
    sigma_G: "gradient dissimilarity, ||grad F_i - grad F|| <= sigma_G everywhere",
    eta_c: "client_lr, step size of local SGD",
    eta_s: "assist_lr, step size of the server's own step",
    eta_bar: "contraction of a round",
    q: "probability of a clients' round",
    K: "local_steps",
    m: "participants in a clients' round",
    R: "rounds",
    Delta_0: "F(x_0) - F(x*)",
    D_0: "||x_0 - x*||",
}

_GRADIENT = LOSS / LENGTH
_CURVATURE = LOSS / LENGTH**2

UNITS = {
    L: _CURVATURE,
    mu: _CURVATURE,
    sigma: _GRADIENT,
    sigma_s: _GRADIENT,
    sigma_G: _GRADIENT,
    eta_c: PURE / _CURVATURE,
    eta_s: PURE / _CURVATURE,
    eta_bar: PURE,
    q: PURE,
    K: PURE,
    m: PURE,
    R: PURE,
    Delta_0: LOSS,
    D_0: LENGTH,
    G_1: _GRADIENT**2,
    G_2: _GRADIENT**2,
    G_3: _GRADIENT**2,
    G_4: LOSS,
}

QUANTITIES = {
    L: "L",
    mu: "mu",
    sigma: "sigma",
    sigma_s: "server_sigma",
    sigma_G: "sigma_G",
    eta_c: "client_lr",
    eta_s: "assist_lr",
    q: "q",
    K: "local_steps",
    m: "participants",
    R: "rounds",
    Delta_0: "excess_loss",
    D_0: "sqrt(squared_distance)",
}
