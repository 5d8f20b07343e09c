"""Second moments of a random affine map's deviation from its mean, in closed form.

If a round's map is a sum over participants, it is ``T = E T + Q (G B, -g)``. Here ``B s`` is the
model from which clients start, the server applies Q to the sum, and ``(G, g) = sum_i z_i (S_i, S_i
e_i)`` for clients with slopes S_i, optima e_i and coefficients z_i of mean zero. Two classes hold
the moments of (G, g), and neither grows with the number of clients.

With memory, one client's part in a round changes only a few entries of the state: the model and
what is remembered about that client. For a map ``T = E T + sum_f z_f D_f`` with T = (A, b),
`CorrelatedRows` keeps only the nonzero rows of each D_f.

All three classes offer the same methods for ``s -> A s + b``, with A of shape (k, n). Their
``works`` are the sizes of the terms of ``E[A M A']``, of ``cross`` and of ``E[b b']``. Multiplied
by ``operations`` (how many terms are summed for an entry, starting from the clients) and by the
unit roundoff, they bound the rounding errors, in the Frobenius norm, of computing the moments and
of applying them to M and m of norm one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fltheory.validation import FloatArray

Works = tuple[float, float, float]


def absolute_norm(matrix: FloatArray) -> float:
    """Return the spectral norm of ``|X|``, by which rounding errors of products grow.

    The error of each entry of a computed ``X Y`` is at most a few roundoff units of ``|X| |Y|``,
    and multiplying by ``|X|`` enlarges a Frobenius norm by at most the spectral norm of ``|X|``.
    The same factor covers errors to which X is applied.
    """
    return float(np.linalg.norm(np.abs(matrix), 2))


@dataclass(frozen=True, eq=False)
class SharedSlope:
    """``A = tau K`` and ``b = -J epsilon`` for clients who share a slope S.

    Attributes
    ----------
    slope, push : arrays, (k, n) and (k, d)
        ``K = Q S B`` and ``J = Q S``.
    moments : array, (1 + d, 1 + d)
        Covariance of ``(tau, epsilon)``, with ``tau = sum_i z_i`` and ``epsilon = sum_i z_i e_i``.
    sizes : tuple of float
        Sizes of the terms summed for the variance of tau, for its covariance with epsilon, and for
        the covariance matrix of epsilon.
    operations : float
        Number of terms summed for an entry.
    """

    slope: FloatArray
    push: FloatArray
    moments: FloatArray
    sizes: Works
    operations: float

    def scaled(self, p: float) -> Self:
        """Return the moments times ``p``."""
        variance, crossed, offsets = self.sizes
        sizes = p * variance, p * crossed, p * offsets
        return replace(self, moments=p * self.moments, sizes=sizes)

    @property
    def works(self) -> Works:
        """Sizes of the terms summed in ``E[A M A']``, in ``cross`` and in ``E[b b']``."""
        slope, push = absolute_norm(self.slope), absolute_norm(self.push)
        variance, crossed, offsets = self.sizes
        return variance * slope**2, 2 * crossed * slope * push, offsets * push**2

    @property
    def still(self) -> bool:
        """Whether the slope is constant, so that only ``E[b b']`` is nonzero."""
        return not self.moments[0].any()

    def spread(self, second: FloatArray) -> FloatArray:
        """Return ``E[A M A']``."""
        if self.still:
            return np.zeros((len(self.slope), len(self.slope)))
        return np.asarray(self.moments[0, 0] * (self.slope @ second @ self.slope.T))

    def dual(self, matrix: FloatArray) -> FloatArray:
        """Return ``E[A' X A]``."""
        return np.asarray(self.moments[0, 0] * (self.slope.T @ matrix @ self.slope))

    def cross(self, first: FloatArray) -> FloatArray:
        """Return ``E[A m b' + b m' A']``."""
        half = np.outer(self.slope @ first, self._pushed)
        return -(half + half.T)

    @cached_property
    def _pushed(self) -> FloatArray:
        return np.asarray(self.push @ self.moments[1:, 0])

    @cached_property
    def inflow(self) -> FloatArray:
        """(k, k) ``E[b b']``."""
        return np.asarray(self.push @ self.moments[1:, 1:] @ self.push.T)

    @cached_property
    def spread_tensor(self) -> FloatArray:
        """(k, k, n, n) E with ``E[A M A']_(ab) = sum_cd E_(abcd) M_(cd)``."""
        return np.asarray(self.moments[0, 0] * np.einsum("ac,bd->abcd", self.slope, self.slope))


@dataclass(frozen=True, eq=False)
class OwnSlopes:
    """``A = Q G B`` and ``b = -Q g`` with the covariance of G and g, for slopes that differ.

    Attributes
    ----------
    into, start : arrays, (k, d) and (d, n)
        Q and B.
    of_slopes : array, (d^2, d^2)
        ``E[G_ac G_bd]`` at row (a, b) and column (c, d), so that it maps M to ``E[G M G']``.
    of_both : array, (d, d, d)
        ``E[G_ac g_b]`` at (a, b, c).
    of_offsets : array, (d, d)
        ``E[g g']``.
    sizes : tuple of float
        Sizes of the terms summed for ``of_slopes``, ``of_both`` and ``of_offsets``.
    operations : float
        Number of terms summed for an entry, including those summed when the map is applied.
    """

    into: FloatArray
    start: FloatArray
    of_slopes: FloatArray
    of_both: FloatArray
    of_offsets: FloatArray
    sizes: Works
    operations: float

    @classmethod
    def of(
        cls,
        into: FloatArray,
        start: FloatArray,
        covariance: FloatArray,
        sizes: Works,
        operations: float,
    ) -> OwnSlopes:
        """Return the moments, given the covariance of ``(G flattened, g)``, (d^2 + d, d^2 + d)."""
        d = into.shape[1]
        slopes = covariance[: d * d, : d * d].reshape(d, d, d, d).transpose(0, 2, 1, 3)
        both = covariance[: d * d, d * d :].reshape(d, d, d).transpose(0, 2, 1)
        return cls(
            into,
            start,
            np.ascontiguousarray(slopes).reshape(d * d, d * d),
            np.ascontiguousarray(both),
            covariance[d * d :, d * d :],
            sizes,
            operations + d * d + 2 * len(start) + 2 * d,
        )

    def scaled(self, p: float) -> Self:
        """Return the moments times ``p``."""
        slopes, crossed, offsets = self.sizes
        return replace(
            self,
            of_slopes=p * self.of_slopes,
            of_both=p * self.of_both,
            of_offsets=p * self.of_offsets,
            sizes=(p * slopes, p * crossed, p * offsets),
        )

    @property
    def works(self) -> Works:
        """Sizes of the terms summed in ``E[A M A']``, in ``cross`` and in ``E[b b']``."""
        into, start = absolute_norm(self.into), absolute_norm(self.start)
        slopes, crossed, offsets = self.sizes
        return slopes * (into * start) ** 2, 2 * crossed * into**2 * start, offsets * into**2

    @property
    def still(self) -> bool:
        """Whether the slope is constant, so that only ``E[b b']`` is nonzero."""
        return not (self.of_slopes.any() or self.of_both.any())

    def spread(self, second: FloatArray) -> FloatArray:
        """Return ``E[A M A']``."""
        d = self.into.shape[1]
        inner = self.start @ second @ self.start.T
        return self._pushed((self.of_slopes @ inner.ravel()).reshape(d, d))

    def dual(self, matrix: FloatArray) -> FloatArray:
        """Return ``E[A' X A]``."""
        d = self.into.shape[1]
        inner = self.into.T @ matrix @ self.into
        pulled = (inner.ravel() @ self.of_slopes).reshape(d, d)
        return np.asarray(self.start.T @ pulled @ self.start)

    def cross(self, first: FloatArray) -> FloatArray:
        """Return ``E[A m b' + b m' A']``."""
        half = self._pushed(self.of_both @ (self.start @ first))
        return -(half + half.T)

    @cached_property
    def inflow(self) -> FloatArray:
        """(k, k) ``E[b b']``."""
        return self._pushed(self.of_offsets)

    @cached_property
    def spread_tensor(self) -> FloatArray:
        """(k, k, n, n) E with ``E[A M A']_(ab) = sum_cd E_(abcd) M_(cd)``."""
        d = self.into.shape[1]
        inner = self.of_slopes.reshape(d, d, d, d)
        factors = self.into, self.into, inner, self.start, self.start
        return np.asarray(np.einsum("ia,jb,abcd,cm,dn->ijmn", *factors, optimize=True))

    def _pushed(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(self.into @ matrix @ self.into.T)


ClientSum: TypeAlias = SharedSlope | OwnSlopes
Places = NDArray[np.intp]

# Products with sparse rows cost about ten times as much per nonzero entry.
_SPARSE = 1 / 16


@dataclass(frozen=True, eq=False)
class CorrelatedRows:
    """``s -> sum_p z_p (slope_p s + offset_p) e_(target_p)`` with random z of mean zero.

    Attributes
    ----------
    size : int
        k, the size of the image.
    targets : array, (P,)
        The entry of the image to which each row adds, in ascending order.
    slopes, offsets : arrays, (P, n) and (P,)
    covariance : array, (P, P)
        ``E[z_p z_q]``.
    """

    size: int
    targets: Places
    slopes: FloatArray
    offsets: FloatArray
    covariance: FloatArray

    @classmethod
    def of(
        cls,
        slopes: FloatArray,
        offsets: FloatArray,
        covariance: FloatArray,
    ) -> CorrelatedRows:
        """Return the nonzero rows of maps with slopes (f, k, n) and offsets (f, k).

        ``covariance`` (f, f) is the covariance of the maps' coefficients.
        """
        kept = slopes.any(axis=2) | (offsets != 0)
        targets, maps = np.nonzero(kept.T)
        return cls(
            size=slopes.shape[1],
            targets=targets,
            slopes=slopes[maps, targets],
            offsets=offsets[maps, targets],
            covariance=covariance[np.ix_(maps, maps)],
        )

    @classmethod
    def mixed(cls, parts: Sequence[tuple[float, CorrelatedRows]]) -> CorrelatedRows:
        """Return rows whose second moments are the weighted sum of those of the parts."""
        from scipy.linalg import block_diag

        targets = np.concatenate([part.targets for _, part in parts])
        order = np.argsort(targets, kind="stable")
        covariance = block_diag(*(weight * part.covariance for weight, part in parts))
        return cls(
            size=parts[0][1].size,
            targets=targets[order],
            slopes=np.concatenate([part.slopes for _, part in parts])[order],
            offsets=np.concatenate([part.offsets for _, part in parts])[order],
            covariance=np.asarray(covariance)[np.ix_(order, order)],
        )

    @property
    def count(self) -> int:
        """P, the number of rows."""
        return int(self.targets.size)

    @property
    def still(self) -> bool:
        """Whether no row has a slope."""
        return not self.slopes.any()

    def spread(self, second: FloatArray) -> FloatArray:
        """Return ``E[A M A']``, (k, k)."""
        left, _ = self._factors
        return self._gathered(self.covariance * _both_sides(left, second))

    def cross(self, first: FloatArray) -> FloatArray:
        """Return ``E[A m b' + b m' A']``, (k, k)."""
        left, _ = self._factors
        half = np.zeros((self.size, self.size))
        if self.count:
            targets, firsts = self._groups
            half[targets] = np.add.reduceat((left @ first)[:, None] * self._pulled, firsts, axis=0)
        return half + half.T

    @cached_property
    def _pulled(self) -> FloatArray:
        """(P, k) ``E[z_p b]``."""
        pulled = np.zeros((self.count, self.size))
        if self.count:
            targets, firsts = self._groups
            pulled[:, targets] = np.add.reduceat(self.covariance * self.offsets, firsts, axis=1)
        return pulled

    @cached_property
    def inflow(self) -> FloatArray:
        """(k, k) ``E[b b']``."""
        return self._gathered(self.covariance * np.outer(self.offsets, self.offsets))

    def dual(self, matrix: FloatArray) -> FloatArray:
        """Return ``E[A' X A]``, (n, n), for X (k, k)."""
        weights = self.covariance * matrix[np.ix_(self.targets, self.targets)]
        _, right = self._factors
        return _both_sides(right, weights)

    @cached_property
    def _factors(self) -> tuple[Any, Any]:
        """Slopes and their transpose, sparse if mostly zero; a row involves one client's memory."""
        if np.count_nonzero(self.slopes) > _SPARSE * self.slopes.size:
            return self.slopes, self.slopes.T
        from scipy.sparse import csr_array

        return csr_array(self.slopes), csr_array(self.slopes.T)

    @cached_property
    def spread_tensor(self) -> FloatArray:
        """(k, k, n, n) E with ``E[A M A']_(ab) = sum_cd E_(abcd) M_(cd)``."""
        n = self.slopes.shape[1]
        tensor = np.zeros((self.size, self.size, n, n))
        blocks = [(a, np.flatnonzero(self.targets == a)) for a in np.unique(self.targets)]
        for a, left in blocks:
            for b, right in blocks:
                covariance = self.covariance[np.ix_(left, right)]
                tensor[a, b] = self.slopes[left].T @ covariance @ self.slopes[right]
        return tensor

    @property
    def works(self) -> tuple[float, float, float]:
        """Sizes of the terms of ``spread``, ``cross`` and ``inflow``, for moments of norm one."""
        slopes, offsets = self.norms
        return (
            self.work(slopes, slopes),
            2 * self.work(slopes, offsets),
            self.work(offsets, offsets),
        )

    @property
    def operations(self) -> float:
        """Number of terms summed for an entry."""
        return float(self.count)

    def work(self, left: FloatArray, right: FloatArray) -> float:
        """Return the size of the terms that are summed when two arrays (P,) are multiplied."""
        weights = np.abs(self.covariance) * np.outer(left, right)
        return float(np.linalg.norm(self._gathered(weights)))

    @cached_property
    def norms(self) -> tuple[FloatArray, FloatArray]:
        """Norms of the slopes and sizes of the offsets, both (P,)."""
        return np.linalg.norm(self.slopes, axis=1), np.abs(self.offsets)

    @cached_property
    def _groups(self) -> tuple[Places, Places]:
        """The distinct targets, and the first row of each."""
        return np.unique(self.targets, return_index=True)

    def _gathered(self, values: FloatArray) -> FloatArray:
        """Sum entries (P, P) over rows with the same target, giving (k, k)."""
        image = np.zeros((self.size, self.size))
        if self.count:
            targets, firsts = self._groups
            sums = np.add.reduceat(np.add.reduceat(values, firsts, axis=0), firsts, axis=1)
            image[np.ix_(targets, targets)] = sums
        return image


Deviations: TypeAlias = ClientSum | CorrelatedRows
"""Part of the second moments of a random affine map."""


def _both_sides(factor: Any, matrix: FloatArray) -> FloatArray:
    """Return ``F M F'``; a sparse F must be the left factor of each product."""
    return np.asarray((factor @ (factor @ matrix).T).T)
