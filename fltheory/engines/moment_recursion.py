"""The exact engine: expected errors of every round by the moment recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.engines.jump_linear import follow_chain, runs_along_chain
from fltheory.engines.moment_map import MomentMap, MomentRounding, propagate
from fltheory.engines.observables import Observable, QuadraticForm, standard_forms, standard_samples
from fltheory.engines.probe import UNIT_ROUNDOFF, NotAffineError, RoundOverflowError
from fltheory.engines.probing import random_affine_map
from fltheory.engines.projection import without_idle_projection
from fltheory.engines.random_affine_map import RandomAffineMap, mixture
from fltheory.engines.rounds import each_round
from fltheory.engines.setting import Setting
from fltheory.engines.state_layout import StateLayout
from fltheory.engines.trajectory import FIELDS, OVERFLOW, Trajectory, exact_trajectory
from fltheory.participation.base import Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_LARGEST_DENSE_STATE = 24
_NUMBERS_AT_ONCE = 1 << 20

Advance = Callable[[FloatArray], FloatArray]


def exact(
    algorithm: Algorithm | Schedule,
    problem: Problem,
    participation: Participation,
    rounds: int,
    x0: ArrayLike,
    *,
    observe: Sequence[Observable] = (),
) -> Trajectory:
    """Compute the expected errors of every round, with no sampling.

    The first two moments of the model obey an exact recursion when a round is affine in the
    model given who takes part, as it is on quadratic clients. The affine maps are read off
    the algorithm's own ``round``.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
    problem : QuadraticProblem
    participation : Participation
    rounds : int
        R, at least 1.
    x0 : array, (d,)
        Initial model.
    observe : sequence of Observable
        Further quantities to follow.

    Returns
    -------
    Trajectory
        With ``rounding_error``, a first-order bound on each number's rounding error.

    Raises
    ------
    NotAffineError
        Where the round is not affine (nonconvex clients, say); it names the sampled engine.
    ValueError
        For arguments that do not fit together.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> run = exact(FedAvg(0.5, 1), problem, UniformSubset(2, 1), rounds=2, x0=[0.0])
    >>> run.squared_distance.round(12).tolist()
    [0.0, 0.25, 0.3125]
    """
    setting = Setting(algorithm, problem, participation, rounds, x0)
    quadratic = affine_problem(problem)
    setting = without_idle_projection(setting, quadratic)
    follow = follow_chain if runs_along_chain(participation) else _follow_model
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return follow(setting, quadratic, observe)
    except RoundOverflowError:
        return _diverged_at_once(setting, [item.name for item in observe])


def _follow_model(
    setting: Setting, problem: QuadraticProblem, observe: Sequence[Observable]
) -> Trajectory:
    """Follow the moments of the model alone: rounds are independent."""
    first = in_round(setting.algorithm, 1)
    layout = StateLayout.of(first, problem)

    def step_of(algorithm: Algorithm) -> MomentMap:
        return MomentMap(round_law(algorithm, problem, setting.participation, layout))

    forms = dict(standard_forms(problem))
    forms |= {item.name: item.form(problem, setting.participation) for item in observe}
    forms = {name: layout.form(form) for name, form in forms.items()}
    start = layout.start(first, problem, setting.x0)
    steps = each_round(setting.algorithm, step_of)
    history = _run(steps, start, setting.rounds, list(forms.values()))
    return _trajectory(history, forms, problem.x_star_error)


def _diverged_at_once(setting: Setting, observed: Sequence[str]) -> Trajectory:
    """Return the trajectory of a run whose first round already overflows."""
    start = standard_samples(setting.problem, setting.x0[None])
    values = {name: np.full(setting.rounds + 1, np.inf) for name in (*FIELDS, *observed)}
    errors = {name: array.copy() for name, array in values.items()}
    for name, sample in zip(FIELDS, start, strict=True):
        values[name][0] = sample[0]
        errors[name][0] = 64 * UNIT_ROUNDOFF * setting.problem.dim * abs(sample[0])
    return exact_trajectory(values, errors, diverged_at=1)


def affine_problem(problem: Problem) -> QuadraticProblem:
    """Return ``problem`` if rounds on it can be affine, else raise NotAffineError."""
    if not isinstance(problem, QuadraticProblem):
        raise NotAffineError(
            "problem must be a QuadraticProblem for exact moments (a round on "
            f"{type(problem).__name__} is not affine in the model): use engines.monte_carlo"
        )
    return problem


def round_law(
    algorithm: Algorithm,
    problem: QuadraticProblem,
    participation: Participation,
    layout: StateLayout,
) -> RandomAffineMap:
    """Return the law of one round as a random affine map of the state's offset."""

    def law_of(branch: str) -> RandomAffineMap:
        function = layout.function(algorithm, branch)
        return random_affine_map(function, problem, participation, layout.origin, layout.origin)

    return mixture([(p, law_of(branch)) for branch, p in algorithm.branches if p > 0])


@dataclass(frozen=True, eq=False)
class _History:
    """Forms' expectations and ``E||s||^2`` before and after every round; each round's rounding."""

    values: FloatArray
    traces: FloatArray
    roundings: Sequence[MomentRounding]
    diverged_at: int | None


def _run(
    steps: Iterator[MomentMap], start: FloatArray, rounds: int, forms: Sequence[QuadraticForm]
) -> _History:
    n = start.size
    readout = np.stack(
        [np.concatenate([form.matrix.ravel(), 2 * form.vector, [form.constant]]) for form in forms]
        + [np.concatenate([np.eye(n).ravel(), np.zeros(n + 1)])]
    )
    taken: list[MomentRounding] = []
    blocks = _moment_blocks(steps, start, rounds, taken)
    values = np.concatenate([block @ readout.T for block in blocks])
    broken = ~(np.abs(values).max(axis=1) < OVERFLOW)
    diverged_at = int(np.argmax(broken)) if broken.any() else None
    if diverged_at is not None:
        values[diverged_at:] = np.inf
    return _History(values[:, :-1], np.maximum(values[:, -1], 0.0), taken, diverged_at)


def _moment_blocks(
    steps: Iterator[MomentMap], start: FloatArray, rounds: int, taken: list[MomentRounding]
) -> Iterator[FloatArray]:
    """Yield ``[M flattened, m, 1]`` of successive rounds in blocks of bounded size.

    The roundings of the steps are added to ``taken`` as they are made.
    """
    n = start.size
    at_once = max(1, _NUMBERS_AT_ONCE // (n * n + n + 1))
    moments = np.concatenate([np.outer(start, start).ravel(), start, [1.0]])
    advances = _advances(steps, taken)
    for first in range(0, rounds + 1, at_once):
        block = np.empty((min(at_once, rounds + 1 - first), moments.size))
        for row in range(block.shape[0]):
            if first + row > 0:
                moments = next(advances)(moments)
            block[row] = moments
        yield block


def _advances(steps: Iterator[MomentMap], taken: list[MomentRounding]) -> Iterator[Advance]:
    """Yield how each round moves the moments; from one that overflows on, to infinity."""
    before: MomentMap | None = None
    advance: Advance = _to_infinity
    try:
        for step in steps:
            if step is not before:
                before, advance, rounding = step, _advance(step), step.rounding
            taken.append(rounding)
            yield advance
    except RoundOverflowError:
        yield from repeat(_to_infinity)


def _to_infinity(moments: FloatArray) -> FloatArray:
    return np.full_like(moments, np.inf)


def _advance(step: MomentMap) -> Advance:
    dense = step.size <= _LARGEST_DENSE_STATE
    return _dense_advance(step) if dense else _factored_advance(step)


def _dense_advance(step: MomentMap) -> Advance:
    return step.matrix.__matmul__


def _factored_advance(step: MomentMap) -> Advance:
    n = step.size

    def advance(moments: FloatArray) -> FloatArray:
        second, first = step(moments[: n * n].reshape(n, n), moments[n * n : -1])
        return np.concatenate([second.ravel(), first, [1.0]])

    return advance


def _trajectory(
    history: _History, forms: Mapping[str, QuadraticForm], x_star_error: float
) -> Trajectory:
    initial_size = float(np.sqrt(history.traces[0]))
    initial_error = 2 * UNIT_ROUNDOFF * initial_size
    second_error, first_error = propagate(
        history.roundings,
        history.traces,
        2 * initial_size * initial_error + initial_error**2,
        initial_error,
    )
    values = dict(zip(forms, np.ascontiguousarray(history.values.T), strict=True))
    errors = {
        name: form.error(history.traces, second_error, first_error, x_star_error)
        for name, form in forms.items()
    }
    return exact_trajectory(values, errors, history.diverged_at)
