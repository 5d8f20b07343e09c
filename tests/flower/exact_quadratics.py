"""Quadratic clients and local SGD on them, written out, for Flower's tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """``(x - c)' diag(h) (x - c) / 2``."""

    optimum: Floats
    curvature: Floats
    n_samples: int = 1

    def gradient(self, x: Floats) -> Floats:
        return self.curvature * (x - self.optimum)

    def loss(self, x: Floats) -> float:
        return 0.5 * float(self.curvature @ (x - self.optimum) ** 2)

    def trained(self, x: Floats, lr: float, steps: int, mu: float = 0.0) -> Floats:
        """Return the model after local steps: a contraction to the optimum of F + mu term."""
        total = self.curvature + mu
        goal = (self.curvature * self.optimum + mu * x) / total
        return goal + (1 - lr * total) ** steps * (x - goal)


def clients(sizes: Sequence[int], dim: int = 3) -> list[Quadratic]:
    rng = np.random.default_rng(7)
    return [Quadratic(rng.normal(size=dim), rng.uniform(0.5, 2.0, dim), n) for n in sizes]


def trace(rounds: int, n_clients: int) -> NDArray[np.bool_]:
    """Return a trace with an empty round and one of everybody."""
    who = np.random.default_rng(8).random((rounds, n_clients)) < 0.5
    who[1], who[2] = False, True
    return who


def averaged(
    them: Sequence[Quadratic],
    who: NDArray[np.bool_],
    x0: Floats,
    lr: float,
    steps: Sequence[int],
    weights: Sequence[float],
    mu: float = 0.0,
) -> Floats:
    """Return FedAvg's models: the weighted mean of those present, nothing in an empty round."""
    models = [x0]
    for row in who:
        x, present = models[-1], np.flatnonzero(row)
        total = sum(weights[k] for k in present)
        new = [weights[k] * them[k].trained(x, lr, steps[k], mu) for k in present]
        models.append(np.sum(new, axis=0) / total if total else x)
    return np.array(models)
