"""The random part of an affine map as rows that depend on correlated numbers.

With memory, one client's part in a round touches few entries of the state: the model and what
is remembered of that client. Of a map ``T = E T + sum_f z_f D_f``, T = (A, b), only the rows of
D_f that are not zero are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fltheory.validation import FloatArray

Places = NDArray[np.intp]

# Products with sparse rows cost some ten times as much for each number that is not zero.
_SPARSE = 1 / 16


@dataclass(frozen=True, eq=False)
class CorrelatedRows:
    """``s -> sum_p z_p (slope_p s + offset_p) e_(target_p)`` with random z of mean zero.

    Attributes
    ----------
    size : int
        k, the size of the image.
    targets : array, (P,)
        The entry of the image that a row adds to, in ascending order.
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
        """Keep the rows of some maps (f, k, n) and (f, k) that are not zero.

        ``covariance`` (f, f) is that of the maps' coefficients.
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
        """Return rows with the mean of the parts' second moments, each with its weight."""
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
        """Slopes and their transpose, sparse if most is zero: a row knows one client's memory."""
        if np.count_nonzero(self.slopes) > _SPARSE * self.slopes.size:
            return self.slopes, self.slopes.T
        from scipy.sparse import csr_array

        return csr_array(self.slopes), csr_array(self.slopes.T)

    @cached_property
    def pulled_offset(self) -> FloatArray:
        """(n,) ``E[A' b]``."""
        weights = self.covariance * (self.targets[:, None] == self.targets)
        return np.asarray(self.slopes.T @ (weights @ self.offsets))

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
        """How many terms an entry sums."""
        return float(self.count)

    def work(self, left: FloatArray, right: FloatArray) -> float:
        """Bound the rounding, in units of one operation, of gathering products (P,) x (P,)."""
        weights = np.abs(self.covariance) * np.outer(left, right)
        return float(np.linalg.norm(self._gathered(weights)))

    @cached_property
    def norms(self) -> tuple[FloatArray, FloatArray]:
        """Norms of the slopes and sizes of the offsets, (P,) each."""
        return np.linalg.norm(self.slopes, axis=1), np.abs(self.offsets)

    @cached_property
    def _groups(self) -> tuple[Places, Places]:
        """Every target once, and its first row."""
        return np.unique(self.targets, return_index=True)

    def _gathered(self, values: FloatArray) -> FloatArray:
        """Add entries (P, P) up over rows with the same target, to (k, k)."""
        image = np.zeros((self.size, self.size))
        if self.count:
            targets, firsts = self._groups
            sums = np.add.reduceat(np.add.reduceat(values, firsts, axis=0), firsts, axis=1)
            image[np.ix_(targets, targets)] = sums
        return image


def _both_sides(factor: Any, matrix: FloatArray) -> FloatArray:
    """Return ``F M F'``, where F may be sparse and then has to stand on the left."""
    return np.asarray((factor @ (factor @ matrix).T).T)
