"""The law of a random affine map, up to its second moments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypedDict, Unpack

import numpy as np

from fltheory.engines.affine.deviations import ClientSum, CorrelatedRows, Deviations
from fltheory.validation import FloatArray

LARGEST_DENSE_STATE = 40


class MapErrors(TypedDict):
    """Rounding errors of a law's factors, as `RandomAffineMap` names them."""

    slope_error: float
    offset_error: float
    noise_error: float


@dataclass(frozen=True, eq=False)
class RandomAffineMap:
    """First two moments of ``s -> A s + b + noise`` with random A, b independent of s.

    If participation follows a Markov chain, there is one map per state of the chain. Arrays then
    have an axis for the states, after the axis of the factors, and there are no ``rows`` and no
    ``sums``.

    Attributes
    ----------
    mean_slope, mean_offset : arrays, (k, n) and (k,)
        ``E A`` and ``E b``.
    slopes, offsets : arrays, (r, k, n) and (r, k)
        Factors with ``sum_j T_j (x) T_j = E[T (x) T]`` for ``T = (A, b)``, not counting the
        contributions of ``rows`` and ``sums``.
    noise : array, (k, k)
        Covariance of the noise.
    slope_error, offset_error : float
        Root of the summed squared rounding errors of the factors, to first order.
    noise_error : float
        Rounding error of the trace of ``noise``, to first order.
    rows : CorrelatedRows, optional
        The nonzero rows of the map's deviations from its mean, used if each deviation has few.
    sums : tuple of ClientSum
        Second moments of deviations that are sums over clients, in closed form.
    """

    mean_slope: FloatArray
    mean_offset: FloatArray
    slopes: FloatArray
    offsets: FloatArray
    noise: FloatArray
    slope_error: float
    offset_error: float
    noise_error: float = 0.0
    rows: CorrelatedRows | None = None
    sums: tuple[ClientSum, ...] = ()

    def losing(self, slope: float, offset: float, noise: float) -> RandomAffineMap:
        """Return the law with its errors multiplied by the given factors."""
        return replace(
            self,
            slope_error=slope * self.slope_error,
            offset_error=offset * self.offset_error,
            noise_error=noise * self.noise_error,
        )

    @property
    def parts(self) -> tuple[Deviations, ...]:
        """The deviations whose second moments are added to those of the factors."""
        return self.sums if self.rows is None else (self.rows, *self.sums)

    @property
    def size(self) -> int:
        """k, the size of the image."""
        return int(self.mean_offset.shape[-1])

    @cached_property
    def moving(self) -> tuple[FloatArray, FloatArray]:
        """The factors whose slope is not zero."""
        moves = self.slopes.any(axis=tuple(range(1, self.slopes.ndim)))
        return self.slopes[moves], self.offsets[moves]

    @cached_property
    def _transposed(self) -> FloatArray:
        return np.ascontiguousarray(self.moving[0].swapaxes(-1, -2))

    def spread(self, second: FloatArray) -> FloatArray:
        """Return ``E[A M A']`` for ``M`` of shape (n, n)."""
        image = _congruence(self.moving[0], second)
        return np.asarray(sum((part.spread(second) for part in self.parts), image))

    def dual(self, matrix: FloatArray) -> FloatArray:
        """Return ``E[A' X A]`` for ``X`` of shape (k, k)."""
        image = _congruence(self._transposed, matrix)
        return np.asarray(sum((part.dual(matrix) for part in self.parts), image))

    def cross(self, first: FloatArray) -> FloatArray:
        """Return ``E[A m b' + b m' A']`` for ``m`` of shape (n,)."""
        slopes, offsets = self.moving
        half = _products((slopes @ first[..., None])[..., 0], offsets)
        image = half + half.swapaxes(-1, -2)
        return np.asarray(sum((part.cross(first) for part in self.parts), image))

    @cached_property
    def crosses(self) -> FloatArray:
        """(n, k, k) the value of `cross` at each unit vector."""
        slopes, offsets = self.moving
        columns = np.ascontiguousarray(slopes.transpose(2, 0, 1))
        halves = columns.swapaxes(1, 2) @ offsets
        images = halves + halves.swapaxes(1, 2)
        for part in self.parts:
            images = images + [part.cross(unit) for unit in np.eye(len(columns))]
        return np.asarray(images)

    @cached_property
    def inflow(self) -> FloatArray:
        """(k, k) ``E[b b'] + cov(noise)``."""
        image = _products(self.offsets, self.offsets) + self.noise
        return np.asarray(sum((part.inflow for part in self.parts), image))

    @cached_property
    def still_inflow(self) -> FloatArray:
        """(k, k) the inflow without the factors that have a nonzero slope."""
        still = self.offsets[~self.slopes.any(axis=(1, 2))]
        image = np.asarray(still.T @ still + self.noise)
        return np.asarray(sum((part.inflow for part in self.parts), image))

    @cached_property
    def gram(self) -> FloatArray:
        """(n, n) ``E[A' A]``."""
        return self.dual(np.eye(self.size))

    @cached_property
    def pulled_offset(self) -> FloatArray:
        """(n,) ``E[A' b]``, half the traces of `cross` at the unit vectors."""
        return np.asarray(np.trace(self.crosses, axis1=1, axis2=2) / 2)

    @property
    def offset_square(self) -> FloatArray:
        """``E ||b||^2``."""
        of_parts = sum(float(np.trace(part.inflow)) for part in self.parts)
        return np.asarray((self.offsets**2).sum(axis=(0, -1)) + of_parts)

    @cached_property
    def spread_tensor(self) -> FloatArray:
        """(k, k, n, n) E with ``E[A M A']_(ab) = sum_cd E_(abcd) M_(cd)``."""
        slopes, _ = self.moving
        *states, k, n = self.mean_slope.shape
        flat = np.moveaxis(slopes.reshape(len(slopes), *states, k * n), 0, -2)
        image = (flat.swapaxes(-1, -2) @ flat).reshape(*states, k, n, k, n).swapaxes(-3, -2)
        return np.asarray(sum((part.spread_tensor for part in self.parts), image))


def _congruence(factors: FloatArray, middle: FloatArray) -> FloatArray:
    """Return ``sum_j F_j X F_j'``."""
    if factors.ndim == 3:
        return np.tensordot(factors @ middle, factors, axes=([0, 2], [0, 2]))
    image = np.zeros((*factors.shape[1:-1], factors.shape[-2]))
    for factor in factors:
        image += factor @ middle @ factor.swapaxes(-1, -2)
    return image


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``sum_j l_j r_j'``."""
    if left.ndim == 2:  # one state: `moveaxis` would take longer
        return left.T @ right
    columns = np.moveaxis(left, 0, -1)
    return np.asarray(columns @ np.moveaxis(right, 0, -2))


@dataclass(frozen=True, eq=False)
class Effects:
    """The random map ``T = E T + sum_f z_f D_f`` with coefficients z of mean zero.

    Attributes
    ----------
    slopes, offsets : arrays, (f, k, n) and (f, k)
        Slope and offset of each D_f.
    covariance : array, (f, f)
        Covariance of z.
    balanced : bool
        Whether the z always sum to zero, so that a part common to all D_f cancels.
    """

    slopes: FloatArray
    offsets: FloatArray
    covariance: FloatArray
    balanced: bool

    def law(
        self,
        mean_slope: FloatArray,
        mean_offset: FloatArray,
        noise: FloatArray,
        **errors: Unpack[MapErrors],
    ) -> RandomAffineMap:
        """Return the law, with the deviations in the form that is cheaper to work with."""
        n = mean_slope.shape[1]
        mean = mean_slope[None], mean_offset[None]
        if n > LARGEST_DENSE_STATE:
            rows = CorrelatedRows.of(self.slopes, self.offsets, self.covariance)
            if rows.count * (n + rows.count) < 2 * len(self.offsets) * n * n:
                return RandomAffineMap(mean_slope, mean_offset, *mean, noise, **errors, rows=rows)
        variances, directions = np.linalg.eigh(self.covariance)
        loadings = (directions * np.sqrt(np.maximum(variances, 0.0))).T
        alike = self.slopes[:1], self.offsets[:1]
        apart = self.slopes - alike[0] if self.balanced else self.slopes
        offsets = self.offsets - alike[1] if self.balanced else self.offsets
        slopes = np.einsum("jf,fkn->jkn", loadings, apart, optimize=True)
        return RandomAffineMap(
            mean_slope,
            mean_offset,
            np.concatenate([mean[0], slopes]),
            np.concatenate([mean[1], loadings @ offsets]),
            noise,
            **errors,
        )


def mixture(
    laws: Sequence[tuple[float, RandomAffineMap]], chance_error: float = 0.0
) -> RandomAffineMap:
    """Return the law of a map that is drawn from ``laws`` with given probabilities.

    Each probability may have an error of ``chance_error``, which adds to the other errors.
    """
    if len(laws) == 1 and laws[0][0] == 1:
        return laws[0][1]

    def mean(arrays: Iterable[FloatArray]) -> FloatArray:
        weighted = [p * array for (p, _), array in zip(laws, arrays, strict=True)]
        return np.sum(weighted, axis=0)

    each = [law for _, law in laws]
    rows = [(p, law.rows) for p, law in laws if law.rows is not None]
    mixed = RandomAffineMap(
        mean_slope=mean(law.mean_slope for law in each),
        mean_offset=mean(law.mean_offset for law in each),
        slopes=np.concatenate([np.sqrt(p) * law.slopes for p, law in laws]),
        offsets=np.concatenate([np.sqrt(p) * law.offsets for p, law in laws]),
        noise=mean(law.noise for law in each),
        slope_error=max(law.slope_error for law in each),
        offset_error=max(law.offset_error for law in each),
        noise_error=max(law.noise_error for law in each),
        rows=CorrelatedRows.mixed(rows) if rows else None,
        sums=tuple(part.scaled(p) for p, law in laws for part in law.sums),
    )
    if not chance_error:
        return mixed
    # The error of the square root of a probability is at most the probability's error over that
    # root; the error of the mean is smaller.
    factors = [(chance_error / np.sqrt(p), law) for p, law in laws]
    slope = sum(off**2 * np.trace(law.gram, axis1=-2, axis2=-1) for off, law in factors)
    offset = sum(off**2 * law.offset_square for off, law in factors)
    noise = chance_error * sum(np.trace(law.noise, axis1=-2, axis2=-1) for law in each)
    return replace(
        mixed,
        slope_error=mixed.slope_error + float(np.sqrt(slope).max()),
        offset_error=mixed.offset_error + float(np.sqrt(offset).max()),
        noise_error=mixed.noise_error + float(np.max(noise)),
    )
