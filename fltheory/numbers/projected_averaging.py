"""Weighted, scheduled, projected averaging under Markov participation, in CA-Fed's notation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.algorithms import (
    AveragedIterate,
    Projected,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.algorithms.shared.step_sizes import StepSizes
from fltheory.engines import Setting
from fltheory.exact_or_float import is_exact, largest, largest_norm, norm, number, solve
from fltheory.numbers.step_sums import (
    FiniteStepSums,
    StepSums,
    delays,
    endless_squares,
    endless_sums,
    finite_sums,
    inverse_squares,
)
from fltheory.participation.process import Process, process_of
from fltheory.problems import Ball, QuadraticProblem
from fltheory.problems.ball import quadratic_maximiser
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.problems.weighted_objective import WeightedObjective
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.weights import optimal
from fltheory.weights.convergence import fastest

MUST_BE = (
    "algorithm must be AveragedIterate(Projected(Scheduled(WeightedFedAvg(...), Harmonic(...) "
    "or Constant(...)), W), weights=the step sizes) for the theorems of CA-Fed, got {}"
)

_MOST_STEPS = 50
# Dinkelbach's method, which maximises above - found * below, converges superlinearly. A few steps
# are enough, and the last one improves nothing.
_ENOUGH = 1e-12


@dataclass(frozen=True, eq=False)
class ProjectedAveraging(ReadOnlyArrays):
    """A setting of weighted, scheduled, projected averaging under Markov participation.

    ``averages`` says whether the model is the average of the iterates, as in Theorem 2, or the
    iterate itself, as in the lemmas of its proof.

    Raises
    ------
    ValueError
        If the setting is not of this kind.
    """

    rounds: int
    x0: FloatArray
    averages: bool
    fedavg: WeightedFedAvg
    steps: StepSizes
    ball: Ball
    problem: QuadraticProblem
    participation: Process

    def __init__(self, setting: Setting) -> None:
        problem = quadratic_for("for the theorems of CA-Fed", setting.problem)
        participation = process_of(setting.participation)
        if not participation.mixes:
            raise ValueError(
                "participation must be MarkovOnOff or FiniteChain, or another Markov chain that "
                "converges to a stationary distribution, for the theorems of CA-Fed, got "
                f"{setting.participation!r}"
            )
        averages, fedavg, steps, ball = _parts(setting)
        fields = {
            "rounds": setting.rounds,
            "x0": setting.x0,
            "averages": averages,
            "fedavg": fedavg,
            "steps": steps,
            "ball": ball,
            "problem": problem,
            "participation": participation,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @cached_property
    def q(self) -> FloatArray:
        """The aggregation weights, (N,)."""
        return np.array(self.fedavg.aggregation_weights)

    @property
    def total(self) -> float:
        """Q, the sum of the weights."""
        return number(self.q.sum())

    @property
    def pi(self) -> FloatArray:
        """The clients' availability, (N,)."""
        return self.participation.marginals

    @property
    def pi_q(self) -> float:
        """The mean total weight of a round, pi'q."""
        return number(self.pi @ self.q)

    @cached_property
    def p(self) -> FloatArray:
        """The biased importance of the clients, equation (4), (N,)."""
        shares = self.pi * self.q
        return np.asarray(shares / shares.sum())

    @cached_property
    def objective(self) -> WeightedObjective:
        """The biased objective F_B."""
        return WeightedObjective(self.problem, self.p)

    @property
    def chi_square(self) -> float:
        """chi^2 divergence of alpha from p, or infinity if a client gets no weight."""
        if (self.p == 0).any():
            return math.inf
        with np.errstate(divide="ignore"):
            return number(((self.problem.alpha - self.p) ** 2 / self.p).sum())

    @property
    def total_variation(self) -> float:
        """Total variation distance of alpha and p."""
        return number(np.abs(self.problem.alpha - self.p).sum()) / 2

    @property
    def Gamma_B(self) -> float:
        """Gamma', the largest of the clients' losses at ``w_B*`` minus their minima."""
        return number(self.problem.client_losses(self.objective.minimiser).max())

    def tightest_point(self, factor: float) -> FloatArray:
        """Return the point (d,) where ``F(w) - F* - factor (F_B(w) - F_B*)`` is largest over R^d.

        The function is strictly concave for a factor above kappa, because its Hessian is at most
        ``L - factor mu < 0``. An inequality of the form of Theorem 1 or 3 that holds at this point
        holds at every w.
        """
        problem, objective = self.problem, self.objective
        bent = factor * objective.hessian
        pull = problem.mean_hessian @ (objective.minimiser - problem.x_star)
        return objective.minimiser + solve(bent - problem.mean_hessian, pull)

    def largest_ratio(self, factor: float, bias: float) -> float:
        """Return the largest ``(F(w) - F*)/(factor (F_B(w) - F_B*) + bias)`` over W.

        This says how tight an inequality of the form of Theorem 1 or 3 is at its tightest point. It
        is computed in float64 by Dinkelbach's iteration: for the largest ratio, the maximum of the
        numerator minus the ratio times the denominator is zero.
        """
        problem, objective, centre = self.problem, self.objective, self.ball.centre
        bent = factor * objective.hessian
        away, biased = centre - problem.x_star, centre - objective.minimiser
        mean = problem.mean_hessian

        def ratio(y: FloatArray) -> float:
            above = (away + y) @ mean @ (away + y) / 2
            below = (biased + y) @ bent @ (biased + y) / 2 + bias
            return float(above / below) if below > 0 else 0.0

        point = np.full(problem.dim, self.ball.radius / math.sqrt(problem.dim))
        found = max(ratio(point), ratio(-point))
        for _ in range(_MOST_STEPS):
            pull = mean @ away - found * (bent @ biased)
            better = ratio(quadratic_maximiser(mean - found * bent, pull, self.ball.radius))
            if better <= found * (1 + _ENOUGH):
                break
            found = better
        return found

    @property
    def states(self) -> int:
        """M, the number of states of the chain."""
        chain = self.participation
        return chain.n_outcomes if chain.client_chains is not None else chain.n_states or 0

    @property
    def start_distance(self) -> float:
        """Total variation distance of the first round's distribution from the limit."""
        return self.participation.start_distance

    @cached_property
    def largest_gradient(self) -> float:
        """D, the supremum over W of the norms of all clients' gradients (Lemma 1)."""
        return largest(self.problem.largest_gradients_on(self.ball))

    @cached_property
    def largest_loss_change(self) -> float:
        """H, the supremum over W of ``|F_k(w) - F_k(w_B*)|`` (8); W contains every optimum."""
        at_minimiser = self.problem.client_losses(self.objective.minimiser)
        highest = self.problem.largest_losses_on(self.ball)
        return largest(np.concatenate([highest - at_minimiser, at_minimiser]))

    @cached_property
    def reach_of_minimisers(self) -> float:
        """Largest distance from W's centre to a minimiser of F, F_B or a client's loss."""
        points = [*self.problem.optima, self.objective.minimiser, self.problem.x_star]
        return self.from_centre(np.stack(points))

    def endless(self, factor: Any = None) -> StepSums:
        """Return the sums with delays over all rounds; ``factor`` replaces the chain's own C_P."""
        mixing = self.participation.mixing
        mixing = mixing if factor is None else replace(mixing, factor=factor)
        return endless_sums(self.steps, mixing, self.largest_loss_change)

    @cached_property
    def delays(self) -> list[int]:
        """The delays J_1 .. J_T, each at most t - 1."""
        return delays(self.participation.mixing, self.largest_loss_change, self.rounds)

    @cached_property
    def finite(self) -> FiniteStepSums:
        """The sums over the rounds of the run."""
        mixing = self.participation.mixing
        return finite_sums(self.steps, mixing, self.largest_loss_change, self.rounds)

    @cached_property
    def convergence_terms(self) -> tuple[Any, Any] | None:
        """Appendix D's diagonal of A, (N,), and B, or None if (12) has no unique minimiser."""
        squares, sigmas = endless_squares(self.steps), self.problem.client_sigmas
        if sigmas.min() == 0 or squares == math.inf or self.pi.min() <= 0:
            return None
        distance, sums = norm(self.x0 - self.problem.x_star), (squares, inverse_squares(self.steps))
        steps = self.fedavg.local_steps
        b = printed_upsilon(steps, self.states, self.total, distance, *sums)
        return sigmas**2 * self.pi * squares, b

    @cached_property
    def fastest(self) -> tuple[Any, Any] | None:
        """The q that minimises (12), and theta*, or None if (12) has no unique minimiser."""
        terms, pi, total = self.convergence_terms, self.pi, self.total
        if terms is None:
            return None
        a, b = terms
        if is_exact(pi):
            q = fastest(pi, a, b, total)
            return q, (b - (a * q**2).sum() / 2) / total
        found = optimal(pi, a=a, b=b, total=total, objective="convergence")
        return found.q, found.total_multiplier

    def from_centre(self, points: FloatArray) -> float:
        """Return the largest distance of points (n, d) from W's centre."""
        return largest_norm(points - self.ball.centre)


def _parts(
    setting: Setting,
) -> tuple[bool, WeightedFedAvg, StepSizes, Ball]:
    outer = setting.algorithm
    averages = isinstance(outer, AveragedIterate)
    projected = outer.algorithm if isinstance(outer, AveragedIterate) else outer
    scheduled = projected.algorithm if isinstance(projected, Projected) else None
    if (
        isinstance(projected, Projected)
        and isinstance(scheduled, Scheduled)
        and isinstance(scheduled.algorithm, WeightedFedAvg)
        and getattr(outer, "weights", scheduled.step_sizes) == scheduled.step_sizes
    ):
        return averages, scheduled.algorithm, scheduled.step_sizes, projected.onto
    raise ValueError(MUST_BE.format(repr(outer)))


def printed_upsilon(
    steps: Any, states: Any, total: Any, distance: Any, squares: Any, inverse: Any
) -> Any:
    """Return upsilon as printed below (12), from numbers or symbols for E, M, Q, D_0, S_2, S_0."""
    return 2 * distance**2 / steps + states * total * (squares + inverse) / 4
