"""Exact moments along a path of participant sets that is known beforehand.

Algorithms that count (rounds, inactivity, appearances) are not affine in their whole state: FedAR
multiplies updates by weights that depend on counts. Along a known path the counts are numbers,
the rest of the state, model and stored updates, obeys an affine recursion, and its mean and
covariance are exact. Which entries are counts is found by running the algorithm's own ``round``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fltheory.algorithms.contract import Algorithm, Schedule, State, in_round
from fltheory.engines.moment_recursion import affine_problem
from fltheory.engines.noise import Silence, UnitImpulses
from fltheory.engines.observables import QuadraticForm, standard_forms
from fltheory.engines.probe import UNIT_ROUNDOFF, NotAffineError
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.setting import Setting
from fltheory.engines.trajectory import Trajectory, exact_trajectory
from fltheory.participation.base import Masks, Participation
from fltheory.participation.known_path import known_path
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_MISS = 1e-9
_OPERATIONS = 64.0
_NOWHERE = -1


def along_path(
    algorithm: Algorithm | Schedule,
    problem: Problem,
    participation: Participation,
    rounds: int,
    x0: ArrayLike,
) -> Trajectory:
    """Compute the expected errors of every round where who takes part is known beforehand.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
        With one branch; each entry of its state is either affine in model and stored vectors,
        given the counts, or a count, which depends on who took part only.
    problem : QuadraticProblem
    participation : Participation
        A cycle, a trace with a start, or everybody.
    rounds : int
    x0 : array, (d,)

    Returns
    -------
    Trajectory
        With ``rounding_error``, a first-order bound on each number's rounding error.

    Raises
    ------
    NotAffineError
        If chance has a part in who takes part, the round is not affine given the counts, or the
        algorithm has several branches.

    Examples
    --------
    >>> from fltheory.algorithms import Mifa
    >>> from fltheory.participation import Cyclic
    >>> problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    >>> run = along_path(Mifa(0.5, 1, start="zero"), problem, Cyclic([1, 2], [0, 1]), 2, [1.0])
    >>> run.squared_distance.tolist()
    [1.0, 0.5625, 0.140625]
    """
    setting = Setting(algorithm, problem, participation, rounds, x0)
    quadratic = affine_problem(problem)
    masks = known_path(participation, rounds)
    if masks is None:
        raise NotAffineError(
            f"participation must be known beforehand to follow its path, got {participation!r}: "
            "use engines.monte_carlo"
        )
    path = _Path(setting, quadratic, masks)
    return path.trajectory()


@dataclass(frozen=True, eq=False)
class _Round:
    """``s' = slope s + offset + noise`` on the affine part of the state; the noise's covariance."""

    slope: FloatArray
    offset: FloatArray
    noise: FloatArray
    relative_error: float


class _Path:
    """The recursion along one path."""

    def __init__(self, setting: Setting, problem: QuadraticProblem, masks: Masks) -> None:
        self._setting = setting
        self._problem = problem
        self._masks = masks
        self._clients = QuadraticClients(problem, Silence())
        self._algorithms = [self._algorithm(index) for index in range(len(masks))]
        start = self._algorithms[0].init(setting.x0[None], problem.n_clients)
        self._counts, names = self._run_counts()
        self._shapes = {name: np.shape(start[name])[1:] for name in ("x", *names)}
        self._start = np.concatenate([np.ravel(start[name]) for name in self._shapes])
        self._start[: problem.dim] -= problem.x_star
        self._known: dict[tuple[Algorithm, bytes, bytes], _Round] = {}
        self._numbers: dict[bytes, int] = {}

    def _algorithm(self, index: int) -> Algorithm:
        algorithm = in_round(self._setting.algorithm, index + 1)
        if len(algorithm.branches) != 1:
            raise NotAffineError(
                f"algorithm must have one branch to follow a path, got {algorithm!r}: "
                "use engines.monte_carlo"
            )
        return algorithm

    def _run_counts(self) -> tuple[list[dict[str, FloatArray]], list[str]]:
        """Run two different models along the path: what agrees throughout is a count.

        Returns the counts before each round, and the names of all other entries but the model.
        """
        models = np.stack([self._setting.x0, 2 * self._setting.x0 + self._reach()])
        state = self._algorithms[0].init(models, self._problem.n_clients)
        history, differing = [dict(state)], {"x"}
        for index, mask in enumerate(self._masks[:-1]):
            algorithm = self._algorithms[index]
            ((branch, _),) = algorithm.branches
            state = algorithm.round(state, self._clients, np.tile(mask, (2, 1)), branch)
            differing |= {name for name, array in state.items() if (array[0] != array[1]).any()}
            history.append(dict(state))
        counts = [
            {name: array[:1] for name, array in state.items() if name not in differing}
            for state in history
        ]
        return counts, sorted(differing - {"x"})

    def _reach(self) -> float:
        return max(float(np.abs(self._problem.optima).max()), 1.0)

    def _state(self, vectors: FloatArray, counts: State) -> State:
        state = {name: np.repeat(array, len(vectors), axis=0) for name, array in counts.items()}
        first = 0
        for name, shape in self._shapes.items():
            width = int(np.prod(shape))
            state[name] = vectors[:, first : first + width].reshape(len(vectors), *shape)
            first += width
        return {**state, "x": state["x"] + self._problem.x_star}

    def _image(
        self, algorithm: Algorithm, vectors: FloatArray, index: int, clients: QuadraticClients
    ) -> FloatArray:
        ((branch, _),) = algorithm.branches
        who = np.tile(self._masks[index], (len(vectors), 1))
        after = algorithm.round(self._state(vectors, self._counts[index]), clients, who, branch)
        parts = [np.reshape(after[name], (len(vectors), -1)) for name in self._shapes]
        parts[0] = parts[0] - self._problem.x_star
        return np.concatenate(parts, axis=1)

    def _round(self, index: int) -> _Round:
        """Return the map of a round, once for rounds that are alike."""
        algorithm = self._algorithms[index]
        counts = b"".join(
            np.ascontiguousarray(array).tobytes()
            for name, array in sorted(self._counts[index].items())
            if name != "rounds"
        )
        key = (algorithm, self._masks[index].tobytes(), counts)
        if key not in self._known:
            self._known[key] = self._probed(algorithm, index)
        return self._known[key]

    def _probed(self, algorithm: Algorithm, index: int) -> _Round:
        """Run the round on a basis, on a state that checks it, and on each unit of its noise."""
        size = self._start.size
        step = 2.0 ** np.ceil(np.log2(self._reach()))
        numbers = self._demand(algorithm, index)
        probes = np.zeros((size + 2 + numbers, size))
        probes[1 : size + 1] = step * np.eye(size)
        probes[size + 1] = step * np.cos(np.arange(size) + index)
        places = np.concatenate([np.full(size + 2, _NOWHERE), np.arange(numbers)])
        noisy = self._clients.with_noise(UnitImpulses(places))
        images = self._image(algorithm, probes, index, noisy)
        slope = (images[1 : size + 1] - images[0]).T / step
        miss = np.abs(images[0] + slope @ probes[size + 1] - images[size + 1]).max()
        if not miss <= _MISS * max(1.0, np.abs(images).max()):
            raise NotAffineError(
                "the algorithm's round must be affine in what is not a count, to follow a path: "
                "use engines.monte_carlo"
            )
        columns = images[size + 2 :] - images[0]
        error = _OPERATIONS * size * UNIT_ROUNDOFF + 4 * self._clients.slope_rounding
        return _Round(slope, images[0], columns.T @ columns, error)

    def _demand(self, algorithm: Algorithm, index: int) -> int:
        """Return how many numbers the noise of a round with these participants consists of."""
        key = self._masks[index].tobytes()
        if key not in self._numbers:
            silence = Silence()
            still = np.zeros((1, self._start.size))
            self._image(algorithm, still, index, self._clients.with_noise(silence))
            self._numbers[key] = silence.numbers_per_replica
        return self._numbers[key]

    def trajectory(self) -> Trajectory:
        rounds = [self._round(index) for index in range(len(self._masks))]
        size, dim = self._start.size, self._problem.dim
        means = np.empty((len(rounds) + 1, size))
        covariances = np.zeros((len(rounds) + 1, size, size))
        means[0] = self._start
        for index, step in enumerate(rounds):
            means[index + 1] = step.slope @ means[index] + step.offset
            covariances[index + 1] = step.slope @ covariances[index] @ step.slope.T + step.noise
        first_error, covariance_error = _rounding(rounds, means, covariances)
        seconds = covariances[:, :dim, :dim] + np.einsum(
            "ra,rb->rab", means[:, :dim], means[:, :dim]
        )
        lengths = np.linalg.norm(means, axis=1)
        second_error = covariance_error + (2 * lengths + first_error) * first_error
        traces = np.trace(seconds, axis1=1, axis2=2)
        forms = standard_forms(self._problem)
        values = {name: _expected(form, seconds) for name, form in forms.items()}
        errors = {
            name: form.error(traces, second_error, first_error, self._problem.x_star_error)
            for name, form in forms.items()
        }
        return exact_trajectory(values, errors, diverged_at=None)


def _expected(form: QuadraticForm, seconds: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("rab,ab->r", seconds, form.matrix) + form.constant)


def _rounding(
    rounds: Sequence[_Round], means: FloatArray, covariances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bound, to first order, the errors of means (Euclidean) and covariances (nuclear norm).

    An error made in round t reaches round T through the product of the slopes between, whose
    squared norm is at most the trace of ``P_t = I + A_t' P_{t+1} A_t``, the sum of all such
    products times their transposes, for every T at once.
    """
    size = means.shape[1]
    reach = np.empty(len(rounds) + 1)
    gram = np.eye(size)
    reach[-1] = size
    for index in range(len(rounds) - 1, -1, -1):
        slope = rounds[index].slope
        gram = np.eye(size) + slope.T @ gram @ slope
        reach[index] = np.trace(gram)
    lengths = np.linalg.norm(means, axis=1)
    traces = np.trace(covariances, axis1=1, axis2=2)
    first, second = np.empty(len(rounds) + 1), np.empty(len(rounds) + 1)
    first[0] = 2 * UNIT_ROUNDOFF * lengths[0] * np.sqrt(reach[0])
    second[0] = 0.0
    work = UNIT_ROUNDOFF * (size + 4)
    for index, step in enumerate(rounds):
        norm, error = float(np.linalg.norm(step.slope)), step.relative_error + work
        length = norm * lengths[index] + float(np.linalg.norm(step.offset))
        spread = norm**2 * traces[index] + float(np.trace(step.noise))
        first[index + 1] = first[index] + np.sqrt(reach[index + 1]) * error * length
        second[index + 1] = second[index] + reach[index + 1] * np.sqrt(size) * 4 * error * spread
    return first, second
