"""Quadratic client losses, on which every constant of a convergence theorem is known.

Definitions
-----------
``F_i(x) = 1/2 (x - c_i)' H_i (x - c_i)``, ``F = sum_i alpha_i F_i`` with target weights
``alpha``; ``L`` and ``mu`` are the largest and the smallest curvature of any *client*;
``sigma_G = sup_{i, x} ||grad F_i(x) - grad F(x)||`` (SA-FL, Assumption 5);
``Gamma = max_i F_i(x*) - min F_i`` (CA-Fed, Section III).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.exact_or_float import largest, largest_norm, number, solve
from fltheory.problems.ball import Ball, largest_affine_norm
from fltheory.problems.base import (
    GradientSplit,
    checked_target_weights,
    weighted_mean,
    weights_or_uniform,
)
from fltheory.read_only import ReadOnlyArrays, read_only
from fltheory.validation import ClientIndices, FloatArray

# Q D Q' in floats is symmetric to within a few dozen rounding errors of its largest entry.
_SYMMETRY_TOLERANCE = 64 * np.finfo(np.float64).eps
_CLIENTS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class QuadraticProblem(ReadOnlyArrays):
    """Clients with quadratic losses and additive Gaussian gradient noise.

    Parameters
    ----------
    hessians : array, (d, d) or (N, d, d)
        One Hessian that all clients share, or one per client; symmetric positive definite.
    optima : array, (N, d)
        ``c_i``, the minimiser of each client's loss.
    sigma : float
        Clients' gradient noise: ``E ||noise||^2 = sigma**2``, isotropic Gaussian.
    server_sigma : float
        Noise of the server's own stochastic gradient of F, with the same meaning (SA-FL's sigma_s).
    target_weights : array, (N,), optional
        ``alpha``, positive with sum one; uniform by default.
    noise_shares : array, (N,), optional
        Each client's noise level divided by ``sigma``, the largest level. The shares are in [0, 1],
        and at least one of them is 1. CA-Fed's sigma_k is ``sigma`` times these. By default, all
        clients are equally noisy.

    Raises
    ------
    ValueError
        If a shape is wrong, a number is NaN, a Hessian is not symmetric positive definite, a noise
        level is negative, the target weights do not define an average, or a share is out of range.

    Examples
    --------
    >>> problem = QuadraticProblem([[2.0]], [[-1.0], [1.0]])
    >>> problem.L, problem.sigma_G, problem.Gamma
    (2.0, 2.0, 1.0)
    """

    hessians: FloatArray
    optima: FloatArray
    _: KW_ONLY
    sigma: float = 0.0
    server_sigma: float = 0.0
    target_weights: FloatArray | None = None
    noise_shares: FloatArray | None = None

    def __init__(
        self,
        hessians: ArrayLike,
        optima: ArrayLike,
        *,
        sigma: float = 0.0,
        server_sigma: float = 0.0,
        target_weights: ArrayLike | None = None,
        noise_shares: ArrayLike | None = None,
    ) -> None:
        optima = validation.array_of("optima", optima, "n_clients", "dim")
        n_clients, dim = optima.shape
        validation.keeps_its_digits("sigma", sigma)
        validation.keeps_its_digits("server_sigma", server_sigma)
        fields = {
            "optima": optima,
            "hessians": _checked_hessians(hessians, n_clients, dim),
            "sigma": validation.nonnegative("sigma", sigma),
            "server_sigma": validation.nonnegative("server_sigma", server_sigma),
            "target_weights": checked_target_weights(target_weights, n_clients),
            "noise_shares": _checked_shares(noise_shares, n_clients),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self.optima.shape[0]

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        return self.optima.shape[1]

    @property
    def shared_hessian(self) -> bool:
        """Whether all clients have the same Hessian."""
        return self.hessians.ndim == 2

    @cached_property
    def alpha(self) -> FloatArray:
        """(N,) target weights, uniform if none were given."""
        return weights_or_uniform(self.target_weights, self.n_clients)

    @property
    def client_sigmas(self) -> FloatArray:
        """(N,) noise level of each client's gradient (CA-Fed, Assumption 5)."""
        if self.noise_shares is None:
            return np.full(self.n_clients, self.sigma)
        return np.asarray(self.noise_shares * self.sigma)

    @cached_property
    def _curvatures(self) -> FloatArray:
        return np.asarray(np.linalg.eigvalsh(self.hessians), dtype=np.float64)

    @cached_property
    def eigenbasis(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (..., d) and eigenvectors (..., d, d) of the Hessians."""
        values, vectors = np.linalg.eigh(self.hessians)
        return np.asarray(values, dtype=np.float64), np.asarray(vectors, dtype=np.float64)

    @cached_property
    def inverse_hessians(self) -> FloatArray:
        """The Hessians' inverses, in the same shape."""
        values, vectors = self.eigenbasis
        return from_eigenbasis(1.0 / values, vectors)

    @cached_property
    def L(self) -> float:
        """Smoothness: the largest eigenvalue of any client's Hessian."""
        return largest(self._curvatures)

    @cached_property
    def mu(self) -> float:
        """Strong convexity: the smallest eigenvalue of any client's Hessian."""
        return -largest(-self._curvatures)

    @cached_property
    def mean_hessian(self) -> FloatArray:
        """(d, d) Hessian of F."""
        return weighted_hessian(self.hessians, self.alpha)

    @cached_property
    def x_star(self) -> FloatArray:
        """(d,) minimiser of F."""
        return weighted_minimiser(self.hessians, self.optima, self.alpha)

    @cached_property
    def x_star_error(self) -> float:
        """Bound on the distance of ``x_star`` from the optimum that the decimals define.

        The norm of the gradient of F at ``x_star`` is at most its computed value plus the rounding
        error of that computation. This error is a few rounding errors of each product of a Hessian
        and a difference, including the rounding of decimals to floats. Divided by a lower bound on
        the curvature of F, this bounds the distance.
        """
        unit = float(np.finfo(np.float64).eps)
        pull, lost = np.zeros(self.dim), 0.0
        for first in range(0, self.n_clients, _CLIENTS_AT_ONCE):
            some = slice(first, first + _CLIENTS_AT_ONCE)
            hessians = self.hessians if self.shared_hessian else self.hessians[some]
            optima, alpha = self.optima[some], self.alpha[some]
            offsets = self.x_star - optima
            far = np.linalg.norm(np.abs(optima) + np.abs(self.x_star), axis=1)
            norms = np.linalg.norm(hessians, axis=(-2, -1))
            each = norms * (2 * far + (self.dim + 4) * np.linalg.norm(offsets, axis=1))
            # For sums over clients, and for weights that are rounded decimals.
            summed = (self.n_clients + 4) * norms * np.linalg.norm(offsets, axis=1)
            pull += alpha @ _times(hessians, offsets)
            lost += unit * float(alpha @ (each + summed))
        residual = float(np.linalg.norm(pull))
        curvatures = np.linalg.eigvalsh(self.mean_hessian)
        least = curvatures[0] - unit * (self.n_clients + 8 * self.dim) * curvatures[-1]
        return (residual + lost) / least if least > 0 else float("inf")

    @property
    def client_hessians(self) -> FloatArray:
        """(N, d, d) every client's Hessian, repeated if the clients share one."""
        return np.broadcast_to(self.hessians, (self.n_clients, self.dim, self.dim))

    @cached_property
    def gradients_at_optimum(self) -> FloatArray:
        """(N, d) client gradients at x*, whose target-weighted sum is zero."""
        return _times(self.hessians, self.x_star - self.optima)

    @property
    def gradient_split(self) -> GradientSplit:
        """The gradient split, with rest zero: all gradients are affine."""
        pulls = self.gradients_at_optimum
        return GradientSplit(self.client_hessians, pulls, self.mean_hessian, 0.0)

    @cached_property
    def _losses_at_optimum(self) -> FloatArray:
        offsets = self.x_star - self.optima
        return np.asarray(np.einsum("ia,ia->i", offsets, self.gradients_at_optimum) / 2)

    @cached_property
    def F_star(self) -> float:
        """The minimum of F."""
        return number(self.alpha @ self._losses_at_optimum)

    @cached_property
    def client_minima(self) -> FloatArray:
        """(N,) minimum of each client's loss: zero, because the losses have no constant term."""
        return np.asarray(0 * self.alpha)

    @cached_property
    def Gamma(self) -> float:
        """``max_i F_i(x*) - F_i*`` (CA-Fed, Section III)."""
        return largest(self._losses_at_optimum)

    @cached_property
    def sigma_G(self) -> float:
        """Gradient dissimilarity over all of R^d; infinite unless the Hessians agree."""
        if not self.shared_hessian and (self.hessians != self.hessians[0]).any():
            return float("inf")
        return largest_norm(self.gradients_at_optimum)

    def with_target_weights(self, weights: FloatArray) -> QuadraticProblem:
        """Return the same clients with another objective."""
        return replace(self, target_weights=weights)

    def largest_gradients_on(self, ball: Ball) -> FloatArray:
        """(N,) the largest ``||grad F_i||`` on a ball."""
        return np.array(
            [
                largest_affine_norm(hessian, hessian @ offset, ball.radius)
                for hessian, offset in self._around(ball)
            ]
        )

    def largest_losses_on(self, ball: Ball) -> FloatArray:
        """(N,) the largest ``F_i`` on a ball."""
        largest = []
        for hessian, offset in self._around(ball):
            root = np.asarray(np.linalg.cholesky(hessian).T, dtype=np.float64)
            largest.append(0.5 * largest_affine_norm(root, root @ offset, ball.radius) ** 2)
        return np.array(largest)

    def _around(self, ball: Ball) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield each client's Hessian, and the offset of the ball's centre from its optimum."""
        yield from zip(self.client_hessians, ball.centre - self.optima, strict=True)

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""
        return self.excess_loss(x) + self.F_star

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points of shape (..., d), without cancellation."""
        offset = x - self.x_star
        return np.einsum("...a,...a->...", offset, offset @ self.mean_hessian) / 2

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""
        return (x - self.x_star) @ self.mean_hessian

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d) and clients (T,)."""
        offsets = x - self.optima[clients]
        if self.shared_hessian:
            return offsets @ self.hessians
        return np.einsum("tab,tb->ta", self.hessians[clients], offsets)

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, shape (..., N), at common points of shape (..., d)."""
        offsets = x[..., None, :] - self.optima
        if self.shared_hessian:
            return np.einsum("...ia,...ia->...i", offsets @ self.hessians, offsets) / 2
        return np.einsum("iab,...ia,...ib->...i", self.hessians, offsets, offsets) / 2


def quadratic_for(what: str, problem: Any) -> QuadraticProblem:
    """Return ``problem`` if it is quadratic; else raise a ValueError that says what requires it."""
    if not isinstance(problem, QuadraticProblem):
        kind = type(problem).__name__
        raise ValueError(f"problem must be a QuadraticProblem {what}, got {kind}")
    return problem


def _checked_shares(noise_shares: ArrayLike | None, n_clients: int) -> FloatArray | None:
    if noise_shares is None:
        return None
    shares = validation.array_of("noise_shares", noise_shares, n_clients)
    if shares.min() < 0 or shares.max() != 1:
        raise ValueError(
            f"noise_shares must be in [0, 1], the largest of them 1, got {shares.tolist()}"
        )
    return shares


def _checked_hessians(hessians: ArrayLike, n_clients: int, dim: int) -> FloatArray:
    array = validation.real_array("hessians", hessians, shape="(dim, dim) or (n_clients, dim, dim)")
    if array.shape not in {(dim, dim), (n_clients, dim, dim)}:
        raise ValueError(
            f"hessians must have shape ({dim}, {dim}) or ({n_clients}, {dim}, {dim}) to match "
            f"optima of shape ({n_clients}, {dim}), got {array.shape}"
        )
    transposed = np.swapaxes(array, -1, -2)
    asymmetry = float(np.abs(array - transposed).max())
    if asymmetry > _SYMMETRY_TOLERANCE * float(np.abs(array).max()):
        raise ValueError(f"hessians must be symmetric, got an asymmetry of {asymmetry:.3g}")
    symmetric = 0.5 * (array + transposed)
    smallest = float(np.linalg.eigvalsh(symmetric).min())
    if smallest <= 0:
        raise ValueError(
            f"hessians must be positive definite, got a smallest eigenvalue of {smallest:.6g}"
        )
    return read_only(symmetric)


def _times(hessians: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return each client's Hessian, or the shared one, times the client's vector."""
    if hessians.ndim == 2:
        return vectors @ hessians
    return np.einsum("iab,ib->ia", hessians, vectors)


def weighted_hessian(hessians: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``sum_i w_i H_i``, (d, d), for weights that sum to one."""
    if hessians.ndim == 2:
        return hessians
    return np.einsum("i,iab->ab", weights, hessians)


def weighted_minimiser(hessians: FloatArray, optima: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the minimiser of ``sum_i w_i F_i``, (d,), for weights that sum to one."""
    centre = weighted_mean(optima, weights)
    if hessians.ndim == 2:
        return centre
    pull = weights @ _times(hessians, optima - centre)
    return np.asarray(centre + solve(weighted_hessian(hessians, weights), pull))


def from_eigenbasis(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the symmetric matrices (..., d, d) of eigenvalues (..., d) and eigenvectors."""
    product = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.asarray(0.5 * (product + np.swapaxes(product, -1, -2)))
