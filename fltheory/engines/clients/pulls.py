"""Bounds on the effect of local steps for gradients that are affine up to a bounded rest.

Let ``u = x - x*`` and ``grad F_i = A_i u + v_i + h`` with ``||h|| <= rest`` (`GradientSplit`), and
noise xi in every step. K steps of size lr change a client's model by

``Delta_i = -M_i u - Q_i v_i - lr sum_k (1 - lr A_i)^(K-1-k) (h_k + xi_k)``,
``Q_i = lr sum_k (1 - lr A_i)^k,  M_i = A_i Q_i``,

where the matrices M_i and Q_i are functions of A_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fltheory.problems.base import GradientSplit
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Pulls:
    """Bounds on the effect of local steps on each client's model, from a `GradientSplit`.

    Attributes
    ----------
    least, largest : array, (N,)
        Extreme eigenvalues of ``M_i``.
    push : array, (N,)
        Bound on how far ``v_i`` and the bounded rest move the model.
    noise, spread : float
        The largest ``sum_j c_j`` and ``sqrt(sum_j c_j^2)`` of any client, where ``c_j`` is lr times
        the norm of ``(1 - lr A_i)^j``. Noise moves the model by sigma times these.
    """

    least: FloatArray
    largest: FloatArray
    push: FloatArray
    noise: float
    spread: float

    @classmethod
    def of(cls, split: GradientSplit, steps: int, lr: float, *, by_server: bool = False) -> Pulls:
        """Return the bounds for ``steps`` steps of size ``lr``, by clients or by the server."""
        hessians = split.mean_hessian[None] if by_server else split.hessians
        pulls = np.zeros((1, len(split.mean_hessian))) if by_server else split.pulls
        curvatures, basis = np.linalg.eigh(hessians)
        powers = (1 - lr * curvatures)[None] ** np.arange(steps).reshape(-1, 1, 1)
        sums = lr * powers.sum(axis=0)
        moves = curvatures * sums
        steady = np.linalg.norm(sums * np.einsum("iab,ia->ib", basis, pulls), axis=1)
        factors = np.abs(powers).max(axis=2)
        return cls(
            moves.min(axis=1),
            moves.max(axis=1),
            steady + (lr * factors.sum(axis=0) * split.rest if split.rest else 0.0),
            float(lr * factors.sum(axis=0).max()),
            float(lr * np.sqrt((factors**2).sum(axis=0)).max()),
        )
