"""The exact engine: expected errors of every round by the moment recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.argument_kinds import checks_kinds
from fltheory.content import content
from fltheory.engines.affine.probe import (
    UNIT_ROUNDOFF,
    DependentRoundsError,
    Probe,
    RoundOverflowError,
    StateFunction,
)
from fltheory.engines.affine.probing import MOST_SETS, Outcomes, random_affine_map
from fltheory.engines.affine.random_affine_map import RandomAffineMap, mixture
from fltheory.engines.affine.shaken import NO_MORE, Losses
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.enclosure.enclosed import enclosed_trajectory, rational_trajectory
from fltheory.engines.guard import guard_affine
from fltheory.engines.moments.moment_map import (
    ONE_STATE,
    MomentMap,
    RunOfRounds,
    packed,
    propagate,
    traces_of,
)
from fltheory.engines.observables import Observable, QuadraticForm, standard_forms, standard_samples
from fltheory.engines.setting import Setting, in_float64, without_idle_projection
from fltheory.engines.trajectory import FIELDS, Trajectory, exact_trajectory
from fltheory.participation import FiniteChain
from fltheory.participation.base import Participation
from fltheory.participation.process import Process, process_of
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_LARGEST_DENSE_STATE = 24
# Below this size, a round takes no longer than a function call.
_SMALLEST_HALVED_STATE = 12
_NUMBERS_AT_ONCE = 1 << 20

ArithmeticName: TypeAlias = Literal["float64", "enclosed", "rational"]
ARITHMETICS = ("float64", "enclosed", "rational")

T = TypeVar("T")
Advance = Callable[[FloatArray, FloatArray], None]
"""A function that fills rows with the moments after each of the next rounds, given the moments."""


@checks_kinds
def exact(
    setting: Setting,
    *,
    observe: Sequence[Observable] = (),
    arithmetic: ArithmeticName = "float64",
) -> Trajectory:
    """Compute the expected errors of every round, with no sampling.

    The first two moments of the model obey an exact recursion when a round is affine in the model
    given who takes part, as it is on quadratic clients. The affine maps are read from the
    algorithm's own ``round``.

    Parameters
    ----------
    setting : Setting
        A setting on a `QuadraticProblem`.
    observe : sequence of Observable
        Further quantities to follow.
    arithmetic : {"float64", "enclosed", "rational"}
        ``"enclosed"`` accounts for every rounding error, with balls, and reads the setting's
        numbers as the decimals that you wrote. ``"rational"`` reads them in the same way and
        returns fractions, whose digits grow with every round. Both also handle algorithms that
        count.

    Returns
    -------
    Trajectory
        It has ``rounding_error``. With ``"float64"`` this is a first-order bound, which is an
        estimate and not a proof; with ``"enclosed"`` it is a rigorous bound; with ``"rational"`` it
        is zero.

    Raises
    ------
    NotAffineError
        If the round is not affine (for example, with nonconvex clients). The message names the
        sampled engine.
    ValueError
        If observables do not match the setting, or ``arithmetic`` is unknown.

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
    setting = in_float64(setting)
    problem = affine_problem(setting.problem)
    setting = without_idle_projection(setting, problem)
    losses = guard_affine(setting).losses
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _followed(setting, problem, observe, losses)
    except RoundOverflowError:
        return _diverged_at_once(setting, [item.name for item in observe])


def _followed(
    setting: Setting, problem: QuadraticProblem, observe: Sequence[Observable], losses: Losses
) -> Trajectory:
    first, who = in_round(setting.algorithm, 1), participants_of(setting.participation)
    layout = StateLayout.of(first, problem)
    plain = dict(standard_forms(problem))
    forms = {name: layout.form(form) for name, form in plain.items()}
    forms |= {item.name: who.form(item, problem, layout) for item in observe}

    def step_of(algorithm: Algorithm) -> MomentMap:
        return moment_map(algorithm, problem, who, layout, losses)

    steps = runs_of_rounds(setting.algorithm, step_of, setting.rounds)
    start = layout.start(first, problem, setting.x0)
    alone = packed(np.outer(start, start), start, np.ones(()))
    history = _run(steps, np.multiply.outer(who.initial, alone), setting.rounds, forms)
    size = float(np.linalg.norm(start))
    # The initial offset is a difference of two states, each rounded once, and the state itself is a
    # rounded decimal. Scaling by powers of two is exact.
    error = UNIT_ROUNDOFF * (2 * size + float(np.linalg.norm(start + layout.origin)))
    # If there are states, multiplying by the distribution of the initial chain state rounds once
    # more.
    again = UNIT_ROUNDOFF * np.ndim(who.initial) * size
    bounds = propagate(
        history.taken,
        history.traces,
        history.weights,
        (2 * size * error + error**2 + 4 * again * size) * who.initial,
        (error + again) * who.initial,
    )
    by_state = {} if np.ndim(who.initial) == 0 else {"totals": bounds.totals}
    errors = {
        name: form.error(
            history.traces,
            bounds.second,
            bounds.first,
            problem.x_star_error,
            weights=history.weights,
            weight_error=bounds.weights,
            **by_state,
        )
        for name, form in forms.items()
    }
    traces = history.traces if np.ndim(who.initial) == 0 else history.traces.sum(axis=1)
    return exact_trajectory(history.values, errors, traces)


def _diverged_at_once(setting: Setting, observed: Sequence[str]) -> Trajectory:
    """Return the trajectory of a run whose first round already overflows."""
    start = standard_samples(setting.problem, setting.x0[None])
    values = {name: np.full(setting.rounds + 1, np.inf) for name in (*FIELDS, *observed)}
    errors = {name: array.copy() for name, array in values.items()}
    for name, sample in zip(FIELDS, start, strict=True):
        values[name][0] = sample[0]
        errors[name][0] = 64 * UNIT_ROUNDOFF * setting.problem.dim * abs(sample[0])
    return exact_trajectory(values, errors)


def affine_problem(problem: Problem) -> QuadraticProblem:
    """Return ``problem`` if rounds on it can be affine, else raise NotAffineError."""
    if not isinstance(problem, QuadraticProblem):
        raise NotAffineError(
            "problem must be a QuadraticProblem for exact moments (a round on "
            f"{type(problem).__name__} is not affine in the model): use engines.monte_carlo"
        )
    return problem


# --- the law of a round --------------------------------------------------------------------------


class _Independent:
    """Participants drawn independently in every round."""

    states, initial, limit = ONE_STATE, np.ones(()), np.ones(())

    def __init__(self, participation: Participation) -> None:
        self._participation = participation
        self._outcomes = Outcomes(participation)

    def law(
        self, function: StateFunction, problem: QuadraticProblem, origin: FloatArray
    ) -> RandomAffineMap:
        """Return the law over all participant sets."""
        return random_affine_map(
            function, problem, self._participation, origin, origin, outcomes=self._outcomes
        )

    def form(
        self, item: Observable, problem: QuadraticProblem, layout: StateLayout
    ) -> QuadraticForm:
        """Return the form over all participant sets."""
        return layout.form(item.form(problem, self._participation))


class _AlongChain:
    """Participants that follow a Markov chain; each state has one participant set."""

    def __init__(self, process: Process, n_states: int) -> None:
        if n_states > MOST_SETS:
            raise DependentRoundsError(
                f"participation must be independent across rounds, or have at most {MOST_SETS} "
                f"states, for exact moments, got {process!r} with {n_states}: use "
                "engines.monte_carlo, or engines.paths with drawn paths"
            )
        self.states = process.states()
        self.initial, self.limit = self.states.initial, self.states.limit
        self._masks, which = np.unique(self.states.masks, axis=0, return_inverse=True)
        self._of_state = which.ravel()

    def law(
        self, function: StateFunction, problem: QuadraticProblem, origin: FloatArray
    ) -> RandomAffineMap:
        """Return the map of each state's participant set."""
        maps = Probe(function, problem, origin, origin).bounded_maps(self._masks)
        slopes, offsets = maps.slopes[self._of_state], maps.offsets[self._of_state]
        return RandomAffineMap(
            slopes,
            offsets,
            slopes[None],
            offsets[None],
            maps.noises[self._of_state],
            maps.slope_error,
            maps.offset_error,
            maps.noise_error,
        )

    def form(
        self, item: Observable, problem: QuadraticProblem, layout: StateLayout
    ) -> QuadraticForm:
        """Return the form of each state, given that its set takes part."""
        certain = [FiniteChain([[1.0]], mask[None]) for mask in self._masks]
        each = [layout.form(item.form(problem, participation)) for participation in certain]
        return QuadraticForm.by_state([each[index] for index in self._of_state])


Participants: TypeAlias = _Independent | _AlongChain
"""The law of participants: laws of rounds, forms of observables, and the chain states."""


def participants_of(participation: Participation) -> Participants:
    """Return the law of participants, with chain states unless rounds are independent.

    Raises
    ------
    DependentRoundsError
        If the chain has more states than can be followed.
    """
    process = process_of(participation)
    if participation.independent or process.n_states is None:
        return _Independent(participation)
    return _AlongChain(process, process.n_states)


def moment_map(
    algorithm: Algorithm,
    problem: QuadraticProblem,
    who: Participants,
    layout: StateLayout,
    losses: Losses = NO_MORE,
) -> MomentMap:
    """Return a round's map of the moments of the state's offset, with errors times ``losses``."""
    *of_maps, of_chances = losses
    laws = [
        (p, who.law(layout.function(algorithm, branch), problem, layout.origin).losing(*of_maps))
        for branch, p in algorithm.branches
        if p > 0
    ]
    return MomentMap(mixture(laws, of_chances), who.states)


# --- following the moments -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _History:
    """The record of a run: expectations, ``E||s||^2`` and probabilities before and after rounds.

    ``traces`` and ``weights`` are by state if there are states. ``taken`` contains the rounding
    constants of all rounds, for `propagate`.
    """

    values: Mapping[str, FloatArray]
    traces: FloatArray
    weights: FloatArray
    taken: Sequence[RunOfRounds]


def _run(
    steps: Iterator[tuple[MomentMap, int]],
    start: FloatArray,
    rounds: int,
    forms: Mapping[str, QuadraticForm],
) -> _History:
    taken: list[RunOfRounds] = []
    values, traces, weights = [], [], []
    for block in _moment_blocks(steps, start, rounds, taken):
        values.append(_expectations(block, list(forms.values())))
        traces.append(traces_of(block, next(iter(forms.values())).vector.size))
        weights.append(block[..., -1].copy())
    named = dict(zip(forms, np.concatenate(values).T.copy(), strict=True))
    return _History(named, np.concatenate(traces), np.concatenate(weights), taken)


def _expectations(block: FloatArray, forms: Sequence[QuadraticForm]) -> FloatArray:
    """Return the expectations of forms, (rounds, forms), from the moments of some rounds."""
    total = block if block.ndim == 2 else block.sum(axis=1)
    rows = [form.row for form in forms]
    made = np.empty((len(block), len(forms)))
    shared = [place for place, row in enumerate(rows) if row.ndim == 1]
    made[:, shared] = total @ np.stack([rows[place] for place in shared], axis=1)
    for place, row in enumerate(rows):
        if row.ndim > 1:
            made[:, place] = np.einsum("rsq,sq->r", block, row)
    return made


def _moment_blocks(
    steps: Iterator[tuple[MomentMap, int]],
    start: FloatArray,
    rounds: int,
    taken: list[RunOfRounds],
) -> Iterator[FloatArray]:
    """Yield ``[M flattened, m, w]`` of successive rounds in blocks of bounded size.

    The rounding constants of each step are appended to ``taken``.
    """
    at_once = max(1, _NUMBERS_AT_ONCE // start.size)
    moments = start
    # A step of a single state leaves only the last entry unchanged, which is 1.
    block = np.ones((min(at_once, rounds + 1), *start.shape))
    block[0], filled, before = moments, 1, 0
    for advance, count in _advances(steps, rounds, taken):
        done = 0
        while done < count:
            if filled == len(block):
                yield block
                moments, before = block[-1], before + filled
                block, filled = np.ones((min(at_once, rounds + 1 - before), *start.shape)), 0
            rows = block[filled : filled + count - done]
            advance(block[filled - 1] if filled else moments, rows)
            filled, done = filled + len(rows), done + len(rows)
    yield block


def _advances(
    steps: Iterator[tuple[MomentMap, int]], rounds: int, taken: list[RunOfRounds]
) -> Iterator[tuple[Advance, int]]:
    """Yield the functions that advance the moments, and the number of rounds for each.

    The moments are infinite from the first round that overflows.
    """
    done = 0
    while done < rounds:
        try:
            step, count = next(steps)
        except RoundOverflowError:
            yield _to_infinity, rounds - done
            return
        # A map may be large, so it is kept only if it is used for several rounds.
        taken.append((step.rounding, step if count > 1 else None, count))
        yield _advance(step, count), count
        done += count


def _to_infinity(moments: FloatArray, rows: FloatArray) -> None:
    rows.fill(np.inf)


def _advance(step: MomentMap, rounds: int) -> Advance:
    """Return the cheapest function that advances the moments by some rounds.

    The whole map as a matrix takes ``(n^2 + n + 1)^2`` products per round. With r factors, it takes
    ``4 r n^3`` products and a dozen calls, which cost as much as about 40,000 products.
    """
    if step.states is not ONE_STATE:
        return _mapped_advance(step)
    n, factors = step.size, len(step.law.moving[0])
    dense = (n * n + n + 1) ** 2
    if all(part.still for part in step.law.parts) and 40_000 + 4 * factors * n**3 < dense:
        return _stacked_advance(step)
    if n > _LARGEST_DENSE_STATE:
        return _mapped_advance(step)
    halved = n >= _SMALLEST_HALVED_STATE and rounds > n
    return _halved_advance(step) if halved else _dense_advance(step)


def _stacked_advance(step: MomentMap) -> Advance:
    """Advance the second moments X of ``(s, 1)`` to ``sum_j F_j X F_j'``, with ``F = (A, b)``.

    This takes two products, with all factors stacked vertically and horizontally; the inflow of
    factors without slope is added.
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
    # The views are made once, because making them takes as long as a round of a small model.
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
    """Advance the moments by a deterministic map and noise; the mean is a column of ``F X F'``.

    The last row of F is (0, 1), so that ``E (s, 1)(s, 1)'`` is mapped to a matrix of the same form.
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


def _halved_advance(step: MomentMap) -> Advance:
    """Advance one half of the second moments, which are symmetric."""
    n = step.size
    above, below = np.triu_indices(n)
    others = np.arange(n * n, n * n + n + 1)
    kept, twins = np.append(above * n + below, others), (below * n + above)[above != below]
    rows_kept = step.matrix[kept]
    half = rows_kept[:, kept]
    half[:, : above.size][:, above != below] += rows_kept[:, twins]
    place = np.empty((n, n), dtype=np.intp)
    place[above, below] = place[below, above] = np.arange(above.size)
    whole = np.append(place, np.arange(above.size, kept.size))

    def advance(moments: FloatArray, rows: FloatArray) -> None:
        halves, now = np.empty((len(rows), kept.size)), moments[kept]
        for image in halves:
            half.dot(now, out=image)
            now = image
        rows[:] = halves[:, whole]

    return advance


def _mapped_advance(step: MomentMap) -> Advance:
    def advance(moments: FloatArray, rows: FloatArray) -> None:
        for image in rows:
            image[:] = moments = step(moments)

    return advance


def runs_of_rounds(
    algorithm: Algorithm | Schedule, make: Callable[[Algorithm], T], rounds: int
) -> Iterator[tuple[T, int]]:
    """Return an iterator over runs of equal rounds: the result of ``make``, and the run's length.

    Without a schedule, there is a single run, and ``make`` is called at once.
    """
    if isinstance(algorithm, Schedule):
        return _scheduled(algorithm, make, rounds)
    return iter([(make(algorithm), rounds)])


def _scheduled(
    schedule: Schedule, make: Callable[[Algorithm], T], rounds: int
) -> Iterator[tuple[T, int]]:
    begun, now = 1, schedule.at(1)
    held = content(now)
    for index in range(2, rounds + 2):
        after = schedule.at(index) if index <= rounds else None
        # They are compared by content, because a class may define equality differently.
        if after is None or content(after) != held:
            yield make(now), index - begun
            if after is not None:
                begun, now, held = index, after, content(after)
