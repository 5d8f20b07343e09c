"""One round of moments that are kept apart by the state of a chain of participants.

With ``m_i = E[s 1{state i}]``, ``M_i = E[s s' 1{state i}]`` and ``w_i`` the state's
probability, the state being that of the coming round, a round in state i makes of them
``A_i m_i + w_i b_i`` and ``E[A_i M_i A_i'] + ... + w_i (E[b_i b_i'] + cov(noise_i))``, and the
chain then moves all three alike: a Markov jump linear system (Costa, Fragoso and Marques,
Discrete-Time Markov Jump Linear Systems, 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory.algorithms.contract import Algorithm
from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.affine.probing import maps_of_sets
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.moments.error_growth import ErrorGrowth, gains
from fltheory.engines.moments.moment_map import MomentRounding
from fltheory.participation.base import Masks
from fltheory.participation.process import States
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import ClientIndices, FloatArray


@dataclass(frozen=True, eq=False)
class Moments:
    """weights w (M,), first m (M, n) and second M (M, n, n), for M states."""

    weights: FloatArray
    first: FloatArray
    second: FloatArray

    @property
    def traces(self) -> FloatArray:
        """(M,) ``E||s||^2 1{state i}``."""
        return np.maximum(np.trace(self.second, axis1=1, axis2=2), 0.0)


@dataclass(frozen=True, eq=False)
class JumpMap:
    """The maps of one round, one for each branch of the algorithm and state of the chain.

    Attributes
    ----------
    states : States
    slopes, offsets : arrays, (branches, M, n, n) and (branches, M, n)
        Times the root of the branch's probability.
    mean_slope, mean_offset, noise : arrays, (M, n, n), (M, n) and (M, n, n)
        Averages over branches.
    slope_error, offset_error, noise_error : float
        As those of `RandomAffineMap`, for every state.
    """

    states: States
    slopes: FloatArray
    offsets: FloatArray
    mean_slope: FloatArray
    mean_offset: FloatArray
    noise: FloatArray
    slope_error: float
    offset_error: float
    noise_error: float

    @cached_property
    def inflow(self) -> FloatArray:
        """(M, n, n) ``E[b b'] + cov(noise)``."""
        return np.einsum("bma,mbc->mac", self.offsets, self.offsets.swapaxes(0, 1)) + self.noise

    def __call__(self, before: Moments) -> Moments:
        """Return the moments after the round, the chain being in the next round's state."""
        second = before.weights[:, None, None] * self.inflow
        for slope, offset in zip(self.slopes, self.offsets, strict=True):
            pushed = (slope @ before.first[:, :, None]) * offset[:, None, :]
            second += slope @ before.second @ slope.swapaxes(1, 2)
            second += pushed + pushed.swapaxes(1, 2)
        first = (self.mean_slope @ before.first[:, :, None])[:, :, 0]
        first += before.weights[:, None] * self.mean_offset
        move = self.states.forward
        return Moments(move(before.weights), move(first), move(second))

    def spread(self, second: FloatArray) -> FloatArray:
        """Return what the slopes alone make of M."""
        image = np.zeros_like(second)
        for slope in self.slopes:
            image += slope @ second @ slope.swapaxes(1, 2)
        return self.states.forward(image)

    def dual(self, matrices: FloatArray) -> FloatArray:
        """Return the adjoint of `spread`: ``E[A_i' (sum_j P_ij X_j) A_i]``."""
        moved = self.states.backward(matrices)
        image = np.zeros_like(matrices)
        for slope in self.slopes:
            image += slope.swapaxes(1, 2) @ moved @ slope
        return image

    def growth(self, second_error: float, first_error: float) -> ErrorGrowth:
        """Return the growth of the errors' sums over states, over rounds of this one map."""
        identity = np.broadcast_to(np.eye(self.mean_offset.shape[1]), self.noise.shape)
        turned = self.mean_slope.swapaxes(1, 2)
        return ErrorGrowth(
            gains(self.dual, identity),
            gains(lambda matrices: turned @ self.states.backward(matrices), identity),
            float(np.max(self.rounding.coupling)),
            second_error,
            first_error,
        )

    @cached_property
    def rounding(self) -> MomentRounding:
        """Constants of one state's rounding error, each (M,)."""
        n = self.mean_offset.shape[1]
        slope_norms = np.sqrt((self.slopes**2).sum(axis=(2, 3)))
        offset_norms = np.sqrt((self.offsets**2).sum(axis=2))
        gram = np.einsum("bmka,bmkc->mac", self.slopes, self.slopes, optimize=True)
        operations = n * n + 2 * n + len(self.slopes) + 8
        second_gain = np.linalg.eigvalsh(gram)[:, -1]
        if len(self.slopes) == 1:
            # The one slope is the mean, and a singular value the root of an eigenvalue.
            first_gain = np.sqrt(np.maximum(second_gain, 0.0))
        else:
            first_gain = np.linalg.norm(self.mean_slope, 2, axis=(1, 2))
        return MomentRounding(
            second_gain=second_gain,
            offset_size=np.sqrt((offset_norms**2).sum(axis=0)),
            first_gain=first_gain,
            first_size=np.sqrt((self.mean_slope**2).sum(axis=(1, 2))),
            slope_work=(slope_norms**2).sum(axis=0),
            cross_work=2 * (slope_norms * offset_norms).sum(axis=0),
            inflow_work=(offset_norms**2).sum(axis=0) + np.trace(self.noise, axis1=1, axis2=2),
            slope_error=self.slope_error,
            offset_error=self.offset_error,
            noise_error=self.noise_error,
            unit=float(UNIT_ROUNDOFF * operations * np.sqrt(n)),
        )


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Bounds on the rounding errors, each (M,): of w, of m, and of M in the nuclear norm.

    That norm, summed over states, is that of all ``M_i`` in the blocks of one matrix. State by
    state a round grows it at most by ``||E[A_i' A_i]||``, and the chain, whose transitions are
    not negative, carries the bounds as it carries the moments. ``totals`` bound the sums over
    states of the second and of the first in another way, where there is one.
    """

    weights: FloatArray
    first: FloatArray
    second: FloatArray
    totals: tuple[float, float] = (np.inf, np.inf)

    def after(self, step: JumpMap, before: Moments) -> tuple[MomentErrors, tuple[float, float]]:
        """Return the errors after a round from ``before``, and what it adds to their sums.

        These are the sums over states of M's and of m's errors.
        """
        rounding, states = step.rounding, step.states
        traces, weights = before.traces, before.weights
        fresh_second, fresh_first = rounding.of_one_round(traces, weights)
        size, root = np.sqrt(traces), np.sqrt(weights)
        image = np.sqrt(rounding.second_gain) * size + rounding.offset_size * root
        whole = image**2 + np.trace(step.noise, axis1=1, axis2=2) * weights
        moving = UNIT_ROUNDOFF * states.operations
        added_second = states.forward(
            rounding.inflow_work * self.weights
            + fresh_second
            + moving * whole * np.sqrt(before.first.shape[1])
        )
        added_first = states.forward(
            rounding.offset_size * self.weights + fresh_first + moving * image * root
        )
        grown_second = rounding.second_gain * self.second + rounding.coupling * self.first
        errors = MomentErrors(
            states.forward(self.weights + moving * weights),
            states.forward(rounding.first_gain * self.first) + added_first,
            states.forward(grown_second) + added_second,
        )
        return errors, (float(added_second.sum()), float(added_first.sum()))


@dataclass(frozen=True, eq=False)
class DistinctSets:
    """The participant sets of a chain's states, each once, and which one a state has."""

    masks: Masks
    of_state: ClientIndices

    @classmethod
    def of(cls, states: States) -> DistinctSets:
        """Find the sets."""
        masks, of_state = np.unique(states.masks, axis=0, return_inverse=True)
        return cls(masks, of_state.ravel())


def jump_map(
    algorithm: Algorithm,
    problem: QuadraticProblem,
    layout: StateLayout,
    states: States,
    sets: DistinctSets,
) -> JumpMap:
    """Read the maps of every branch and participant set off the algorithm's own round."""
    chances = [(name, chance) for name, chance in algorithm.branches if chance > 0]
    origin = layout.origin
    laws = [
        maps_of_sets(
            layout.function(algorithm, name),
            problem,
            sets.masks,
            origin,
            origin,
        )
        for name, _ in chances
    ]
    slopes = np.stack([law.slopes for law in laws])[:, sets.of_state]
    offsets = np.stack([law.offsets for law in laws])[:, sets.of_state]
    noises = np.stack([law.noises for law in laws])[:, sets.of_state]
    probabilities = np.array([chance for _, chance in chances])
    roots = np.sqrt(probabilities)
    return JumpMap(
        states=states,
        slopes=roots[:, None, None, None] * slopes,
        offsets=roots[:, None, None] * offsets,
        mean_slope=np.tensordot(probabilities, slopes, axes=1),
        mean_offset=np.tensordot(probabilities, offsets, axes=1),
        noise=np.tensordot(probabilities, noises, axes=1),
        slope_error=max(law.slope_error for law in laws),
        offset_error=max(law.offset_error for law in laws),
        noise_error=max(law.noise_error for law in laws),
    )
