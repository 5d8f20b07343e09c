"""The largest weights of updates, measured on runs whose clients move along an axis each."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms import (
    CAFed,
    F3ast,
    FedAR,
    FedAU,
    FedAvg,
    Mifa,
    Safari,
    Scaffold,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import CLIENTS

N = 3
ALPHA = (0.5, 0.3, 0.2)


class Axes:
    """Client i changes any model by the i-th unit vector, so that a round shows its weights."""

    n_clients = N

    def local_sgd(self, x, who, *, steps, lr, correction=None):
        return who[..., None] * np.eye(N)[None]

    def summed_local_sgd(self, x, who, weights, *, steps, lr, correction=None):
        return np.where(who, weights, 0.0)

    def loss(self, x, who):
        return np.where(who, 1.0 + np.arange(N), 0.0)


ALGORITHMS = {
    "FedAU": FedAU(0.1, 2, server_lr=0.7),
    "FedAU, cut off": FedAU(0.1, 2, cutoff=4),
    "WeightedFedAvg": WeightedFedAvg(ALPHA, 0.1, 2, server_lr=2.0),
    "FedAvg": FedAvg(0.1, 2, server_lr=1.5),
    "SAFARI": Safari(0.5, 0.1, 0.1, 2),
    "F3AST": F3ast(ALPHA, 2, 0.1, 2, server_lr=0.5, smoothing=0.2),
    "F3AST with an oracle": F3ast(ALPHA, 2, 0.1, 2, availability=(0.2, 0.3, 0.9)),
    "CA-Fed": CAFed(ALPHA, 0.1, 2, server_lr=0.5),
    "CA-Fed with an oracle": CAFed(ALPHA, 0.1, 2, availability=0.2, correlation=0.0),
    "FedAR": FedAR(0.1, 2, server_lr=0.8),
    "MIFA": Mifa(0.1, 2, server_lr=0.6),
    "SCAFFOLD": Scaffold(0.1, 2, server_lr=1.3),
}
REACHED = {"FedAU", "FedAU, cut off", "WeightedFedAvg", "FedAvg", "SAFARI", "F3AST", "SCAFFOLD"}
ROUNDS = 60


def paths() -> np.ndarray:
    """Rare clients, and each client after an absence of every length: the latter decide."""
    rng = np.random.default_rng(0)
    drawn = rng.random((200, ROUNDS, N)) < rng.choice([0.02, 0.1, 0.5, 0.95], (200, 1, N))
    late = np.zeros((ROUNDS, ROUNDS, N), dtype=bool)
    for r in range(ROUNDS):
        late[r, r:, r % N] = True
    return np.concatenate([drawn, late, np.ones((1, ROUNDS, N), dtype=bool)])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_path_has_larger_weights(name: str) -> None:
    algorithm, masks = ALGORITHMS[name], paths()
    state = algorithm.init(np.zeros((len(masks), N)), N)
    closest = 0.0
    for r in range(ROUNDS):
        before = state["x"]
        state = algorithm.round(state, Axes(), masks[:, r], CLIENTS)
        weights = state["x"] - before
        bounds = algorithm.update_bounds(N, r + 1)[CLIENTS]
        assert (weights >= -1e-12).all()
        assert (weights <= bounds.largest * (1 + 1e-9) + 1e-12).all()
        assert (weights.sum(axis=1) <= bounds.total * (1 + 1e-9) + 1e-12).all()
        closest = max(closest, float((weights / bounds.largest).max()))
    if name in REACHED:
        assert closest > 0.999
