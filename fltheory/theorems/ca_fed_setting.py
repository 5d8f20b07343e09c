"""What CA-Fed's statements need of a setting, in the paper's words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory.algorithms import (
    AveragedIterate,
    Constant,
    Harmonic,
    Projected,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.engines import Setting
from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import Ball, QuadraticProblem, WeightedObjective
from fltheory.problems.ball import largest_affine_norm
from fltheory.validation import FloatArray

_MUST_BE = (
    "algorithm must be AveragedIterate(Projected(Scheduled(WeightedFedAvg(...), Harmonic(...) or "
    "Constant(...)), W), weights=its step sizes) for the theorems of CA-Fed, got {}"
)


@dataclass(frozen=True, eq=False)
class CaFedSetting:
    """A setting of weighted, scheduled, projected averaging under Markov participation.

    Raises
    ------
    ValueError
        For a setting of another kind.
    """

    rounds: int
    x0: FloatArray
    fedavg: WeightedFedAvg
    steps: Harmonic | Constant
    ball: Ball
    problem: QuadraticProblem
    participation: MarkovOnOff | FiniteChain

    def __init__(self, setting: Setting) -> None:
        if not isinstance(setting.problem, QuadraticProblem):
            raise ValueError(
                f"problem must be a QuadraticProblem for the theorems of CA-Fed, "
                f"got {setting.problem!r}"
            )
        if not isinstance(setting.participation, MarkovOnOff | FiniteChain):
            raise ValueError(
                "participation must be MarkovOnOff or FiniteChain for the theorems of CA-Fed, "
                f"got {setting.participation!r}"
            )
        fedavg, steps, ball = _parts(setting)
        fields = {
            "rounds": setting.rounds,
            "x0": setting.x0,
            "fedavg": fedavg,
            "steps": steps,
            "ball": ball,
            "problem": setting.problem,
            "participation": setting.participation,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @cached_property
    def q(self) -> FloatArray:
        """(N,) aggregation weights."""
        return np.array(self.fedavg.aggregation_weights)

    @property
    def total(self) -> float:
        """Q, the sum of the weights."""
        return float(self.q.sum())

    @property
    def pi(self) -> FloatArray:
        """(N,) availability."""
        return self.participation.marginals

    @property
    def pi_q(self) -> float:
        """The mean total weight of a round, pi'q."""
        return float(self.pi @ self.q)

    @cached_property
    def p(self) -> FloatArray:
        """(N,) biased importance, equation (4)."""
        shares = self.pi * self.q
        return np.asarray(shares / shares.sum())

    @cached_property
    def objective(self) -> WeightedObjective:
        """F_B."""
        return WeightedObjective(self.problem, self.p)

    @property
    def chi_square(self) -> float:
        """chi^2 of alpha against p; infinite where a client gets no weight."""
        with np.errstate(divide="ignore"):
            return float(((self.problem.alpha - self.p) ** 2 / self.p).sum())

    @property
    def total_variation(self) -> float:
        """d_TV of alpha and p."""
        return 0.5 * float(np.abs(self.problem.alpha - self.p).sum())

    @property
    def Gamma_B(self) -> float:
        """Gamma', the largest of the clients' losses at ``w_B*``, less their minima."""
        return float(self.problem.client_losses(self.objective.minimiser).max())

    @cached_property
    def tightest_point(self) -> FloatArray:
        """(d,) where ``F(w) - F* - 2 kappa^2 (F_B(w) - F_B*)`` is largest over all of R^d.

        It is strictly concave: its Hessian is at most ``L - 2 kappa^2 mu < 0``. An inequality
        of Theorem 1's or 3's form that holds there holds at every w.
        """
        problem, objective = self.problem, self.objective
        bent = 2 * (problem.L / problem.mu) ** 2 * objective.hessian
        pull = problem.mean_hessian @ (objective.minimiser - problem.x_star)
        return objective.minimiser + np.linalg.solve(bent - problem.mean_hessian, pull)

    @property
    def states(self) -> int:
        """M, the states of the chain."""
        chain = self.participation
        return chain.n_states if isinstance(chain, FiniteChain) else chain.n_outcomes

    @cached_property
    def start_distance(self) -> float:
        """Total variation between the law of the first round's state and the stationary one."""
        if self.participation.start is None:
            return 0.0
        chain = self.participation.as_chain()
        return 0.5 * float(np.abs(chain.initial - chain.stationary).sum())

    @cached_property
    def largest_gradient(self) -> float:
        """D, the supremum over W of all clients' gradients (Lemma 1)."""
        return max(
            largest_affine_norm(hessian, hessian @ offset, self.ball.radius)
            for hessian, offset in self._around_centre()
        )

    @cached_property
    def largest_loss_change(self) -> float:
        """H, the supremum over W of ``|F_k(w) - F_k(w_B*)|`` (8), W holding every optimum."""
        at_minimiser = self.problem.client_losses(self.objective.minimiser)
        changes = []
        for (hessian, offset), there in zip(self._around_centre(), at_minimiser, strict=True):
            root = np.asarray(np.linalg.cholesky(hessian).T, dtype=np.float64)
            highest = 0.5 * largest_affine_norm(root, root @ offset, self.ball.radius) ** 2
            changes.append(max(highest - there, there))
        return float(max(changes))

    def _around_centre(self) -> list[tuple[FloatArray, FloatArray]]:
        """Return each client's Hessian and the offset of W's centre from its optimum."""
        problem = self.problem
        hessians: FloatArray = np.broadcast_to(
            problem.hessians, (problem.n_clients, problem.dim, problem.dim)
        )
        return list(zip(hessians, self.ball.centre - problem.optima, strict=True))

    def from_centre(self, points: FloatArray) -> float:
        """Return the largest distance of points (n, d) from W's centre."""
        return float(np.linalg.norm(points - self.ball.centre, axis=1).max())


def _parts(setting: Setting) -> tuple[WeightedFedAvg, Harmonic | Constant, Ball]:
    averaged = setting.algorithm
    projected = averaged.algorithm if isinstance(averaged, AveragedIterate) else None
    scheduled = projected.algorithm if isinstance(projected, Projected) else None
    if (
        isinstance(averaged, AveragedIterate)
        and isinstance(projected, Projected)
        and isinstance(scheduled, Scheduled)
        and isinstance(scheduled.algorithm, WeightedFedAvg)
        and isinstance(scheduled.step_sizes, Harmonic | Constant)
        and averaged.weights == scheduled.step_sizes
    ):
        return scheduled.algorithm, scheduled.step_sizes, projected.onto
    raise ValueError(_MUST_BE.format(repr(setting.algorithm)))
