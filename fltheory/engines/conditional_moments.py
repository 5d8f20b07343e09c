"""Exact moments given who takes part, averaged over participation: Rao-Blackwell.

Some algorithms weigh clients by what has been seen of them, so their rounds are not affine in
the state; but once it is given who takes part in which round, the weights are numbers and
the model obeys an affine recursion, whose moments are exact. What is left to chance is who
takes part: it is enumerated where that is little, and drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Array, Schedule, State, in_round
from fltheory.engines.moment_recursion import affine_problem
from fltheory.engines.noise import NoiseSource, ReplicaIndices, UnitImpulses
from fltheory.engines.observables import standard_forms
from fltheory.engines.probe import NotAffineError
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.setting import Setting
from fltheory.engines.trajectory import FIELDS, Trajectory, round_arrays
from fltheory.participation.base import Masks, Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_MOST_PATHS = 50_000
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
        With ``standard_error``, zero where all paths are enumerated.

    Raises
    ------
    NotAffineError
        If the round is not affine given its participants, or the memory depends on the model.
    ValueError
        If there are more than 50,000 paths to enumerate, participation is not independent over
        rounds where they are, or the algorithm has several branches.

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
    weights, masks = _paths(setting, paths, seed)
    parts = [
        _moments(setting, quadratic, masks[first : first + _PATHS_AT_ONCE])
        for first in range(0, len(masks), _PATHS_AT_ONCE)
    ]
    values = np.concatenate(parts)
    mean = np.einsum("p,prf->fr", weights, values)
    error = np.zeros_like(mean)
    if paths is not None:
        error = values.std(axis=0, ddof=1).T / np.sqrt(len(values))
    arrays = round_arrays(dict(zip(FIELDS, mean, strict=True)))
    return Trajectory(
        arrays.squared_distance,
        arrays.squared_gradient,
        arrays.excess_loss,
        standard_error=round_arrays(dict(zip(FIELDS, error, strict=True))),
        replicas=len(values),
    )


def _paths(setting: Setting, paths: int | None, seed: int) -> tuple[FloatArray, Masks]:
    """Return weights (P,) and who takes part, (P, rounds, N)."""
    participation = setting.participation
    if paths is not None:
        count = validation.whole_number("paths", paths, at_least=2)
        rng = np.random.default_rng(validation.whole_number("seed", seed, at_least=0))
        drawn = islice(participation.masks(rng, count), setting.rounds)
        return np.full(count, 1 / count), np.stack([mask.copy() for mask in drawn], axis=1)
    if not participation.independent:
        raise ValueError(
            "participation must be independent over rounds to enumerate its paths, got "
            f"{participation!r}: give the number of paths to draw"
        )
    if participation.n_outcomes**setting.rounds > _MOST_PATHS:
        raise ValueError(
            f"participation must have at most {_MOST_PATHS} paths to enumerate them, got "
            f"{participation.n_outcomes} sets in {setting.rounds} rounds: give the number to draw"
        )
    outcomes = list(participation.outcomes())
    every = list(product(outcomes, repeat=setting.rounds))
    weights = np.array([np.prod([chance for chance, _ in path]) for path in every])
    return weights, np.array([[mask for _, mask in path] for path in every])


def _moments(setting: Setting, problem: QuadraticProblem, masks: Masks) -> FloatArray:
    """Return the standard quantities of each path and round, (P, rounds + 1, 3)."""
    run = _Run(setting, problem, masks)
    forms = [form.matrix for form in standard_forms(problem).values()]
    values = np.empty((len(masks), setting.rounds + 1, len(forms)))
    for r, (offset, covariance) in enumerate(run.rounds()):
        second = covariance + offset[:, :, None] * offset[:, None, :]
        values[:, r] = np.einsum("pab,fab->pf", second, np.array(forms))
    return values


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

    def rounds(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the mean's offset from x*, (P, d), and the covariance, (P, d, d)."""
        count, n_rounds, _ = self.masks.shape
        dim = self.problem.dim
        start = np.tile(self.setting.x0, (count, 1))
        state = dict(in_round(self.setting.algorithm, 1).init(start, self.problem.n_clients))
        covariance = np.zeros((count, dim, dim))
        yield state["x"] - self.problem.x_star, covariance
        for r in range(n_rounds):
            algorithm = in_round(self.setting.algorithm, r + 1)
            slope, noise, state = self._round(algorithm, state, self.masks[:, r], r)
            covariance = slope @ covariance @ np.swapaxes(slope, 1, 2) + noise
            yield state["x"] - self.problem.x_star, covariance

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
        clients = QuadraticClients(self.problem, noise)
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
