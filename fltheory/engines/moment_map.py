"""The recursion of the first two moments of an affine random recursion.

With ``s' = A s + b + noise``, ``m = E s`` and ``M = E[s s']``:
``m' = E[A] m + E[b]`` and ``M' = E[A M A'] + E[A m b' + b m' A'] + E[b b'] + cov(noise)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

import numpy as np

from fltheory.engines.probing import UNIT_ROUNDOFF, RandomAffineMap
from fltheory.engines.steady_norm import SteadyNorm, steady_norm
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class MomentMap:
    """One round's map of ``(M, m)``, for states of size n.

    Attributes
    ----------
    law : RandomAffineMap
        From states to states.
    """

    law: RandomAffineMap

    @property
    def size(self) -> int:
        """n, the size of the state."""
        return self.law.mean_offset.size

    @cached_property
    def _moving(self) -> tuple[FloatArray, FloatArray]:
        """The factors whose slope is not zero."""
        moves = self.law.slopes.any(axis=(1, 2))
        return self.law.slopes[moves], self.law.offsets[moves]

    @cached_property
    def inflow(self) -> FloatArray:
        """(n, n) ``E[b b'] + cov(noise)``."""
        return np.asarray(self.law.offsets.T @ self.law.offsets + self.law.noise)

    @cached_property
    def cross(self) -> FloatArray:
        """(n, n, n) tensor C with ``E[A m b' + b m' A'] = C m``."""
        slopes, offsets = self._moving
        half = np.einsum("jac,jb->abc", slopes, offsets)
        return half + half.transpose(1, 0, 2)

    def spread(self, second: FloatArray) -> FloatArray:
        """Return ``E[A M A']`` for ``M`` of shape (n, n)."""
        slopes, _ = self._moving
        return np.tensordot(slopes @ second, slopes, axes=([0, 2], [0, 2]))

    def __call__(self, second: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the next round's ``(M, m)``."""
        image = self.spread(second) + self.cross @ first + self.inflow
        return image, self.law.mean_slope @ first + self.law.mean_offset

    @cached_property
    def spread_matrix(self) -> FloatArray:
        """(n^2, n^2) matrix of ``M -> E[A M A']`` on flattened M."""
        slopes, _ = self._moving
        n = self.size
        flat = slopes.reshape(-1, n * n)
        gram = (flat.T @ flat).reshape(n, n, n, n)
        return gram.transpose(0, 2, 1, 3).reshape(n * n, n * n)

    @cached_property
    def matrix(self) -> FloatArray:
        """The whole map as a matrix on ``[M flattened, m, 1]``."""
        n = self.size
        whole = np.zeros((n * n + n + 1, n * n + n + 1))
        whole[: n * n, : n * n] = self.spread_matrix
        whole[: n * n, n * n : -1] = self.cross.reshape(n * n, n)
        whole[: n * n, -1] = self.inflow.ravel()
        whole[n * n : -1, n * n : -1] = self.law.mean_slope
        whole[n * n : -1, -1] = self.law.mean_offset
        whole[-1, -1] = 1.0
        return whole

    @cached_property
    def rounding(self) -> MomentRounding:
        """Constants of the recursion of the rounding error."""
        slopes, offsets = self._moving
        slope_norms = np.sqrt((slopes**2).sum(axis=(1, 2)))
        offset_norms = np.sqrt((offsets**2).sum(axis=1))
        n = self.size
        operations = n * n + 2 * n + self.law.offsets.shape[0] + 8
        return MomentRounding(
            second_gain=float(np.linalg.norm(np.einsum("jka,jkb->ab", slopes, slopes), 2)),
            offset_size=float(np.sqrt((self.law.offsets**2).sum())),
            first_gain=float(np.linalg.norm(self.law.mean_slope, 2)),
            first_size=float(np.linalg.norm(self.law.mean_slope)),
            slope_work=float((slope_norms**2).sum()),
            cross_work=float(2 * slope_norms @ offset_norms),
            inflow_work=float((self.law.offsets**2).sum() + np.trace(self.law.noise)),
            slope_error=self.law.slope_error,
            offset_error=self.law.offset_error,
            noise_error=self.law.noise_error,
            unit=UNIT_ROUNDOFF * operations * np.sqrt(n),
        )

    @cached_property
    def steady_rounding(self) -> MomentRounding:
        """The same for a map that stays, in a norm in which it does not grow where one exists."""
        rounding = self.rounding
        if rounding.second_gain <= 1 or self.size > _LARGEST_STEADY_STATE:
            return rounding
        return replace(rounding, steady=steady_norm(self.spread_matrix))


Numbers: TypeAlias = float | FloatArray
_LARGEST_STEADY_STATE = 24


@dataclass(frozen=True, eq=False)
class MomentRounding:
    """A first-order bound on the moment recursion's rounding error.

    The error of ``M`` is measured in the nuclear norm, in which ``M -> E[A M A']`` grows a
    symmetric matrix at most by ``||E[A'A]||``: for every ``M >= 0`` its trace grows so. For
    moments kept apart by the state of a chain, the constants are arrays (states,).
    """

    second_gain: Numbers
    offset_size: Numbers
    first_gain: Numbers
    first_size: Numbers
    slope_work: Numbers
    cross_work: Numbers
    inflow_work: Numbers
    slope_error: float
    offset_error: float
    noise_error: float
    unit: float
    steady: SteadyNorm | None = None

    @property
    def coupling(self) -> Numbers:
        """How much an error of m adds to the next error of M."""
        return 2 * np.sqrt(self.second_gain) * self.offset_size

    def of_one_round(
        self, traces: Numbers, weights: Numbers = 1.0
    ) -> tuple[FloatArray, FloatArray]:
        """Return what one round adds to the errors of M and of m.

        Parameters
        ----------
        traces : float or array
            ``E||s||^2``, or ``E||s||^2 1{state}``.
        weights : float or array
            The state's probability.
        """
        size, root = np.sqrt(traces), np.sqrt(weights)
        perturbed = self.slope_error * size + self.offset_error * root
        image = np.sqrt(self.second_gain) * size + self.offset_size * root
        inflow = self.inflow_work * weights
        second_new = (
            self.unit * (self.slope_work * traces + self.cross_work * size * root + inflow)
            + self.unit * inflow
            + self.noise_error * weights
            + 2 * image * perturbed
            + perturbed**2
        )
        first_new = self.unit * (self.first_size * size + self.offset_size * root) + perturbed
        return np.asarray(second_new), np.asarray(first_new * root)


def propagate(
    roundings: Sequence[MomentRounding],
    traces: FloatArray,
    second_error: float,
    first_error: float,
) -> tuple[FloatArray, FloatArray]:
    """Return bounds for the errors of M and of m before the first round and after each.

    Parameters
    ----------
    roundings : sequence of MomentRounding
        One a round; after a round without, the bounds are infinite.
    traces : array, (rounds + 1,)
        ``E||s_r||^2``.
    second_error, first_error : float
        Errors of M and m at round zero.
    """
    second, first = [second_error], [first_error]
    for rounding, count in _runs(roundings):
        before = traces[len(first) - 1 : len(first) - 1 + count]
        added_second, added_first = (array.tolist() for array in rounding.of_one_round(before))
        if rounding.steady is not None and rounding.steady.pays(rounding.second_gain, count):
            seconds, firsts = rounding.steady.propagate(
                second[-1], first[-1], added_second, added_first, rounding.offset_size
            )
            second += seconds
            first += firsts
            continue
        coupling, second_gain = float(rounding.coupling), float(rounding.second_gain)
        first_gain = float(rounding.first_gain)
        for fresh_second, fresh_first in zip(added_second, added_first, strict=True):
            second.append(second_gain * second[-1] + coupling * first[-1] + fresh_second)
            first.append(first_gain * first[-1] + fresh_first)
    second += [np.inf] * (traces.size - len(second))
    first += [np.inf] * (traces.size - len(first))
    return np.array(second), np.array(first)


def _runs(roundings: Sequence[MomentRounding]) -> Iterator[tuple[MomentRounding, int]]:
    """Yield each rounding with the number of successive rounds that share it."""
    for _, group in groupby(roundings, key=id):
        alike = list(group)
        yield alike[0], len(alike)


def mixture(maps: Sequence[tuple[float, RandomAffineMap]]) -> RandomAffineMap:
    """Return the law of drawing one of ``maps`` with its probability, then applying it."""

    def mean(arrays: Iterable[FloatArray]) -> FloatArray:
        weighted = [p * array for (p, _), array in zip(maps, arrays, strict=True)]
        return np.sum(weighted, axis=0)

    laws = [law for _, law in maps]
    return RandomAffineMap(
        mean_slope=mean(law.mean_slope for law in laws),
        mean_offset=mean(law.mean_offset for law in laws),
        slopes=np.concatenate([np.sqrt(p) * law.slopes for p, law in maps]),
        offsets=np.concatenate([np.sqrt(p) * law.offsets for p, law in maps]),
        noise=mean(law.noise for law in laws),
        slope_error=max(law.slope_error for law in laws),
        offset_error=max(law.offset_error for law in laws),
        noise_error=max(law.noise_error for law in laws),
    )
