"""Weighted sums of clients' random affine maps, drawn from the distribution of the sum.

Client i's map is ``A_i (x - c_i) + F_i g_i`` with independent standard normals ``g_i``. A sum with
weights ``w_i`` is then ``M (x - x*) - sum_i w_i A_i (c_i - x*)`` with ``M = sum_i w_i A_i``, and
*one* Gaussian of covariance ``sum_i w_i^2 F_i F_i'``, however many participants there are. This
takes d random numbers, instead of d per participant, and one Cholesky factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fltheory.validation import FloatArray

# The error of a Cholesky factor is about d roundoff units of the covariance's largest eigenvalue.
# Relative to the smallest eigenvalue, that is d units times this ratio. For d = 20 it is 1e-11,
# which no sample can detect.
_MOST_UNEQUAL = 1e4
# Outside this range, squares of weights underflow or overflow.
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-200, 1e200
# Number of replicas processed together, chosen so that their matrices stay in the L2 cache.
_BLOCK = 256
_NUMBERS_IN_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class SummedMaps:
    """The parts of N clients' maps needed to draw weighted sums.

    Clients are the last axis, so multiplying by weights (N, replicas) makes replicas the last axis
    of the product, and elementwise operations then run along it.

    Attributes
    ----------
    slopes : array, (d, d, N)
        Symmetric ``A_i``.
    pulls : array, (d, N)
        ``A_i (c_i - x*)``.
    covariances : array, (d, d, N), optional
        ``F_i F_i'`` divided by ``scale**2``, the largest of their eigenvalues; None without noise.
    scale : float
    """

    slopes: FloatArray
    pulls: FloatArray
    covariances: FloatArray | None
    scale: float

    @classmethod
    def of(
        cls, slopes: FloatArray, factors: FloatArray, pulls: FloatArray, *, noisy: bool
    ) -> SummedMaps | None:
        """Return the summed maps, or None if they overflow or the noise is too uneven.

        Noise is too uneven if a Cholesky factor of the sum would be inaccurate in some direction.

        Parameters
        ----------
        slopes, factors : arrays, (N, d, d)
            ``A_i`` and ``F_i``, whose columns are orthogonal.
        pulls : array, (N, d)
            ``A_i (c_i - x*)``.
        noisy : bool
            Whether there is noise at all.
        """
        if not (np.isfinite(slopes).all() and np.isfinite(pulls).all()):
            return None
        pulls = np.ascontiguousarray(pulls.T)
        clients_last = np.ascontiguousarray(np.moveaxis(slopes, 0, -1))
        if not noisy:
            return cls(clients_last, pulls, None, 0.0)
        # The lengths of the columns are the standard deviations along the principal axes.
        deviations = np.linalg.norm(factors, axis=1)
        scale, least = float(deviations.max()), float(deviations.min())
        # The condition is negated, so that deviations that are NaN also count as uneven.
        if not (least > 0 and (scale / least) ** 2 <= _MOST_UNEQUAL):
            return None
        scaled = factors / scale
        covariances = np.moveaxis(scaled @ np.swapaxes(scaled, 1, 2), 0, -1)
        return cls(clients_last, pulls, np.ascontiguousarray(covariances), scale)

    def covers(self, weights: FloatArray) -> NDArray[np.bool_]:
        """Return, per replica, whether to draw its sum here rather than map by map.

        Drawing it here is cheaper if all replicas have the same weights or many clients have
        nonzero weight, because the matrices of a sum cost the same for one participant as for N.
        Rows whose weights are all zero, or whose squares leave the range of floats, are not
        covered.
        """
        squares = np.einsum("ri,ri->r", weights, weights)
        sound = (squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE)
        return np.asarray(sound & worth_it(weights, self.pulls.shape[0]))

    def sums(
        self,
        offset: FloatArray,
        weights: FloatArray,
        draws: FloatArray | None,
        scratch: Scratch,
    ) -> FloatArray:
        """Return each replica's weighted sum, (replicas, d).

        Parameters
        ----------
        offset : array, (replicas, d)
            ``x - x*``.
        weights : array, (replicas, N)
        draws : array, (replicas, d), optional
            Standard normals, needed if there is noise.
        scratch : Scratch
        """
        if _alike(weights):
            return self._same_sum(offset, weights[0], draws)
        replicas, dim = offset.shape
        size = max(1, min(_BLOCK, _NUMBERS_IN_BLOCK // dim**2))
        total = np.empty_like(offset)
        for start in range(0, replicas, size):
            rows = slice(start, start + size)
            total[rows] = self._mean(offset[rows].T, weights[rows].T, scratch).T
            if self.covariances is not None and draws is not None:
                total[rows] += self._noise(draws[rows].T, weights[rows].T, scratch).T
        return total

    def _same_sum(
        self, offset: FloatArray, weights: FloatArray, draws: FloatArray | None
    ) -> FloatArray:
        """Return the sums if all replicas have the same weights (N,), from one matrix."""
        # This is a slice if all clients have nonzero weight, because indices would copy every map.
        counting = slice(None) if weights.all() else np.flatnonzero(weights)
        weights = weights[counting]
        slope = self.slopes[..., counting] @ weights
        total = product(offset, slope)
        total -= self.pulls[:, counting] @ weights
        if self.covariances is not None and draws is not None:
            spread = float(np.linalg.norm(weights))
            covariance = self.covariances[..., counting] @ (weights / spread) ** 2
            factor = np.asarray(self.scale * spread * np.linalg.cholesky(covariance))
            total += product(draws, factor.T)
        return total

    def _mean(self, offset: FloatArray, weights: FloatArray, scratch: Scratch) -> FloatArray:
        """Return the sums without noise, (d, replicas)."""
        dim, replicas = offset.shape
        weights = _copied(weights, scratch.array("weights", *weights.shape))
        slopes = scratch.array("slopes", dim * dim, replicas)
        product(self.slopes.reshape(dim * dim, -1), weights, slopes)
        offset = _copied(offset, scratch.array("vectors", dim, replicas))
        # Slopes are symmetric; summing over the outer index reads memory in order.
        total = np.einsum("bar,br->ar", slopes.reshape(dim, dim, replicas), offset)
        total -= product(self.pulls, weights, scratch.array("pulls", dim, replicas))
        return np.asarray(total)

    def _noise(self, draws: FloatArray, weights: FloatArray, scratch: Scratch) -> FloatArray:
        """Return the noise of the sums, (d, replicas), from one Cholesky factor per replica.

        The factors are computed column by column for all replicas at once. LAPACK is no faster per
        matrix, and allocating NumPy's array for its results takes far longer.
        """
        assert self.covariances is not None
        dim, replicas = draws.shape
        spread = np.linalg.norm(weights, axis=0)
        # The shares sum to one, so the covariance is as large as one client's.
        shares = np.divide(weights, spread, out=scratch.array("weights", *weights.shape))
        shares *= shares
        factor = scratch.array("factor", dim, dim, replicas)
        known = scratch.array("pulls", dim, replicas)
        for k in range(dim):
            column = product(self.covariances[k, k:], shares, factor[k, k:])
            factor[k, :k] = 0.0
            if k > 0:
                rest = np.einsum("jar,jr->ar", factor[:k, k:], factor[:k, k], out=known[k:])
                column -= rest
            np.sqrt(column[0], out=column[0])
            column[1:] /= column[0]
        draws = _copied(draws, scratch.array("vectors", dim, replicas))
        noise = np.einsum("kar,kr->ar", factor, draws)
        noise *= self.scale * spread
        return np.asarray(noise)


def worth_it(weights: FloatArray, dim: int) -> NDArray[np.bool_]:
    """Return, per replica, whether drawing the sum costs less than drawing participants singly.

    Unless all replicas have the same weights, the answer depends only on N, d and the replica's own
    participants, so that a replica's draws do not depend on the other replicas.
    """
    if _alike(weights):
        return np.ones(len(weights), dtype=bool)
    # Costs in nanoseconds, fitted for N = 10 to 200 and d = 2 to 50.
    together = 1500 + 0.4 * weights.shape[1] * dim**2 + 7 * dim**2
    apart = 150 + 25 * dim + 0.2 * dim**2
    return np.asarray(np.count_nonzero(weights, axis=1) >= together / apart)


def _alike(weights: FloatArray) -> bool:
    """Return whether all replicas have the same weights."""
    return len(weights) > 0 and bool((weights == weights[:1]).all())


def _copied(array: FloatArray, out: FloatArray) -> FloatArray:
    np.copyto(out, array)
    return out


# From this many multiplications on, OpenBLAS starts its own threads for a product. They compete
# with the threads of the sampled engine and made it six times slower.
_LARGEST_PRODUCT = 1 << 18


class Scratch:
    """Reusable work arrays.

    For arrays of this size, page faults of fresh memory cost more than the arithmetic.
    """

    def __init__(self) -> None:
        self._held: dict[str, FloatArray] = {}

    def array(self, name: str, *shape: int) -> FloatArray:
        """Return an uninitialised array that reuses the memory of the last array of this name."""
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size)
        return held[:size].reshape(shape)


def product(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Multiply two matrices in blocks of rows small enough that OpenBLAS starts no threads."""
    if out is None:
        out = np.empty((left.shape[0], right.shape[1]))
    rows = max(1, _LARGEST_PRODUCT // max(right.size, 1))
    for start in range(0, left.shape[0], rows):
        np.matmul(left[start : start + rows], right, out=out[start : start + rows])
    return out
