"""Exact moments given who takes part, averaged over participation: Rao-Blackwell.

Some algorithms weigh clients by what has been seen of them, so their rounds are not affine in
the state; but once it is given who takes part in which round, the weights are numbers and
the model obeys an affine recursion, whose moments are exact. What is left to chance is who
takes part: it is enumerated where that is little, and drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory.algorithms.contract import Algorithm, Array, Schedule, State, in_round
from fltheory.engines.moment_recursion import affine_problem
from fltheory.engines.noise import NoiseSource, ReplicaIndices, Silence, UnitImpulses
from fltheory.engines.observables import standard_forms
from fltheory.engines.participant_paths import MOST_PATHS, all_paths, drawn_paths
from fltheory.engines.probing import UNIT_ROUNDOFF, NotAffineError
from fltheory.engines.projection import without_idle_projection
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.setting import Setting
from fltheory.engines.trajectory import FIELDS, RoundArrays, Trajectory, round_arrays
from fltheory.participation.base import Masks, Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_PATHS_AT_ONCE = 1000
_MISS = 1e-9


def conditional(
    algorithm: Algorithm | Schedule,
    problem: Problem,
    participation: Participation,
    rounds: int,
    x0: ArrayLike,
    *,
    paths: int | None = None,
    seed: int = 0,
) -> Trajectory:
    """Average exact moments, given who takes part in every round, over participation.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
        Affine in the model once the participants of all rounds are given, with a memory that
        depends on the participants only (FedAU's weights, say), and one branch.
    problem : QuadraticProblem
    participation : Participation
    rounds : int
        R, at least 1.
    x0 : array, (d,)
    paths : int, optional
        How many sequences of participant sets to draw, at least 2; by default all of them are
        enumerated.
    seed : int
        Of the draw.

    Returns
    -------
    Trajectory
        With ``standard_error``; where all paths are enumerated it is zero, and
        ``rounding_error`` is a first-order bound.

    Raises
    ------
    NotAffineError
        If the round is not affine given its participants, the memory depends on the model, or a
        projection may move it.
    ValueError
        If there are more than 50,000 paths to enumerate, or the algorithm has several branches.

    Examples
    --------
    >>> from fltheory.algorithms import FedAU
    >>> from fltheory.participation import Bernoulli
    >>> problem = QuadraticProblem([[1.0]], [[0.0]])
    >>> run = conditional(FedAU(0.5, 1), problem, Bernoulli([0.5]), 3, [1.0])
    >>> run.squared_distance.tolist()
    [1.0, 0.625, 0.390625, 0.236328125]
    """
    setting = Setting(algorithm, problem, participation, rounds, x0)
    quadratic = affine_problem(problem)
    setting = without_idle_projection(setting, quadratic)
    weights, masks = _paths(setting, paths, seed)
    run = partial(_moments, setting, quadratic, bounded=paths is None)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [run(masks[i : i + _PATHS_AT_ONCE]) for i in range(0, len(masks), _PATHS_AT_ONCE)]
        values, bounds = (np.concatenate(part) for part in zip(*parts, strict=True))
        mean = np.einsum("p,prf->fr", weights, values)
        rounding = np.einsum("p,prf->fr", weights, bounds)
    rounding += (len(values) + setting.rounds) * UNIT_ROUNDOFF * mean
    error = np.zeros_like(mean)
    if paths is not None:
        error = values.std(axis=0, ddof=1).T / np.sqrt(len(values))
    arrays = _named(mean)
    return Trajectory(
        arrays.squared_distance,
        arrays.squared_gradient,
        arrays.excess_loss,
        standard_error=_named(error),
        rounding_error=_named(rounding) if paths is None else None,
        replicas=len(values),
    )


def _named(rows: FloatArray) -> RoundArrays:
    return round_arrays(dict(zip(FIELDS, rows, strict=True)))


def _paths(setting: Setting, paths: int | None, seed: int) -> tuple[FloatArray, Masks]:
    """Return weights (P,) and who takes part, (P, rounds, N)."""
    if paths is not None:
        return drawn_paths(setting.participation, setting.rounds, paths, seed)
    every = all_paths(setting.participation, setting.rounds)
    if every is None:
        raise ValueError(
            f"participation must have at most {MOST_PATHS} paths to enumerate them, got "
            f"{setting.participation!r} for {setting.rounds} rounds: give the number to draw"
        )
    return every


def _moments(
    setting: Setting, problem: QuadraticProblem, masks: Masks, *, bounded: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the standard quantities of each path and round, (P, rounds + 1, 3), and their errors.

    Errors are first-order bounds on rounding where they are asked for, else zero.
    """
    run = _Run(setting, problem, masks, bounded, QuadraticClients(problem, Silence()))
    forms = np.array([form.matrix for form in standard_forms(problem).values()])
    sizes = np.linalg.norm(forms, ord=2, axis=(1, 2))
    values = np.empty((len(masks), setting.rounds + 1, len(forms)))
    errors = np.zeros_like(values)
    for r, (offset, covariance, of_mean, of_spread) in enumerate(run.rounds()):
        second = covariance + offset[:, :, None] * offset[:, None, :]
        values[:, r] = np.einsum("pab,fab->pf", second, forms)
        if bounded:
            distance = np.linalg.norm(offset, axis=1)
            shift = of_mean + problem.x_star_error
            readout = 16 * (problem.dim + 1) ** 2 * UNIT_ROUNDOFF
            trace = np.trace(second, axis1=1, axis2=2)
            error = of_spread + (2 * distance + shift) * shift + readout * trace
            errors[:, r] = error[:, None] * sizes
    return values, errors


class _LargestDemand:
    """No noise; remembers how many numbers the neediest replica asked for."""

    def __init__(self, replicas: int) -> None:
        self._asked = np.zeros(replicas, dtype=np.intp)

    @property
    def numbers(self) -> int:
        return int(self._asked.max())

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        self._asked += width * np.bincount(replica_of_row, minlength=self._asked.size)
        return np.zeros((replica_of_row.size, width))


@dataclass(frozen=True, eq=False)
class _Run:
    """The recursion of mean and covariance of many paths together."""

    setting: Setting
    problem: QuadraticProblem
    masks: Masks
    bounded: bool
    clients: QuadraticClients

    def rounds(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """Yield the mean's offset from x*, (P, d), the covariance, (P, d, d), and their errors.

        The errors (P,) are bounds on the norm of the first and the nuclear norm of the second.
        """
        count, n_rounds, _ = self.masks.shape
        dim = self.problem.dim
        start = np.tile(self.setting.x0, (count, 1))
        state = dict(in_round(self.setting.algorithm, 1).init(start, self.problem.n_clients))
        covariance = np.zeros((count, dim, dim))
        of_mean, of_spread = np.zeros(count), np.zeros(count)
        yield state["x"] - self.problem.x_star, covariance, of_mean, of_spread
        for r in range(n_rounds):
            algorithm = in_round(self.setting.algorithm, r + 1)
            slope, noise, state = self._round(algorithm, state, self.masks[:, r], r)
            if self.bounded:
                of_mean, of_spread = self._rounding(
                    state["x"], slope, noise, covariance, of_mean, of_spread
                )
            covariance = slope @ covariance @ np.swapaxes(slope, 1, 2) + noise
            yield state["x"] - self.problem.x_star, covariance, of_mean, of_spread

    def _rounding(
        self,
        x: FloatArray,
        slope: FloatArray,
        noise: FloatArray,
        covariance: FloatArray,
        of_mean: FloatArray,
        of_spread: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Bound the errors after a round, from those before it: sums, powers and probing.

        Clients' changes are right relative to their size, and all together at most kappa times
        what they add up to.
        """
        growth = 64.0 * (self.problem.dim + self.problem.n_clients) * UNIT_ROUNDOFF
        steepness = np.linalg.norm(slope, ord=2, axis=(1, 2))
        moved = np.linalg.norm(np.eye(self.problem.dim) - slope, ord=2, axis=(1, 2))
        changes = np.maximum(self.problem.L / self.problem.mu * moved, 1.0)
        of_slope = growth * np.maximum(steepness, 1.0) + 4 * self.clients.slope_rounding * changes
        reach = np.linalg.norm(x, axis=1) + float(np.abs(self.problem.optima).max())
        spread, fresh = (np.trace(m, axis1=1, axis2=2) for m in (covariance, noise))
        return (
            steepness * of_mean + of_slope * reach,
            steepness**2 * of_spread
            + (2 * steepness * of_slope + growth * steepness**2) * spread
            + (growth + 8 * self.clients.power_rounding) * fresh,
        )

    def _round(
        self, algorithm: Algorithm, state: State, who: Masks, r: int
    ) -> tuple[FloatArray, FloatArray, dict[str, Array]]:
        """Return slope and noise covariance of each path's round, and the state after it."""
        ((branch, _),) = self._branches(algorithm)
        dim, step = self.problem.dim, self._step(state["x"])
        check = np.random.default_rng(r).standard_normal((1, dim)) * step
        moves = np.vstack([np.zeros((1, dim)), step * np.eye(dim), check, -check])
        probes = _LargestDemand(len(who) * len(moves))
        images = self._run(algorithm, branch, state, who, moves, probes)
        x = images["x"].reshape(len(who), len(moves), dim)
        slope = np.swapaxes((x[:, 1:-2] - x[:, :1]) / step, 1, 2)
        predicted = x[:, :1] + np.einsum("pab,cb->pca", slope, moves[-2:])
        scale = np.abs(x).max(initial=1.0)
        if not np.abs(predicted - x[:, -2:]).max() <= _MISS * scale:
            raise NotAffineError(
                "the algorithm's round must be affine in the model given who takes part, for "
                "conditional moments: use engines.monte_carlo"
            )
        following = _same_for_all_probes(images, len(who), len(moves))
        noise = self._noise(algorithm, branch, state, who, probes.numbers, x[:, 0])
        return slope, noise, {**following, "x": x[:, 0]}

    def _noise(
        self,
        algorithm: Algorithm,
        branch: str,
        state: State,
        who: Masks,
        numbers: int,
        silent: FloatArray,
    ) -> FloatArray:
        dim = self.problem.dim
        if numbers == 0:
            return np.zeros((len(who), dim, dim))
        impulses = UnitImpulses(np.tile(np.arange(numbers), len(who)))
        stay = np.zeros((numbers, dim))
        images = self._run(algorithm, branch, state, who, stay, impulses)
        columns = images["x"].reshape(len(who), numbers, dim) - silent[:, None]
        return np.einsum("pna,pnb->pab", columns, columns)

    def _run(
        self,
        algorithm: Algorithm,
        branch: str,
        state: State,
        who: Masks,
        moves: FloatArray,
        noise: NoiseSource,
    ) -> State:
        """Run every path's round from each of the moved models."""
        repeated = {name: np.repeat(array, len(moves), axis=0) for name, array in state.items()}
        repeated["x"] = repeated["x"] + np.tile(moves, (len(who), 1))
        clients = self.clients.with_noise(noise)
        return algorithm.round(repeated, clients, np.repeat(who, len(moves), axis=0), branch)

    def _step(self, x: FloatArray) -> float:
        reach = max(float(np.abs(self.problem.optima).max()), float(np.abs(x).max()), 1.0)
        return float(2.0 ** np.ceil(np.log2(reach)))

    def _branches(self, algorithm: Algorithm) -> tuple[tuple[str, float], ...]:
        if len(algorithm.branches) != 1:
            raise ValueError(
                "algorithm must have one branch for conditional moments, got "
                f"{len(algorithm.branches)} in {algorithm!r}"
            )
        return algorithm.branches


def _same_for_all_probes(images: State, paths: int, probes: int) -> dict[str, NDArray[np.float64]]:
    """Return each path's memory; it must not depend on the model, so all probes agree on it."""
    memory = {}
    for name, array in images.items():
        if name == "x":
            continue
        by_probe = array.reshape(paths, probes, *array.shape[1:])
        if not (by_probe == by_probe[:, :1]).all():
            raise NotAffineError(
                f"the algorithm's memory must depend on who takes part only, but {name!r} depends "
                "on the model: use engines.monte_carlo"
            )
        memory[name] = by_probe[:, 0]
    return memory
