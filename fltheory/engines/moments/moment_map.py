"""One round of the first two moments of an affine random recursion, and its rounding.

With ``s' = A s + b + noise``, ``m = E s`` and ``M = E[s s']``:
``m' = E[A] m + E[b]`` and ``M' = E[A M A'] + E[A m b' + b m' A'] + E[b b'] + cov(noise)``.

If participation follows a Markov chain, moments are kept separately for each state of the coming
round: ``m_i = E[s 1{i}]``, ``M_i = E[s s' 1{i}]`` and the state's probability ``w_i``, which takes
the place of 1. A round applies the map of each state, and the chain then moves all three in the
same way. This is a Markov jump linear system (Costa, Fragoso and Marques, Discrete-Time Markov Jump
Linear Systems, 2005). Independent rounds are a chain of one state, whose arrays have no axis of
states.

*Rounding.* Over k rounds of one map, an error of M in the nuclear norm grows at most by the norm of
the dual map's k-th power applied to the identity. With memory, the k-th power of a single round's
growth is a useless bound, because a round may stretch the state in directions in which the next
rounds shrink it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias, cast

import numpy as np

from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.participation.process import States
from fltheory.validation import FloatArray


class _OneState:
    """The single state of independent rounds, which leaves values by state unchanged."""

    operations = 0

    def forward(self, values: FloatArray) -> FloatArray:
        """Return the values unchanged."""
        return values

    backward = forward


Moves: TypeAlias = States | _OneState
ONE_STATE = _OneState()


@dataclass(frozen=True, eq=False)
class MomentMap:
    """One round's map of the moments, for states of size n.

    Attributes
    ----------
    law : RandomAffineMap
        The map from states to states.
    states : Moves
        States of the participation chain.
    """

    law: RandomAffineMap
    states: Moves = ONE_STATE

    @property
    def size(self) -> int:
        """n, the size of the state."""
        return self.law.size

    def __call__(self, moments: FloatArray) -> FloatArray:
        """Return the next round's ``[M flattened, m, w]``, (..., n^2 + n + 1)."""
        law, n = self.law, self.size
        second, first, weights = parted(moments, n)
        image = np.empty_like(moments)
        spread = law.spread(second) + law.cross(first) + law.inflow * weights[..., None, None]
        image[..., : n * n] = spread.reshape(*moments.shape[:-1], n * n)
        image[..., n * n : -1] = self.mean(first) + law.mean_offset * weights[..., None]
        image[..., -1] = weights
        return self.states.forward(image)

    def mean(self, first: FloatArray) -> FloatArray:
        """Return the image of m under the mean slopes alone, before the chain moves."""
        return np.asarray((self.law.mean_slope @ first[..., None])[..., 0])

    def spread(self, second: FloatArray) -> FloatArray:
        """Return the image of M under the slopes alone."""
        return self.states.forward(self.law.spread(second))

    def dual(self, matrices: FloatArray) -> FloatArray:
        """Return the adjoint of `spread`: ``E[A_i' (sum_j P_ij X_j) A_i]``."""
        return self.law.dual(self.states.backward(matrices))

    @cached_property
    def identity(self) -> FloatArray:
        """(..., n, n) an identity matrix for every state."""
        return np.broadcast_to(np.eye(self.size), self.law.noise.shape)

    @cached_property
    def spread_matrix(self) -> FloatArray:
        """(..., n^2, n^2) matrices of ``M -> E[A M A']`` on flattened M, before the chain moves."""
        tensor, square = self.law.spread_tensor, self.size**2
        return tensor.reshape(*tensor.shape[:-4], square, square)

    @cached_property
    def matrix(self) -> FloatArray:
        """The round's map as a matrix on ``[M flattened, m, 1]``, for a single state."""
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
        """Constants of the recursion for the rounding error, one for each state."""
        law, n = self.law, self.size
        slopes, offsets = law.moving
        second_gain, first_gain = self._norms()
        slope_norms = np.sqrt((slopes**2).sum(axis=(-2, -1)))
        offset_norms = np.sqrt((offsets**2).sum(axis=-1))
        noise = np.trace(law.noise, axis1=-2, axis2=-1)
        slope_work = (slope_norms**2).sum(axis=0)
        cross_work = 2 * (slope_norms * offset_norms).sum(axis=0)
        inflow_work = (law.offsets**2).sum(axis=(0, -1)) + noise
        # This is the number of successive rounding errors in an entry of M'. With one matrix, these
        # are the r products in an entry of the matrix, then the n^2 + n + 1 terms of its row. With
        # factors, these are n + 1 terms of F X, then those of all factors, which BLAS sums in
        # blocks of a few hundred and then over blocks (at most n^2 + r, because factors are used if
        # n is large). The remaining n + 7 is for adding the cross terms and their transposes, the
        # inflow and the noise. Entry by entry, the error is that many units of sum_j |T_j| |M|
        # |T_j|', whose Frobenius norm is at most sum_j ||T_j||_F^2 tr M, the "works" below. The
        # nuclear norm may be sqrt(n) times as large.
        operations = float(n * n + 2 * n + law.offsets.shape[0] + 8)
        for part in law.parts:
            of_slopes, of_both, of_offsets = part.works
            slope_work += of_slopes
            cross_work += of_both
            inflow_work += of_offsets
            operations += part.operations
        return MomentRounding(
            second_gain=second_gain,
            offset_size=np.sqrt(law.offset_square),
            first_gain=first_gain,
            first_size=np.sqrt((law.mean_slope**2).sum(axis=(-2, -1))),
            slope_work=slope_work,
            cross_work=cross_work,
            inflow_work=inflow_work,
            slope_error=law.slope_error,
            offset_error=law.offset_error,
            noise_error=law.noise_error,
            unit=UNIT_ROUNDOFF * operations * np.sqrt(n),
            moved=UNIT_ROUNDOFF * self.states.operations,
            noise=noise,
            size=n,
            states=self.states,
        )

    def errors_after(
        self, begun: tuple[float, float], fresh: tuple[FloatArray, FloatArray]
    ) -> tuple[list[float], list[float]]:
        """Bound the sums over states of the errors of M and m, over several rounds of this map."""
        rounding = self.rounding
        if np.max(rounding.second_gain) <= 1:
            return rounding.errors_after(begun, fresh)
        turned, backward = self.law.mean_slope.swapaxes(-1, -2), self.states.backward
        growth = (
            gains(self.dual, self.identity),
            gains(lambda matrices: turned @ backward(matrices), self.identity),
        )
        return grown_errors(growth, float(np.max(rounding.coupling)), begun, fresh)

    def _norms(self) -> tuple[Numbers, Numbers]:
        """Return the spectral norms of ``E[A'A]`` and of E A."""
        law = self.law
        if len(law.slopes) == 1 and not law.parts:
            # The mean is the only slope, and a singular value is the root of an eigenvalue.
            largest = np.maximum(np.linalg.eigvalsh(law.gram)[..., -1], 0.0)
            return largest, np.sqrt(largest)
        # Both are computed in one call, because scheduled algorithms need them in every round and
        # calls are costly.
        both = np.linalg.svd(np.stack([law.gram, law.mean_slope]), compute_uv=False)[..., 0]
        return both[0], both[1]


def parted(moments: FloatArray, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return views of M (..., n, n), m (..., n) and w (...) of moments (..., n^2 + n + 1)."""
    second = moments[..., : n * n].reshape(*moments.shape[:-1], n, n)
    return second, moments[..., n * n : -1], moments[..., -1]


def packed(second: FloatArray, first: FloatArray, weights: FloatArray) -> FloatArray:
    """Return moments (..., n^2 + n + 1) of M (..., n, n), m (..., n) and w (...)."""
    flat = second.reshape(*first.shape[:-1], -1)
    return np.concatenate([flat, first, np.asarray(weights)[..., None]], axis=-1)


def traces_of(moments: FloatArray, n: int) -> FloatArray:
    """Return ``E||s||^2`` from moments, for each state if there are several."""
    return np.maximum(moments[..., : n * n : n + 1].sum(axis=-1), 0.0)


Numbers: TypeAlias = float | FloatArray


@dataclass(frozen=True, eq=False)
class MomentRounding:
    """A first-order bound on the moment recursion's rounding error, state by state.

    The error of ``M`` is measured in the nuclear norm, which ``M -> E[A M A']`` multiplies by at
    most ``||E[A'A]||`` for symmetric matrices, because this holds for the trace of every ``M >=
    0``. The sum over states is the nuclear norm of the block-diagonal matrix of all ``M_i``.
    ``moved`` is the relative error added by a move of the chain, and ``noise`` is the trace of the
    noise.
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
    moved: float = 0.0
    noise: Numbers = 0.0
    size: int = 1
    states: Moves = ONE_STATE

    def errors_after(
        self, begun: tuple[float, float], fresh: tuple[FloatArray, FloatArray]
    ) -> tuple[list[float], list[float]]:
        """Bound sums over states of the errors of M and m, multiplied by a factor every round."""
        growth = float(np.max(self.second_gain)), float(np.max(self.first_gain))
        return steady_errors(growth, float(np.max(self.coupling)), begun, fresh)

    @property
    def coupling(self) -> Numbers:
        """Factor with which an error of m contributes to the next error of M."""
        return 2 * np.sqrt(self.second_gain) * self.offset_size

    def of_one_round(
        self,
        traces: Numbers,
        weights: Numbers = 1.0,
        weight_errors: Numbers = 0.0,
        after: Numbers = np.inf,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the errors that one round adds to those of M and m.

        Parameters
        ----------
        traces : float or array
            ``E||s||^2``, or ``E||s||^2 1{state}``.
        weights, weight_errors : float or array
            The state's probability, and the error of this probability.
        after : float or array
            ``E||s||^2`` after the round, if known; the noise of the round only adds to it.
        """
        size, root = np.sqrt(traces), np.sqrt(weights)
        perturbed = self.slope_error * size + self.offset_error * root
        image = np.sqrt(self.second_gain) * size + self.offset_size * root
        image = np.minimum(image, np.sqrt(after))
        inflow = self.inflow_work * weights
        second_new = (
            self.unit * (self.slope_work * traces + self.cross_work * size * root + inflow)
            + self.unit * inflow
            + self.noise_error * weights
            + 2 * image * perturbed
            + perturbed**2
        )
        first_new = self.unit * (self.first_size * size + self.offset_size * root) + perturbed
        if self.moved:
            spread = image**2 + self.noise * weights
            second_new = second_new + self.moved * np.sqrt(self.size) * spread
            first_new = first_new + self.moved * image
        return (
            np.asarray(second_new + self.inflow_work * weight_errors),
            np.asarray(first_new * root + self.offset_size * weight_errors),
        )

    def of_states(
        self, traces: FloatArray, weights: FloatArray, errors: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the errors that rounds add, (rounds, states); write the totals into ``errors``.

        Parameters
        ----------
        traces, weights : arrays, (rounds, states)
        errors : array, (3, more than rounds, states)
            Errors of M, m and w. The first row contains the errors before these rounds.
        """
        forward, count = self.states.forward, len(traces)
        second, first, weight = errors
        for index in range(count):
            weight[index + 1] = forward(weight[index] + self.moved * weights[index])
        fresh = self.of_one_round(traces, weights, weight[:count])
        for index, (fresh_second, fresh_first) in enumerate(zip(*fresh, strict=True)):
            grown = self.second_gain * second[index] + self.coupling * first[index]
            after = np.stack(
                [grown + fresh_second, self.first_gain * first[index] + fresh_first], axis=1
            )
            second[index + 1], first[index + 1] = forward(after).T
        return fresh


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Bounds on rounding errors at the start and after each round, by states if there are any.

    Attributes
    ----------
    second, first, weights : arrays
        Errors of M (nuclear norm), m and w. Because transition probabilities are not negative, the
        chain moves these bounds in the same way as the moments.
    totals : pair of arrays, (rounds + 1,)
        Bounds on the sums over states of ``second`` and ``first``, computed in a different way.
        They are the same if there are no states.
    """

    second: FloatArray
    first: FloatArray
    weights: FloatArray
    totals: tuple[FloatArray, FloatArray]


RunOfRounds: TypeAlias = tuple[MomentRounding, MomentMap | None, int]
"""The rounding of equal rounds, their map (None for a single round), and their number."""


def propagate(
    rounds: Sequence[RunOfRounds],
    traces: FloatArray,
    weights: FloatArray,
    second_error: FloatArray,
    first_error: FloatArray,
) -> MomentErrors:
    """Return bounds on the errors of the moments at the start and after each round.

    Parameters
    ----------
    rounds : sequence of RunOfRounds
        Successive runs of rounds. After the last one, the bounds are infinite.
    traces, weights : arrays, (rounds + 1,) or (rounds + 1, states)
        ``E||s_r||^2`` and probabilities.
    second_error, first_error : float or array (states,)
        Errors of M and m at round zero.
    """
    one_state = traces.ndim == 1
    errors, totals = np.full((3, *traces.shape), np.inf), np.full((2, len(traces)), np.inf)
    errors[0, 0], errors[1, 0], errors[2] = second_error, first_error, 0.0
    totals[:, 0] = np.sum(second_error), np.sum(first_error)
    done = 0
    if not one_state:
        # The initial state is often known and grows little, so each run is split after its first
        # round.
        halves = [((rounding, None, 1), (rounding, step, n - 1)) for rounding, step, n in rounds]
        rounds = [half for both in halves for half in both if half[2] > 0]
    for rounding, step, count in rounds:
        now, ahead = slice(done, done + count), slice(done + 1, done + count + 1)
        begun = totals[:, done]
        if one_state:
            sums = rounding.of_one_round(traces[now], after=traces[ahead])
        else:
            begun = np.minimum(begun, errors[:2, done].sum(axis=-1))
            fresh = rounding.of_states(traces[now], weights[now], errors[:, done:])
            sums = fresh[0].sum(axis=-1), fresh[1].sum(axis=-1)
        totals[:, ahead] = (step or rounding).errors_after((begun[0], begun[1]), sums)
        if one_state:
            errors[:2, ahead] = totals[:, ahead]
        done += count
    return MomentErrors(errors[0], errors[1], errors[2], (totals[0], totals[1]))


_FORGOTTEN = 0.5
_LONGEST = 2000
_FEW = 1000


def gains(dual: Callable[[FloatArray], FloatArray], identity: FloatArray) -> Iterator[float]:
    """Yield bounds on the growth over 0, 1, 2, ... rounds.

    ``identity`` is (..., n, n), one matrix for each state if there are several.
    """
    matrices = identity
    while True:
        finite = bool(np.isfinite(matrices).all())
        yield float(np.linalg.norm(matrices, 2, axis=(-2, -1)).max()) if finite else np.inf
        matrices = dual(matrices)


def steady_errors(
    growth: tuple[float, float],
    coupling: float,
    begun: tuple[float, float],
    fresh: tuple[FloatArray, FloatArray],
) -> tuple[list[float], list[float]]:
    """Return bounds on the errors of M and m after each round, if rounds multiply them by a factor.

    Parameters
    ----------
    growth : pair of float
        Growth factors of the errors of M and of m in one round.
    coupling : float
        Factor with which an error of m contributes to the next error of M.
    begun : pair of float
        Initial errors of M and m.
    fresh : pair of arrays
        Errors that each round adds to M and to m.
    """
    first = _accumulated(growth[1], fresh[1], begun[1])
    pushes = coupling * np.array([begun[1], *first[:-1]])
    return _accumulated(growth[0], pushes + fresh[0], begun[0]), first


def _accumulated(gain: float, added: FloatArray, held: float) -> list[float]:
    """Return v_1, v_2, ... of ``v_k = gain v_(k-1) + added_k``, with v_0 = ``held``."""
    if added.size <= _FEW:
        return list(accumulate(added.tolist(), lambda v, fresh: gain * v + fresh, initial=held))[1:]
    # This is a triangular system with two diagonals. Importing SciPy takes longer than a few
    # rounds.
    from scipy.linalg.blas import dtbsv

    diagonals = np.array([np.ones(added.size), np.full(added.size, -gain)], order="F")
    right = np.concatenate([[gain * held + added[0]], added[1:]])
    return cast(list[float], dtbsv(1, diagonals, right, lower=1, diag=1).tolist())


def grown_errors(
    growth: tuple[Iterator[float], Iterator[float]],
    coupling: float,
    begun: tuple[float, float],
    fresh: tuple[FloatArray, FloatArray],
) -> tuple[list[float], list[float]]:
    """Return the bounds of `steady_errors`, given the growth over 0, 1, 2, ... rounds.

    The errors added in a round are multiplied by the growth over the rounds since then. Once the
    growth has fallen to a half, all errors so far are combined as new initial errors.
    """
    known = [next(growth[0])], [next(growth[1])]
    rounds = 0
    while rounds < min(len(fresh[0]), _LONGEST):
        rounds += 1
        for held, source in zip(known, growth, strict=True):
            held.append(next(source))
        if max(held[rounds] for held in known) <= _FORGOTTEN:
            break
    second, first = [begun[0]], [begun[1]]
    for begin in range(0, len(fresh[0]), rounds):
        part = slice(begin, begin + rounds)
        firsts = _grown(known[1], first[-1], fresh[1][part])
        pushed = coupling * np.array([first[-1], *firsts[:-1]])
        second += _grown(known[0], second[-1], fresh[0][part] + pushed)
        first += firsts
    return second[1:], first[1:]


def _grown(growth: list[float], begun: float, fresh: FloatArray) -> list[float]:
    gain = np.array(growth[: len(fresh) + 1])
    grown = np.convolve(gain[:-1], fresh)[: len(fresh)]
    return cast(list[float], (gain[1:] * begun + grown).tolist())
