"""Moments conditional on who took part and what the algorithm counted.

Algorithms that count (rounds, absences, appearances) are not affine in their whole state. But once
the counts are given, a round is affine in the rest of the state. So the moments of the model and of
remembered updates are kept separately for each *history*. Histories with the same counts and the
same state of the participation chain have the same future, so they are merged, and their weighted
moments are added. An entry is random, and not a count, if the algorithm's own round, run on affine
forms, makes it depend on a symbol.

Let ``w`` be the probability of a history, and let ``m`` and ``M`` be the first two moments of the
random entries s on it (measured from x*). The three are written as one matrix ``[[M, m], [m',
w]]``, the second moment of (s, 1). An affine round is then a congruence by ``[[A, b], [0, 1]]``
plus the noise.

The same code serves floats, fractions and balls. A subclass of `Rounds` sets the number type of the
probabilities, how maps are read, and how they are applied to moments.
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

T = TypeVar("T")
Numbers: TypeAlias = NDArray[Any]
"""Floats, or fractions and balls as objects."""
RoundKey: TypeAlias = tuple[tuple[str, ...], tuple[int, ...], bytes]


class TooManyHistoriesError(NotAffineError):
    """There are too many histories to follow."""


class WidenedError(Exception):
    """An entry turned out to be random; start again with its name added to the random entries."""

    def __init__(self, random: tuple[str, ...]) -> None:
        self.random = random


def until_read(run: Callable[[tuple[str, ...]], T]) -> T:
    """Call a function with the names of random entries, repeatedly until all of them are known."""
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
        State of the chain of participants, or 0 if rounds are independent.
    known : mapping of str to array (P, ...)
        The algorithm's counts, and everything else that is a number once the history is given.
    random : tuple of str
        The entries of the state that are random given the history, with ``"x"`` first.
    moments : array, (P, n + 1, n + 1), or a list of FLINT's matrices
        ``E[(s, 1)(s, 1)' 1{history}]`` of those entries, measured in the units of `Rounds` if in
        floats.
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
    """The result of a round for each continued history, one row each.

    Participant sets with the same effect may share a row. Then ``ways`` contains the history of
    each row, (Q,), and its probability, (Q,).
    """

    random: tuple[str, ...]
    known: Mapping[str, FloatArray]
    maps: Any
    noises: Any
    errors: FloatArray
    ways: tuple[Rows, Numbers] | None = None


@dataclass(frozen=True, eq=False)
class Continuation:
    """Continued histories (Q,), with participants (Q, N), branches and probabilities."""

    rows: Rows
    masks: Masks
    branches: tuple[str, ...]
    drawn: Rows
    chances: Numbers


class Ways:
    """Possible participants and next states, given the states of a chain, for many states at once.

    Parameters
    ----------
    participation : Participation
    law : Law
        The law of participation, in floats or in fractions.
    number : callable
        Converts a probability to the run's numbers.
    most : int
        Largest number of histories.
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
        """Return the ways of a process, in floats; independent rounds have one state.

        Raises
        ------
        NotAffineError
            If the process has too many sets or states, or neither states nor independent rounds.
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
        """Return row indices (Q,) into states (P,), participants (Q, N) and probabilities (Q,)."""
        return self._fanned(place, self._who)

    def onward(self, place: Rows) -> tuple[Rows, Rows, Numbers]:
        """Return row indices (T,) into states (Q,), next states (T,) and probabilities (T,)."""
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
    """Given paths of participants, each with weight one; a state is one round of one path.

    Parameters
    ----------
    masks : array of bool, (P, rounds, N)
    """

    def __init__(self, masks: Masks) -> None:
        self._masks, self._length = masks, masks.shape[1] + 1
        self.first = np.arange(len(masks)) * self._length
        self.first_chances = np.ones(len(masks))

    def who(self, place: Rows) -> tuple[Rows, Masks, Numbers]:
        """Return the single participant set of each state."""
        return np.arange(len(place)), self._masks[divmod(place, self._length)], np.ones(len(place))

    def onward(self, place: Rows) -> tuple[Rows, Rows, Numbers]:
        """Return the next round of each path."""
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
    """Return the range in which each entry's type represents integers exactly, if limited.

    Beyond that range, integers wrap around, and floats cannot represent every integer.
    """
    found = {}
    for name, array in state.items():
        # Forms have a type of their own, without such a range.
        dtype = array.dtype if isinstance(array, np.ndarray) else np.dtype(object)
        if dtype.kind in ("i", "u"):
            limits = np.iinfo(dtype)
            found[name] = max(int(limits.min), -largest), min(int(limits.max), largest)
        elif dtype.kind == "f" and dtype.itemsize < 8:
            most = 2 ** (np.finfo(dtype).nmant + 1)
            found[name] = -most, most
    return found


def check_ranges(ranges: Mapping[str, tuple[int, int]], known: Mapping[str, Any]) -> None:
    """Raise NotAffineError if a known entry is outside its range."""
    for name, (least, most) in ranges.items():
        if name in known and not all(least <= one <= most for one in _ends(known[name])):
            raise NotAffineError(
                f"the state's {name!r} must stay between {least} and {most} for exact moments, "
                "because its type cannot hold others: use engines.monte_carlo"
            )


def _ends(array: Any) -> tuple[Any, ...]:
    return (array.min(), array.max()) if array.size else ()


class Rounds:
    """The rounds of a setting, run on histories, in floats unless a subclass changes that.

    Parameters
    ----------
    setting : Setting
    ways : Ways
    """

    most = MOST_HISTORIES

    def __init__(self, setting: Setting, ways: Ways) -> None:
        self.setting, self.ways = setting, ways
        # This is computed once, because isinstance of a protocol takes 20 microseconds.
        self.scheduled = isinstance(setting.algorithm, Schedule)
        self.ranges: Mapping[str, tuple[int, int]] = {}
        self._algorithms: dict[Any, Algorithm] = {}
        self._held: dict[Any, ComingRound] = {}

    def initial(self, random: tuple[str, ...]) -> tuple[tuple[str, ...], Mapping[str, Any], Any]:
        """Return the random names, known entries (1, ...) and moments of the initial history."""
        raise NotImplementedError

    def image(self, coming: ComingRound, index: int) -> Image:
        """Return the images of the continued histories under a round."""
        raise NotImplementedError

    def branches(self, algorithm: Algorithm) -> Sequence[tuple[str, Any]]:
        """Return a round's branches with their probabilities."""
        return algorithm.branches

    def chances(self, chances: Numbers) -> Numbers:
        """Return probabilities converted to the numbers of the moments."""
        return chances

    def begun(self, random: tuple[str, ...]) -> tuple[Histories, ComingRound]:
        """Return the histories before the first round, and the first round."""
        random, known, square = self.initial(random)
        self.ranges = ranges_of(known)
        place, chances = self.ways.first, self.ways.first_chances
        rows = np.zeros(len(place), np.intp)
        moments = self.shares([square] * len(place), chances)
        now = Histories(place, {name: each[rows] for name, each in known.items()}, random, moments)
        return now, self.coming(0, now.place, now.known, now.random)

    def shares(self, moments: Sequence[Any], chances: Numbers) -> Any:
        """Return moments multiplied by probabilities."""
        return np.stack(moments) * chances[:, None, None]

    def algorithm_in(self, index: int) -> Algorithm:
        """Return a round's algorithm; rounds with equal algorithms share one object."""
        now = in_round(self.setting.algorithm, index + 1)
        # They are compared by content, because a class may define equality differently.
        return kept(self._algorithms, content(now), lambda: now) if self.scheduled else now

    def coming(
        self, index: int, place: Rows, known: Mapping[str, Any], random: tuple[str, ...]
    ) -> ComingRound:
        """Return the round that begins with some histories, as the same object if it recurs."""
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
    """The new histories that continued histories lead to.

    Attributes
    ----------
    onward : array of int, (T,)
        Row indices into the continued histories.
    chances : array, (T,)
    targets : array of int, (T,)
        The new history into which each continued history is merged.
    place, known
        As in `Histories`, for the new histories.
    """

    onward: Rows
    chances: Numbers
    targets: Rows
    place: Rows
    known: Mapping[str, FloatArray]


@dataclass(eq=False)
class ComingRound:
    """A round that begins with some histories, without their moments.

    Its image and the histories it leads to are computed once.

    Attributes
    ----------
    rounds : Rounds
    algorithm : Algorithm
        The algorithm of this round. Rounds with equal algorithms share one object.
    place, known, random
        As in `Histories`, before the round.
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
        """The continued histories, with participants and branches.

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
        """Everything except the algorithm on which maps depend, one row per continued history.

        These are the participants, the branch and the counts.
        """
        columns = [self.continued.masks, self.continued.drawn[:, None]]
        if self.known:
            columns.append(joined(self.known, sorted(self.known))[self.continued.rows])
        return np.concatenate(columns, axis=1, dtype=np.float64)

    @cached_property
    def key(self) -> RoundKey:
        """The key that identifies the round's maps among rounds of the same algorithm."""
        return self.random, self.table.shape, self.table.tobytes()

    def image(self, index: int) -> tuple[Image, Rows]:
        """Return the round's images, and the row of the history that each image belongs to.

        Raises
        ------
        WidenedError
            If an entry assumed to be known turns out to be random.
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
        """Return the new histories, given the known entries after the round."""
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
    """Yield the histories before the first round and after each round, with the step taken.

    Raises
    ------
    NotAffineError
        If a round is not affine given the history, or there are too many histories.
    WidenedError
        If an entry not in ``random`` turns out to be random (see `until_read`).
    """
    now, coming = rounds.begun(random)
    yield now, None
    for index in range(rounds.setting.rounds):
        now, step = coming.taken(now, index)
        yield now, step
        if index + 1 < rounds.setting.rounds:
            coming = rounds.coming(index + 1, now.place, now.known, now.random)


def _table(place: Rows, known: Mapping[str, FloatArray]) -> FloatArray:
    """Return everything that distinguishes histories, one row each."""
    count = len(place)
    parts = [place[:, None].astype(np.float64)]
    parts += [array.reshape(count, -1) for array in known.values()]
    return np.concatenate(parts, axis=1)


def distinct(table: FloatArray) -> tuple[Rows, Rows]:
    """Return the index of each distinct row's first copy, and which of these each row equals.

    Rows are compared by their bytes, which takes a tenth of the time of sorting them.
    """
    if len(table) == 1:
        return np.zeros(1, np.intp), np.zeros(1, np.intp)
    # Adding zero turns -0.0, whose bytes differ, into 0.0.
    rows = np.ascontiguousarray(table + 0.0)
    known: dict[bytes, int] = {}
    which = np.array(
        [
            known.setdefault(row, len(known))
            for row in rows.view(f"V{rows.strides[0]}").ravel().tolist()
        ],
        dtype=np.intp,
    )
    # New rows are numbered in order, so the running maximum increases at each first copy.
    return np.flatnonzero(np.diff(np.maximum.accumulate(which), prepend=-1)), which
