"""SCAFFOLD's symbols."""

from __future__ import annotations

from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP

_OPTION = "1 if a control is a gradient at the server's model, 2 if the mean along the way"
_COLD = "1 if the controls start at zero, 0 if every client makes its own at x^0"
_UNLIKE = "total variation between a round's participants and a uniform draw of S of N"
_MEMORY = "1 if who takes part depends on earlier rounds, else 0"
_NOISE = "clients' gradient noise, E||noise||^2 <= sigma^2"
_SIZE = "participants in a round; their expected number where it varies"
_ROUNDS = "rounds, one less where the controls are made in a round of their own"
_GAP = "1/N sum_i ||c_i^0 - grad f_i(x*)||^2, here with c_i^0 = 0"

W_T = symbol("W_T", "sum of w_r = (1 - mu h/2)^-(r+1) over r < T", PURE, positive=True)
beta = symbol("beta", "smoothness of every client", CURVATURE, "L", positive=True)
sigma = symbol("sigma", _NOISE, GRADIENT, "sigma", nonnegative=True)
h = symbol("h", "effective step K eta_l eta_g", STEP, positive=True)
eta_l = symbol("eta_l", "client_lr, step size of local SGD", STEP, "client_lr", positive=True)
eta_g = symbol("eta_g", "server_lr", PURE, "server_lr", positive=True)
K = symbol("K", "local_steps", PURE, "local_steps", positive=True, integer=True)
S = symbol("S", _SIZE, PURE, "participants", positive=True)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
T = symbol("T", _ROUNDS, PURE, "rounds - is_warm", positive=True, integer=True)
unlike = symbol("d_U", _UNLIKE, PURE, "distance_from_uniform", nonnegative=True)
memory = symbol("m", _MEMORY, PURE, "has_memory", nonnegative=True, integer=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", real=True)
D_0 = symbol("D_0", "||x^0 - x*||", LENGTH, "sqrt(squared_distance)", nonnegative=True)
C_0 = symbol("C_0", _GAP, GRADIENT**2, "control_gap", nonnegative=True)
F_0 = symbol("F_0", "f(x^0) - min f", LOSS, "excess_loss", nonnegative=True)
cold = symbol("k", _COLD, PURE, "1 - is_warm", nonnegative=True, integer=True)
option = symbol("o", _OPTION, PURE, "option", positive=True, integer=True)
