"""The Clients interface on analytic losses: K local SGD steps, in closed form or one by one.

On quadratic clients, let ``A = (I - lr H)^K``. The change of a client's model is then ``y_K - x =
-(I - A)(x - c + H^{-1} v) + noise`` for a correction ``v``, and the noise of all steps is one
Gaussian with covariance ``lr^2 sigma^2/d sum_{j<K} (I - lr H)^{2j}``. With a proximal strength mu,
``H + mu`` takes the place of H in A and in the covariance, and the change is ``H (H + mu)^{-1}``
times that. The sum of a client's exact gradients along its steps is ``(I - A)(x - c)/lr`` plus
noise of covariance ``sigma^2/d sum_{j<K} (I - (I - lr H)^j)^2``, because noise in a step changes
the gradient seen j steps later.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fltheory.algorithms.contract import Clients
from fltheory.content import kept
from fltheory.engines.clients.summed_maps import Scratch, SummedMaps, product, worth_it
from fltheory.participation.base import Masks
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem, from_eigenbasis
from fltheory.validation import ClientIndices, FloatArray

ReplicaIndices = NDArray[np.intp]


class NoiseSource(Protocol):
    """A source of independent standard normals, in rows that belong to replicas."""

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return an array (rows, width); row t is used by replica ``replica_of_row[t]``.

        The next call may overwrite the array.
        """
        ...


class GaussianNoise:
    """Noise drawn from a generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._held = np.empty(0)

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return independent standard normals."""
        numbers = replica_of_row.size * width
        if self._held.size < numbers:
            self._held = np.empty(numbers)
        self._rng.standard_normal(out=self._held[:numbers])
        return self._held[:numbers].reshape(replica_of_row.size, width)


class Silence:
    """No noise."""

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return zeros."""
        return np.zeros((replica_of_row.size, width))


class AnalyticClients(Clients):
    """The part of the Clients interface that does not depend on how local steps are computed.

    Parameters
    ----------
    problem : Problem
    noise : NoiseSource
    """

    def __init__(self, problem: Problem, noise: NoiseSource) -> None:
        self._problem = problem
        self._noise = noise

    def with_noise(self, noise: NoiseSource) -> Self:
        """Return the same clients with different noise, sharing the maps computed so far."""
        other = copy(self)
        other._noise = noise
        return other

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._problem.n_clients

    def loss(self, x: FloatArray, who: Masks) -> FloatArray:
        """Return each client's loss at its replica's model, zero where absent."""
        return np.where(who, self._problem.client_losses(x), 0.0)

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient of F with the server's noise."""
        gradient = self._problem.gradient(x)
        return gradient + self._noise_of(np.arange(x.shape[0]), x, self._problem.server_sigma)

    def _noise_of(
        self, rows: np.ndarray, x: FloatArray, sigma: FloatArray | float
    ) -> FloatArray | float:
        if not np.any(sigma):
            return 0.0
        return sigma / math.sqrt(x.shape[1]) * self._noise.normal(rows, x.shape[1])


# If step sizes change every round, keeping all maps would fill the memory.
MOST_LOCAL_MAPS = 16
_MOST_ADDED_IN_TURN = 8
_LARGEST_ADDED_IN_TURN = 512

_Key = tuple[str, int, float, float]


@dataclass(frozen=True, eq=False)
class _LocalMap:
    """The change ``slope (x - c) + noise_factor g`` with standard normal g.

    ``slope`` and ``noise_factor`` are (d, d), or (N, d, d) if the Hessians differ. ``noise_factor``
    is also (N, d, d) if noise levels differ. A correction v moves the client's optimum by ``-H^{-1}
    v``, so it enters as ``slope H^{-1} v``.
    """

    slope: FloatArray
    noise_factor: FloatArray
    slope_rounding: float
    power_rounding: float
    problem: QuadraticProblem

    @cached_property
    def pulls(self) -> FloatArray:
        """(N, d) ``slope (c - x*)``, which the maps subtract because the optima are not x*."""
        offsets = _offsets(self.problem)
        return np.asarray(np.matmul(self.slope, offsets[:, :, None])[:, :, 0])

    @property
    def noisy(self) -> bool:
        """Whether there is any noise."""
        return self.problem.sigma > 0

    @cached_property
    def stacked(self) -> FloatArray:
        """Maps from (x - x*, g) to the change, (N, 2d, d), or (N, d, d) without noise."""
        if not self.noisy:
            return self.slope
        return np.concatenate([self.slope, np.swapaxes(self.noise_factor, 1, 2)], axis=1)

    @cached_property
    def summed(self) -> SummedMaps | None:
        """The law from which sums of changes are drawn, or None if it would be inaccurate."""
        return SummedMaps.of(self.slope, self.noise_factor, self.pulls, noisy=self.noisy)

    @property
    def noise_covariance(self) -> FloatArray:
        """Covariance of the noise."""
        return np.asarray(self.noise_factor @ np.swapaxes(self.noise_factor, -1, -2))


def _offsets(problem: QuadraticProblem) -> FloatArray:
    return np.asarray(problem.optima - problem.x_star)


class QuadraticClients(AnalyticClients):
    """The Clients interface on a `QuadraticProblem`, in NumPy.

    Parameters
    ----------
    problem : QuadraticProblem
    noise : NoiseSource
    """

    _problem: QuadraticProblem

    def __init__(self, problem: QuadraticProblem, noise: NoiseSource) -> None:
        super().__init__(problem, noise)
        self._eigenvalues, self._eigenvectors = problem.eigenbasis
        self._workspace = Scratch()
        self._local_maps: dict[_Key, _LocalMap] = {}

    @cached_property
    def _offsets(self) -> FloatArray:
        """(N, d) optima measured from x*; engines that only use maps do not need them."""
        return _offsets(self._problem)

    def with_noise(self, noise: NoiseSource) -> Self:
        """Return the same clients with different noise, sharing the maps computed so far."""
        other = super().with_noise(noise)
        other._workspace = Scratch()
        return other

    @property
    def slope_rounding(self) -> float:
        """Bound, to first order, on the rounding error in the slope of any map used so far."""
        return max((local.slope_rounding for local in self._local_maps.values()), default=0.0)

    @property
    def power_rounding(self) -> float:
        """Bound on the relative error of the K-fold powers in those maps, and so of the noises."""
        return max((local.power_rounding for local in self._local_maps.values()), default=0.0)

    def local_parts(
        self, steps: int, lr: float, proximal: float = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Return the map of K steps on ``x - c``, and the covariance of the noise.

        Both are (d, d), or (N, d, d) if the Hessians differ.
        """
        local = self._change_map(steps, lr, proximal)
        return local.slope, local.noise_covariance

    def push(self, steps: int, lr: float, proximal: float = 0) -> FloatArray:
        """Return the map of K steps on a correction, in the same shape."""
        pulled = self._eigenvalues + proximal
        return self._from_eigenbasis(-_one_minus_power(lr * pulled, steps) / pulled)

    def gradient_noise(self, steps: int, lr: float) -> FloatArray:
        """Return the covariance of the noise in the sum of exact gradients along the steps."""
        return self._gradient_map(steps, lr).noise_covariance

    def local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        rows, clients, changes = self._changes(
            self._change_map(steps, lr, proximal), x, who, correction
        )
        every = np.zeros((*who.shape, x.shape[1]))
        every[rows, clients] = changes
        return every

    def summed_local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        weights: FloatArray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return the weighted sum of the participants' changes, (replicas, dim)."""
        return self._sum(self._change_map(steps, lr, proximal), x, who, weights, correction)

    def summed_local_gradients(
        self, x: FloatArray, who: Masks, weights: FloatArray, *, steps: int, lr: float
    ) -> FloatArray:
        """Return ``sum_i weights_i sum_k grad F_i(y_k^i)`` over the participants."""
        return self._sum(self._gradient_map(steps, lr), x, who, weights, None)

    def _changes(
        self,
        local: _LocalMap,
        x: FloatArray,
        who: Masks,
        correction: FloatArray | None,
    ) -> tuple[ClientIndices, ClientIndices, FloatArray]:
        """Return replica, client and change of each participant, client after client."""
        clients, rows = np.nonzero(who.T)
        offset = x - self._problem.x_star
        held, moved, changes = (
            self._workspace.array(name, rows.size, x.shape[1])
            for name in ("held", "moved", "changes")
        )
        moved = np.take(offset, rows, axis=0, out=moved, mode="clip")
        moved -= np.take(self._offsets, clients, axis=0, out=held, mode="clip")
        ends = np.cumsum(who.sum(axis=0)).tolist()
        if correction is not None:
            moved += _apply_in_runs(
                self._problem.inverse_hessians, correction[rows, clients], ends, held
            )
        changes = _apply_in_runs(local.slope, moved, ends, changes)
        if local.noisy:
            draws = self._noise.normal(rows, x.shape[1])
            factor = np.swapaxes(local.noise_factor, -1, -2)
            changes += _apply_in_runs(factor, draws, ends, held)
        return rows, clients, changes

    def _sum(
        self,
        local: _LocalMap,
        x: FloatArray,
        who: Masks,
        weights: FloatArray,
        correction: FloatArray | None,
    ) -> FloatArray:
        given, weights = weights, self._workspace.array("present", *who.shape)
        weights.fill(0.0)
        np.copyto(weights, given, where=who)
        if self._problem.shared_hessian:
            return self._sum_shared(local, x, weights, correction)
        total = np.empty_like(x)
        together = self._drawn_together(local, weights)
        for some, add in ((together, self._sum_together), (~together, self._sum_apart)):
            replicas = np.flatnonzero(some)
            if replicas.size == 0:
                continue
            if replicas.size == x.shape[0]:
                total = add(local, x - self._problem.x_star, who, weights, replicas)
            else:
                offset = x[replicas] - self._problem.x_star
                total[replicas] = add(local, offset, who[replicas], weights[replicas], replicas)
        if correction is not None:
            moves = self._problem.inverse_hessians @ local.slope
            pushes = np.where(who[:, :, None], weights[:, :, None] * correction, 0.0)
            total += product(pushes.reshape(x.shape[0], -1), moves.reshape(-1, x.shape[1]))
        return total

    def _drawn_together(self, local: _LocalMap, weights: FloatArray) -> NDArray[np.bool_]:
        # Building the law of sums takes longer than using it once.
        if not worth_it(weights, self._problem.dim).any() or local.summed is None:
            return np.zeros(weights.shape[0], dtype=bool)
        return local.summed.covers(weights)

    def _sum_together(
        self,
        local: _LocalMap,
        offset: FloatArray,
        who: Masks,
        weights: FloatArray,
        replicas: ReplicaIndices,
    ) -> FloatArray:
        """Draw the sums from their own distribution, with one Gaussian vector per replica."""
        del who
        assert local.summed is not None
        draws = self._noise.normal(replicas, offset.shape[1]) if local.noisy else None
        return local.summed.sums(offset, weights, draws, self._workspace)

    def _sum_apart(
        self,
        local: _LocalMap,
        offset: FloatArray,
        who: Masks,
        weights: FloatArray,
        replicas: ReplicaIndices,
    ) -> FloatArray:
        """Draw the participants' changes one by one and add them up."""
        if who.shape[1] <= _MOST_ADDED_IN_TURN and who.size <= _LARGEST_ADDED_IN_TURN:
            return self._sum_in_turn(local, offset, who, weights, replicas)
        from scipy.sparse import csr_array

        (replica_count, dim), n_clients = offset.shape, who.shape[1]
        flat = np.flatnonzero(who)
        firsts = np.searchsorted(flat, n_clients * np.arange(replica_count + 1))
        rows = np.repeat(np.arange(replica_count), np.diff(firsts))
        clients = flat - n_clients * rows
        # These are sorted by client, so that each client takes one product; short integers sort
        # fastest.
        short = np.uint16 if n_clients <= 1 << 16 else np.intp
        by_client = np.argsort(clients.astype(short), kind="stable")
        place = np.empty_like(by_client)
        place[by_client] = np.arange(flat.size)
        rows = rows[by_client]
        inputs = self._workspace.array("inputs", flat.size, local.stacked.shape[1])
        moved = self._workspace.array("moved", flat.size, dim)
        inputs[:, :dim] = np.take(offset, rows, axis=0, out=moved, mode="clip")
        if local.noisy:
            inputs[:, dim:] = self._noise.normal(replicas[rows], dim)
        ends = np.cumsum(np.bincount(clients, minlength=n_clients)).tolist()
        changes = self._workspace.array("changes", flat.size, dim)
        _apply_in_runs(local.stacked, inputs, ends, changes)
        # This is sparse for speed, and so that a map that overflows has no effect while its client
        # is absent.
        of_those = weights.ravel()[flat]
        adding = csr_array((of_those, place, firsts), (replica_count, flat.size))
        pulling = csr_array((of_those, clients, firsts), (replica_count, n_clients))
        return np.asarray(adding @ changes - pulling @ local.pulls)

    def _sum_in_turn(
        self,
        local: _LocalMap,
        offset: FloatArray,
        who: Masks,
        weights: FloatArray,
        replicas: ReplicaIndices,
    ) -> FloatArray:
        """Return the sums of `_sum_apart`, by the same additions but without sparse arrays."""
        dim = offset.shape[1]
        clients, rows = np.nonzero(who.T)
        inputs = np.empty((rows.size, local.stacked.shape[1]))
        inputs[:, :dim] = offset[rows]
        if local.noisy:
            inputs[:, dim:] = self._noise.normal(replicas[rows], dim)
        added, pulled = np.zeros_like(offset), np.zeros_like(offset)
        ends = np.searchsorted(clients, np.arange(who.shape[1] + 1)).tolist()
        for client, (start, end) in enumerate(pairwise(ends)):
            if end > start:
                there = rows[start:end]
                share = weights[there, client, None]
                added[there] += share * (inputs[start:end] @ local.stacked[client])
                pulled[there] += share * local.pulls[client]
        return np.asarray(added - pulled)

    def _sum_shared(
        self,
        local: _LocalMap,
        x: FloatArray,
        weights: FloatArray,
        correction: FloatArray | None,
    ) -> FloatArray:
        """Return the sums if clients share one map; their noises then add up to one Gaussian."""
        total_weight = weights.sum(axis=1, keepdims=True)
        offset = total_weight * (x - self._problem.x_star) - product(weights, self._offsets)
        total = product(offset, local.slope)
        if correction is not None:
            pushed = np.einsum("ri,ria->ra", weights, correction)
            total += pushed @ self._problem.inverse_hessians @ local.slope
        if self._problem.sigma > 0:
            draws = self._noise.normal(np.arange(x.shape[0]), x.shape[1])
            shares, factor = self._problem.noise_shares, local.noise_factor
            if shares is not None:
                weights, factor = weights * shares, factor[int(shares.argmax())]
            spread = np.sqrt(np.einsum("ri,ri->r", weights, weights))
            total += spread[:, None] * product(draws, factor.T)
        return np.asarray(total)

    def _change_map(self, steps: int, lr: float, proximal: float) -> _LocalMap:
        def make() -> _LocalMap:
            pulled = self._eigenvalues + proximal
            moved = _one_minus_power(lr * pulled, steps)
            if proximal:
                moved = moved * (self._eigenvalues / pulled)
            decay = 1.0 - lr * pulled
            powers = decay[..., None] ** np.arange(steps)
            noise = lr * np.sqrt((powers**2).sum(axis=-1))
            return self._local_map(-moved, noise, _power_rounding(decay, steps, self._problem.dim))

        return kept(self._local_maps, ("change", steps, lr, proximal), make, MOST_LOCAL_MAPS)

    def _gradient_map(self, steps: int, lr: float) -> _LocalMap:
        def make() -> _LocalMap:
            move = lr * self._eigenvalues
            moved = np.stack([_one_minus_power(move, j) for j in range(steps)], axis=-1)
            noise = np.sqrt((moved**2).sum(axis=-1))
            rounding = _power_rounding(1.0 - move, steps, self._problem.dim)
            return self._local_map(_one_minus_power(move, steps) / lr, noise, rounding, lr)

        return kept(self._local_maps, ("gradient", steps, lr, 0.0), make, MOST_LOCAL_MAPS)

    def _local_map(
        self, slope: FloatArray, noise: FloatArray, rounding: float, over: float = 1.0
    ) -> _LocalMap:
        """Return the map with the given eigenvalues, whose slope has been divided by ``over``."""
        return _LocalMap(
            slope=self._from_eigenbasis(slope),
            noise_factor=self._noise_factor(noise),
            slope_rounding=rounding / over,
            power_rounding=rounding,
            problem=self._problem,
        )

    def _noise_factor(self, scale: FloatArray) -> FloatArray:
        level = self._problem.sigma / math.sqrt(self._problem.dim)
        factor = np.asarray(self._eigenvectors * (level * scale)[..., None, :])
        shares = self._problem.noise_shares
        return factor if shares is None else shares[:, None, None] * factor

    def _from_eigenbasis(self, eigenvalues: FloatArray) -> FloatArray:
        return from_eigenbasis(eigenvalues, self._eigenvectors)


def _power_rounding(decay: FloatArray, steps: int, dim: int) -> float:
    """Bound the rounding error of K-fold powers."""
    growth = max(1.0, float(np.abs(decay).max() ** steps))
    return float(np.finfo(np.float64).eps) * (2 * steps + dim) * growth


def _one_minus_power(move: FloatArray, steps: int) -> FloatArray:
    """``1 - (1 - move)^steps`` without cancellation for small moves."""
    small = np.minimum(move, 0.5)
    return np.where(move < 0.5, -np.expm1(steps * np.log1p(-small)), 1.0 - (1.0 - move) ** steps)


def _apply_in_runs(
    maps: FloatArray, vectors: FloatArray, ends: list[int], out: FloatArray
) -> FloatArray:
    """Apply each client's map (symmetric or acting from the right) to its contiguous rows.

    Client i's rows are ``ends[i - 1]`` to ``ends[i]``. A single map (d, d) is used for all clients.
    """
    if maps.ndim == 2:
        return np.matmul(vectors, maps, out=out)
    for client, (start, end) in enumerate(pairwise([0, *ends])):
        if end > start:
            np.matmul(vectors[start:end], maps[client], out=out[start:end])
    return out


class SteppedClients(AnalyticClients):
    """The Clients interface on any `Problem`, in NumPy, step by step.

    Parameters
    ----------
    problem : Problem
    noise : NoiseSource
    """

    def __init__(self, problem: Problem, noise: NoiseSource) -> None:
        super().__init__(problem, noise)
        # Only quadratic problems have a noise level for each client.
        sigmas = getattr(problem, "client_sigmas", problem.sigma)
        self._sigmas = np.broadcast_to(sigmas, (problem.n_clients,))

    def local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        change = np.zeros((*who.shape, x.shape[1]))
        change[who], _ = self._run(x, who, steps, lr, correction, proximal)
        return change

    def summed_local_gradients(
        self, x: FloatArray, who: Masks, weights: FloatArray, *, steps: int, lr: float
    ) -> FloatArray:
        """Return ``sum_i weights_i sum_k grad F_i(y_k^i)`` over the participants."""
        sums = np.zeros((*who.shape, x.shape[1]))
        _, sums[who] = self._run(x, who, steps, lr)
        return np.einsum("ri,ria->ra", weights, sums)

    def _run(
        self,
        x: FloatArray,
        who: Masks,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the change and gradient sum of every (replica, participant) pair, in row order."""
        rows, clients = np.nonzero(who)
        start = x[rows]
        y = start.copy()
        gradient_sum = np.zeros_like(y)
        push = 0.0 if correction is None else correction[rows, clients]
        levels = self._sigmas[clients, None]
        for _ in range(steps):
            gradient = self._problem.client_gradients(y, clients)
            gradient_sum += gradient
            if proximal:
                gradient = gradient + proximal * (y - start)
            y -= lr * (gradient + push + self._noise_of(rows, x, levels))
        return y - start, gradient_sum


def analytic_clients(problem: Problem, noise: NoiseSource) -> AnalyticClients:
    """Return a problem's clients, in closed form if there is one, otherwise step by step."""
    if isinstance(problem, QuadraticProblem):
        return QuadraticClients(problem, noise)
    return SteppedClients(problem, noise)


class LossClient(Protocol):
    """A client whose loss and gradient are known exactly."""

    @property
    def n_samples(self) -> int:
        """Number of the client's samples; may be 0."""
        ...

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the exact gradient of the client's loss at ``x`` (d,), a new array."""
        ...

    def loss(self, x: FloatArray) -> float:
        """Return the client's loss at ``x``."""
        ...


def descended(
    client: LossClient,
    start: FloatArray,
    *,
    steps: int,
    lr: float,
    correction: FloatArray | None = None,
    proximal: float = 0.0,
) -> FloatArray:
    """Return the point (d,) reached by ``steps`` steps of gradient descent from ``start`` (d,).

    ``correction`` and ``proximal (y - start)`` are added to every gradient.
    """
    push = 0.0 if correction is None else correction
    y = start.copy()
    for _ in range(steps):
        y = y - lr * (client.gradient(y) + push + proximal * (y - start))
    return y
