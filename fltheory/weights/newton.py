"""The optimal weights in O(N), by Newton's method on three numbers.

Given the multipliers (lambda, theta) of the Lagrangian (26) and s, every client's p is the
positive root of its own cubic, ``c p / s - bias alpha^2 / p^2 = lambda - theta / pi`` with ``c = a
/ pi^2``. Three equations remain: ``sum p = 1``, ``sum p / pi = total s`` and ``b = theta total +
1/2 sum c p^2 / s^2``. They describe the saddle point of a function that is convex in s and concave
in the multipliers, so Newton's direction always lowers their residual.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fltheory.validation import FloatArray
from fltheory.weights.trade_off import TradeOff

_BLOCK = 4096
_LARGEST_SAMPLE = 4096
_EASING = 100.0
# Intermediate problems are solved only as accurately as is needed to start the next one.
_EASED_TOLERANCE = 0.01
_TOLERANCE = 1e-14
# Below this residual, rounding decides which of two points is better, so steps are no longer
# halved.
_NEARLY_EXACT = 1e-11
_MOST_STEPS = 100
_MOST_HALVINGS = 40
_ROOT_STEPS = 3
_LEFT_OF_ROOT = 0.7548776662466927  # the root of t^2 (1 + t) = 1


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def importance(problem: TradeOff) -> FloatArray:
    """Return p (N,) for a problem with positive ``bias``; the caller must check the residual.

    The method starts with so large a bias that p is near the target, and then lowers it. With many
    clients, it first does this for a sample of them, and starts from the result. Points at which
    some client has no root give NaN. They are rejected, like any point that is not better.
    """
    clients = _Cubics(problem, problem.bias)
    point, residual = clients.start(), np.inf
    if problem.n_clients > _LARGEST_SAMPLE:
        sample = _sample(problem)
        guess = _Cubics(sample, problem.bias).multipliers(_eased(sample))
        point, residual = _solve(clients, clients.point(guess), _TOLERANCE)
    if not residual <= _NEARLY_EXACT:
        point, _ = _solve(clients, _eased(problem), _TOLERANCE)
    p = clients.importance(point)
    return np.asarray(p / p.sum())


def _eased(problem: TradeOff) -> FloatArray:
    """Return a point near the solution, reached from an easier problem by lowering the bias."""
    easiest = max(problem.bias, problem.optimization_error(problem.target_weights))
    stages = math.ceil(math.log(easiest / problem.bias, _EASING))
    point = _Cubics(problem, easiest).start()
    for bias in np.geomspace(easiest, problem.bias, stages + 1):
        point, _ = _solve(_Cubics(problem, float(bias)), point, _EASED_TOLERANCE)
    return point


def _sample(problem: TradeOff) -> TradeOff:
    """Return the problem of a sample of clients, each representing those of similar availability.

    If targets are multiplied by a factor and a divided by it, the root of a client's cubic is
    multiplied by that factor, so the sample's three equations approximate those of all clients.
    """
    order = np.argsort(problem.availability, kind="stable")
    chosen = order[:: -(-problem.n_clients // _LARGEST_SAMPLE)]
    share = float(problem.target_weights[chosen].sum())
    if share == 0:
        return problem
    return TradeOff(
        problem.availability[chosen],
        problem.target_weights[chosen] / share,
        a=problem.a[chosen] * share,
        b=problem.b,
        bias=problem.bias,
        total=problem.total,
    )


def _solve(clients: _Cubics, point: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
    """Return the point that Newton's method reaches, and its residual."""
    state = clients.equations(point)
    for _ in range(_MOST_STEPS):
        if state.residual <= tolerance:
            break
        found = _step(clients, point, state)
        if found is None:
            break
        point, state = found
    return point, state.residual


@dataclass(frozen=True, eq=False)
class _ThreeEquations:
    """The three equations: residuals (3,), sizes of their terms (3,), Jacobian (3, 3)."""

    values: FloatArray
    sizes: FloatArray
    jacobian: FloatArray

    @property
    def residual(self) -> float:
        return float(np.abs(self.values / self.sizes).max())


def _step(
    clients: _Cubics, point: FloatArray, state: _ThreeEquations
) -> tuple[FloatArray, _ThreeEquations] | None:
    """Return the next point along Newton's direction, or None if none is better."""
    jacobian = state.jacobian / state.sizes[:, None]
    scale = np.abs(jacobian).max(axis=0)
    direction = -np.linalg.solve(jacobian / scale, state.values / state.sizes) / scale
    length = 1.0
    if direction[2] < 0:
        length = min(1.0, -0.9 * (clients.least + point[2]) / direction[2])
    size = float(np.linalg.norm(state.values / state.sizes))
    for _ in range(_MOST_HALVINGS if state.residual > _NEARLY_EXACT else 1):
        trial = point + length * direction
        reached = clients.equations(trial)
        if float(np.linalg.norm(reached.values / state.sizes)) <= (1 - 1e-4 * length) * size:
            return trial, reached
        length /= 2
    return None


class _Cubics:
    """The clients' cubics, processed in blocks that fit in the cache.

    A point is (lambda - theta / max(pi), theta, s - least s). Each rarity is measured relative to
    the smallest, because otherwise terms of opposite sign would cancel when the most available
    clients get all the weight. Both s and the rarities are in units of their values at p = alpha.
    """

    def __init__(self, problem: TradeOff, bias: float) -> None:
        alpha = problem.target_weights
        self._problem = problem
        self._reference = problem.spread(alpha)
        rarity = problem.rarity / (problem.total * self._reference)
        self.least = float(rarity.min())
        self._rarity = rarity - self.least
        self._curvature = problem.curvature / self._reference
        self._bias = bias
        self._pull = bias * alpha**2
        self._balance = np.cbrt(self._pull / self._curvature)
        self._load = problem.b * self._reference
        self._bounded = bool((self._pull == 0).any())

    def start(self) -> FloatArray:
        """Return the point for p = alpha."""
        alpha = self._problem.target_weights
        quadratic = 0.5 * float(self._curvature @ alpha**2)
        theta = self._load - quadratic
        excess = float(self._rarity @ alpha)
        return np.array([2 * quadratic - self._bias + theta * excess, theta, excess])

    def multipliers(self, point: FloatArray) -> FloatArray:
        """Return (lambda, theta, s) of a point, in the units of the problem."""
        shifted, theta, excess = point
        unit = self._problem.total * self._reference
        s = (self.least + excess) * self._reference
        return np.array([shifted + theta * self.least, theta / unit, s])

    def point(self, multipliers: FloatArray) -> FloatArray:
        """Return the point that corresponds to (lambda, theta, s)."""
        lagrange, theta, s = multipliers
        priced = theta * self._problem.total * self._reference
        return np.array([lagrange - priced * self.least, priced, s / self._reference - self.least])

    def equations(self, point: FloatArray) -> _ThreeEquations:
        """Return residuals and Jacobian, summed over the clients."""
        _, theta, excess = point
        s = self.least + excess
        sums = np.zeros(3)
        cross = np.zeros((3, 3))
        for part, p, give in self._roots(point):
            rarity, slope = self._rarity[part], self._curvature[part] * p / s
            columns = np.stack([np.ones_like(p), -rarity, slope / s])
            sums += p.sum(), rarity @ p, slope @ p
            cross += (columns * give) @ columns.T
        quadratic = 0.5 * sums[2] / s
        sizes = np.array([1.0, s, self._load + abs(theta) + quadratic or 1.0])
        values = np.array([sums[0] - 1, sums[1] - excess, self._load - theta - quadratic])
        jacobian = np.array(
            [
                [cross[0, 0], cross[0, 1], cross[0, 2]],
                [-cross[1, 0], -cross[1, 1], -cross[1, 2] - 1],
                [-cross[2, 0], -cross[2, 1] - 1, sums[2] / s**2 - cross[2, 2]],
            ]
        )
        return _ThreeEquations(values, sizes, jacobian)

    def importance(self, point: FloatArray) -> FloatArray:
        """Return p (N,)."""
        return np.concatenate([p for _, p, _ in self._roots(point)])

    def _roots(self, point: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield blocks of clients with their p and the derivative of p by lambda."""
        for first in range(0, self._rarity.size, _BLOCK):
            part = slice(first, first + _BLOCK)
            yield part, *self._block(part, *point)

    def _block(
        self, part: slice, lagrange: float, theta: float, excess: float
    ) -> tuple[FloatArray, FloatArray]:
        s = self.least + excess
        right = lagrange - theta * self._rarity[part]
        steep, pull = self._curvature[part] / s, self._pull[part]
        balance = self._balance[part] * np.cbrt(s)
        p = np.where(
            right >= 0,
            np.maximum(right / steep, balance),
            _LEFT_OF_ROOT * np.minimum(np.sqrt(pull / np.abs(right)), balance),
        )
        for _ in range(_ROOT_STEPS):
            inverse = 1 / p
            force = pull * inverse * inverse
            bend = force * inverse
            miss = steep * p - force - right
            slope = steep + 2 * bend
            p = p - miss * slope / (slope * slope + 3 * miss * bend * inverse)
        give = 1 / (steep + 2 * pull / (p * p * p))
        if self._bounded:
            free = pull == 0
            p = np.where(free, np.maximum(right / steep, 0.0), p)
            give = np.where(free, np.where(right > 0, 1 / steep, 0.0), give)
        return p, give
