"""What FedAU's statements need of a setting, in the paper's words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from fltheory.algorithms import FedAU, WeightedFedAvg
from fltheory.engines import Setting
from fltheory.engines.fedau_weights.dependent_weight_error import cyclic_weights, weight_error_under
from fltheory.engines.fedau_weights.weight_error import WeightError
from fltheory.exact_or_float import is_exact, largest, norm, number
from fltheory.participation import Participation, Trace
from fltheory.participation.process import ClientChains, Process, process_of
from fltheory.problems import LogCoshProblem, Problem, QuadraticProblem
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@lru_cache
def _weight_errors(participation: Process, cutoff: float, rounds: int) -> WeightError:
    """Keep the last ones, as several statements, and readings of them, ask for the same."""
    return weight_error_under(participation, cutoff, rounds)


@dataclass(frozen=True, eq=False)
class FedAUSetting(ReadOnlyArrays):
    """Algorithm 1 with the weights of Algorithm 2, or constant ones.

    `WeightedFedAvg` with aggregation weights q is Algorithm 1 with ``omega_n = N q_n``. Where the
    weights are random, what the paper asks "for all t" is taken over all that may happen.

    Raises
    ------
    ValueError
        For a setting of another kind.
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
            raise ValueError("participation must be drawn from its stationary law, got a start")
        if participation.marginals.min() <= 0:
            raise ValueError("participation must be possible for every client, got one never there")
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
        """The chains of single clients; None where nothing is left to chance."""
        return self.participation.client_chains

    @property
    def problem(self) -> Problem:
        """The clients."""
        return self.setting.problem

    @property
    def rounds(self) -> int:
        """T."""
        return self.setting.rounds

    @property
    def p(self) -> FloatArray:
        """(N,) share of rounds in which a client takes part."""
        return self.participation.marginals

    @property
    def cutoff(self) -> float:
        """K of Algorithm 2.

        Raises
        ------
        ValueError
            For constant weights.
        """
        if not isinstance(self.algorithm, FedAU):
            raise ValueError(f"algorithm must be FedAU to have a cut-off, got {self.algorithm!r}")
        return self.algorithm.cutoff

    @property
    def constant_weights(self) -> FloatArray:
        """(N,) omega_n.

        Raises
        ------
        ValueError
            For FedAU's, which are not constant.
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
        """(N, T) or (N, 1): weights as large as each may be, in the rounds that matter.

        Under chance all may be absent until ``min(K, T-1)`` rounds have passed, after which
        their first interval ends and is their weight; none is ever larger.
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
        """Q."""
        return largest((self.p[:, None] * self.largest_weights**2).mean(axis=0))

    @cached_property
    def largest_error(self) -> float:
        """The largest ``1/N sum_n (p_n omega_t^n - 1)^2``.

        Under chance a client that is always there keeps the weight 1 while others' grow.
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
        """A bound on ``||grad f(x_t)||`` over all that may happen in the run.

        With exact gradients and one Hessian for all, a round takes a coordinate (in the basis of
        the Hessian's eigenvectors, from x*) to ``(1 - a s) x + a sum_n w_n c_n`` with ``s =
        sum_n w_n`` at most S, so that its size is convex in s, and largest at 0 or S.
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
        """The same clients with ``h = 1/P sum_n omega_n p_n F_n`` for their objective.

        Raises
        ------
        ValueError
            For clients that are not quadratic, or a weight of zero.
        """
        problem = quadratic_for("for Theorem 1", self.problem)
        share = self.constant_weights * self.p
        return problem.with_target_weights(share / share.sum())

    @property
    def participation_with_limit(self) -> Participation:
        """Participation whose law converges: cycles begin at a round drawn uniformly.

        Averages over that draw are averages over the rounds of the cycle's limit.
        """
        masks = self.participation.known_path(self.participation.period or 1)
        return self.participation if self._chains is not None or masks is None else Trace(masks)
