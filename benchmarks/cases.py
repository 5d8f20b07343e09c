"""The instances that the benchmarks share."""

from __future__ import annotations

import numpy as np

from fltheory.problems import QuadraticProblem, quadratic


def clients(n_clients: int, dim: int, *, shared: bool) -> QuadraticProblem:
    """Return noisy clients with one shared Hessian, or one dense Hessian per client."""
    if shared:
        return quadratic(n_clients, dim, 1.0, 0.1, 2.0, sigma=1.0, server_sigma=1.0)
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(n_clients, dim, dim)) / np.sqrt(dim)
    hessians = 0.1 * np.eye(dim) + 0.2 * np.einsum("iab,icb->iac", roots, roots)
    optima = rng.normal(size=(n_clients, dim))
    return QuadraticProblem(hessians, optima, sigma=1.0, server_sigma=1.0)
