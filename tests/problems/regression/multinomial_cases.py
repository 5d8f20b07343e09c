"""A small multinomial problem, and its Hessians entry by entry."""

from __future__ import annotations

import numpy as np

from fltheory.problems import MultinomialProblem
from fltheory.problems.regression.multinomial_losses import probabilities

SIZES = (3, 6, 2)


def problem(n_classes=3, ridge=0.2, seed=0, sizes=SIZES, dtype=float):
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(size, 4)).astype(dtype) for size in sizes]
    labels = [rng.integers(n_classes, size=size) for size in sizes]
    weights = rng.dirichlet(np.full(len(sizes), 5.0))
    return MultinomialProblem(
        features, labels, n_classes=n_classes, ridge=ridge, target_weights=weights
    )


def points(it, k=2, seed=1, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(k, it.dim))


def of_client(it, client):
    return slice(it.starts[client], it.starts[client + 1])


def hessian(it, client, x):
    """The Hessian of F_i, entry by entry in the order of the points."""
    rows = of_client(it, client)
    total = np.zeros((it.dim, it.dim))
    order = np.concatenate(
        [
            np.arange(it.n_classes * 5).reshape(it.n_classes, 5)[:, :-1].ravel(),
            np.arange(it.n_classes * 5).reshape(it.n_classes, 5)[:, -1],
        ]
    )
    for p, a in zip(probabilities(it.logits(x[None], rows)[:, 0]), it.samples[rows], strict=True):
        extended = np.append(a, 1.0)
        block = np.kron(np.diag(p) - np.outer(p, p), np.outer(extended, extended))
        total += block[np.ix_(order, order)] / it.sizes[client]
    return total + it.ridge * np.eye(it.dim)
