"""The interface of problems that engines and theorems use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray


def checked_target_weights(weights: ArrayLike | None, n_clients: int) -> FloatArray | None:
    """Return ``weights`` as a read-only array, or None if none were given.

    Raises
    ------
    ValueError
        Unless there is one positive weight per client and they sum to one (to 1e-12).
    """
    if weights is None:
        return None
    array = validation.array_of("target_weights", weights, n_clients)
    if array.min() <= 0:
        raise ValueError(f"target_weights must be positive, got {array.min():.6g} among them")
    if abs(array.sum() - 1) > 1e-12:
        raise ValueError(f"target_weights must sum to 1, got a sum of {array.sum():.15g}")
    return array


def weights_or_uniform(weights: FloatArray | None, n_clients: int) -> FloatArray:
    """Return ``weights``, or 1/N for each of N clients if no weights are given."""
    return np.full(n_clients, 1.0 / n_clients) if weights is None else weights


def weighted_mean(points: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``sum_i weights_i points_i``, exact if all points are equal.

    The sum is over differences from the first point, so equal points give no rounding error.
    """
    return np.asarray(points[0] + weights @ (points - points[0]))


class Problem(Protocol):
    """Analytic client losses F_i, their weighted average F, and exact constants.

    ``sigma`` and ``server_sigma`` are the noise levels of the clients' and the server's
    stochastic gradients: ``E||noise||^2`` is their square, exactly.

    Examples
    --------
    Every problem knows its constants and its optimum:

    >>> import fltheory as fl
    >>> problem: Problem = fl.problems.QuadraticProblem([[2.0]], [[-1.0], [3.0]])
    >>> problem.L, problem.x_star.tolist(), problem.sigma_G
    (2.0, [1.0], 4.0)
    """

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        ...

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        ...

    @property
    def sigma(self) -> float:
        """Noise level of the clients' gradients."""
        ...

    @property
    def server_sigma(self) -> float:
        """Noise level of the server's own gradient."""
        ...

    @property
    def alpha(self) -> FloatArray:
        """(N,) target weights."""
        ...

    @property
    def L(self) -> float:
        """Smoothness of every client."""
        ...

    @property
    def mu(self) -> float:
        """The smallest curvature of any client."""
        ...

    @property
    def sigma_G(self) -> float:
        """Gradient dissimilarity."""
        ...

    @property
    def x_star(self) -> FloatArray:
        """(d,) global minimiser of F."""
        ...

    @property
    def F_star(self) -> float:
        """The minimum of F."""
        ...

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points (..., d)."""
        ...

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points (..., d)."""
        ...

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points (..., d)."""
        ...

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d)."""
        ...

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., d)."""
        ...


def gradients_at(problem: Problem, point: FloatArray) -> FloatArray:
    """Return every client's gradient at one point, (N, d)."""
    count = problem.n_clients
    return np.asarray(problem.client_gradients(np.tile(point, (count, 1)), np.arange(count)))


@dataclass(frozen=True, eq=False)
class GradientSplit(ReadOnlyArrays):
    """A split ``grad F_i(x) = A_i (x - x*) + v_i + h(x)`` with ``||h(x)|| <= rest`` for all x.

    The gradient of F has the same form without ``v_i`` and with the target-weighted mean of the
    ``A_i``.

    Attributes
    ----------
    hessians : array, (N, d, d)
        ``A_i``, symmetric and positive semidefinite.
    pulls : array, (N, d)
        ``v_i``.
    mean_hessian : array, (d, d)
    rest : float
    """

    hessians: FloatArray
    pulls: FloatArray
    mean_hessian: FloatArray
    rest: float


@runtime_checkable
class HasGradientSplit(Protocol):
    """A problem with a known `GradientSplit`."""

    @property
    def gradient_split(self) -> GradientSplit:
        """The affine parts of the gradients, and a bound on the rest."""
        ...
