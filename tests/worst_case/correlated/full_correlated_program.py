"""The program over every set of participants and all vectors of all clients: no symmetry at all.

The tests' own: W has coefficients of its own for every set, as many as a quadratic form of z and of
all gradients at x* has; the next set is enumerated with its probability. Clients are L = 1.
"""

from __future__ import annotations

import warnings
from itertools import permutations, product

import cvxpy as cp
import numpy as np

from fltheory.worst_case.rounds.one_round import AvailabilityGroup, AveragingRound


def least_floor(a_round: AveragingRound, mu: float, rate: float | None = None) -> float:
    """Return the least floor of the mean of ``||x - x*||^2``, or at a rate, over dissimilarity."""
    clients = [own for own in a_round.groups for _ in range(own.n_clients)]
    n, K, eta = len(clients), a_round.local_steps, float(a_round.client_lr)
    alpha = np.array([float(own.target_weight) for own in clients])
    size = 1 + n * K + n - 1
    basis = np.eye(size)
    z = basis[0]
    delta = [[basis[1 + i * K + k] for k in range(K)] for i in range(n)]
    g = [basis[1 + n * K + i] for i in range(n - 1)]
    g.append(-sum((a * v for a, v in zip(alpha, g, strict=False)), np.zeros(size)) / alpha[-1])
    seen = np.array([z, *g[:-1]])
    h = sum(a * np.outer(v, v) for a, v in zip(alpha, g, strict=True))
    states, law = _chain(a_round, clients)
    value = [cp.Variable((n, n), symmetric=True) for _ in states]
    floor, below = cp.Variable(), cp.Variable()
    theta = 2 * eta * K * mu
    # Near the solver's precision numbers of one size matter.
    unit = 1 / np.sqrt(eta / mu)
    constraints = []
    for row, own in zip(law, value, strict=True):
        after = 0
        for chance, following, then in zip(row, states, value, strict=True):
            weights = _weights(a_round, clients, following)
            end = z.copy()
            for i in range(n):
                end = end - eta * weights[i] * sum(delta[i][k] + unit * g[i] for k in range(K))
            moved = np.array([end, *g[:-1]])
            after = after + chance * (moved.T @ then @ moved)
        now = seen.T @ own @ seen
        slack = (rate or 1.0) * now - after + floor * h
        if rate is None:
            slack = slack - theta * np.outer(z, z)
            end_slack = now + below * h
        else:
            end_slack = now - np.outer(z, z)
        for i in range(n):
            form, cancels = _conditions(K, delta[i], unit * g[i], z, eta, mu)
            constraints.append(cancels)
            slack = slack + theta * form
        constraints += [slack / theta >> 0, _shrunk(end_slack, n, K, size) >> 0]
    program = cp.Problem(cp.Minimize(floor), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value) / (theta if rate is None else 1 - rate) / unit**2


def _chain(
    a_round: AveragingRound, clients: list[AvailabilityGroup]
) -> tuple[list[tuple[bool, ...]], list[list[float]]]:
    """Return the sets of participants, or a chain's states, and the chances from one to another."""
    if a_round.chain is not None:
        rows = [[float(p) for p in row] for row in a_round.chain.transition]
        return list(a_round.chain.masks), rows
    sets = list(product((False, True), repeat=len(clients)))
    chances = [[1.0] * len(sets) for _ in sets]
    for row, S in zip(chances, sets, strict=True):
        for j, following in enumerate(sets):
            for own, was, there in zip(clients, S, following, strict=True):
                p = float(own.stays if was else own.comes)
                row[j] *= p if there else 1 - p
    return sets, chances


def _shrunk(matrix: cp.Expression, n: int, K: int, size: int) -> cp.Expression:
    """Return the rows and columns of z and g: the others are zero."""
    pick = np.eye(size)[[0, *range(1 + n * K, size)]]
    return pick @ matrix @ pick.T


def _weights(
    a_round: AveragingRound, clients: list[AvailabilityGroup], there: tuple[bool, ...]
) -> list[float]:
    if a_round.averaging == "present":
        return [float(one) * float(a_round.server_lr) / max(sum(there), 1) for one in there]
    pairs = zip(clients, there, strict=True)
    return [float(one) * float(own.weight * a_round.server_lr) for own, one in pairs]


def _conditions(
    K: int, delta: list[np.ndarray], g: np.ndarray, z: np.ndarray, eta: float, mu: float
) -> tuple[cp.Expression, cp.Constraint]:
    """Return the weighted sum of a client's conditions, and what its multipliers must meet."""
    points, gradients = [z], [*delta, 0 * z]
    for k in range(K - 1):
        points.append(points[-1] - eta * (delta[k] + g))
    points.append(0 * z)
    weights = cp.Variable((K + 1, K + 1), nonneg=True)
    total = 0
    for a, b in permutations(range(K + 1), 2):
        x, v = points[a] - points[b], gradients[a] - gradients[b]
        form = np.outer(gradients[b], x) + (
            np.outer(v, v) + mu * np.outer(x, x) - 2 * mu * np.outer(v, x)
        ) / (2 * (1 - mu))
        total = total + weights[a, b] * (form + form.T) / 2
    ones = np.ones(K + 1)
    return total, weights @ ones == weights.T @ ones
