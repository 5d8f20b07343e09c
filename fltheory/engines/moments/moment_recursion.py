"""The exact engine: expected errors of every round by the moment recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.affine.probe import UNIT_ROUNDOFF, RoundOverflowError
from fltheory.engines.affine.probing import Outcomes, random_affine_map
from fltheory.engines.affine.projection import without_idle_projection
from fltheory.engines.affine.random_affine_map import RandomAffineMap, mixture
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.enclosure.enclosed import enclosed_trajectory, rational_trajectory
from fltheory.engines.guard import guard_affine
from fltheory.engines.history.jump_linear import follow_chain, runs_along_chain
from fltheory.engines.moments.moment_map import MomentMap, MomentRounding, propagate
from fltheory.engines.observables import Observable, QuadraticForm, standard_forms, standard_samples
from fltheory.engines.rounds import in_float64, runs_of_rounds
from fltheory.engines.setting import Setting
from fltheory.engines.trajectory import FIELDS, OVERFLOW, Trajectory, exact_trajectory
from fltheory.participation.base import Participation
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_LARGEST_DENSE_STATE = 24
_NUMBERS_AT_ONCE = 1 << 20

ArithmeticName: TypeAlias = Literal["float64", "enclosed", "rational"]
ARITHMETICS = ("float64", "enclosed", "rational")

Advance = Callable[[FloatArray, FloatArray], None]
"""Takes moments, and rows for those after each of the next rounds."""


@checks_kinds
def exact(
    setting: Setting,
    *,
    observe: Sequence[Observable] = (),
    arithmetic: ArithmeticName = "float64",
) -> Trajectory:
    """Compute the expected errors of every round, with no sampling.

    The first two moments of the model obey an exact recursion when a round is affine in the
    model given who takes part, as it is on quadratic clients. The affine maps are read off
    the algorithm's own ``round``.

    Parameters
    ----------
    setting : Setting
        On a `QuadraticProblem`.
    observe : sequence of Observable
        Further quantities to follow.
    arithmetic : {"float64", "enclosed", "rational"}
        ``"enclosed"`` accounts for every rounding, with balls, and takes the setting's numbers
        for the decimals that they were written as; so does ``"rational"``, which returns
        fractions, whose digits grow by the round. Both also follow algorithms that count.

    Returns
    -------
    Trajectory
        With ``rounding_error``: in float64 a first-order bound on each number's rounding error,
        which is an estimate and no proof; enclosed, a rigorous one; zero for fractions.

    Raises
    ------
    NotAffineError
        Where the round is not affine (nonconvex clients, say); it names the sampled engine.
    ValueError
        For observables that do not fit the setting, or an arithmetic that does not exist.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import UniformSubset
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    >>> run = exact(Setting(FedAvg(0.5, 1), problem, UniformSubset(2, 1), rounds=2, x0=[0.0]))
    >>> run.squared_distance.round(12).tolist()
    [0.0, 0.25, 0.3125]
    """
    validation.one_of("arithmetic", arithmetic, ARITHMETICS)
    if arithmetic == "enclosed":
        return enclosed_trajectory(setting, observe)
    if arithmetic == "rational":
        return rational_trajectory(setting, observe)
    quadratic = affine_problem(setting.problem)
    setting = in_float64(setting)
    setting = without_idle_projection(setting, quadratic)
    guard_affine(setting)
    follow = follow_chain if runs_along_chain(setting.participation) else _follow_model
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

    outcomes = Outcomes(setting.participation)

    def step_of(algorithm: Algorithm) -> MomentMap:
        return MomentMap(
            round_law(
                algorithm,
                problem,
                setting.participation,
                layout,
                outcomes=outcomes,
            )
        )

    forms = dict(standard_forms(problem))
    forms |= {item.name: item.form(problem, setting.participation) for item in observe}
    forms = {name: layout.form(form) for name, form in forms.items()}
    start = layout.start(first, problem, setting.x0)
    steps = runs_of_rounds(setting.algorithm, step_of, setting.rounds)
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
    *,
    outcomes: Outcomes | None = None,
) -> RandomAffineMap:
    """Return the law of one round as a random affine map of the state's offset."""
    origin, known = layout.origin, outcomes or Outcomes(participation)

    def law_of(branch: str) -> RandomAffineMap:
        function = layout.function(algorithm, branch)
        return random_affine_map(function, problem, participation, origin, origin, outcomes=known)

    return mixture([(p, law_of(branch)) for branch, p in algorithm.branches if p > 0])


@dataclass(frozen=True, eq=False)
class _History:
    """Forms' expectations and ``E||s||^2`` before and after every round; each round's rounding."""

    values: FloatArray
    traces: FloatArray
    roundings: Sequence[tuple[MomentRounding, int]]
    diverged_at: int | None


def _run(
    steps: Iterator[tuple[MomentMap, int]],
    start: FloatArray,
    rounds: int,
    forms: Sequence[QuadraticForm],
) -> _History:
    n = start.size
    readout = np.stack(
        [np.concatenate([form.matrix.ravel(), 2 * form.vector, [form.constant]]) for form in forms]
        + [np.concatenate([np.eye(n).ravel(), np.zeros(n + 1)])]
    )
    taken: list[tuple[MomentRounding, int]] = []
    blocks = _moment_blocks(steps, start, rounds, taken)
    values = np.concatenate([block @ readout.T for block in blocks])
    broken = ~(np.abs(values).max(axis=1) < OVERFLOW)
    diverged_at = int(np.argmax(broken)) if broken.any() else None
    if diverged_at is not None:
        values[diverged_at:] = np.inf
    return _History(values[:, :-1], np.maximum(values[:, -1], 0.0), taken, diverged_at)


def _moment_blocks(
    steps: Iterator[tuple[MomentMap, int]],
    start: FloatArray,
    rounds: int,
    taken: list[tuple[MomentRounding, int]],
) -> Iterator[FloatArray]:
    """Yield ``[M flattened, m, 1]`` of successive rounds in blocks of bounded size.

    The roundings of the steps are added to ``taken`` as they are made.
    """
    n = start.size
    at_once = max(1, _NUMBERS_AT_ONCE // (n * n + n + 1))
    moments = np.concatenate([np.outer(start, start).ravel(), start, [1.0]])
    # All that a step leaves as it is, is the last entry.
    block = np.ones((min(at_once, rounds + 1), moments.size))
    block[0], filled, before = moments, 1, 0
    for advance, count in _advances(steps, rounds, taken):
        done = 0
        while done < count:
            if filled == len(block):
                yield block
                moments, before = block[-1], before + filled
                block, filled = np.ones((min(at_once, rounds + 1 - before), moments.size)), 0
            rows = block[filled : filled + count - done]
            advance(block[filled - 1] if filled else moments, rows)
            filled, done = filled + len(rows), done + len(rows)
    yield block


def _advances(
    steps: Iterator[tuple[MomentMap, int]], rounds: int, taken: list[tuple[MomentRounding, int]]
) -> Iterator[tuple[Advance, int]]:
    """Yield how successive rounds move the moments, and how many do so alike.

    From one that overflows on, they go to infinity.
    """
    done = 0
    while done < rounds:
        try:
            step, count = next(steps)
        except RoundOverflowError:
            yield _to_infinity, rounds - done
            return
        taken.append((step.rounding, count))
        yield _advance(step), count
        done += count


def _to_infinity(moments: FloatArray, rows: FloatArray) -> None:
    rows.fill(np.inf)


def _advance(step: MomentMap) -> Advance:
    """Return the cheapest way to move the moments by a round.

    The whole map as a matrix takes ``(n^2 + n + 1)^2`` products a round, r factors ``4 r n^3`` and
    a dozen calls, which weigh as much as some 40,000 products.
    """
    n, factors = step.size, len(step.law.moving[0])
    dense = (n * n + n + 1) ** 2
    if all(part.still for part in step.law.parts) and 40_000 + 4 * factors * n**3 < dense:
        return _stacked_advance(step)
    return _dense_advance(step) if n <= _LARGEST_DENSE_STATE else _factored_advance(step)


def _stacked_advance(step: MomentMap) -> Advance:
    """Move the second moments X of ``(s, 1)``: with factors ``F = (A, b)``, ``sum_j F_j X F_j'``.

    Two products, of all factors one below the other and of all side by side; the inflow of
    what has no slope is added.
    """
    law, n = step.law, step.size
    slopes, offsets = law.moving
    factors = np.concatenate([slopes, offsets[:, :, None]], axis=2)
    mean = np.concatenate([law.mean_slope, law.mean_offset[:, None]], axis=1)
    if len(factors) == 1 and np.array_equal(factors[0], mean):
        return _certain_advance(mean, law.still_inflow)
    below = factors.reshape(-1, n + 1)
    beside = np.ascontiguousarray(factors.transpose(0, 2, 1)).reshape(-1, n)
    inflow, mean_slope, mean_offset = law.still_inflow, law.mean_slope, law.mean_offset
    both, half = np.empty((n + 1, n + 1)), np.empty((len(below), n + 1))
    stack = half.reshape(-1, n, n + 1)
    # Views are made once: a round of a small model takes no longer than making them.
    square, last_row, last_column = both[:n, :n], both[n], both[:, n]

    def advance(moments: FloatArray, rows: FloatArray) -> None:
        second, first = moments[: n * n].reshape(n, n), moments[n * n :]
        squares, firsts = rows[:, : n * n].reshape(-1, n, n), rows[:, n * n :]
        for square_after, first_after in zip(squares, firsts, strict=True):
            square[:] = second
            last_row[:] = first
            last_column[:] = first
            np.matmul(below, both, out=half)
            np.matmul(_beside(stack), beside, out=square_after)
            square_after += inflow
            mean_after = first_after[:n]
            np.matmul(mean_slope, first[:n], out=mean_after)
            mean_after += mean_offset
            second, first = square_after, first_after

    return advance


def _certain_advance(factor: FloatArray, inflow: FloatArray) -> Advance:
    """Move the moments by one map for sure and noise: the mean is a column of ``F X F'``.

    F has a last row of its own, (0, 1), so that ``E (s, 1)(s, 1)'`` goes to the next of its kind.
    """
    n = len(factor)
    whole, added = np.eye(n + 1), np.zeros((n + 1, n + 1))
    whole[:n], added[:n, :n] = factor, inflow
    turned, half = np.ascontiguousarray(whole.T), np.empty((n + 1, n + 1))

    def advance(moments: FloatArray, rows: FloatArray) -> None:
        now = np.empty((n + 1, n + 1))
        now[:n, :n] = moments[: n * n].reshape(n, n)
        now[n] = now[:, n] = moments[n * n :]
        every = np.empty((len(rows), n + 1, n + 1))
        for after in every:
            whole.dot(now, out=half)
            half.dot(turned, out=after)
            after += added
            now = after
        rows[:, : n * n].reshape(-1, n, n)[:] = every[:, :n, :n]
        rows[:, n * n : -1] = every[:, :n, n]

    return advance


def _beside(stack: FloatArray) -> FloatArray:
    """Return matrices (r, n, m) side by side, (n, r m)."""
    return stack.transpose(1, 0, 2).reshape(stack.shape[1], -1)


def _dense_advance(step: MomentMap) -> Advance:
    matrix = step.matrix

    def advance(moments: FloatArray, rows: FloatArray) -> None:
        for image in rows:
            matrix.dot(moments, out=image)
            moments = image

    return advance


def _factored_advance(step: MomentMap) -> Advance:
    n = step.size

    def advance(moments: FloatArray, rows: FloatArray) -> None:
        for image in rows:
            second, first = step(moments[: n * n].reshape(n, n), moments[n * n : -1])
            image[: n * n], image[n * n : -1] = second.ravel(), first
            moments = image

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
