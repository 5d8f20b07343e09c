"""The worst round of weighted averaging over all vectors of all clients and every set of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product

import cvxpy as cp
import numpy as np

from fltheory.worst_case import ClientClass
from fltheory.worst_case.rounds.one_round import AvailabilityGroup, AveragingRound
from tests.worst_case.full_program import Vectors

Inner = Callable[[np.ndarray, np.ndarray], cp.Expression]


def least_averaging(a_round: AveragingRound, clients: ClientClass, rate: Fraction) -> float:
    """Return ``max E||x+||^2 - rate ||x||^2`` over the class with dissimilarity 1, L = 1."""
    everybody = [own for own in a_round.groups for _ in range(own.n_clients)]
    n, steps = len(everybody), a_round.local_steps
    alpha = np.array([float(own.target_weight) for own in everybody])
    mu, eta = float(clients.mu / clients.L), float(clients.L * a_round.client_lr)
    vectors = Vectors(n * (steps + 1))
    z = vectors.new()
    along = [[vectors.new() for _ in range(steps)] for _ in range(n)]
    at_optimum = [vectors.new() for _ in range(n - 1)]
    rest = -sum(a * g for a, g in zip(alpha, at_optimum, strict=False)) / alpha[-1]
    at_optimum.append(rest if n > 1 else np.zeros(vectors.size))
    assert vectors.used == vectors.size
    gram = cp.Variable((vectors.size, vectors.size), PSD=True)

    def inner(v: np.ndarray, w: np.ndarray) -> cp.Expression:
        return cp.sum(cp.multiply((np.outer(v, w) + np.outer(w, v)) / 2, gram))

    constraints = []
    for own_path, end in zip(along, at_optimum, strict=True):
        constraints += _conditions(inner, z, own_path, end, eta, mu)
    constraints += _budgets(inner, a_round, clients, alpha, along, at_optimum)
    value = -float(rate) * inner(z, z)
    gain = float(a_round.server_lr) * eta
    for chance, weights in _outcomes(a_round, everybody):
        end = z - gain * sum(w * np.sum(along[i], axis=0) for i, w in enumerate(weights))
        value += chance * inner(end, end)
    program = cp.Problem(cp.Maximize(value), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


def _conditions(
    inner: Inner,
    z: np.ndarray,
    along: list[np.ndarray],
    at_optimum: np.ndarray,
    eta: float,
    mu: float,
) -> Iterator[cp.Constraint]:
    """Yield the interpolation conditions of one client."""
    points = [z]
    for gradient in along[:-1]:
        points.append(points[-1] - eta * gradient)
    points.append(np.zeros_like(z))
    gradients = [*along, at_optimum]
    values = cp.Variable(len(points))
    for a, b in permutations(range(len(points)), 2):
        x, g = points[a] - points[b], gradients[a] - gradients[b]
        curved = inner(g, g) + mu * inner(x, x) - 2 * mu * inner(g, x)
        yield values[b] - values[a] + inner(gradients[b], x) + curved / (2 * (1 - mu)) <= 0


def _budgets(
    inner: Inner,
    a_round: AveragingRound,
    clients: ClientClass,
    alpha: np.ndarray,
    along: list[list[np.ndarray]],
    at_optimum: list[np.ndarray],
) -> Iterator[cp.Constraint]:
    """Yield the bounds on heterogeneity, of the mean over a group where each client meets one."""
    if clients.heterogeneity == "optimum":
        yield sum(a * inner(g, g) for a, g in zip(alpha, at_optimum, strict=True)) <= 1
        return
    mean = np.sum([a * own[0] for a, own in zip(alpha, along, strict=True)], axis=0)
    first = 0
    for own in a_round.groups:
        members = range(first, first + own.n_clients)
        first += own.n_clients
        yield sum(inner(at_optimum[i], at_optimum[i]) for i in members) / own.n_clients <= 1
        off = [along[i][0] - mean for i in members]
        yield sum(inner(v, v) for v in off) / own.n_clients <= 1


def _outcomes(
    a_round: AveragingRound, everybody: list[AvailabilityGroup]
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield the chance of every set of clients, and what each client's update counts there."""
    for mask in product((0, 1), repeat=len(everybody)):
        chances = [
            own.availability if there else 1 - own.availability
            for own, there in zip(everybody, mask, strict=True)
        ]
        weights = np.array(mask, dtype=float)
        if a_round.averaging == "present":
            weights /= max(weights.sum(), 1)
        else:
            weights *= [float(own.weight) for own in everybody]
        yield float(np.prod(chances)), weights
