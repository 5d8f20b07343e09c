"""Quadratic clients whose answers are affine forms in the model and in the noise.

Let ``A = I - lr H`` for a client with Hessian H and optimum c. With a correction v, K steps of
local SGD change its model by ``-lr sum_{k<K} A^k (H (x - c) + v)`` plus noise of covariance ``lr^2
sigma^2 / d sum_{k<K} A^{2k}``. No inverse is needed, so the result is a fraction if the inputs are.
With a proximal strength mu, ``A = I - lr (H + mu I)``. A client's noise is one block of d symbols
with that covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from fltheory.algorithms.contract import Algorithm, State
from fltheory.content import kept
from fltheory.engines.affine.numbers import (
    Arithmetic,
    Entries,
    ExactNumber,
    as_float,
    entries,
    identity_of,
)
from fltheory.engines.affine.symbolic.forms import AffineArray, Space, noise_covariance, refused
from fltheory.engines.clients.analytic_clients import MOST_LOCAL_MAPS, QuadraticClients, Silence
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem


@dataclass(frozen=True, eq=False)
class LocalMaps:
    """The map of K local steps, ``slope (x - c) + push v + noise``, for each client.

    Attributes
    ----------
    slope, noise : arrays, (N, d, d), or (1, d, d) if all are alike
        ``noise`` is the covariance of the noise.
    make_push : callable
        Computes ``push`` when a correction first needs it.
    """

    slope: Entries
    noise: Entries
    make_push: Callable[[], Entries]

    @cached_property
    def push(self) -> Entries:
        """The factor that multiplies corrections, in the shape of ``slope``."""
        return self.make_push()


class ClientNumbers:
    """A quadratic problem's numbers in an arithmetic, and the maps of its local steps.

    Parameters
    ----------
    problem : QuadraticProblem
    arithmetic : Arithmetic
    """

    def __init__(self, problem: QuadraticProblem, arithmetic: Arithmetic) -> None:
        self.problem = problem
        self.arithmetic = arithmetic
        self._known: dict[tuple[int, Any, Any], LocalMaps] = {}

    @cached_property
    def optima(self) -> Entries:
        """(N, d) optima."""
        return entries(self.arithmetic, self.problem.optima)

    @cached_property
    def hessians(self) -> Entries:
        """(N, d, d) Hessians, or (1, d, d) if all are alike."""
        hessians = self.problem.hessians
        return entries(self.arithmetic, hessians[None] if self.problem.shared_hessian else hessians)

    @cached_property
    def alpha(self) -> Entries:
        """(N,) target weights, normalised to sum to one."""
        given = self.problem.target_weights
        whole = np.ones(self.problem.n_clients, dtype=np.int64) if given is None else given
        weights = entries(self.arithmetic, whole)
        return weights / weights.sum()

    @cached_property
    def mean_hessian(self) -> Entries:
        """(d, d) Hessian of F."""
        if len(self.hessians) == 1:
            return self.hessians[0]
        return (self.alpha[:, None, None] * self.hessians).sum(axis=0)

    @cached_property
    def pull(self) -> Entries:
        """(d,) ``sum_i alpha_i H_i c_i``, so that ``grad F(x) = H x - pull``."""
        each = np.matmul(self.hessians, self.optima[:, :, None])[:, :, 0]
        return (self.alpha[:, None] * each).sum(axis=0)

    @cached_property
    def reach(self) -> float:
        """The largest distance of a client's optimum from x*, in floats."""
        return float(np.linalg.norm(self.problem.optima - self.problem.x_star, axis=1).max())

    def noise_level(self, sigma: float) -> Any:
        """Return the variance ``sigma^2 / d`` of one coordinate of a gradient's noise."""
        return self.arithmetic.entry(sigma) ** 2 / self.arithmetic.entry(self.problem.dim)

    def local_maps(self, steps: int, lr: Any, proximal: Any = 0) -> LocalMaps:
        """Return the map of ``steps`` local steps of size ``lr``."""
        key = steps, identity_of(lr), identity_of(proximal)
        make = self._exact_maps if self.arithmetic.exact else self._float_maps
        return kept(self._known, key, lambda: make(steps, lr, proximal), MOST_LOCAL_MAPS)

    def _exact_maps(self, steps: int, lr: Any, proximal: Any) -> LocalMaps:
        rate, pull = self._entry(lr), self._entry(proximal)
        level = self.noise_level(self.problem.sigma) * rate**2
        identity = entries(self.arithmetic, np.eye(self.problem.dim, dtype=np.int64))
        slopes, pushes, noises = [], [], []
        for hessian in self.hessians:
            step = identity - rate * (hessian + pull * identity)
            sums = _power_sum(step, identity, steps)
            squares = (
                _power_sum(step @ step, identity, steps) if self.problem.sigma > 0 else identity
            )
            pushes.append(-rate * sums)
            slopes.append(pushes[-1] @ hessian)
            noises.append(level * squares)
        noise = self._of_each(np.stack(noises))
        return LocalMaps(np.stack(slopes), noise, lambda: np.stack(pushes))

    def _of_each(self, noises: Entries) -> Entries:
        """Return covariances for noise of level ``sigma``, rescaled to each client's own level."""
        shares = self.problem.noise_shares
        if shares is None:
            return noises
        return np.asarray(entries(self.arithmetic, shares)[:, None, None] ** 2 * noises)

    def _entry(self, number: Any) -> Any:
        return number.value if isinstance(number, ExactNumber) else self.arithmetic.entry(number)

    def _float_maps(self, steps: int, lr: Any, proximal: Any) -> LocalMaps:
        # In an eigenbasis, expm1 and log1p avoid cancellation for small steps.
        asked = steps, as_float(lr), as_float(proximal)
        clients = self.silent_clients
        slope, noise = clients.local_parts(*asked)
        each = (1, *slope.shape) if self.problem.shared_hessian else slope.shape
        return LocalMaps(
            slope.reshape(each),
            noise.reshape(-1, *slope.shape[-2:]),
            lambda: clients.push(*asked).reshape(each),
        )

    def gradient_maps(self, steps: int, lr: Any) -> LocalMaps:
        """Return the maps to the sum of the exact gradients along the local steps.

        Noise in a step changes the gradient seen j steps later, which gives noise of covariance
        ``sigma^2/d sum_{j<K} (I - A^j)^2``.
        """
        maps = self.local_maps(steps, lr)
        rate = self._entry(lr) if self.arithmetic.exact else as_float(lr)
        noise = maps.noise if self.problem.sigma == 0 else self._gradient_noise(steps, rate)
        return LocalMaps(maps.slope / -rate, noise, lambda: maps.push / -rate)

    def _gradient_noise(self, steps: int, rate: Any) -> Entries:
        if not self.arithmetic.exact:
            noise = self.silent_clients.gradient_noise(steps, rate)
            return noise.reshape(-1, *noise.shape[-2:])
        identity = entries(self.arithmetic, np.eye(self.problem.dim, dtype=np.int64))
        level = self.noise_level(self.problem.sigma)
        covariances = []
        for hessian in self.hessians:
            step = identity - rate * hessian
            # sum_j (I - A^j)^2 = K I - 2 S(A) + S(A^2)
            once = _power_sum(step, identity, steps)
            twice = _power_sum(step @ step, identity, steps)
            covariances.append(level * (steps * identity - 2 * once + twice))
        return self._of_each(np.stack(covariances))

    @cached_property
    def silent_clients(self) -> QuadraticClients:
        """The clients in floats, without noise."""
        return QuadraticClients(self.problem, Silence())

    @property
    def slope_rounding(self) -> float:
        """Bound, to first order, on the rounding error in the slope of any map used so far."""
        return self.silent_clients.slope_rounding

    @property
    def power_rounding(self) -> float:
        """Bound on the relative error of the K-fold powers in those maps, and so of the noises."""
        return self.silent_clients.power_rounding


def _power_sum(step: Entries, identity: Entries, count: int) -> Entries:
    """Return ``sum_{k<count} step^k`` by doubling."""
    total, power = identity, step
    for digit in bin(count)[3:]:
        # If S_k is the sum of the first k powers, then S_2k = S_k + A^k S_k and S_{k+1} = I + A
        # S_k.
        total, power = total + power @ total, power @ power
        if digit == "1":
            total, power = identity + step @ total, power @ step
    return total


class FormClients:
    """The Clients interface on a `QuadraticProblem`, for affine forms.

    Parameters
    ----------
    numbers : ClientNumbers
    space : Space
        The space to which fresh noise symbols are added.
    """

    def __init__(self, numbers: ClientNumbers, space: Space) -> None:
        self._numbers = numbers
        self._space = space

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._numbers.problem.n_clients

    def local_sgd(
        self,
        x: AffineArray,
        who: Masks,
        *,
        steps: int,
        lr: Any,
        correction: Any = None,
        proximal: Any = 0,
    ) -> AffineArray:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        return self._each(self._numbers.local_maps(steps, lr, proximal), x, who, correction)

    def summed_local_sgd(
        self,
        x: AffineArray,
        who: Masks,
        weights: Any,
        *,
        steps: int,
        lr: Any,
        correction: Any = None,
        proximal: Any = 0,
    ) -> AffineArray:
        """Return the weighted sum of the participants' changes, (replicas, dim)."""
        local = self._numbers.local_maps(steps, lr, proximal)
        return self._sum(local, x, who, weights, correction)

    def summed_local_gradients(
        self, x: AffineArray, who: Masks, weights: Any, *, steps: int, lr: Any
    ) -> AffineArray:
        """Return ``sum_i weights_i sum_k grad F_i(y_k^i)`` over the participants."""
        return self._sum(self._numbers.gradient_maps(steps, lr), x, who, weights, None)

    def loss(self, x: AffineArray, who: Masks) -> AffineArray:
        """Return each client's loss, zero where absent; the model must be constant."""
        if not x.is_constant:
            raise refused("the losses")
        offset = self._space.constants(x.constant[:, None, :] - self._numbers.optima)
        pulled = self._applied(self._numbers.hessians, offset)
        halves = self._space.namespace.sum(offset * pulled, axis=2) / 2
        return self._space.namespace.where(who, halves, self._space.full((1,), 0))

    def server_gradient(self, x: AffineArray) -> AffineArray:
        """Return the gradient of F with the server's noise."""
        numbers, problem = self._numbers, self._numbers.problem
        if numbers.arithmetic.exact:
            gradient = x @ self._space.constants(numbers.mean_hessian) - numbers.pull
        else:
            # This is measured from x*, where the gradient is zero, because subtracting the pull of
            # far optima would cancel digits.
            gradient = (x - problem.x_star) @ problem.mean_hessian
        if problem.server_sigma == 0:
            return gradient
        identity = np.eye(problem.dim, dtype=np.int64)
        level = numbers.noise_level(problem.server_sigma) * entries(numbers.arithmetic, identity)
        return gradient + self._fresh(level[None])

    def _weights(self, who: Masks, weights: Any) -> Entries:
        known = self._space.forms(weights).known("weights of clients")
        zero = self._space.zero
        return np.where(who, np.broadcast_to(known, who.shape), zero)

    def _each(self, local: LocalMaps, x: AffineArray, who: Any, correction: Any) -> AffineArray:
        """Return each client's change under local maps, zero where absent."""
        moved = self._moved(local, x, correction)
        if self._numbers.problem.sigma > 0:
            moved = moved + self._noise_of_each(local, who)
        return self._space.namespace.where(who[:, :, None], moved, self._space.full((1,), 0))

    def _sum(
        self, local: LocalMaps, x: AffineArray, who: Any, weights: Any, correction: Any
    ) -> AffineArray:
        """Return the weighted sum of the participants' changes under local maps."""
        weighted = self._weights(who, weights)
        if correction is None:
            total = self._summed(local.slope, x, weighted)
        else:
            moved = self._moved(local, x, correction)
            total = self._space.namespace.sum(moved * weighted[:, :, None], axis=1)
        if self._numbers.problem.sigma == 0:
            return total
        return total + self._fresh(np.tensordot(weighted**2, self._repeated(local.noise), axes=1))

    def _repeated(self, maps: Entries) -> Entries:
        """Return one map per client."""
        shape = (self.n_clients, *maps.shape[1:])
        return np.broadcast_to(maps, shape)

    def _offsets(self, x: AffineArray) -> AffineArray:
        """Return ``x - c_i``, (replicas, N, d)."""
        return x[:, None, :] - self._space.constants(self._numbers.optima)

    def _applied(self, maps: Entries, vectors: AffineArray) -> AffineArray:
        """Return each client's map of its vector, (replicas, N, d)."""
        values = np.matmul(self._repeated(maps)[None], vectors.values)
        return AffineArray(self._space, values)

    def _moved(self, local: LocalMaps, x: AffineArray, correction: Any) -> AffineArray:
        moved = self._applied(local.slope, self._offsets(x))
        if correction is None:
            return moved
        shape = x.shape[0], self.n_clients, x.shape[1]
        return moved + self._pushed(local.push, correction, shape)

    def _pushed(self, push: Entries, correction: Any, shape: tuple[int, ...]) -> AffineArray:
        """Return the contribution of corrections to each client's change, (replicas, N, d)."""
        every = self._space.namespace.zeros(shape) + self._space.forms(correction)
        return self._applied(push, every)

    def _summed(self, slope: Entries, x: AffineArray, weighted: Entries) -> AffineArray:
        """Return ``sum_i w_i slope_i (x - c_i)`` without an array for every client and replica."""
        optima = self._numbers.optima
        if len(slope) == 1:
            total = weighted.sum(axis=1)
            moved = x * self._space.constants(total)[:, None]
            apart = (weighted[:, :, None] * (x.constant[:, None] - optima)).sum(axis=1)
            moved = AffineArray(
                self._space, np.concatenate([apart[..., None], moved.values[..., 1:]], axis=-1)
            )
            return moved @ self._space.constants(slope[0].T)
        summed = np.tensordot(weighted, slope, axes=1)
        # Differences x - c_i are taken first, because subtracting two large sums would leave mostly
        # rounding errors.
        apart = (x.constant[:, None] - optima)[..., None]
        constant = (weighted[:, :, None] * np.matmul(slope[None], apart)[..., 0]).sum(axis=1)
        linear = np.matmul(summed, x.values[..., 1:])
        return AffineArray(self._space, np.concatenate([constant[..., None], linear], axis=-1))

    def _noise_of_each(self, local: LocalMaps, who: Masks) -> AffineArray:
        """Return noise with a separate block for every client that is present in some replica."""
        dim = self._numbers.problem.dim
        places = np.full((self.n_clients, dim), -1)
        for client in np.flatnonzero(who.any(axis=0)):
            noise = self._repeated(local.noise)[client]
            places[client] = self._space.fresh_noise(noise[None]) + np.arange(dim)
        values = np.full((1, self.n_clients, dim, 1 + self._space.size), self._space.zero)
        clients, coordinates = np.nonzero(places >= 0)
        values[0, clients, coordinates, 1 + places[clients, coordinates]] = (
            self._space.arithmetic.entry(1)
        )
        return AffineArray(self._space, values)

    def _fresh(self, covariance: Entries) -> AffineArray:
        """Return one block of noise, (1, d), with one covariance per replica."""
        first = self._space.fresh_noise(covariance)
        return self._space.symbols_from(first, covariance.shape[-1])


# --- a round, read from its forms ---------------------------------------------------------------


def split(vectors: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Split vectors (rows, n) into the state's entries (rows, ...), given their shapes."""
    parts, first = {}, 0
    for name, shape in shapes.items():
        width = prod(shape)
        parts[name] = vectors[:, first : first + width].reshape(len(vectors), *shape)
        first += width
    return parts


def joined(state: State, names: Iterable[str]) -> Any:
    """Concatenate a state's entries (rows, ...) into vectors (rows, n)."""
    return np.concatenate([state[name].reshape(len(state[name]), -1) for name in names], axis=1)


@dataclass(frozen=True, eq=False)
class ReadRound:
    """A round read from forms for given counts, with one row per participant set.

    Attributes
    ----------
    slopes, offsets, noises : arrays, (rows, n, n), (rows, n) and (rows, n, n)
        The affine map of the random entries, and the covariance of its noise.
    known : mapping of str to array (rows, ...)
        The other entries after the round, or the parts of these that do not depend on the random
        ones.
    widened : tuple of str
        Names of those other entries that turn out to depend on the random ones.
    """

    slopes: Entries
    offsets: Entries
    noises: Entries
    known: Mapping[str, Entries]
    widened: tuple[str, ...]


def read_round(
    algorithm: Algorithm,
    branch: str,
    numbers: ClientNumbers,
    masks: Masks,
    known: State,
    random: Mapping[str, tuple[int, ...]],
    origin: Entries,
) -> ReadRound:
    """Run a round on forms in the random entries, in the arithmetic of the clients' numbers.

    Parameters
    ----------
    algorithm : Algorithm
    branch : str
    numbers : ClientNumbers
    masks : array of bool, (rows, N)
    known : mapping of str to array (rows, ...)
        Entries of the state whose values are known.
    random : mapping of str to tuple of int
        Shapes of the other entries.
    origin : array, (n,)
        The point from which the random entries are measured, both before and after the round.
    """
    n = origin.size
    space = Space(numbers.arithmetic, n)
    state = {name: space.constants(array) for name, array in known.items()}
    state |= split(space.variables(origin, len(masks)), random)
    after = algorithm.round(state, FormClients(numbers, space), masks, branch)
    forms = {name: space.forms(array) for name, array in after.items()}
    image = joined(forms, random)
    others = {name: form for name, form in forms.items() if name not in random}
    return ReadRound(
        image.linear(n),
        image.constant - origin,
        noise_covariance(image),
        {
            name: np.broadcast_to(form.constant, (len(masks), *form.shape[1:]))
            for name, form in others.items()
        },
        tuple(sorted(name for name, form in others.items() if not form.is_constant)),
    )
