"""A round's step from histories to histories in floats, and its rounding errors.

Computed moments differ from the true ones for two reasons. Both errors propagate like moments, by
congruences, which preserve the order of symmetric matrices.

*Operations.* Moments M have an error D with ``-E <= D <= E``. A round adds a rounding error of at
most ``k u f_a f_b`` to an entry of an image, where f is the scale of the entries mapped by the
absolute values of the round's map. Because ``2 |v_a v_b| <= v_a^2 + v_b^2`` in any units, this
error lies within the diagonal ``(n + 1) k u f_a^2``. The error of noise is proportional to its
size, and that of a branch's image is proportional to the error of the branch's probability.

*Maps.* Maps read with small errors produce s + d instead of the true s, with ``E[d d'] <= C``. A
round turns d into A d plus the error of its map at s. The second moments of such a sum are at most
``(1 + e) P + (1 + 1/e) Q`` for any e > 0, where P and Q are those of its two terms. Then the error
of ``E||s + d||^2`` is at most ``2 sqrt(E||s||^2 tr C) + tr C``. For the model, only its own part of
s and of C counts. The last round's noise is independent of d and is omitted from ``E||s||^2``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.validation import FloatArray

_OPERATIONS = 8.0
_SMALL_TABLE = 1 << 14

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class HistoryStep:
    """A round's affine maps in floats, one for each continued history, and where each one leads.

    Attributes
    ----------
    before : array, (P, n + 1, n + 1)
        Moments of the histories before the round.
    rows : array of int, (C,)
        The history that each map continues.
    maps : array, (C, n + 1, n + 1)
        ``[[A, b], [0, 1]]``.
    noises : array, (C, n, n)
    errors : array, (C, 4)
        Bounds on the rounding errors of A and b (norms), on the relative error of the noise, and on
        the relative error of the branch's probability, beyond the rounding of any product.
    onward, targets : arrays of int, (Q,)
        Row index into the continued histories, and the new history into which each is merged.
    chances : array, (Q,)
    n_clients : int
    """

    before: FloatArray
    rows: Rows
    maps: FloatArray
    noises: FloatArray
    errors: FloatArray
    onward: Rows
    targets: Rows
    chances: FloatArray
    n_clients: int

    def images(self, moments: FloatArray) -> FloatArray:
        """Return the images (..., C, n + 1, n + 1) of moments (..., P, n + 1, n + 1)."""
        n, moments = self.noises.shape[1], moments[..., self.rows, :, :]
        images = (self.maps @ moments) @ self._turned
        images[..., :n, :n] += self.noises * moments[..., -1:, -1:]
        return np.asarray(images)

    @cached_property
    def _turned(self) -> FloatArray:
        # Products with a contiguous copy take two thirds of the time.
        return np.ascontiguousarray(self.maps.swapaxes(1, 2))

    def gathered(self, images: FloatArray) -> FloatArray:
        """Return the sums (..., P', n + 1, n + 1) of images times probabilities, by target."""
        count, continued = 1 + int(self.targets.max()), len(self.rows)
        if len(self.targets) == 1:
            return images * self.chances[0]
        flat = images.reshape(*images.shape[:-2], -1)
        if continued * count <= _SMALL_TABLE:
            dense = np.zeros((count, continued))
            dense[self.targets, self.onward] = self.chances
            made = dense @ flat
        else:
            from scipy.sparse import csr_array

            places = self.targets, self.onward
            sparse = csr_array((self.chances, places), (count, continued))
            made = np.stack([sparse @ part for part in flat.reshape(-1, *flat.shape[-2:])])
        return np.asarray(made).reshape(*images.shape[:-3], count, *images.shape[-2:])

    @property
    def cost(self) -> int:
        """Number of entries passed on to new histories."""
        return len(self.targets) * self.maps[0].size

    @cached_property
    def operations(self) -> float:
        """Number of rounding errors, in units, of a moment after the round.

        Each entry is a sum of n + 1 terms on either side of M, taken over all rows that lead to its
        target. The noise is a sum over clients. `_OPERATIONS` allows for probabilities, weights and
        the addition of noise.
        """
        crowd = 1 if len(self.targets) == 1 else int(np.bincount(self.targets).max())
        return _OPERATIONS + 2 * self.maps.shape[1] + crowd + self.n_clients


@dataclass(frozen=True, eq=False)
class HistoryErrors:
    """Bounds, to first order, on the errors of the histories' moments.

    Attributes
    ----------
    bounds : array, (2, P, n + 1, n + 1)
        E, from operations, and C, from maps.
    noise : array, (n, n)
        Contribution of the last round's noise to the moments.
    """

    bounds: FloatArray
    noise: FloatArray

    @classmethod
    def at_start(cls, moments: FloatArray, far: FloatArray | float = 0.0) -> HistoryErrors:
        """Return the errors of the initial moments.

        The difference x0 - x* and its squares are rounded twice each. The decimals x0, with
        absolute values ``far`` (n,), are also rounded, and this error passes through all maps.
        """
        entries = ((_diagonals(moments)[:, :-1] > 0) | (np.asarray(far) > 0)).sum(axis=1)
        bounds = np.zeros((2, *moments.shape))
        squares = _diagonals(moments)
        _diagonals(bounds[0])[:] = 2 * UNIT_ROUNDOFF * entries[:, None] * squares
        off = np.pad(
            2 * np.sqrt(squares[:, :-1]) + far * np.sqrt(squares[:, -1:]), ((0, 0), (0, 1))
        )
        _diagonals(bounds[1])[:] = entries[:, None] * (UNIT_ROUNDOFF * off) ** 2
        return cls(bounds, np.zeros((len(squares[0]) - 1,) * 2))

    def after(self, step: HistoryStep, moments: FloatArray) -> HistoryErrors:
        """Return the errors of ``moments`` (P', n + 1, n + 1) after a round."""
        n = step.noises.shape[1]
        squares = np.maximum(_diagonals(step.before), 0.0)[step.rows]
        scale, noise = np.sqrt(squares), _diagonals(step.noises) * squares[:, -1:]
        by_operations = (np.abs(step.maps) @ scale[:, :, None])[:, :, 0] ** 2
        of_slope, of_offset, of_noise, of_chance = step.errors.T[:, :, None]
        by_operations *= (n + 1) * step.operations * UNIT_ROUNDOFF
        by_operations[:, :n] += n * step.operations * UNIT_ROUNDOFF * noise
        # The error of reading noise is relative to its trace, because a small entry may be what
        # remains after large ones cancel.
        by_operations[:, :n] += of_noise * noise.sum(axis=1, keepdims=True)
        by_maps = of_slope * np.sqrt(squares[:, :n].sum(axis=1, keepdims=True))
        by_maps = (by_maps + of_offset * scale[:, -1:]) ** 2
        images = step.images(self.bounds)
        if of_chance.any():
            images *= 1 + of_chance[:, :, None]
            images[0] += of_chance[:, :, None] * step.images(step.before)
        diagonals = _diagonals(images)
        # The best e is the ratio of the sizes of the two terms, here in units of the moments
        # themselves.
        units = _diagonals(moments)[:, :n].sum(axis=0)
        # A zero moment has no size that could serve as the unit, but any other unit is valid.
        units[units <= 0] = units.max() or 1.0
        held = math.sqrt(max((diagonals[1, :, :n].sum(axis=0) / units).sum(), 0.0))
        fresh = math.sqrt(by_maps.sum() * (1 / units).sum())
        if held > 0:
            images[1] *= (held + fresh) / held
        if fresh > 0:
            by_maps *= (held + fresh) / fresh
        diagonals[0] += by_operations
        diagonals[1, :, :n] += by_maps
        shares = np.bincount(step.onward, step.chances, len(step.rows)) * squares[:, -1]
        return HistoryErrors(step.gathered(images), np.einsum("c,cab->ab", shares, step.noises))

    def of_forms(self, matrices: FloatArray, values: FloatArray) -> FloatArray:
        """Bound the errors of quadratic forms (F, d, d) in the model, with ``values`` (F,)."""
        dim = matrices.shape[-1]
        blocks = self.bounds[..., :dim, :dim].sum(axis=1)
        by_operations, by_maps = np.einsum("kab,fab->kf", blocks, matrices)
        own = np.einsum("ab,fab->f", self.noise[:dim, :dim], matrices)
        seen = np.maximum(values - own, 0.0)
        return np.asarray(by_operations + 2 * np.sqrt(seen * by_maps) + by_maps)


def _diagonals(matrices: FloatArray) -> FloatArray:
    """Return a view of the diagonals (..., n) of matrices (..., n, n)."""
    return np.einsum("...aa->...a", matrices)
