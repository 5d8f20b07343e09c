"""Moments of one client's K local SGD steps on a quadratic, in closed form.

With ``y_{k+1} = y_k - eta (grad F_i(y_k) + n_k)`` from x, curvature ``a`` along an eigenvector and
``r = 1 - eta a``: ``E grad F_i(y_k) = r^k grad F_i(x)``, and the noise of step j reaches
``grad F_i(y_k)`` as ``-eta a r^(k-1-j)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import Setting
from fltheory.exact_or_float import norm
from fltheory.problems import QuadraticProblem
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class LocalRun(ReadOnlyArrays):
    """Every client's local steps from the initial model.

    Attributes
    ----------
    steps : int
        K.
    lr : float
        eta.
    problem : QuadraticProblem
    start : array, (d,)

    Raises
    ------
    ValueError
        For other clients than quadratic ones, or another algorithm than FedAvg and Safari.
    """

    steps: int
    lr: float
    problem: QuadraticProblem
    start: FloatArray

    def __init__(self, setting: Setting) -> None:
        algorithm, problem = setting.algorithm, quadratic_for("for the lemmas", setting.problem)
        if not isinstance(algorithm, FedAvg | Safari):
            raise ValueError(
                f"algorithm must be FedAvg or Safari for the lemmas, got {algorithm!r}"
            )
        object.__setattr__(self, "steps", algorithm.local_steps)
        object.__setattr__(self, "lr", algorithm.client_lr)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "start", setting.x0)

    @property
    def size(self) -> Any:
        """``eta K L``."""
        return self.lr * self.steps * self.problem.L

    @property
    def noise(self) -> FloatArray:
        """(N,) variance of a gradient's noise along one coordinate."""
        return np.asarray(self.problem.client_sigmas**2 / self.problem.dim)

    @cached_property
    def curvatures(self) -> FloatArray:
        """(N, d) eigenvalues of each client's Hessian."""
        values, _ = self.problem.eigenbasis
        return np.broadcast_to(values, (self.problem.n_clients, self.problem.dim))

    @cached_property
    def _decay(self) -> FloatArray:
        """(N, d, K) ``r^k`` for k < K."""
        return np.asarray((1 - self.lr * self.curvatures)[..., None] ** np.arange(self.steps))

    @cached_property
    def _gradients(self) -> FloatArray:
        """(N, d) gradients at x, in each client's eigenbasis."""
        _, vectors = self.problem.eigenbasis
        n_clients = self.problem.n_clients
        gradients = self.problem.client_gradients(
            np.tile(self.start, (n_clients, 1)), np.arange(n_clients)
        )
        frames = np.broadcast_to(vectors, (n_clients, *vectors.shape[-2:]))
        return np.einsum("nba,nb->na", frames, gradients)

    @cached_property
    def summed_mean(self) -> FloatArray:
        """(N,) ``||sum_k E grad F_i(y_k)||^2``, which is also that of the noisy gradients."""
        total = self._gradients * self._decay.sum(axis=-1)
        return np.asarray((total**2).sum(axis=1))

    @cached_property
    def summed_noisy(self) -> FloatArray:
        """(N,) ``E||sum_k g_i(y_k)||^2``: the noise of step j stays with ``r^(K-1-j)``."""
        spread = (self._decay**2).sum(axis=(1, 2))
        return np.asarray(self.summed_mean + self.noise * spread)

    @cached_property
    def summed_exact(self) -> FloatArray:
        """(N,) ``E||sum_k grad F_i(y_k)||^2``: there, it stays with ``r^(K-1-j) - 1``."""
        spread = ((self._decay - 1) ** 2).sum(axis=(1, 2))
        return np.asarray(self.summed_mean + self.noise * spread)

    @cached_property
    def largest_variance(self) -> FloatArray:
        """(N,) the largest ``E||g_i(y_k) - E g_i(y_k)||^2`` over k < K, that of the last step."""
        before = (self._decay[..., :-1] ** 2).sum(axis=-1)
        spread = 1 + (self.lr * self.curvatures) ** 2 * before
        return np.asarray(self.noise * spread.sum(axis=1))

    @property
    def gradient_of_mean(self) -> Any:
        """``||grad F(x)||``."""
        return norm(self.problem.gradient(self.start))
