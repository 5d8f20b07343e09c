"""Quantities of a round, beside the three that every trajectory holds, that theorems name.

Each knows its expectation as a quadratic form in the model's offset from x*, for exact
engines, and how to sample it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fltheory.algorithms.averaging import participant_average
from fltheory.engines.probe import UNIT_ROUNDOFF
from fltheory.engines.probing import random_affine_map
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.random_affine_map import RandomAffineMap
from fltheory.engines.stepped_clients import SteppedClients
from fltheory.participation.base import Masks, Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.problems.weighted_objective import WeightedObjective
from fltheory.validation import FloatArray

AnalyticClients = QuadraticClients | SteppedClients


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """``s' matrix s + 2 vector's + constant`` in the offset ``s = x - x*``.

    ``relative_error`` bounds the rounding in its own coefficients.
    """

    matrix: FloatArray
    vector: FloatArray
    constant: float
    relative_error: float = 0.0

    def error(
        self,
        traces: FloatArray,
        second_error: FloatArray,
        first_error: FloatArray,
        origin_error: float,
    ) -> FloatArray:
        """Bound the rounding error of its expectation, to first order.

        Parameters
        ----------
        traces : array
            ``E||s||^2``.
        second_error, first_error : arrays
            Errors of ``E[s s']`` (nuclear norm) and of ``E s``.
        origin_error : float
            Error of x* itself.
        """
        n = self.vector.size
        curvature, slope = float(np.linalg.norm(self.matrix)), float(np.linalg.norm(self.vector))
        distance = np.sqrt(traces)
        size = curvature * traces + 2 * slope * distance + abs(self.constant)
        readout = 8 * (n * n + n + 1) * UNIT_ROUNDOFF + self.relative_error
        shifted = curvature * (2 * distance + origin_error) + 2 * slope
        return np.asarray(
            curvature * second_error
            + 2 * slope * first_error
            + readout * size
            + shifted * origin_error
        )


class Observable(Protocol):
    """A number that a round attaches to its initial model, in expectation over the round."""

    @property
    def name(self) -> str:
        """The name under which a trajectory holds it."""
        ...

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return its expectation given the model, over participants and noise."""
        ...

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return one draw for each replica, shape (replicas,)."""
        ...


def standard_forms(problem: QuadraticProblem) -> Mapping[str, QuadraticForm]:
    """Squared distance, squared gradient and excess loss as quadratic forms."""
    hessian, origin = problem.mean_hessian, np.zeros(problem.dim)
    return {
        "squared_distance": QuadraticForm(np.eye(problem.dim), origin, 0.0),
        "squared_gradient": QuadraticForm(hessian @ hessian, origin, 0.0),
        "excess_loss": QuadraticForm(0.5 * hessian, origin, 0.0),
    }


def standard_samples(problem: Problem, x: FloatArray) -> list[FloatArray]:
    """Squared distance, squared gradient and excess loss of each replica's model."""
    offset, gradient = x - problem.x_star, problem.gradient(x)
    return [
        np.einsum("ra,ra->r", offset, offset),
        np.einsum("ra,ra->r", gradient, gradient),
        problem.excess_loss(x),
    ]


@dataclass(frozen=True)
class ParticipantGradientSum:
    """``||1/m sum_{i in S_r} sum_k grad F_i(x_{r,k}^i)||^2``, the exact gradients along the way.

    SA-FL's G_2 before the maximum over rounds (Theorem 4). The models ``x_{r,k}^i`` are those
    of the noisy local SGD; the gradients summed are exact.
    """

    local_steps: int
    client_lr: float
    name: str = "participant_gradient_sum"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the expectation through the second moments of the averaged gradient sum."""
        origin = np.zeros(problem.dim)
        law = random_affine_map(self._average, problem, participation, problem.x_star, origin)
        return squared_norm_form(law)

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the squared norm of a fresh run of the round's local SGD."""
        average = self._average(x, clients, who)
        return np.einsum("ra,ra->r", average, average)

    def _average(self, x: FloatArray, clients: AnalyticClients, who: Masks) -> FloatArray:
        return clients.summed_local_gradients(
            x, who, participant_average(who, x), steps=self.local_steps, lr=self.client_lr
        )


def squared_norm_form(law: RandomAffineMap) -> QuadraticForm:
    """Return ``E||A s + b + noise||^2`` as a quadratic form in s."""
    size = float(np.sqrt(np.trace(law.gram) + law.offset_square))
    error = law.slope_error + law.offset_error
    noise = float(np.trace(law.noise))
    of_noise = law.noise_error / noise if noise > 0 else 0.0
    return QuadraticForm(
        matrix=law.gram,
        vector=law.pulled_offset,
        constant=law.offset_square + noise,
        relative_error=of_noise + (2 * error / size if size > 0 else 0.0),
    )


@dataclass(frozen=True)
class ParticipantExcessLoss:
    """``1/m sum_{i in S_r} [F_i(x_r) - F_i(x*)]``, SA-FL's G_4 (Theorem 5).

    It can be negative: x* minimises F, not the participants' losses.
    """

    name: str = "participant_excess_loss"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the expectation over the participants, who must be of a fixed number."""
        if participation.fixed_size is None:
            raise ValueError("participation must have a fixed number of participants a round")
        share = participation.marginals / max(participation.fixed_size, 1)
        hessian = problem.hessians * share.sum()
        if not problem.shared_hessian:
            hessian = np.einsum("i,iab->ab", share, problem.hessians)
        return QuadraticForm(
            matrix=0.5 * hessian,
            vector=0.5 * (share @ problem.gradients_at_optimum),
            constant=0.0,
        )

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the participants' mean excess over their loss at x*."""
        at_optimum = problem.client_losses(problem.x_star)
        excess = problem.client_losses(x) - at_optimum
        return np.einsum("ri,ri->r", participant_average(who, x), excess)


@dataclass(frozen=True)
class BiasedExcessLoss:
    """``F_B(x) - F_B*`` for the objective of other client weights p: CA-Fed's Theorem 2."""

    weights: tuple[float, ...]
    name: str = "biased_excess_loss"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the excess, which does not depend on the participants."""
        objective = WeightedObjective(problem, self.weights)
        offset = problem.x_star - objective.minimiser
        size = problem.n_clients + problem.dim
        return QuadraticForm(
            matrix=0.5 * objective.hessian,
            vector=0.5 * (objective.hessian @ offset),
            constant=float(objective.excess_loss(problem.x_star)),
            relative_error=16 * size * problem.L / problem.mu * UNIT_ROUNDOFF,
        )

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the excess at each replica's model; quadratic clients only."""
        if not isinstance(problem, QuadraticProblem):
            raise ValueError(f"problem must be a QuadraticProblem, got {problem!r}")
        return WeightedObjective(problem, self.weights).excess_loss(x)
