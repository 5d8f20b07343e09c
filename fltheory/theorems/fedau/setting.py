"""The parts of a setting that FedAU's statements use, in the paper's terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.algorithms import FedAU, WeightedFedAvg
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.engines.fedau_weights.dependent_weight_error import cyclic_weights, weight_error_under
from fltheory.engines.fedau_weights.weight_error import WeightError
from fltheory.exact_or_float import is_exact, largest, log, norm, number
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LOSS, PURE, STEP
from fltheory.participation import Participation, Trace
from fltheory.participation.process import ClientChains, Process, process_of
from fltheory.problems import LogCoshProblem, Problem, QuadraticProblem
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@cached_by_content(128)
def _weight_errors(participation: Process, cutoff: float, rounds: int) -> WeightError:
    """Return weight errors; the last ones are cached, because several statements use them."""
    return weight_error_under(participation, cutoff, rounds)


@dataclass(frozen=True, eq=False)
class FedAUSetting(ReadOnlyArrays):
    """Algorithm 1 with the weights of Algorithm 2, or constant ones.

    `WeightedFedAvg` with aggregation weights q is Algorithm 1 with ``omega_n = N q_n``. If weights
    are random, a requirement "for all t" in the paper must hold for every possible outcome.

    Raises
    ------
    ValueError
        If the setting is of another kind.
    """

    setting: Setting
    algorithm: FedAU | WeightedFedAvg
    participation: Process

    def __init__(self, setting: Setting) -> None:
        algorithm, participation = setting.algorithm, process_of(setting.participation)
        if not isinstance(algorithm, FedAU | WeightedFedAvg):
            raise ValueError(
                "algorithm must be FedAU or WeightedFedAvg for the theorems of FedAU, "
                f"got {algorithm!r}"
            )
        chains = participation.client_chains
        if chains is None and participation.period is None:
            raise ValueError(
                "participation must be Bernoulli, MarkovOnOff or Cyclic for the theorems of "
                f"FedAU, got {participation!r}"
            )
        if chains is not None and (chains.first != participation.marginals).any():
            raise ValueError(
                "participation must start in its stationary distribution, got another start"
            )
        if participation.marginals.min() <= 0:
            raise ValueError(
                "participation must have positive probability for every client, got one that never "
                "participates"
            )
        alpha = setting.problem.alpha
        if not (
            (alpha == alpha[0]).all()
            if is_exact(alpha)
            else np.allclose(alpha, 1 / alpha.size, rtol=1e-12)
        ):
            raise ValueError("target_weights must be equal for the theorems of FedAU")
        object.__setattr__(self, "setting", setting)
        object.__setattr__(self, "algorithm", algorithm)
        object.__setattr__(self, "participation", participation)

    @property
    def _chains(self) -> ClientChains | None:
        """The chains of single clients; None if participation is deterministic."""
        return self.participation.client_chains

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.setting.problem

    @property
    def rounds(self) -> int:
        """T."""
        return self.setting.rounds

    @property
    def p(self) -> FloatArray:
        """The share of rounds in which each client takes part, (N,)."""
        return self.participation.marginals

    @property
    def cutoff(self) -> float:
        """K of Algorithm 2.

        Raises
        ------
        ValueError
            If weights are constant.
        """
        if not isinstance(self.algorithm, FedAU):
            raise ValueError(f"algorithm must be FedAU to have a cut-off, got {self.algorithm!r}")
        return self.algorithm.cutoff

    @property
    def constant_weights(self) -> FloatArray:
        """The constant weights omega_n, (N,).

        Raises
        ------
        ValueError
            If the weights are FedAU's, which are not constant.
        """
        if not isinstance(self.algorithm, WeightedFedAvg):
            raise ValueError(
                f"algorithm must be WeightedFedAvg to have constant weights, got {self.algorithm!r}"
            )
        return self.problem.n_clients * np.array(self.algorithm.aggregation_weights)

    @property
    def total_weight(self) -> float:
        """P, ``sum_n omega_n p_n``."""
        return number(self.constant_weights @ self.p)

    @cached_property
    def largest_weights(self) -> FloatArray:
        """The largest possible weights, (N, T), or (N, 1) if one round decides.

        With random participation, all clients may be absent until ``min(K, T-1)`` rounds have
        passed. Their first interval then ends, and its length is their weight; no weight is ever
        larger.
        """
        if isinstance(self.algorithm, WeightedFedAvg):
            return self.constant_weights[:, None]
        if self._chains is None:
            return cyclic_weights(self.participation, self.cutoff, self.rounds)
        longest = np.full(self.p.size, min(self.cutoff, max(self.rounds - 1, 1)))
        longest = np.where(self._chains.comes >= 1, np.minimum(longest, 2), longest)
        return np.where(self.p < 1, longest, 1)[:, None]

    @cached_property
    def largest_square(self) -> float:
        """Q, for the largest possible weights."""
        return largest((self.p[:, None] * self.largest_weights**2).mean(axis=0))

    @cached_property
    def largest_error(self) -> float:
        """The largest possible ``1/N sum_n (p_n omega_t^n - 1)^2``.

        With random participation, a client that is always present keeps the weight 1 while others'
        weights grow.
        """
        errors = (self.p[:, None] * self.largest_weights - 1) ** 2
        if isinstance(self.algorithm, FedAU) and self._chains is not None:
            errors = np.maximum(errors, (self.p[:, None] - 1) ** 2)
        return largest(errors.mean(axis=0))

    @cached_property
    def mean_error(self) -> float:
        """The mean of ``E[(p_n omega_t^n - 1)^2]`` over rounds and clients, exactly."""
        if isinstance(self.algorithm, WeightedFedAvg):
            return number(((self.p * self.constant_weights - 1) ** 2).mean())
        return number(self.weight_errors.values.mean())

    @cached_property
    def weight_errors(self) -> WeightError:
        """``E[(p_n omega_t^n - 1)^2]`` of Algorithm 2, (N, T)."""
        return _weight_errors(self.participation, self.cutoff, self.rounds)

    @property
    def largest_gradient(self) -> float:
        """The supremum of ``||grad f||`` over all points; infinite on quadratic clients."""
        problem = self.problem
        return problem.largest_gradient if isinstance(problem, LogCoshProblem) else math.inf

    @cached_property
    def largest_gradient_of_run(self) -> float:
        """A bound on ``||grad f(x_t)||`` over all possible outcomes of the run.

        With exact gradients and a shared Hessian, a round maps a coordinate (in the Hessian's
        eigenbasis, relative to x*) to ``(1 - a s) x + a sum_n w_n c_n`` with ``s = sum_n w_n`` at
        most S. The absolute value of this is convex in s, so it is largest at s = 0 or s = S.
        """
        problem = self.problem
        if not isinstance(problem, QuadraticProblem):
            return self.largest_gradient
        if problem.sigma > 0 or not problem.shared_hessian:
            return math.inf
        curvatures, basis = problem.eigenbasis
        move = 1 - (1 - self.algorithm.client_lr * curvatures) ** self.algorithm.local_steps
        one = move / move
        weights = (one[0] * self.largest_weights).mean(axis=0)
        total = self.algorithm.server_lr * largest(weights) * move
        optima = np.abs((problem.optima - problem.x_star) @ basis).max(axis=0)
        reach = np.abs((self.setting.x0 - problem.x_star) @ basis)
        if (total >= 0).all() and (total <= 1).all():
            reach = np.maximum(reach, optima)
        else:
            for _ in range(self.rounds):
                far = np.abs(1 - total) * reach + np.abs(total) * optima
                reach = np.minimum(np.maximum(reach, far), math.inf)
        return norm(curvatures * reach)

    @cached_property
    def weighted_problem(self) -> QuadraticProblem:
        """The same clients with the objective ``h = 1/P sum_n omega_n p_n F_n``.

        Raises
        ------
        ValueError
            If clients are not quadratic, or a weight is zero.
        """
        problem = quadratic_for("for Theorem 1", self.problem)
        share = self.constant_weights * self.p
        return problem.with_target_weights(share / share.sum())

    @property
    def participation_with_limit(self) -> Participation:
        """The participation, with cycles started at a uniformly drawn round.

        Its distribution converges, and in the limit averages over the draw are averages over a
        cycle.
        """
        masks = self.participation.known_path(self.participation.period or 1)
        return self.participation if self._chains is not None or masks is None else Trace(masks)


# ------------------------------------------------------------ symbols


@cached_by_content(16)
def fedau_of(setting: Setting) -> FedAUSetting:
    """Return a setting's parts for FedAU's statements, or raise ValueError if it is not FedAU's."""
    return FedAUSetting(setting)


def _of(number_of: Callable[[FedAUSetting], Any]) -> Callable[[Setting], Any]:
    return lambda setting: number_of(fedau_of(setting))


def of_fedau(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if it is not one of FedAU's."""
    fedau_of(setting)
    return setting


def with_cutoff(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if its weights are constant."""
    _ = fedau_of(setting).cutoff
    return setting


def with_constant_weights(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if its weights are not constant."""
    _ = fedau_of(setting).constant_weights
    return setting


def _unless_nearly_optimal(of: FedAUSetting) -> Any:
    return 0 if 81 * of.largest_error <= 1 else of.largest_gradient**2


def _inverse_log_c(of: FedAUSetting) -> Any:
    """Return ``1/log c`` with ``c = 1/(1 - min p)^2``, or zero if all clients always take part."""
    least = of.p.min()
    return 0 if least >= 1 else -1 / (2 * log(1 - least))


_ROUNDS = "rounds; x_0 is the model before the first, omega_t the weights in round t = 0 .. T-1"
_NOISE = "clients' gradient noise, E||noise||^2 <= sigma^2"
_LARGEST_SQUARE = "max over t of 1/N sum_n p_n (omega_t^n)^2, the largest possible value"
_MEAN_ERROR = "1/(NT) sum over t and n of E[(p_n omega_t^n - 1)^2]"
_LARGEST_ERROR = "max over t of 1/N sum_n (p_n omega_t^n - 1)^2, the largest possible value"
_DEPENDENCE = "how much the past changes the probability that a client takes part: 0 for Bernoulli"
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
p_n = symbol("p_n", "probability that client n takes part in a round", PURE, real=True)
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
start_term = symbol("A_start", "term of the initial model", GRADIENT**2, nonnegative=True)
weight_term = symbol("A_weights", "term of the weight error", GRADIENT**2, nonnegative=True)
noise_term = symbol(
    "A_noise", "term of noise and random participation", GRADIENT**2, nonnegative=True
)
drift_term = symbol("A_drift", "term of the local models' drift", GRADIENT**2, nonnegative=True)
