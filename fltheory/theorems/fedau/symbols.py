"""FedAU's symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import log
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LOSS, PURE, STEP
from fltheory.theorems.fedau.setting import FedAUSetting


@cached_by_content(16)
def fedau_of(setting: Setting) -> FedAUSetting:
    """Return what FedAU's statements need of a setting; ValueError for one of another kind."""
    return FedAUSetting(setting)


def _of(number_of: Callable[[FedAUSetting], Any]) -> Callable[[Setting], Any]:
    return lambda setting: number_of(fedau_of(setting))


def of_fedau(setting: Setting) -> Setting:
    """Return the setting; ValueError for one of another kind than FedAU's."""
    fedau_of(setting)
    return setting


def with_cutoff(setting: Setting) -> Setting:
    """Return the setting; ValueError where its weights are constant."""
    _ = fedau_of(setting).cutoff
    return setting


def with_constant_weights(setting: Setting) -> Setting:
    """Return the setting; ValueError where its weights are not constant."""
    _ = fedau_of(setting).constant_weights
    return setting


def _unless_nearly_optimal(of: FedAUSetting) -> Any:
    return 0 if 81 * of.largest_error <= 1 else of.largest_gradient**2


def _inverse_log_c(of: FedAUSetting) -> Any:
    """Return ``1/log c`` with ``c = 1/(1 - min p)^2``; zero where all always take part."""
    least = of.p.min()
    return 0 if least >= 1 else -1 / (2 * log(1 - least))


_ROUNDS = "rounds; x_0 is the model before the first, omega_t the weights in round t = 0 .. T-1"
_NOISE = "clients' gradient noise, E||noise||^2 <= sigma^2"
_LARGEST_SQUARE = "max over t of 1/N sum_n p_n (omega_t^n)^2, over all that may happen"
_MEAN_ERROR = "1/(NT) sum over t and n of E[(p_n omega_t^n - 1)^2]"
_LARGEST_ERROR = "max over t of 1/N sum_n (p_n omega_t^n - 1)^2, over all that may happen"
_DEPENDENCE = "how far the past can move the probability that a client takes part: 0 for Bernoulli"
_PSI = "0 if the weights are nearly optimal, else sup over all points of ||grad f||^2"
_IN_RUN = "a bound on ||grad f(x_t)|| in the run"

G = symbol(
    "G",
    "sup over all points of ||grad f||",
    GRADIENT,
    _of(lambda of: of.largest_gradient),
    nonnegative=True,
)
G_in_run = symbol(
    "G", _IN_RUN, GRADIENT, _of(lambda of: of.largest_gradient_of_run), nonnegative=True
)
Psi_G = symbol("Psi_G", _PSI, GRADIENT**2, _of(_unless_nearly_optimal), nonnegative=True)
R_c = symbol("R", "1/log c, c = 1/(1 - min p)^2", PURE, _of(_inverse_log_c), nonnegative=True)
L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
p_n = symbol("p_n", "a client's probability to take part in a round", PURE, real=True)
omega_t = symbol("omega_t", "omega_t^n, FedAU's weight of client n in round t", PURE, real=True)
S_n = symbol(
    "S_n", "rounds from one participation of client n to the next, at most K", PURE, real=True
)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
I_steps = symbol("I", "local_steps", PURE, "local_steps", positive=True, integer=True)
T = symbol("T", _ROUNDS, PURE, "rounds", positive=True, integer=True)
gamma = symbol("gamma", "client_lr", STEP, "client_lr", positive=True)
eta = symbol("eta", "server_lr", PURE, "server_lr", positive=True)
sigma = symbol("sigma", _NOISE, GRADIENT, "sigma", nonnegative=True)
delta = symbol(
    "delta",
    "sup over clients and points of ||grad F_n - grad f||",
    GRADIENT,
    "sigma_G",
    nonnegative=True,
)
F_0 = symbol("F_0", "f(x_0) - f*", LOSS, "excess_loss", nonnegative=True)
Q = symbol("Q", _LARGEST_SQUARE, PURE, _of(lambda of: of.largest_square), positive=True)
Q_of_constant = symbol(
    "Q", "1/N sum_n p_n omega_n^2", PURE, _of(lambda of: of.largest_square), positive=True
)
W = symbol("W", _MEAN_ERROR, PURE, _of(lambda of: of.mean_error), nonnegative=True)
e_max = symbol("e_max", _LARGEST_ERROR, PURE, _of(lambda of: of.largest_error), nonnegative=True)
K = symbol("K", "cut-off", PURE, "cutoff", positive=True)
b_K = symbol("b_K", "1/N sum_n (1 - p_n)^(2K)", PURE, "mean_lasting_absence", nonnegative=True)
v_1 = symbol("v_1", "1/N sum_n (1 - p_n)", PURE, "mean_absence", nonnegative=True)
v_2 = symbol("v_2", "1/N sum_n (1 - p_n)^2", PURE, "mean_squared_absence", nonnegative=True)
H_T = symbol("H_T", "1 + 1/2 + ... + 1/(T-1)", PURE, "harmonic_sum", nonnegative=True)
tau = symbol("tau", _DEPENDENCE, PURE, "dependence", nonnegative=True)
P = symbol("P", "sum_n omega_n p_n", PURE, _of(lambda of: of.total_weight), positive=True)
delta_h = symbol(
    "delta_h",
    "sup over clients and points of ||grad F_n - grad h||",
    GRADIENT,
    _of(lambda of: of.weighted_problem.sigma_G),
    nonnegative=True,
)
s = symbol("s", "", PURE, positive=True)
start_term = symbol("A_start", "where the run starts", GRADIENT**2, nonnegative=True)
weight_term = symbol("A_weights", "the weight error on its own", GRADIENT**2, nonnegative=True)
noise_term = symbol("A_noise", "noise and random participation", GRADIENT**2, nonnegative=True)
drift_term = symbol("A_drift", "local models' drift", GRADIENT**2, nonnegative=True)
