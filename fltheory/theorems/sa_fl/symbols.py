"""SA-FL's symbols."""

from __future__ import annotations

from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP

_NOISE = "clients' gradient noise, E||noise||^2 <= sigma^2"
_ALL_NOISE = "noise of the clients' and the server's gradients, E||noise||^2 <= sigma^2"
_DISSIMILARITY = "gradient dissimilarity, ||grad F_i - grad F|| <= sigma_G everywhere"
_EVERY_NOISE = "Max(sigma, server_sigma)"

L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", positive=True)
sigma = symbol("sigma", _NOISE, GRADIENT, "sigma", nonnegative=True)
sigma_of_all = symbol("sigma", _ALL_NOISE, GRADIENT, _EVERY_NOISE, nonnegative=True)
sigma_s = symbol("sigma_s", "server's gradient noise", GRADIENT, "server_sigma", nonnegative=True)
sigma_G = symbol("sigma_G", _DISSIMILARITY, GRADIENT, "sigma_G", extended_nonnegative=True)
eta_c = symbol("eta_c", "client_lr, step size of local SGD", STEP, "client_lr", positive=True)
eta_s = symbol(
    "eta_s", "assist_lr, step size of the server's own step", STEP, "assist_lr", positive=True
)
eta_bar = symbol("etabar", "1 - etabar is the contraction factor of a round", PURE, positive=True)
q = symbol("q", "probability that a round is a client round", PURE, "q", nonnegative=True)
K = symbol("K", "local_steps", PURE, "local_steps", positive=True, integer=True)
m = symbol(
    "m",
    "number of participants in a client round",
    PURE,
    "participants",
    positive=True,
    integer=True,
)
R = symbol("R", "rounds", PURE, "rounds", positive=True, integer=True)
Delta_0 = symbol("Delta_0", "F(x_0) - F(x*)", LOSS, "excess_loss", nonnegative=True)
D_0 = symbol("D_0", "||x_0 - x*||", LENGTH, "sqrt(squared_distance)", nonnegative=True)
G_1 = symbol("G_1", unit=GRADIENT**2, nonnegative=True)
G_2 = symbol("G_2", unit=GRADIENT**2, nonnegative=True)
G_3 = symbol("G_3", unit=GRADIENT**2, nonnegative=True)
G_4 = symbol("G_4", unit=LOSS, real=True)
