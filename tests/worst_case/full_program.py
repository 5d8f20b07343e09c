"""The worst round as one program over all vectors of all clients and every set of participants.

The tests' own: no symmetry, no variance formula. One Gram matrix of all vectors, the conditions
for each pair of points of each client, and the mean over all sets that may be drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations

import cvxpy as cp
import numpy as np

from fltheory.worst_case import ClientClass
from fltheory.worst_case.rounds.measure import AnyClass
from fltheory.worst_case.rounds.one_round import OneRound


class Vectors:
    """Vectors as rows of coefficients in a basis that grows while they are named."""

    def __init__(self, size: int) -> None:
        self.size, self.used = size, 0

    def new(self) -> np.ndarray:
        self.used += 1
        return np.eye(self.size)[self.used - 1]


def least_heterogeneity(a_round: OneRound, clients: ClientClass, rate: Fraction) -> float:
    """Return ``max E||x+||^2 - rate ||x||^2`` over the class with dissimilarity 1, in units L = 1.

    With noise, of level 1: every gradient is a vector that is known given x, and one that is not;
    the latter and the noise are orthogonal wherever independence makes them so.
    """
    n_clients = int(a_round.n_clients or 0)
    eligible = int(a_round.n_eligible or 0)
    steps, mu = a_round.local_steps, float(clients.mu / clients.L)
    eta, own = float(clients.L * a_round.client_lr), float(clients.L * a_round.assist_lr)
    excluded = n_clients - eligible
    noisy = clients.sigma > 0
    vectors = Vectors(eligible * (steps + 1 + 2 * steps * noisy) + 2 * excluded)
    z = vectors.new()
    along = [[vectors.new() for _ in range(steps)] for _ in range(eligible)]
    away = [vectors.new() for _ in range(excluded)]
    at_optimum = [vectors.new() for _ in range(n_clients - 1)]
    # They add up to zero; the last is minus the others.
    at_optimum.append(-np.sum(at_optimum, axis=0) if at_optimum else np.zeros(vectors.size))
    known = vectors.used
    # h_0 is zero, and named all the same: its square is to be.
    random = [[vectors.new() for _ in range(steps * noisy)] for _ in range(eligible)]
    noise = [[vectors.new() for _ in range(steps * noisy)] for _ in range(eligible)]
    assert vectors.used == vectors.size
    gram = cp.Variable((vectors.size, vectors.size), PSD=True)

    def square(v: np.ndarray) -> cp.Expression:
        return cp.sum(cp.multiply(np.outer(v, v), gram))

    def product(v: np.ndarray, w: np.ndarray) -> cp.Expression:
        return cp.sum(cp.multiply((np.outer(v, w) + np.outer(w, v)) / 2, gram))

    constraints = independence(gram, known, eligible, steps) if noisy else []
    sums = []
    for client in range(n_clients):
        if client < eligible:
            points, here, gradients, seen = [], z, [], []
            for k, gradient in enumerate(along[client]):
                points.append(here)
                gradients.append(gradient + random[client][k] if noisy else gradient)
                seen.append(gradients[-1] + noise[client][k] if noisy else gradients[-1])
                here = here - eta * seen[-1]
            sums.append(np.sum(seen, axis=0))
            constraints += [square(xi) <= 1 for xi in noise[client]]
        else:
            points, gradients = [z], [away[client - eligible]]
        points.append(np.zeros(vectors.size))
        gradients.append(at_optimum[client])
        values = cp.Variable(len(points))
        for a, b in permutations(range(len(points)), 2):
            x, g = points[a] - points[b], gradients[a] - gradients[b]
            curved = square(g) + mu * square(x) - 2 * mu * product(g, x)
            constraints.append(
                values[b] - values[a] + product(gradients[b], x) + curved / (2 * (1 - mu)) <= 0
            )
    starts = np.array([own_path[0] for own_path in along] + away)
    mean = np.mean(starts, axis=0)
    groups = [range(eligible), range(eligible, n_clients)]
    constraints += _budgets(clients.heterogeneity, square, at_optimum, starts - mean, groups)
    sets = list(combinations(range(eligible), a_round.participants))
    reach = float(a_round.server_lr) * eta
    drawn = sum(
        square(z - reach / a_round.participants * np.sum([sums[i] for i in chosen], axis=0))
        for chosen in sets
    ) / len(sets)
    q = float(a_round.q)
    value = q * drawn + (1 - q) * square(z - own * mean) - float(rate) * square(z)
    program = cp.Problem(cp.Maximize(value), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


def _budgets(
    kind: str,
    square: Callable[[np.ndarray], cp.Expression],
    at_optimum: list[np.ndarray],
    off: np.ndarray,
    groups: list[range],
) -> list[cp.Constraint]:
    """Return the bounds on heterogeneity, of the mean over a group where each client meets one."""
    if kind == "optimum":
        return [sum(square(g) for g in at_optimum) / len(at_optimum) <= 1]
    return [
        sum(square(vectors[i]) for i in members) / len(members) <= 1
        for members in groups
        if len(members)
        for vectors in (at_optimum, off)
    ]


def least_descent(a_round: OneRound, clients: AnyClass, decrease: Fraction) -> float:
    """Return the least residual, in units L = 1, with dissimilarity and noise of level 1.

    The supremum of ``F(x+) - F(x) + decrease ||grad F||^2``, F(x+) by the descent lemma, over all
    gradients of the clients along the way; x is zero.
    """
    n_clients, eligible = int(a_round.n_clients or 0), int(a_round.n_eligible or 0)
    steps, mu = a_round.local_steps, float(clients.mu / clients.L)
    eta, own = float(clients.L * a_round.client_lr), float(clients.L * a_round.assist_lr)
    noisy = clients.sigma > 0
    vectors = Vectors(eligible * (steps + 2 * steps * noisy) + n_clients - eligible)
    along = [[vectors.new() for _ in range(steps)] for _ in range(eligible)]
    away = [vectors.new() for _ in range(n_clients - eligible)]
    known = vectors.used
    random = [[vectors.new() for _ in range(steps * noisy)] for _ in range(eligible)]
    noise = [[vectors.new() for _ in range(steps * noisy)] for _ in range(eligible)]
    gram = cp.Variable((vectors.size, vectors.size), PSD=True)

    def product(v: np.ndarray, w: np.ndarray) -> cp.Expression:
        return cp.sum(cp.multiply((np.outer(v, w) + np.outer(w, v)) / 2, gram))

    constraints = independence(gram, known, eligible, steps) if noisy else []
    sums = []
    for i in range(eligible):
        here, points, gradients = np.zeros(vectors.size), [], []
        for k in range(steps):
            gradients.append(along[i][k] + random[i][k] if noisy else along[i][k])
            points.append(here)
            here = here - eta * (gradients[k] + noise[i][k] if noisy else gradients[k])
        sums.append(-here / eta)
        constraints += [product(xi, xi) <= 1 for xi in noise[i]]
        values = cp.Variable(steps)
        for a, b in permutations(range(steps), 2):
            x, g = points[a] - points[b], gradients[a] - gradients[b]
            curved = product(g, g) + mu * product(x, x) - 2 * mu * product(g, x)
            constraints.append(
                values[b] - values[a] + product(gradients[b], x) + curved / (2 * (1 - mu)) <= 0
            )
    starts = np.array([own_path[0] for own_path in along] + away)
    mean = np.mean(starts, axis=0)
    for members in (starts[:eligible], starts[eligible:]):
        if len(members):
            off = [product(own - mean, own - mean) for own in members]
            constraints.append(sum(off) / len(members) <= 1)

    def risen(move: np.ndarray) -> cp.Expression:
        return product(mean, move) + product(move, move) / 2

    sets = list(combinations(range(eligible), a_round.participants))
    reach = float(a_round.server_lr) * eta / a_round.participants
    drawn = sum(risen(-reach * np.sum([sums[i] for i in s], axis=0)) for s in sets) / len(sets)
    q = float(a_round.q)
    value = q * drawn + (1 - q) * risen(-own * mean)
    value += float(decrease * clients.L) * product(mean, mean)
    program = cp.Problem(cp.Maximize(value), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


def independence(gram: cp.Variable, known: int, eligible: int, steps: int) -> list[cp.Constraint]:
    """Return what is zero: products with what is known, among clients, and with later noise."""
    each = steps * eligible

    def h(client: int, k: int) -> int:
        return known + client * steps + k

    def xi(client: int, k: int) -> int:
        return known + each + client * steps + k

    owner = {place(i, k): i for i in range(eligible) for k in range(steps) for place in (h, xi)}
    zero = [gram[:known, known:] == 0]
    zero += [gram[a, b] == 0 for a in owner for b in owner if a < b and owner[a] != owner[b]]
    for i in range(eligible):
        zero.append(gram[h(i, 0), h(i, 0)] == 0)
        for k in range(steps):
            zero += [gram[xi(i, k), xi(i, j)] == 0 for j in range(k)]
            zero += [gram[xi(i, k), h(i, j)] == 0 for j in range(k + 1)]
    return zero
