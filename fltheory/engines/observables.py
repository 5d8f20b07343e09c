"""Observables: quantities of a round that theorems use, beyond the three of every trajectory.

Each observable gives its expectation as a quadratic form in the model's offset from x*, for exact
engines, and can be sampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from fltheory.algorithms.shared.averaging import participant_average
from fltheory.engines.affine.numbers import Entries, entries, with_parameters
from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.affine.probing import random_affine_map
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.affine.symbolic.clients import ClientNumbers, FormClients
from fltheory.engines.affine.symbolic.forms import Space, noise_covariance
from fltheory.engines.clients.analytic_clients import AnalyticClients
from fltheory.engines.clients.pulls import Pulls
from fltheory.exact_or_float import solve
from fltheory.participation.base import Masks, Participation
from fltheory.problems.base import HasGradientSplit, Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.problems.weighted_objective import WeightedObjective
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

ExactSets: TypeAlias = Sequence[tuple[Fraction, Masks]]


@dataclass(frozen=True, eq=False)
class QuadraticForm(ReadOnlyArrays):
    """The form ``s'Ms + 2v's + c`` with ``s = x - x*``, M ``matrix``, v ``vector``, c ``constant``.

    ``relative_error`` is a bound on the relative rounding error of the coefficients. If the form
    depends on the state of a chain, all four attributes have a leading axis of states.
    """

    matrix: FloatArray
    vector: FloatArray
    constant: float | FloatArray
    relative_error: float | FloatArray = 0.0

    @classmethod
    def by_state(cls, forms: Sequence[QuadraticForm]) -> QuadraticForm:
        """Combine one form per state into a form with an axis of states."""
        return cls(
            np.stack([form.matrix for form in forms]),
            np.stack([form.vector for form in forms]),
            np.array([form.constant for form in forms]),
            np.array([form.relative_error for form in forms]),
        )

    @property
    def row(self) -> FloatArray:
        """The coefficients of the moments ``(M, m, w)``, in this order; (..., n^2 + n + 1)."""
        *states, n = self.vector.shape
        constant = np.reshape(self.constant, (*states, 1))
        return np.concatenate(
            [self.matrix.reshape(*states, n * n), 2 * self.vector, constant], axis=-1
        )

    def error(
        self,
        traces: FloatArray,
        second_error: FloatArray,
        first_error: FloatArray,
        origin_error: float,
        *,
        weights: float | FloatArray = 1.0,
        weight_error: float | FloatArray = 0.0,
        totals: tuple[FloatArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Bound the rounding error of the form's expectation, to first order.

        Parameters
        ----------
        traces : array
            ``E||s||^2``; by states, ``E||s||^2 1{state}`` (..., states).
        second_error, first_error : arrays
            Errors of ``E[s s']`` (nuclear norm) and of ``E s``.
        origin_error : float
            Error of x* itself.
        weights, weight_error : arrays
            Probabilities of states, and their errors.
        totals : pair of arrays
            If there are states, other bounds on the sums over states of ``second_error`` and
            ``first_error``.
        """
        n = self.vector.shape[-1]
        curvature = np.sqrt((self.matrix**2).sum(axis=(-2, -1)))
        slope, level = np.sqrt((self.vector**2).sum(axis=-1)), np.abs(self.constant)
        distance = np.sqrt(traces * weights)
        size = curvature * traces + 2 * slope * distance + level * weights
        states = 1 if totals is None else np.shape(weights)[-1]
        # There is one sum of n^2 + n + 1 products per state. The 8 allows for the form's entries,
        # which are sums and products of a few numbers.
        readout = 8 * (n * n + n + states) * UNIT_ROUNDOFF + self.relative_error
        shifted = curvature * (2 * distance + origin_error * weights) + 2 * slope * weights
        own = readout * size + shifted * origin_error + level * weight_error
        of_moments = curvature * second_error + 2 * slope * first_error
        if totals is None:
            return np.asarray(of_moments + own)
        second, first = totals
        together = np.max(curvature) * second + 2 * np.max(slope) * first
        return np.asarray(np.minimum(of_moments.sum(axis=-1), together) + own.sum(axis=-1))


@dataclass(frozen=True)
class Envelope:
    """The bound ``0 <= V <= (slope ||x - x*|| + level + noise)^2``, for any participants.

    Attributes
    ----------
    slope, level : float
    noise, spread : float
        For the noise in V in addition to that of x: a bound on its mean, and its Lipschitz constant
        as a function of a standard Gaussian vector.
    """

    slope: float
    level: float
    noise: float = 0.0
    spread: float = 0.0


@runtime_checkable
class HasEnvelope(Protocol):
    """An observable with a bound on its values."""

    def envelope(self, problem: Problem) -> Envelope | None:
        """Return the observable's envelope on a problem, or None if it has none."""
        ...


class Observable(Protocol):
    """A quantity of a round, as a function of the initial model, in expectation over the round."""

    @property
    def name(self) -> str:
        """The key of the observable in a trajectory."""
        ...

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the expectation over participants and noise, given the model."""
        ...

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return one draw for each replica, shape (replicas,)."""
        ...

    def exact_form(self, numbers: ClientNumbers, x_star: Entries, sets: ExactSets) -> Entries:
        """Return the expectation given the model, as the matrix of a quadratic form in (s, 1).

        It has shape (d + 1, d + 1), and the arithmetic of the problem's numbers. ``sets`` are the
        participant sets with their probabilities.
        """
        ...


def standard_forms(problem: QuadraticProblem) -> Mapping[str, QuadraticForm]:
    """Return squared distance, squared gradient and excess loss as quadratic forms."""
    hessian, origin = problem.mean_hessian, np.zeros(problem.dim)
    # This is a mean over clients, summed one by one.
    lost = 0.0 if problem.shared_hessian else problem.n_clients * UNIT_ROUNDOFF
    return {
        "squared_distance": QuadraticForm(np.eye(problem.dim), origin, 0.0),
        "squared_gradient": QuadraticForm(hessian @ hessian, origin, 0.0, 2 * lost),
        "excess_loss": QuadraticForm(0.5 * hessian, origin, 0.0, lost),
    }


def standard_samples(problem: Problem, x: FloatArray) -> list[FloatArray]:
    """Return squared distance, squared gradient and excess loss of each replica's model."""
    offset, gradient = x - problem.x_star, problem.gradient(x)
    return [
        np.einsum("ra,ra->r", offset, offset),
        np.einsum("ra,ra->r", gradient, gradient),
        problem.excess_loss(x),
    ]


@dataclass(frozen=True)
class ParticipantGradientSum:
    """``||1/m sum_{i in S_r} sum_k grad F_i(x_{r,k}^i)||^2`` along local steps.

    This is SA-FL's G_2 before the maximum over rounds is taken (Theorem 4). The models
    ``x_{r,k}^i`` come from noisy local SGD, but the gradients in the sum are exact.
    """

    local_steps: int
    client_lr: float
    name: str = "participant_gradient_sum"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the expectation, from the second moments of the averaged gradient sum."""
        origin = np.zeros(problem.dim)
        law = random_affine_map(self._average, problem, participation, problem.x_star, origin)
        return squared_norm_form(law)

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the squared norm of the averaged gradient sum in a fresh run of local SGD."""
        average = self._average(x, clients, who)
        return np.einsum("ra,ra->r", average, average)

    def exact_form(self, numbers: ClientNumbers, x_star: Entries, sets: ExactSets) -> Entries:
        """Return ``E||A s + b + noise||^2`` from the averaged gradient sum on affine forms."""
        space = Space(numbers.arithmetic, x_star.size)
        total = np.full((x_star.size + 1, x_star.size + 1), space.zero)
        exact = with_parameters(self, numbers.arithmetic)
        masks = np.array([mask for _, mask in sets])
        every = space.variables(x_star, len(masks))
        image = exact._average(every, FormClients(numbers, space), masks)
        spread = noise_covariance(image).trace(axis1=1, axis2=2)
        maps = np.concatenate([image.linear(x_star.size), image.constant[:, :, None]], axis=2)
        for (chance, _), linear, noise in zip(sets, maps, spread, strict=True):
            square = linear.T @ linear
            square[-1, -1] = square[-1, -1] + noise
            total = total + numbers.arithmetic.entry(chance) * square
        return total

    def envelope(self, problem: Problem) -> Envelope | None:
        """Bound every participant's gradients along its local steps.

        ``||y_k - x*||`` is at most ``g^k ||x - x*||`` plus the pushes of k steps, and
        ``||grad F_i(y)|| <= ||A_i|| ||y - x*|| + ||v_i|| + rest``.
        """
        if not isinstance(problem, HasGradientSplit):
            return None
        split, lr = problem.gradient_split, self.client_lr
        curvatures = np.linalg.eigvalsh(split.hessians)
        steepest, growth = float(curvatures.max()), float(np.abs(1 - lr * curvatures).max())
        constant = float(np.linalg.norm(split.pulls, axis=1).max()) + split.rest
        before = [Pulls.of(split, k, lr) for k in range(1, self.local_steps)]
        sigma = steepest * problem.sigma
        return Envelope(
            slope=steepest * sum(growth**k for k in range(self.local_steps)),
            level=self.local_steps * constant
            + steepest * sum(float(pulls.push.max()) for pulls in before),
            noise=sigma * sum(pulls.noise for pulls in before),
            spread=sigma / math.sqrt(problem.dim) * sum(pulls.spread for pulls in before),
        )

    def _average(self, x: Any, clients: Any, who: Masks) -> Any:
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

    It can be negative, because x* minimises F, not the participants' losses.
    """

    name: str = "participant_excess_loss"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the expectation over the participants, whose number must be fixed."""
        if participation.fixed_size is None:
            raise ValueError("participation must have a fixed number of participants per round")
        share = participation.marginals / max(participation.fixed_size, 1)
        return _excess_of(problem, share)

    def exact_form(self, numbers: ClientNumbers, x_star: Entries, sets: ExactSets) -> Entries:
        """Return the expectation over participants, with equal shares for the clients of a set."""
        shares = np.full(numbers.problem.n_clients, numbers.arithmetic.entry(0))
        for chance, mask in sets:
            shares = shares + numbers.arithmetic.entry(chance / int(mask.sum())) * mask.astype(int)
        return _excess_form(numbers, x_star, shares)

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the mean over participants of the excess of their losses over those at x*."""
        at_optimum = problem.client_losses(problem.x_star)
        excess = problem.client_losses(x) - at_optimum
        return np.einsum("ri,ri->r", participant_average(who, x), excess)


@dataclass(frozen=True)
class BiasedExcessLoss:
    """``F_B(x) - F_B*`` for the objective F_B with other client weights p (CA-Fed, Theorem 2)."""

    weights: tuple[float, ...]
    name: str = "biased_excess_loss"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the excess as a quadratic form; it does not depend on the participants."""
        objective = WeightedObjective(problem, self.weights)
        offset = problem.x_star - objective.minimiser
        size = problem.n_clients + problem.dim
        return QuadraticForm(
            matrix=0.5 * objective.hessian,
            vector=0.5 * (objective.hessian @ offset),
            constant=float(objective.excess_loss(problem.x_star)),
            relative_error=16 * size * problem.L / problem.mu * UNIT_ROUNDOFF,
        )

    def exact_form(self, numbers: ClientNumbers, x_star: Entries, sets: ExactSets) -> Entries:
        """Return ``F_B(x* + s) - F_B(x*)`` plus ``F_B(x*) - F_B*`` as a form in (s, 1)."""
        weights = entries(numbers.arithmetic, np.array(self.weights, dtype=object))
        form = _excess_form(numbers, x_star, weights)
        form[-1, -1] = (form[:-1, -1] * _offset_of_minimiser(numbers, x_star, self.weights)).sum()
        return form

    def envelope(self, problem: Problem) -> Envelope | None:
        """Bound the excess by F_B's curvature and the distance between the two minimisers."""
        if not isinstance(problem, QuadraticProblem):
            return None
        objective = WeightedObjective(problem, self.weights)
        slope = math.sqrt(float(np.linalg.norm(objective.hessian, ord=2)) / 2)
        return Envelope(slope, slope * float(np.linalg.norm(problem.x_star - objective.minimiser)))

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the excess at each replica's model; quadratic clients only."""
        if not isinstance(problem, QuadraticProblem):
            raise ValueError(f"problem must be a QuadraticProblem, got {type(problem).__name__}")
        return WeightedObjective(problem, self.weights).excess_loss(x)


@dataclass(frozen=True)
class PresentExcessLoss:
    """``sum_{k in A} q_k [F_k(x) - F_k(w)]``, where w minimises ``sum_k p_k F_k``.

    CA-Fed's Lemma 2 sums it over rounds. It can be negative, because w minimises the sum over all
    clients.

    Attributes
    ----------
    factors, weights : tuple of float
        q and p, one for each client.
    """

    factors: tuple[float, ...]
    weights: tuple[float, ...]
    name: str = "present_excess_loss"

    def form(self, problem: QuadraticProblem, participation: Participation) -> QuadraticForm:
        """Return the expectation over the participants."""
        shares = participation.marginals * np.array(self.factors)
        objective = WeightedObjective(problem, self.weights)
        losses = problem.client_losses(np.stack([problem.x_star, objective.minimiser]))
        size = problem.n_clients + problem.dim
        return replace(
            _excess_of(problem, shares),
            constant=float(shares @ (losses[0] - losses[1])),
            relative_error=16 * size * problem.L / problem.mu * UNIT_ROUNDOFF,
        )

    def exact_form(self, numbers: ClientNumbers, x_star: Entries, sets: ExactSets) -> Entries:
        """Return the expectation; ``F_k(x*) - F_k(w) = (g_k - H_k v/2)'v`` for ``v = x* - w``."""
        entry = numbers.arithmetic.entry
        shares = np.full(numbers.problem.n_clients, entry(0))
        for chance, mask in sets:
            shares = shares + entry(chance) * mask.astype(int)
        shares = shares * entries(numbers.arithmetic, np.array(self.factors, dtype=object))
        apart = _offset_of_minimiser(numbers, x_star, self.weights)
        each = np.broadcast_to(numbers.hessians, (len(shares), x_star.size, x_star.size))
        at_star = np.matmul(each, (x_star - numbers.optima)[:, :, None])[:, :, 0]
        half = entry(1) / entry(2)
        losses = ((at_star - half * np.matmul(each, apart)) * apart).sum(axis=1)
        form = _excess_form(numbers, x_star, shares)
        form[-1, -1] = (shares * losses).sum()
        return form

    def sample(
        self, problem: Problem, clients: AnalyticClients, x: FloatArray, who: Masks
    ) -> FloatArray:
        """Return the sum over each replica's participants; quadratic clients only."""
        if not isinstance(problem, QuadraticProblem):
            raise ValueError(f"problem must be a QuadraticProblem, got {type(problem).__name__}")
        at_minimiser = problem.client_losses(WeightedObjective(problem, self.weights).minimiser)
        excess = problem.client_losses(x) - at_minimiser
        return np.asarray((np.where(who, excess, 0.0) * np.array(self.factors)).sum(axis=1))


def _excess_of(problem: QuadraticProblem, shares: FloatArray) -> QuadraticForm:
    """Return ``sum_i s_i [F_i(x) - F_i(x*)]``."""
    hessian = problem.hessians * shares.sum()
    if not problem.shared_hessian:
        hessian = np.einsum("i,iab->ab", shares, problem.hessians)
    return QuadraticForm(0.5 * hessian, 0.5 * (shares @ problem.gradients_at_optimum), 0.0)


def _offset_of_minimiser(
    numbers: ClientNumbers, x_star: Entries, weights: tuple[float, ...]
) -> Entries:
    """Return ``x* - w`` for the minimiser w of ``sum_i w_i F_i``: H^-1 times its gradient at x*."""
    given = entries(numbers.arithmetic, np.array(weights, dtype=object))
    form = _excess_form(numbers, x_star, given)
    # The factor 1/2 of both terms is omitted.
    return np.asarray(solve(form[:-1, :-1], form[:-1, -1]))


def _excess_form(numbers: ClientNumbers, x_star: Entries, weights: Entries) -> Entries:
    """Return ``sum_i w_i [F_i(x* + s) - F_i(x*)]`` as a form in (s, 1), (d + 1, d + 1)."""
    size = x_star.size
    half = numbers.arithmetic.entry(1) / numbers.arithmetic.entry(2)
    form = np.full((size + 1, size + 1), numbers.arithmetic.entry(0))
    each = np.broadcast_to(numbers.hessians, (len(weights), size, size))
    gradients = np.matmul(each, (x_star - numbers.optima)[:, :, None])[:, :, 0]
    form[:size, :size] = half * (weights[:, None, None] * each).sum(axis=0)
    form[:size, size] = form[size, :size] = half * (weights[:, None] * gradients).sum(axis=0)
    return form
