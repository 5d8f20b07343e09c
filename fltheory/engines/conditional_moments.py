"""Exact moments given who takes part, averaged over participation: Rao-Blackwell.

Some algorithms weigh clients by what has been seen of them, so their rounds are not affine in
the state; but once it is given who takes part in which round, the weights are numbers and
the model, with the updates that the server remembers, obeys an affine recursion, whose moments
are exact. What is left to chance is who takes part: it is enumerated where that is little, and
drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fltheory.algorithms.contract import Algorithm, Schedule, State, in_round
from fltheory.engines.moment_recursion import affine_problem
from fltheory.engines.noise import NoiseSource, Silence, UnitImpulses
from fltheory.engines.observables import standard_forms
from fltheory.engines.participant_paths import MOST_PATHS, all_paths, drawn_paths
from fltheory.engines.probe import UNIT_ROUNDOFF, NotAffineError
from fltheory.engines.projection import without_idle_projection
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.setting import Setting
from fltheory.engines.state_layout import joined, split
from fltheory.engines.trajectory import FIELDS, Trajectory
from fltheory.participation.base import Masks, Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_MOST_PATHS_AT_ONCE = 1000
_NUMBERS_AT_ONCE = 1 << 22
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
        Affine once the participants of all rounds are given, in the model and whatever of the
        memory depends on it (FedAR's latest updates, say, but not its counts of inactive
        rounds), and with one branch.
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
        ``rounding_error`` is a first-order bound. Where nobody's participation is random
        (`Cyclic`, or `Trace` from a given round) there is one path.

    Raises
    ------
    NotAffineError
        If the round is not affine given its participants, or a projection may move a model.
    ValueError
        If there are more than 50,000 paths to enumerate, participation is neither independent
        over rounds nor follows states where they are, or the algorithm has several branches.

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
    at_once = _paths_at_once(setting, quadratic)
    run = partial(_moments, setting, quadratic, bounded=paths is None)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [run(masks[first : first + at_once]) for first in range(0, len(masks), at_once)]
        values, bounds = (np.concatenate(part) for part in zip(*parts, strict=True))
        mean = np.einsum("p,prf->fr", weights, values)
        rounding = np.einsum("p,prf->fr", weights, bounds)
    rounding += (len(values) + setting.rounds) * UNIT_ROUNDOFF * mean
    error = np.zeros_like(mean)
    if paths is not None:
        error = values.std(axis=0, ddof=1).T / np.sqrt(len(values))
    return Trajectory.of(
        _named(mean),
        standard_error=_named(error),
        rounding_error=_named(rounding) if paths is None else None,
        replicas=len(values),
    )


def _named(rows: FloatArray) -> dict[str, FloatArray]:
    return dict(zip(FIELDS, rows, strict=True))


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


def _paths_at_once(setting: Setting, problem: QuadraticProblem) -> int:
    """Return a number of paths that bounds the memory of a round's probes."""
    start = in_round(setting.algorithm, 1).init(setting.x0[None], problem.n_clients)
    numbers = sum(int(array.size) for array in start.values())
    of_path = (numbers + 3) * problem.n_clients * problem.dim
    return int(np.clip(_NUMBERS_AT_ONCE // of_path, 1, _MOST_PATHS_AT_ONCE))


def _moments(
    setting: Setting, problem: QuadraticProblem, masks: Masks, *, bounded: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the standard quantities of each path and round, (P, rounds + 1, 3), and their errors.

    Errors are first-order bounds on rounding where they are asked for, else zero.
    """
    forms = np.array([form.matrix for form in standard_forms(problem).values()])
    sizes = np.linalg.norm(forms, ord=2, axis=(1, 2))
    values = np.empty((len(masks), setting.rounds + 1, len(forms)))
    errors = np.zeros_like(values)
    for r, given in enumerate(given_paths(setting, problem, masks, bounded=bounded)):
        offset, dim = given.state["x"] - problem.x_star, problem.dim
        second = given.covariance[:, :dim, :dim] + offset[:, :, None] * offset[:, None, :]
        values[:, r] = np.einsum("pab,fab->pf", second, forms)
        if bounded:
            distance = np.linalg.norm(offset, axis=1)
            shift = given.mean_error + problem.x_star_error
            readout = 16 * (dim + 1) ** 2 * UNIT_ROUNDOFF
            trace = np.trace(second, axis1=1, axis2=2)
            error = given.spread_error + (2 * distance + shift) * shift + readout * trace
            errors[:, r] = error[:, None] * sizes
    return values, errors


@dataclass(frozen=True, eq=False)
class GivenPaths:
    """Means and covariances given who has taken part, for each of P paths.

    Attributes
    ----------
    state : mapping of str to array, (P, ...)
        The mean of what depends on the model, and what depends on the path only.
    random : tuple of str
        The entries that depend on the model, ``"x"`` first.
    covariance : array, (P, n, n)
        Of those entries, flattened one after another.
    mean_error, spread_error : arrays, (P,)
        Bounds on the rounding errors of those entries' means, in the Euclidean norm, and of the
        covariance, in the nuclear norm; zero where they are not asked for.
    """

    state: State
    random: tuple[str, ...]
    covariance: FloatArray
    mean_error: FloatArray
    spread_error: FloatArray

    def with_random(self, name: str) -> GivenPaths:
        """Return the same with another entry counted among those that depend on the model."""
        width = int(np.prod(self.state[name].shape[1:]))
        covariance = np.pad(self.covariance, ((0, 0), (0, width), (0, width)))
        return replace(self, random=(*self.random, name), covariance=covariance)

    def flat(self, state: State) -> FloatArray:
        """Return the random entries of a state (rows, ...) as vectors."""
        return joined(state, self.random)

    def moved(self, moves: FloatArray) -> dict[str, FloatArray]:
        """Return every path's state after each of some moves of the random entries."""
        repeated = {
            name: np.repeat(array, len(moves), axis=0) for name, array in self.state.items()
        }
        shapes = {name: self.state[name].shape[1:] for name in self.random}
        shifts = split(np.tile(moves, (len(self.covariance), 1)), shapes)
        return repeated | {name: repeated[name] + shift for name, shift in shifts.items()}


def given_paths(
    setting: Setting, problem: QuadraticProblem, masks: Masks, *, bounded: bool = False
) -> Iterator[GivenPaths]:
    """Yield what is known given the paths, masks (P, rounds, N), before and after each round.

    Rounding errors are bounded if asked for.

    Raises
    ------
    NotAffineError
        If a round is not affine given its participants.
    """
    count = len(masks)
    start = np.tile(setting.x0, (count, 1))
    state = dict(in_round(setting.algorithm, 1).init(start, problem.n_clients))
    covariance = np.zeros((count, problem.dim, problem.dim))
    given = GivenPaths(state, ("x",), covariance, np.zeros(count), np.zeros(count))
    clients = QuadraticClients(problem, Silence())
    yield given
    for r in range(setting.rounds):
        algorithm = in_round(setting.algorithm, r + 1)
        given = _Round(algorithm, clients, problem, masks[:, r], r, bounded).after(given)
        yield given


@dataclass(frozen=True, eq=False)
class _Round:
    """One round of many paths together."""

    algorithm: Algorithm
    clients: QuadraticClients
    problem: QuadraticProblem
    who: Masks
    index: int
    bounded: bool

    def after(self, given: GivenPaths) -> GivenPaths:
        """Return what is known after the round; entries that turn out random are added."""
        step = self._step(given)
        size = given.covariance.shape[1]
        check = np.random.default_rng(self.index).standard_normal((1, size)) * step
        moves = np.vstack([np.zeros((1, size)), step * np.eye(size), check, -check])
        silence = Silence()
        images = self._run(given, moves, silence)
        silent = {name: self._by_path(array)[:, 0] for name, array in images.items()}
        noisy = self._noisy(given, silence.numbers_per_replica)
        for name in images:
            if name not in given.random and self._varies(name, images, noisy, silent):
                return self.after(given.with_random(name))
        values = self._by_path(given.flat(images))
        slope = np.swapaxes((values[:, 1:-2] - values[:, :1]) / step, 1, 2)
        self._check(values, slope, moves)
        fresh = np.zeros_like(given.covariance)
        if noisy:
            columns = self._by_path(given.flat(noisy)) - values[:, :1]
            fresh = np.swapaxes(columns, 1, 2) @ columns
        errors = given.mean_error, given.spread_error
        if self.bounded:
            errors = self._errors(given, slope, values[:, 0], fresh)
        covariance = slope @ given.covariance @ np.swapaxes(slope, 1, 2) + fresh
        return GivenPaths(silent, given.random, covariance, *errors)

    def _errors(
        self, given: GivenPaths, slope: FloatArray, mean: FloatArray, fresh: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bound the errors after a round, from those before it: sums, powers and probing.

        Clients' changes are right relative to their size, and all together at most kappa times
        what they add up to.
        """
        size = slope.shape[1]
        growth = 64.0 * (size + self.problem.n_clients) * UNIT_ROUNDOFF
        steepness = np.linalg.norm(slope, ord=2, axis=(1, 2))
        moved = np.linalg.norm(np.eye(size) - slope, ord=2, axis=(1, 2))
        changes = np.maximum(self.problem.L / self.problem.mu * moved, 1.0)
        of_slope = growth * np.maximum(steepness, 1.0) + 4 * self.clients.slope_rounding * changes
        reach = np.linalg.norm(mean, axis=1) + float(np.abs(self.problem.optima).max())
        spread, added = (np.trace(m, axis1=1, axis2=2) for m in (given.covariance, fresh))
        return (
            steepness * given.mean_error + of_slope * reach,
            steepness**2 * given.spread_error
            + (2 * steepness * of_slope + growth * steepness**2) * spread
            + (growth + 8 * self.clients.power_rounding) * added,
        )

    def _by_path(self, array: FloatArray) -> FloatArray:
        return array.reshape(len(self.who), -1, *array.shape[1:])

    def _varies(
        self, name: str, images: State, noisy: State, silent: Mapping[str, FloatArray]
    ) -> bool:
        """Say whether an entry changes with the moves or with the noise."""
        runs = [images[name], noisy[name]] if noisy else [images[name]]
        return any((self._by_path(run) != silent[name][:, None]).any() for run in runs)

    def _check(self, values: FloatArray, slope: FloatArray, moves: FloatArray) -> None:
        predicted = values[:, :1] + np.einsum("pab,cb->pca", slope, moves[-2:])
        scale = np.abs(values).max(initial=1.0)
        if not np.abs(predicted - values[:, -2:]).max() <= _MISS * scale:
            raise NotAffineError(
                "the algorithm's round must be affine in its state given who takes part, for "
                "conditional moments: use engines.monte_carlo"
            )

    def _noisy(self, given: GivenPaths, numbers: int) -> State:
        """Run every path's round with each of its noise's numbers one and the others zero."""
        if numbers == 0:
            return {}
        impulses = UnitImpulses(np.tile(np.arange(numbers), len(self.who)))
        return self._run(given, np.zeros((numbers, given.covariance.shape[1])), impulses)

    def _run(self, given: GivenPaths, moves: FloatArray, noise: NoiseSource) -> State:
        """Run every path's round from each of the moved states."""
        clients = self.clients.with_noise(noise)
        who = np.repeat(self.who, len(moves), axis=0)
        return self.algorithm.round(given.moved(moves), clients, who, self._branch)

    @property
    def _branch(self) -> str:
        if len(self.algorithm.branches) != 1:
            raise ValueError(
                "algorithm must have one branch for conditional moments, got "
                f"{len(self.algorithm.branches)} in {self.algorithm!r}"
            )
        return self.algorithm.branches[0][0]

    def _step(self, given: GivenPaths) -> float:
        largest = max(float(np.abs(given.state[name]).max()) for name in given.random)
        reach = max(float(np.abs(self.problem.optima).max()), largest, 1.0)
        return float(2.0 ** np.ceil(np.log2(reach)))
