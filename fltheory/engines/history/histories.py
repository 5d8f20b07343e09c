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

All of this is told once, for floats, fractions and balls. What differs are chances, which are
numbers of one kind or another, how maps are read, and how moments are moved by them (`Rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.content import content, kept
from fltheory.engines.affine.symbolic.clients import joined
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.history.steps import HistoryStep, Rows
from fltheory.engines.setting import Setting
from fltheory.participation.base import Masks, Participation
from fltheory.participation.process import Law, States, process_of
from fltheory.validation import FloatArray

MOST_HISTORIES = 50_000
_MOST_STATES = 1 << 18
_MOST_NUMBERS = 1 << 22
_LARGEST_COUNT = 2**53
# Histories run alone besides those that hold an extreme count.

T = TypeVar("T")
Numbers: TypeAlias = NDArray[Any]
"""Floats, or fractions and balls as objects."""
RoundKey: TypeAlias = tuple[tuple[str, ...], tuple[int, ...], bytes]


class TooManyHistoriesError(NotAffineError):
    """There is more to keep apart than can be followed."""


class WidenedError(Exception):
    """An entry turned out to be random: begin again with it among the random ones."""

    def __init__(self, random: tuple[str, ...]) -> None:
        self.random = random


def until_read(run: Callable[[tuple[str, ...]], T]) -> T:
    """Return what a function makes of the names of random entries, once all of them are known."""
    random: tuple[str, ...] = ("x",)
    while True:
        try:
            return run(random)
        except WidenedError as widened:
            random = widened.random


@dataclass(frozen=True, eq=False)
class Histories:
    """The possible histories before a round, one row each.

    Attributes
    ----------
    place : array of int, (P,)
        State of the chain of participants, 0 where rounds are independent.
    known : mapping of str to array (P, ...)
        The algorithm's counts, and whatever else is a number once the history is given.
    random : tuple of str
        The entries of the state that are random given the history, ``"x"`` first.
    moments : array, (P, n + 1, n + 1), or a list of FLINT's matrices
        ``E[(s, 1)(s, 1)' 1{history}]`` of those entries; in floats in units of the rounds' own.
    """

    place: Rows
    known: Mapping[str, FloatArray]
    random: tuple[str, ...]
    moments: Any

    @property
    def weights(self) -> FloatArray:
        """(P,) probability of each history."""
        return np.asarray(self.moments[:, -1, -1])


@dataclass(frozen=True, eq=False)
class Image:
    """What a round turns the continued histories into, one row each.

    Participants who do the same may have one row together: ``ways`` then says of which history
    each is, (Q,), and how probable it is, (Q,).
    """

    random: tuple[str, ...]
    known: Mapping[str, FloatArray]
    maps: Any
    noises: Any
    errors: FloatArray
    ways: tuple[Rows, Numbers] | None = None


@dataclass(frozen=True, eq=False)
class Continuation:
    """Which histories are continued (Q,), with whom (Q, N), in which branch, and how probably."""

    rows: Rows
    masks: Masks
    branches: tuple[str, ...]
    drawn: Rows
    chances: Numbers


class Ways:
    """Who may take part next, given where a chain is, and where it may go: many states at once.

    Parameters
    ----------
    participation : Participation
    law : Law
        In floats, or in fractions.
    number : callable
        What a chance is in the run's numbers.
    most : int
        How many histories there may be.
    """

    def __init__(
        self,
        participation: Participation,
        law: Law,
        number: Callable[[Any], Any] = float,
        most: int = MOST_HISTORIES,
    ) -> None:
        self._participation, self._most = participation, most

        def columns(pairs: Sequence[tuple[Any, Any]]) -> tuple[Numbers, NDArray[Any]]:
            chances, ways = zip(*pairs, strict=True)
            return np.array([number(chance) for chance in chances]), np.array(ways)

        def turned(pairs: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
            return [(chance, state) for state, chance in pairs]

        self._who = cache(lambda state: columns(law.who(state)))
        self._following = cache(lambda state: columns(turned(law.following(state))))
        chances, self.first = columns(turned(law.first))
        self.first_chances = chances

    @classmethod
    def of(cls, participation: Participation) -> Ways:
        """Return how a process goes on, in floats: independent rounds have one state.

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
            outcomes: Any = tuple(process.outcomes())
            return cls(participation, Law(lambda state: outcomes))
        states = process.states()
        first: Any = [(int(i), states.initial[i]) for i in np.flatnonzero(states.initial > 0)]
        return cls(participation, Law.of_states(states.masks, first, _transitions(states)))

    def who(self, place: Rows) -> tuple[Rows, Masks, Numbers]:
        """Return which of some states (P,) go on (Q,), with whom (Q, N), and how probably (Q,)."""
        return self._fanned(place, self._who)

    def onward(self, place: Rows) -> tuple[Rows, Rows, Numbers]:
        """Return which of some states (Q,) go on (T,), to which (T,), and how probably (T,)."""
        return self._fanned(place, self._following)

    def _fanned(
        self, place: Rows, each: Callable[[int], tuple[Numbers, NDArray[Any]]]
    ) -> tuple[Rows, NDArray[Any], Numbers]:
        if len(place) == 1:
            chances, ways = each(int(place[0]))
            return np.zeros(len(chances), np.intp), ways, chances
        states, which = np.unique(place, return_inverse=True)
        parts, total = [], 0
        for state in states.tolist():
            parts.append(each(state))
            total += len(parts[-1][0])
            if total > self._most:
                raise TooManyHistoriesError(_too_many(self._participation, self._most))
        lengths = np.array([len(chances) for chances, _ in parts])
        begins, own = (np.cumsum(lengths) - lengths)[which], lengths[which]
        if own.sum() > self._most:
            raise TooManyHistoriesError(_too_many(self._participation, self._most))
        chances, ways = (np.concatenate(column) for column in zip(*parts, strict=True))
        rows = np.repeat(np.arange(len(place)), own)
        at = np.arange(len(rows)) + (begins - np.cumsum(own) + own)[rows]
        return rows, ways[at], chances[at]


class PathWays(Ways):
    """Given paths of participants (P, rounds, N), each of weight one: a state a round of a path.

    Parameters
    ----------
    masks : array of bool, (P, rounds, N)
    """

    def __init__(self, masks: Masks) -> None:
        self._masks, self._length = masks, masks.shape[1] + 1
        self.first = np.arange(len(masks)) * self._length
        self.first_chances = np.ones(len(masks))

    def who(self, place: Rows) -> tuple[Rows, Masks, Numbers]:
        """Return everybody's one set."""
        return np.arange(len(place)), self._masks[divmod(place, self._length)], np.ones(len(place))

    def onward(self, place: Rows) -> tuple[Rows, Rows, Numbers]:
        """Return the paths' next rounds."""
        return np.arange(len(place)), place + 1, np.ones(len(place))


def _transitions(states: States) -> Callable[[int], Any]:
    """Return a function from a state to those that can follow it, with their probabilities."""
    unit = np.zeros(len(states.masks))

    def following(state: int) -> Any:
        unit[state] = 1.0
        reached = states.forward(unit)
        unit[state] = 0.0
        return [(int(j), reached[j]) for j in np.flatnonzero(reached > 0)]

    return following


def _too_many(participation: Any, most: int = MOST_HISTORIES) -> str:
    return (
        f"participation must have at most {most} histories to follow them all, got "
        f"{participation!r}: give the number of paths to draw, or use engines.monte_carlo"
    )


def ranges_of(
    state: Mapping[str, Any], largest: int = _LARGEST_COUNT
) -> dict[str, tuple[int, int]]:
    """Return within what each entry is the number that it would be without limits, if it has any.

    Beyond, whole numbers wrap around, and floats do not tell one from the next.
    """
    found = {}
    for name, array in state.items():
        # Forms have a type of their own.
        dtype = array.dtype if isinstance(array, np.ndarray) else np.dtype(object)
        if dtype.kind in ("i", "u"):
            limits = np.iinfo(dtype)
            found[name] = max(int(limits.min), -largest), min(int(limits.max), largest)
        elif dtype.kind == "f" and dtype.itemsize < 8:
            most = 2 ** (np.finfo(dtype).nmant + 1)
            found[name] = -most, most
    return found


def check_ranges(ranges: Mapping[str, tuple[int, int]], known: Mapping[str, Any]) -> None:
    """Raise NotAffineError if something known is not within its range."""
    for name, (least, most) in ranges.items():
        if name in known and not all(least <= one <= most for one in _ends(known[name])):
            raise NotAffineError(
                f"the state's {name!r} must stay between {least} and {most} for exact moments, "
                "because its type cannot hold others: use engines.monte_carlo"
            )


def _ends(array: Any) -> tuple[Any, ...]:
    return (array.min(), array.max()) if array.size else ()


class Rounds:
    """How a setting's rounds are run on histories, in floats unless a subclass says otherwise.

    Parameters
    ----------
    setting : Setting
    ways : Ways
    """

    most = MOST_HISTORIES

    def __init__(self, setting: Setting, ways: Ways) -> None:
        self.setting, self.ways = setting, ways
        # Asked once: isinstance of a protocol takes 20 microseconds.
        self.scheduled = isinstance(setting.algorithm, Schedule)
        self.ranges: Mapping[str, tuple[int, int]] = {}
        self._algorithms: dict[Any, Algorithm] = {}
        self._held: dict[Any, ComingRound] = {}

    def initial(self, random: tuple[str, ...]) -> tuple[tuple[str, ...], Mapping[str, Any], Any]:
        """Return what is random, what is known (1, ...), and the moments of the one beginning."""
        raise NotImplementedError

    def image(self, coming: ComingRound, index: int) -> Image:
        """Return what a round makes of the continued histories."""
        raise NotImplementedError

    def branches(self, algorithm: Algorithm) -> Sequence[tuple[str, Any]]:
        """Return a round's branches, with their chances."""
        return algorithm.branches

    def chances(self, chances: Numbers) -> Numbers:
        """Return chances in the numbers that moments are in."""
        return chances

    def begun(self, random: tuple[str, ...]) -> tuple[Histories, ComingRound]:
        """Return the histories before the first round, and this."""
        random, known, square = self.initial(random)
        self.ranges = ranges_of(known)
        place, chances = self.ways.first, self.ways.first_chances
        rows = np.zeros(len(place), np.intp)
        moments = self.shares([square] * len(place), chances)
        now = Histories(place, {name: each[rows] for name, each in known.items()}, random, moments)
        return now, self.coming(0, now.place, now.known, now.random)

    def shares(self, moments: Sequence[Any], chances: Numbers) -> Any:
        """Return moments times chances."""
        return np.stack(moments) * chances[:, None, None]

    def algorithm_in(self, index: int) -> Algorithm:
        """Return a round's algorithm, one object for those that are alike."""
        now = in_round(self.setting.algorithm, index + 1)
        # By what they hold: a class may call objects equal that are not.
        return kept(self._algorithms, content(now), lambda: now) if self.scheduled else now

    def coming(
        self, index: int, place: Rows, known: Mapping[str, Any], random: tuple[str, ...]
    ) -> ComingRound:
        """Return a round that begins with some histories: the same where it has come before."""
        algorithm = self.algorithm_in(index)
        key = id(algorithm), random, _table(place, known).tobytes()
        return kept(self._held, key, lambda: ComingRound(self, algorithm, place, known, random))

    def moved(
        self, before: Histories, image: Image, rows: Rows, arrivals: Arrivals
    ) -> tuple[Any, HistoryStep | None]:
        """Return the moments after a round, by new history, and the step that led there."""
        if arrivals.onward.size * image.maps[0].size > _MOST_NUMBERS:
            raise TooManyHistoriesError(_too_many(self.setting.participation))
        step = HistoryStep(
            before.moments,
            rows,
            image.maps,
            image.noises,
            image.errors,
            arrivals.onward,
            arrivals.targets,
            arrivals.chances,
            self.setting.problem.n_clients,
        )
        return step.gathered(step.images(before.moments)), step


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
    chances: Numbers
    targets: Rows
    place: Rows
    known: Mapping[str, FloatArray]


@dataclass(eq=False)
class ComingRound:
    """A round that begins with some histories: all that it depends on, but for their moments.

    What it makes of them and where it leads is worked out once.

    Attributes
    ----------
    rounds : Rounds
    algorithm : Algorithm
        As it is in this round. Rounds that are alike share one object.
    place, known, random
        As of the histories before it.
    """

    rounds: Rounds
    algorithm: Algorithm
    place: Rows
    known: Mapping[str, FloatArray]
    random: tuple[str, ...]
    _image: Image | None = field(default=None, init=False)
    _led: tuple[Any, Arrivals] | None = field(default=None, init=False)

    @cached_property
    def continued(self) -> Continuation:
        """The histories that are continued.

        Raises
        ------
        TooManyHistoriesError
        """
        rows, masks, chance = self.rounds.ways.who(self.place)
        branches = [(name, p) for name, p in self.rounds.branches(self.algorithm) if p > 0]
        names, shares = tuple(name for name, _ in branches), np.array([p for _, p in branches])
        count = len(branches)
        if len(rows) * count > self.rounds.most:
            raise TooManyHistoriesError(
                _too_many(self.rounds.setting.participation, self.rounds.most)
            )
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
        """The key that tells it from rounds of the same algorithm that have other maps."""
        return self.random, self.table.shape, self.table.tobytes()

    def image(self, index: int) -> tuple[Image, Rows]:
        """Return what the round, which is that of an index, makes of them; of which histories.

        Raises
        ------
        WidenedError
            If an entry is random that was taken for known.
        """
        if self._image is None:
            image = self.rounds.image(self, index)
            if image.random != self.random:
                raise WidenedError(image.random)
            check_ranges(self.rounds.ranges, image.known)
            self._image = image
        ways = self._image.ways
        return self._image, self.continued.rows if ways is None else ways[0]

    def leads_to(
        self, known: Mapping[str, FloatArray], ways: tuple[Rows, Numbers] | None = None
    ) -> Arrivals:
        """Return where the histories arrive, given what is known after it of each continued one."""
        if self._led is None or self._led[0] is not known:
            rows, chances = ways or (self.continued.rows, self.continued.chances)
            onward, place, moving = self.rounds.ways.onward(self.place[rows])
            after = {name: array[onward] for name, array in known.items()}
            firsts, targets = distinct(_table(place, after))
            arrivals = Arrivals(
                onward,
                self.rounds.chances(chances[onward] * moving),
                targets,
                place[firsts],
                {name: array[firsts] for name, array in after.items()},
            )
            self._led = known, arrivals
        return self._led[1]

    def taken(self, now: Histories, index: int) -> tuple[Histories, HistoryStep | None]:
        """Return the histories after the round, and the step that led there."""
        image, rows = self.image(index)
        arrivals = self.leads_to(image.known, image.ways)
        moments, step = self.rounds.moved(now, image, rows, arrivals)
        return Histories(arrivals.place, arrivals.known, self.random, moments), step


def follow(
    rounds: Rounds, random: tuple[str, ...]
) -> Iterator[tuple[Histories, HistoryStep | None]]:
    """Yield the histories before the first round and after each, with the step that led there.

    Raises
    ------
    NotAffineError
        If a round is not affine given the history, or there are too many histories.
    WidenedError
        If more is random than was said (`until_read`).
    """
    now, coming = rounds.begun(random)
    yield now, None
    for index in range(rounds.setting.rounds):
        now, step = coming.taken(now, index)
        yield now, step
        if index + 1 < rounds.setting.rounds:
            coming = rounds.coming(index + 1, now.place, now.known, now.random)


def _table(place: Rows, known: Mapping[str, FloatArray]) -> FloatArray:
    """Return all that tells histories apart, a row each."""
    count = len(place)
    parts = [place[:, None].astype(np.float64)]
    parts += [array.reshape(count, -1) for array in known.values()]
    return np.concatenate(parts, axis=1)


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
