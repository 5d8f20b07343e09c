"""Bounds on the distance from x* that a run can reach, for any participants.

Let ``u = x - x*``. K local steps change a client's model by ``Delta_i = -M_i u + push + noise``,
with a symmetric M_i (`pulls`). Let theta_i and lambda_i be the smallest and the largest eigenvalue
of M_i. A round ``u + sum_i w_i Delta_i`` has, for weights ``w_i >= 0``,

``||1 - sum_i w_i M_i|| <= max(1 - sum_i w_i theta_i, sum_i w_i lambda_i - 1)``,

since the matrix is symmetric. So what remains of u, plus the push, is at most the larger of two
expressions that are linear in w. A linear expression is largest at a corner of ``0 <= w_i <=
largest_i``, and at most ``total`` times its largest coefficient. Nothing is assumed about
participation. If a round reuses updates of earlier models, or corrects gradients by remembered
ones, only the triangle inequality is used, and the bounds grow faster.

Noise enters as a sum ``sum_j c_j ||xi_j||`` with ``c_j`` bounded in the same way. This sum is a
Lipschitz function of a standard Gaussian vector, with constant ``l = sigma/sqrt(d) sqrt(sum_j
c_j^2)``. So it exceeds its mean, which is at most ``sigma sum_j c_j``, by s with probability at
most ``exp(-s^2/(2 l^2))`` (Tsirelson, Ibragimov and Sudakov, 1976; Boucheron, Lugosi and Massart,
Concentration Inequalities, 2013, Theorem 5.6). The constant of a sum is at most the sum of the
constants; for independent terms, the squares add up instead. If noise is averaged out and only the
path is drawn, its contribution to ``E||u||^2`` is at most ``d l^2``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fltheory.algorithms import AveragedIterate, Projected
from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.algorithms.shared.update_bounds import BoundedUpdates, UpdateBounds
from fltheory.content import cached_by_content
from fltheory.engines.clients.pulls import Pulls
from fltheory.engines.guard import guarded
from fltheory.engines.setting import Setting
from fltheory.problems.base import GradientSplit, HasGradientSplit, Problem
from fltheory.validation import FloatArray

# Sums of a few numbers in each of several thousand rounds have a smaller relative error than this.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Reach:
    """A bound ``||x_r - x*|| <= distance + noise`` for all paths of participants, round by round.

    The noise exceeds ``noise + s`` with probability at most ``exp(-s^2/(2 spread^2))``.

    Attributes
    ----------
    distance, noise, spread : array, (rounds + 1,)
        Nondecreasing, and infinite where no bound is known.
    """

    distance: FloatArray
    noise: FloatArray
    spread: FloatArray


@cached_by_content(32)
def reach(setting: Setting) -> Reach:
    """Bound the distance of a setting's model from x*; infinite where no bound is known.

    Bounds are known for algorithms that have ``update_bounds`` on problems that have a
    ``gradient_split``, including averages of their models, and for models projected onto a ball.

    Examples
    --------
    >>> from fltheory.algorithms import FedAU
    >>> from fltheory.participation import Bernoulli
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> found = reach(Setting(FedAU(0.1, 1, cutoff=5), problem, Bernoulli([0.1, 0.5]), 100, [3.0]))
    >>> found.distance[[0, 100]].round(6).tolist()
    [3.0, 3.0]
    """
    algorithm, problem = setting.algorithm, setting.problem
    if isinstance(algorithm, AveragedIterate):
        algorithm = algorithm.algorithm
    start = float(np.linalg.norm(setting.x0 - problem.x_star))
    if isinstance(algorithm, Projected):
        ball = algorithm.onto
        inside = ball.radius + float(np.linalg.norm(ball.centre - problem.x_star))
        return _never_nearer([start] + [inside] * setting.rounds, np.zeros(setting.rounds + 1))
    # Update bounds cover an algorithm's steps but not random numbers that its own code may draw.
    if not isinstance(problem, HasGradientSplit) or guarded(setting).draws_from:
        return _unknown(start, setting.rounds)
    return followed(algorithm, problem, problem.gradient_split, start, setting.rounds)


def _never_nearer(distance: list[float], noise: FloatArray) -> Reach:
    far = np.maximum.accumulate(np.array(distance)) * (1 + _ROUNDING)
    return Reach(far, noise, np.zeros_like(noise))


def _unknown(start: float, rounds: int) -> Reach:
    return _never_nearer([start] + [math.inf] * rounds, np.zeros(rounds + 1))


# Bounds that leave the range of floats become infinite.
@np.errstate(over="ignore", invalid="ignore")
def followed(
    algorithm: Algorithm | Schedule,
    problem: Problem,
    split: GradientSplit,
    start: float,
    rounds: int,
    shares: FloatArray | None = None,
) -> Reach:
    """Follow a run's bounds round by round; with ``shares``, only for moderate weights.

    Weights are moderate if they are at most ``2 share_i / lambda_i``.
    """
    known: dict[tuple[int, float, bool], Pulls] = {}
    now = _Step(np.array([start, 0.0, 0.0]), np.zeros(3))
    history = [now.offset]
    for r in range(1, rounds + 1):
        of_round = in_round(algorithm, r)
        if not isinstance(of_round, BoundedUpdates) or not speaks_of_its_round(type(of_round)):
            return _unknown(start, rounds)
        if not math.isfinite(split.rest):
            return _unknown(start, rounds)
        after = []
        for bounds in _likely(of_round.update_bounds(problem.n_clients, r), of_round.branches):
            if bounds.stale and isinstance(algorithm, Schedule):
                # Old updates are scaled by the current step size, which these bounds do not cover.
                return _unknown(start, rounds)
            key = bounds.steps, bounds.lr, bounds.by_server
            if key not in known:
                known[key] = Pulls.of(split, bounds.steps, bounds.lr, by_server=bounds.by_server)
            if shares is not None:
                bounds = _moderate(bounds, known[key], shares)
            after.append(now.after(bounds, known[key], problem, split))
        now = _worst(after)
        history.append(now.offset)
    columns = np.nan_to_num(np.array(history).T, nan=math.inf, posinf=math.inf)
    far, noise, spread = np.maximum.accumulate(columns, axis=1) * (1 + _ROUNDING)
    return Reach(far, noise, spread)


def speaks_of_its_round(cls: type) -> bool:
    """Return whether a class's bounds and weights describe its own round, not its base class's."""

    def owners(*names: str) -> list[type]:
        return [next(c for c in cls.__mro__ if n in vars(c)) for n in names if hasattr(cls, n)]

    says = owners("update_bounds", "weights_if_present")
    does = owners("round", "counted")
    return not any(one is not of and issubclass(one, of) for one in does for of in says)


def _moderate(bounds: UpdateBounds, pulls: Pulls, shares: FloatArray) -> UpdateBounds:
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(pulls.largest > 0, 2 * shares / pulls.largest, np.inf)
    largest = np.minimum(bounds.largest, most)
    return replace(bounds, largest=largest, total=min(bounds.total, float(largest.sum())))


def _likely(
    bounds: Mapping[str, UpdateBounds], branches: Sequence[tuple[str, float]]
) -> list[UpdateBounds]:
    return [bounds[name] for name, chance in branches if chance > 0]


@dataclass(frozen=True, eq=False)
class _Step:
    """Bounds on norms, each an array of three: without noise, the noise's mean, its constant.

    ``offset`` is the bound on x - x*, and ``control`` is the bound on the mean gradients that
    SCAFFOLD's clients keep.
    """

    offset: FloatArray
    control: FloatArray

    def after(
        self, bounds: UpdateBounds, pulls: Pulls, problem: Problem, split: GradientSplit
    ) -> _Step:
        """Return the bounds after a round."""
        sigma = problem.server_sigma if bounds.by_server else problem.sigma
        # Gradients are corrected by c - c_i, which is the mean of the controls minus one of them.
        push = 2 * self.control if bounds.corrected else np.zeros(3)
        moved = self._stale if bounds.stale else self._fresh
        offset = moved(bounds, pulls, sigma, problem.dim) + bounds.total * pulls.noise * push
        if not bounds.corrected:
            return _Step(offset, self.control)
        gradient = self._gradient(bounds, problem, split, push)
        return _Step(offset, np.maximum(self.control, gradient))

    def _fresh(self, bounds: UpdateBounds, pulls: Pulls, sigma: float, dim: int) -> FloatArray:
        distance, noise, spread = self.offset
        grown = max(1 + _most(-pulls.least, bounds), _most(pulls.largest, bounds) - 1)
        squares = min(float((bounds.largest**2).sum()), bounds.total * float(bounds.largest.max()))
        drawn = math.sqrt(squares / dim) * sigma * pulls.spread
        return np.array(
            [
                max(
                    distance + _most(pulls.push - pulls.least * distance, bounds),
                    _most(pulls.largest * distance + pulls.push, bounds) - distance,
                ),
                grown * noise + bounds.total * sigma * pulls.noise,
                math.hypot(grown * spread, drawn),
            ]
        )

    def _stale(self, bounds: UpdateBounds, pulls: Pulls, sigma: float, dim: int) -> FloatArray:
        """Use the triangle inequality: the noise of an old update is already in the model."""
        moved = np.maximum(np.abs(pulls.least), np.abs(pulls.largest))
        noise = np.array([0.0, pulls.noise, pulls.spread / math.sqrt(dim)]) * sigma
        pushed = np.array([_most(moved * self.offset[0] + pulls.push, bounds), 0.0, 0.0])
        grown = 1 + np.array([0.0, 1.0, 1.0]) * _most(moved, bounds)
        return np.asarray(grown * self.offset + pushed + bounds.total * noise)

    def _gradient(
        self, bounds: UpdateBounds, problem: Problem, split: GradientSplit, push: FloatArray
    ) -> FloatArray:
        """Bound the mean of the noisy gradients along a client's steps, including the push."""
        curvatures = np.linalg.eigvalsh(split.hessians)
        before, steepest = bounds.steps - 1, float(curvatures.max())
        growth = max(1.0, float(np.abs(1 - bounds.lr * curvatures).max())) ** before
        noise = np.array([0.0, 1.0, 1 / math.sqrt(problem.dim)]) * problem.sigma
        rest = float(np.linalg.norm(split.pulls, axis=1).max()) + split.rest
        constant = np.array([rest, 0.0, 0.0]) + noise
        along = growth * (self.offset + bounds.lr * before * (constant + push))
        return np.asarray(steepest * along + constant)


def _most(coefficients: FloatArray, bounds: UpdateBounds) -> float:
    """Return an upper bound on ``sum_i w_i coefficients_i`` over all weights within the bounds."""
    positive = np.maximum(coefficients, 0.0)
    return min(float(bounds.largest @ positive), bounds.total * float(positive.max()))


def _worst(steps: list[_Step]) -> _Step:
    return _Step(
        np.max([step.offset for step in steps], axis=0),
        np.max([step.control for step in steps], axis=0),
    )
