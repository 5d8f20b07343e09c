"""The recursion of the first two moments of an affine random recursion.

With ``s' = A s + b + noise``, ``m = E s`` and ``M = E[s s']``:
``m' = E[A] m + E[b]`` and ``M' = E[A M A'] + E[A m b' + b m' A'] + E[b b'] + cov(noise)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.moments.error_growth import ErrorGrowth, SteadyGrowth, gains
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
        return self.law.size

    def __call__(self, second: FloatArray, first: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the next round's ``(M, m)``."""
        image = self.law.spread(second) + self.law.cross(first) + self.law.inflow
        return image, self.law.mean_slope @ first + self.law.mean_offset

    @cached_property
    def spread_matrix(self) -> FloatArray:
        """(n^2, n^2) matrix of ``M -> E[A M A']`` on flattened M."""
        return self.law.spread_tensor.reshape(self.size**2, self.size**2)

    @cached_property
    def matrix(self) -> FloatArray:
        """The whole map as a matrix on ``[M flattened, m, 1]``."""
        n = self.size
        whole = np.zeros((n * n + n + 1, n * n + n + 1))
        whole[: n * n, : n * n] = self.spread_matrix
        whole[: n * n, n * n : -1] = self.law.crosses.reshape(n, n * n).T
        whole[: n * n, -1] = self.law.inflow.ravel()
        whole[n * n : -1, n * n : -1] = self.law.mean_slope
        whole[n * n : -1, -1] = self.law.mean_offset
        whole[-1, -1] = 1.0
        return whole

    @cached_property
    def rounding(self) -> MomentRounding:
        """Constants of the recursion of the rounding error."""
        law, n = self.law, self.size
        slopes, offsets = law.moving
        # Both in one call: scheduled algorithms need them every round, and calls cost time there.
        norms = np.linalg.svd(np.stack([law.gram, law.mean_slope]), compute_uv=False)[:, 0]
        slope_norms = np.sqrt((slopes**2).sum(axis=(1, 2)))
        offset_norms = np.sqrt((offsets**2).sum(axis=1))
        slope_work = float((slope_norms**2).sum())
        cross_work = float(2 * slope_norms @ offset_norms)
        inflow_work = float((law.offsets**2).sum() + np.trace(law.noise))
        operations = float(n * n + 2 * n + law.offsets.shape[0] + 8)
        for part in law.parts:
            of_slopes, of_both, of_offsets = part.works
            slope_work += of_slopes
            cross_work += of_both
            inflow_work += of_offsets
            operations += part.operations
        return MomentRounding(
            second_gain=float(norms[0]),
            offset_size=float(np.sqrt(law.offset_square)),
            first_gain=float(norms[1]),
            first_size=float(np.linalg.norm(law.mean_slope)),
            slope_work=slope_work,
            cross_work=cross_work,
            inflow_work=inflow_work,
            slope_error=law.slope_error,
            offset_error=law.offset_error,
            noise_error=law.noise_error,
            unit=UNIT_ROUNDOFF * operations * np.sqrt(n),
            law=law,
        )


Numbers: TypeAlias = float | FloatArray


@dataclass(frozen=True, eq=False)
class MomentRounding:
    """A first-order bound on the moment recursion's rounding error.

    The error of ``M`` is measured in the nuclear norm, in which ``M -> E[A M A']`` grows a
    symmetric matrix at most by ``||E[A'A]||``: for every ``M >= 0`` its trace grows so. For
    moments kept apart by the state of a chain, the constants are arrays (states,), and ``law``,
    the map behind them, is left out.
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
    law: RandomAffineMap | None = None

    def one_round(self, second_error: float, first_error: float) -> SteadyGrowth:
        """Return the growth of the errors, or of their sums over states, by a factor a round."""
        return SteadyGrowth(
            float(np.max(self.second_gain)),
            float(np.max(self.first_gain)),
            float(np.max(self.coupling)),
            second_error,
            first_error,
        )

    def growth(
        self, second_error: float, first_error: float, rounds: int
    ) -> SteadyGrowth | ErrorGrowth:
        """Return the errors' growth over some rounds of this one map, without states."""
        steady = self.one_round(second_error, first_error)
        if rounds == 1 or steady.second_gain <= 1 or self.law is None:
            return steady
        identity, mean = np.eye(self.law.size), self.law.mean_slope
        return ErrorGrowth(
            gains(self.law.dual, identity),
            gains(lambda matrix: np.asarray(mean.T @ matrix), identity),
            steady.coupling,
            second_error,
            first_error,
        )

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
    roundings: Sequence[tuple[MomentRounding, int]],
    traces: FloatArray,
    second_error: float,
    first_error: float,
) -> tuple[FloatArray, FloatArray]:
    """Return bounds for the errors of M and of m before the first round and after each.

    Parameters
    ----------
    roundings : sequence of (MomentRounding, int)
        Of successive rounds, and for how many it serves; after the last the bounds are infinite.
    traces : array, (rounds + 1,)
        ``E||s_r||^2``.
    second_error, first_error : float
        Errors of M and m at round zero.
    """
    second, first = [second_error], [first_error]
    for rounding, count in roundings:
        before = traces[len(first) - 1 : len(first) - 1 + count]
        growth = rounding.growth(second[-1], first[-1], count)
        grown = growth.add_all(*rounding.of_one_round(before))
        second += grown[0]
        first += grown[1]
    second += [np.inf] * (traces.size - len(second))
    first += [np.inf] * (traces.size - len(first))
    return np.array(second), np.array(first)
