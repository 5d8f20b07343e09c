"""Moments conditional on who took part and what the algorithm counted.

Algorithms that count (rounds, absences, appearances) are not affine in their whole state. But
once it is given what the counts are, a round is affine in the rest: so moments of the model, and of
the updates that are remembered, are kept apart by *history*. Two histories that have led to the
same counts, and to the same state of a chain of participants, have the same future, so they are
merged: their weighted moments add up. What is a count and what is random is not guessed: it is
random if the algorithm's own round, run on affine forms, makes it depend on a symbol.

With ``w``, ``m`` and ``M`` the probability of a history and the first two moments of the random
entries s on it (measured from x*), write the three as one matrix ``[[M, m], [m', w]]``, the second
moment of (s, 1). An affine round is then a congruence by ``[[A, b], [0, 1]]`` plus the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.content import content
from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.affine.state_layout import joined
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.setting import Setting
from fltheory.participation.base import Masks, Participation
from fltheory.participation.process import States, process_of
from fltheory.validation import FloatArray

MOST_HISTORIES = 50_000
_MOST_STATES = 1 << 18
_NUMBERS_AT_ONCE = 1 << 22
_OPERATIONS = 8.0
_MOST_NUMBERS = 1 << 22
_SMALL_TABLE = 1 << 14

Rows = NDArray[np.intp]
RoundKey: TypeAlias = tuple[tuple[str, ...], tuple[int, ...], bytes]


class TooManyHistoriesError(NotAffineError):
    """There is more to keep apart than can be followed."""


@dataclass(frozen=True, eq=False)
class Histories:
    """What may have happened before a round, one row each.

    Attributes
    ----------
    place : array of int, (P,)
        State of the chain of participants, 0 where rounds are independent.
    known : mapping of str to array (P, ...)
        The algorithm's counts, and whatever else is a number once the history is given.
    random : tuple of str
        The entries of the state that are random given the history, ``"x"`` first.
    moments : array, (P, n + 1, n + 1)
        ``E[(s, 1)(s, 1)' 1{history}]`` of those entries.
    """

    place: Rows
    known: Mapping[str, FloatArray]
    random: tuple[str, ...]
    moments: FloatArray

    @property
    def weights(self) -> FloatArray:
        """(P,) probability of each history."""
        return self.moments[:, -1, -1]

    @property
    def scale(self) -> FloatArray:
        """(P, n + 1) roots of the entries' mean squares, given the history."""
        squares = np.maximum(np.diagonal(self.moments, axis1=1, axis2=2), 0.0)
        weights = np.where(self.weights > 0, self.weights, 1.0)
        return np.sqrt(squares / weights[:, None])


@dataclass(frozen=True, eq=False)
class HistoryStep:
    """A round's affine maps, one for each continued history, and where each leads.

    Attributes
    ----------
    rows, targets : arrays of int, (Q,)
        The history that is continued, and the one that it becomes part of.
    chances : array, (Q,)
    maps : array, (Q, n + 1, n + 1)
        ``[[A, b], [0, 1]]``.
    noises : array, (Q, n, n)
    errors : array, (Q, 3)
        Bounds on the rounding errors in A, b (norms) and, relatively, in the noise.
    operations : float
        Rounding errors in a moment after it.
    scale : array, (P, n + 1)
        That of the histories before it.
    weights : array, (P,)
    """

    rows: Rows
    targets: Rows
    chances: FloatArray
    maps: FloatArray
    noises: FloatArray
    errors: FloatArray
    operations: float
    scale: FloatArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Image:
    """What a round makes of some histories, a row each."""

    random: tuple[str, ...]
    known: Mapping[str, FloatArray]
    maps: FloatArray
    noises: FloatArray
    errors: FloatArray


@dataclass(frozen=True, eq=False)
class Continuation:
    """Which histories are continued (Q,), with whom (Q, N), in which branch, and how probably."""

    rows: Rows
    masks: Masks
    branches: tuple[str, ...]
    drawn: Rows
    chances: FloatArray


class Rounds(Protocol):
    """How rounds are run on histories."""

    def initial(self, names: tuple[str, ...]) -> Histories:
        """Return the one history before the first round, some entries of which are random."""
        ...

    def image(self, coming: ComingRound) -> Image:
        """Return what a round makes of the continued histories."""
        ...


Following = Callable[[int], tuple[tuple[int, float], ...]]


def _stays(state: int) -> tuple[tuple[int, float], ...]:
    return ((state, 1.0),)


@dataclass(frozen=True, eq=False)
class Chances:
    """Who may take part next, given where a chain is, and where it may go.

    Attributes
    ----------
    participation : Participation
    initial : array, (M,)
        Law of the first round's state.
    chances : array, (M, k)
        Of a state's participant sets.
    sets : callable
        Of states (Q,) and a round from 0: their participant sets, (Q, k, N).
    following : callable
        The states that may follow a state, with their probabilities.
    """

    participation: Participation
    initial: FloatArray
    chances: FloatArray
    sets: Callable[[Rows, int], Masks]
    following: Following = _stays

    @classmethod
    def of(cls, participation: Participation) -> Chances:
        """Return how a process goes on: independent rounds have one state, and many sets in it.

        Raises
        ------
        NotAffineError
            If it has too many sets or states, or neither states nor independent rounds.
        """
        process = process_of(participation)
        count = process.n_outcomes if process.independent else process.n_states
        if count is None or count > (MOST_HISTORIES if process.independent else _MOST_STATES):
            raise TooManyHistoriesError(_too_many(participation))
        if process.independent:
            chances, masks = zip(*process.outcomes(), strict=True)
            every = np.array(masks)[None]
            return cls(
                participation, np.ones(1), np.array([chances]), lambda place, index: every[place]
            )
        states = process.states()
        return cls(
            participation,
            states.initial,
            np.ones((count, 1)),
            lambda place, index: states.masks[place, None],
            _transitions(states),
        )

    @classmethod
    def of_paths(cls, participation: Participation, masks: Masks) -> Chances:
        """Return given paths of participants (P, rounds, N), each a state of weight one."""
        ones = np.ones(len(masks))
        return cls(
            participation, ones, ones[:, None], lambda place, index: masks[place, None, index]
        )

    def start(self, histories: Histories) -> Histories:
        """Return the one history as one for each state that the chain may begin in."""
        place = np.flatnonzero(self.initial > 0)
        rows = np.zeros(place.size, np.intp)
        return Histories(
            place,
            {name: array[rows] for name, array in histories.known.items()},
            histories.random,
            histories.moments[rows] * self.initial[place][:, None, None],
        )

    def continued(self, place: Rows, index: int) -> tuple[Rows, Masks, FloatArray]:
        """Return the histories (Q,) that are continued, with whom (Q, N), and how probably (Q,)."""
        masks = self.sets(place, index)
        rows = np.repeat(np.arange(len(place)), masks.shape[1])
        return rows, masks.reshape(-1, masks.shape[-1]), self.chances[place].ravel()

    def places(self, place: Rows) -> tuple[Rows, Rows, FloatArray]:
        """Return which of some states (Q,) go on (T,), to which (T,), and how probably (T,)."""
        if self.following is _stays:
            return np.arange(len(place)), place, np.ones(len(place))
        each: list[tuple[tuple[int, float], ...]] = []
        for state in place:
            each.append(self.following(int(state)))
            if len(each) * len(each[-1]) > MOST_HISTORIES:
                raise TooManyHistoriesError(_too_many(self.participation))
        rows = np.repeat(np.arange(len(place)), [len(following) for following in each])
        following = [pair for pairs in each for pair in pairs]
        return (
            rows,
            np.array([state for state, _ in following], dtype=np.intp),
            np.array([chance for _, chance in following]),
        )


def _transitions(states: States) -> Following:
    """Return a function from a state to those that can follow it, with their probabilities."""
    unit = np.zeros(len(states.masks))

    @cache
    def following(state: int) -> tuple[tuple[int, float], ...]:
        unit[state] = 1.0
        reached = states.forward(unit)
        unit[state] = 0.0
        return tuple((int(j), float(reached[j])) for j in np.flatnonzero(reached > 0))

    return following


def _too_many(participation: Any) -> str:
    return (
        f"participation must have at most {MOST_HISTORIES} histories to follow them all, got "
        f"{participation!r}: give the number of paths to draw, or use engines.monte_carlo"
    )


class _WidenedError(Exception):
    """An entry turned out to be random: begin again with it among the random ones."""

    def __init__(self, random: tuple[str, ...]) -> None:
        self.random = random


@dataclass(eq=False)
class ComingRound:
    """A round that has not been run yet: all that it depends on, and nothing else.

    Where it leads is worked out once for what is said to be known after it: by whoever plans
    ahead, and then by whoever runs it.

    Attributes
    ----------
    setting : Setting
    chances : Chances
    algorithm : Algorithm
        As it is in this round. Rounds that are alike share one object.
    index : int
        The first round's is 0.
    place, known, random
        As of the histories before it.
    """

    setting: Setting
    chances: Chances
    algorithm: Algorithm
    index: int
    place: Rows
    known: Mapping[str, FloatArray]
    random: tuple[str, ...]
    _led: tuple[Mapping[str, FloatArray], Arrivals, ComingRound | None] | None = None

    @cached_property
    def continued(self) -> Continuation:
        """The histories that are continued.

        Raises
        ------
        TooManyHistoriesError
        """
        rows, masks, chance = self.chances.continued(self.place, self.index)
        branches = [(name, p) for name, p in self.algorithm.branches if p > 0]
        names, shares = tuple(name for name, _ in branches), np.array([p for _, p in branches])
        count = len(branches)
        if len(rows) * count > MOST_HISTORIES:
            raise TooManyHistoriesError(_too_many(self.setting.participation))
        if count == 1:
            return Continuation(rows, masks, names, np.zeros(len(rows), np.intp), chance * shares)
        return Continuation(
            np.repeat(rows, count),
            np.repeat(masks, count, axis=0),
            names,
            np.tile(np.arange(count), len(rows)),
            np.repeat(chance, count) * np.tile(shares, len(rows)),
        )

    @cached_property
    def table(self) -> FloatArray:
        """All that maps may depend on, beside the algorithm: one row per continued history.

        That is counts, participants and branch.
        """
        columns = [self.continued.masks, self.continued.drawn[:, None]]
        if self.known:
            columns.append(joined(self.known, sorted(self.known))[self.continued.rows])
        return np.concatenate(columns, axis=1, dtype=np.float64)

    @cached_property
    def key(self) -> RoundKey:
        """What tells it from rounds of the same algorithm that have other maps."""
        return self.random, self.table.shape, self.table.tobytes()

    def leads_to(self, known: Mapping[str, FloatArray]) -> tuple[Arrivals, ComingRound | None]:
        """Return where the histories arrive, and the next round, None after the last.

        Parameters
        ----------
        known : mapping of str to array (Q, ...)
            After the round, of each continued history.
        """
        if self._led is None or self._led[0] is not known:
            arrivals = self._arrivals(known)
            self._led = known, arrivals, self._next(arrivals)
        return self._led[1:]

    def _arrivals(self, known: Mapping[str, FloatArray]) -> Arrivals:
        onward, place, moving = self.chances.places(self.place[self.continued.rows])
        targets, firsts = _merged(place, {name: array[onward] for name, array in known.items()})
        return Arrivals(
            onward,
            self.continued.chances[onward] * moving,
            targets,
            place[firsts],
            {name: array[onward][firsts] for name, array in known.items()},
        )

    def _next(self, arrivals: Arrivals) -> ComingRound | None:
        index = self.index + 1
        if index == self.setting.rounds:
            return None
        return ComingRound(
            self.setting,
            self.chances,
            self.following,
            index,
            arrivals.place,
            arrivals.known,
            self.random,
        )

    @cached_property
    def following(self) -> Algorithm:
        """The next round's algorithm, this one's object where they are alike."""
        following = in_round(self.setting.algorithm, self.index + 2)
        # By what they hold: a class may call objects equal that are not.
        alike = following is self.algorithm or content(following) == content(self.algorithm)
        return self.algorithm if alike else following


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Where continued histories arrive.

    Attributes
    ----------
    onward : array of int, (T,)
        Which of the continued ones.
    chances : array, (T,)
    targets : array of int, (T,)
        The new history that each becomes part of.
    place, known
        Of the new histories.
    """

    onward: Rows
    chances: FloatArray
    targets: Rows
    place: Rows
    known: Mapping[str, FloatArray]


def follow(
    setting: Setting, rounds: Rounds, chances: Chances
) -> Iterator[tuple[Histories, HistoryStep | None]]:
    """Yield the histories before the first round and after each, with the step that led there.

    Raises
    ------
    NotAffineError
        If a round is not affine given the history, or there are too many histories.
    """
    random: tuple[str, ...] = ("x",)
    found: list[tuple[Histories, HistoryStep | None]] = []
    while True:
        try:
            for pair in _followed(setting, rounds, chances, random):
                found.append(pair)
                if len(found) > 1 and len(found) == setting.rounds + 1:
                    break
            yield from found
            return
        except _WidenedError as widened:
            random, found = widened.random, []


def _followed(
    setting: Setting, rounds: Rounds, chances: Chances, random: tuple[str, ...]
) -> Iterator[tuple[Histories, HistoryStep | None]]:
    now = chances.start(rounds.initial(random))
    yield now, None
    first = in_round(setting.algorithm, 1)
    coming: ComingRound | None = ComingRound(
        setting, chances, first, 0, now.place, now.known, now.random
    )
    while coming is not None:
        image = rounds.image(coming)
        if image.random != now.random:
            raise _WidenedError(image.random)
        arrivals, following = coming.leads_to(image.known)
        now, step = _after(coming, now, image, arrivals)
        yield now, step
        coming = following


def _after(
    coming: ComingRound, before: Histories, image: Image, arrivals: Arrivals
) -> tuple[Histories, HistoryStep]:
    """Return the moments after a round, and the step that led there."""
    rows = coming.continued.rows[arrivals.onward]
    if rows.size * image.maps[0].size > _MOST_NUMBERS:
        raise TooManyHistoriesError(_too_many(coming.setting.participation))
    maps, noises = image.maps[arrivals.onward], image.noises[arrivals.onward]
    moments = maps @ before.moments[rows] @ maps.swapaxes(1, 2)
    n = noises.shape[1]
    moments[:, :n, :n] += noises * before.weights[rows][:, None, None]
    moments *= arrivals.chances[:, None, None]
    # An entry sums n + 1 terms on either side of M, over all rows that go to its target; the noise
    # added is a sum over clients. `_OPERATIONS` is for chances, weights and that addition.
    operations = _OPERATIONS + 2 * (n + 1) + _crowd(arrivals.targets)
    step = HistoryStep(
        rows,
        arrivals.targets,
        arrivals.chances,
        maps,
        noises,
        image.errors[arrivals.onward],
        operations + coming.setting.problem.n_clients,
        before.scale,
        before.weights,
    )
    total = _gathered(moments, arrivals.targets, len(arrivals.place))
    return Histories(arrivals.place, arrivals.known, before.random, total), step


def _crowd(targets: Rows) -> int:
    """Return how many rows go to the target that most go to."""
    return 1 if len(targets) == 1 else int(np.bincount(targets).max(initial=1))


def _gathered(stack: FloatArray, targets: Rows, count: int) -> FloatArray:
    """Return the sums (count, n, n) of the matrices of a stack (Q, n, n) by target."""
    from scipy.sparse import csr_array

    if len(targets) == count == 1:
        return stack
    if len(targets) == count and _crowd(targets) == 1:
        total = np.empty_like(stack)
        total[targets] = stack
        return total
    flat = stack.reshape(len(targets), -1)
    if len(targets) * count <= _SMALL_TABLE:
        adding = (targets == np.arange(count)[:, None]).astype(np.float64)
    else:
        rows = np.arange(len(targets))
        adding = csr_array((np.ones(len(targets)), (targets, rows)), (count, len(targets)))
    return np.asarray(adding @ flat).reshape(count, *stack.shape[1:])


def _merged(places: Rows, known: Mapping[str, FloatArray]) -> tuple[Rows, Rows]:
    """Return the new history that each row belongs to, and one row of each."""
    count = len(places)
    parts = [places[:, None].astype(np.float64)]
    parts += [array.reshape(count, -1) for array in known.values()]
    firsts, targets = distinct(np.concatenate(parts, axis=1))
    return targets, firsts


def distinct(table: FloatArray) -> tuple[Rows, Rows]:
    """Return the first place of each different row, and which of them every row is.

    Rows are told apart by their bytes, which takes a tenth of the time of sorting them.
    """
    if len(table) == 1:
        return np.zeros(1, np.intp), np.zeros(1, np.intp)
    # Zero is added for the sake of -0.0, whose bytes are others.
    rows = np.ascontiguousarray(table + 0.0)
    known: dict[bytes, int] = {}
    which = np.array(
        [
            known.setdefault(row, len(known))
            for row in rows.view(f"V{rows.strides[0]}").ravel().tolist()
        ],
        dtype=np.intp,
    )
    # Every first place comes after all those before it, as new rows are numbered in turn.
    return np.flatnonzero(np.diff(np.maximum.accumulate(which), prepend=-1)), which


def rounding_of(steps: Sequence[HistoryStep], dim: int) -> FloatArray:
    """Bound, to first order, the error of ``E||x_t - x*||^2`` before and after each round.

    A moment's entry errs by at most ``k u`` times what sums of absolute values make of it, and
    those are at most ``f f'`` with f the round's absolute map of the entries' scale. An error D
    in round t adds ``tr(X D)`` to the squared distance in round T, X being the adjoint of the
    rounds between, taken of the model's identity; X is positive, so ``|X_ab| <= sqrt(X_aa X_bb)``
    and the sum is at most ``k u (sum_a f_a sqrt(X_aa))^2``. X is added up over a window of rounds T
    in which the horizon doubles, and serves all of them. Unlike a bound by norms of single rounds
    it knows what the rounds together contract, whatever units the entries have.
    """
    rounds = len(steps)
    bounds = np.zeros(rounds + 1)
    if rounds == 0:
        return bounds
    initial = np.einsum("pa,pa->", steps[0].scale[:, :dim], steps[0].scale[:, :dim] * _w(steps[0]))
    bounds[0] = _OPERATIONS * UNIT_ROUNDOFF * float(initial)
    own = _OwnRounding.of(steps)
    ends = [0]
    while ends[-1] < rounds:
        ends.append(min(max(2 * ends[-1], 4), rounds))
    for first, last in pairwise(ends):
        total = own.seen_through(_adjoints(steps, first + 1, last, dim))
        bounds[first + 1 : last + 1] = np.cumsum(total)[first:last]
    return bounds


def _w(step: HistoryStep) -> FloatArray:
    return step.weights[:, None]


def _adjoints(steps: Sequence[HistoryStep], first: int, last: int, dim: int) -> list[FloatArray]:
    """Return, for the first ``last`` rounds, what follows of each target: X of a window, (T, n+1).

    Of X only the roots of its diagonal are kept.
    """
    size = steps[0].maps.shape[1]
    seed = np.diag((np.arange(size) < dim).astype(np.float64))
    count = int(steps[last - 1].targets.max(initial=0)) + 1
    adjoint = np.tile(seed, (count, 1, 1))
    heights: list[FloatArray] = []
    for index in range(last - 1, -1, -1):
        step = steps[index]
        at_targets = adjoint if len(step.targets) == count == 1 else adjoint[step.targets]
        heights.append(np.diagonal(at_targets, axis1=1, axis2=2))
        pulled = step.maps.swapaxes(1, 2) @ at_targets @ step.maps
        count = len(step.weights)
        back = _gathered(step.chances[:, None, None] * pulled, step.rows, count)
        adjoint = back + seed if index >= first else back
    return [np.sqrt(np.maximum(diagonal, 0.0)) for diagonal in reversed(heights)]


@dataclass(frozen=True, eq=False)
class _OwnRounding:
    """What every round's own rounding is made of, a row for each of its maps.

    Attributes
    ----------
    ends : array of int, (R,)
        Where a round's rows end.
    chances, operations, wrong, noise_error : arrays, (S,)
        ``wrong`` bounds the error of an image by that of its map.
    reached : array, (S, n + 1)
    spread : array, (S, n)
        Variances of the noise.
    """

    ends: Rows
    chances: FloatArray
    operations: FloatArray
    wrong: FloatArray
    noise_error: FloatArray
    reached: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, steps: Sequence[HistoryStep]) -> _OwnRounding:
        """Return what these rounds' rounding is made of."""
        counts = [len(step.rows) for step in steps]
        scale = np.concatenate([step.scale[step.rows] for step in steps])
        errors = np.concatenate([step.errors for step in steps])
        noises = np.concatenate([np.diagonal(step.noises, axis1=1, axis2=2) for step in steps])
        return cls(
            np.cumsum(counts),
            np.concatenate([step.weights[step.rows] * step.chances for step in steps]),
            np.repeat([step.operations for step in steps], counts),
            errors[:, 0] * np.linalg.norm(scale[:, :-1], axis=1) + errors[:, 1],
            errors[:, 2],
            np.concatenate(
                [(np.abs(s.maps) @ s.scale[s.rows][:, :, None])[:, :, 0] for s in steps]
            ),
            np.maximum(noises, 0.0),
        )

    def seen_through(self, heights: Sequence[FloatArray]) -> FloatArray:
        """Bound what each of the first rounds adds, of whose targets so much is seen later."""
        height = np.concatenate(heights)
        count, n = len(height), self.spread.shape[1]
        spread, operations = self.spread[:count], self.operations[:count]
        seen = (self.reached[:count] * height).sum(axis=1)
        seen += (np.sqrt(spread) * height[:, :n]).sum(axis=1)
        shown = self.wrong[:count] * height[:, :n].sum(axis=1)
        noise = self.noise_error[:count] * (spread * height[:, :n] ** 2).sum(axis=1)
        each = operations * UNIT_ROUNDOFF * seen**2 + 2 * seen * shown + shown**2 + noise
        starts = np.concatenate([[0], self.ends[: len(heights) - 1]])
        return np.add.reduceat(self.chances[:count] * each, starts)
