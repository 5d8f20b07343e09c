"""Exact moments in fractions or in balls, with every rounding accounted for.

This is the recursion of `histories` on the algorithm's own round. The setting's numbers are read as
the decimals in which they were written. Balls that are multiplied repeatedly grow by wrapping,
because a rotated box is enclosed in a larger box. This costs some bits per round, so the run is
repeated with more bits until every number is known to a relative accuracy of 1e-12. If all rounds
are alike, their values are computed from a few powers of one matrix (baby steps and giant steps).
The time then grows as the square root of the number of rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from flint import arb, arb_mat, ctx, fmpq_mat
from numpy.typing import NDArray

from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.content import content, kept, runs_users_code
from fltheory.decimals import as_fraction
from fltheory.engines.affine.numbers import (
    RATIONAL,
    Arithmetic,
    Balls,
    Entries,
    ExactNumber,
    InexactRoundError,
    entries,
    identity_of,
    with_parameters,
)
from fltheory.engines.affine.symbolic.clients import ClientNumbers, read_round
from fltheory.engines.affine.symbolic.forms import AffineArray, NotAffineError, Space
from fltheory.engines.enclosure.exact_setting import exact_setting
from fltheory.engines.guard import guard_affine, guard_in_fractions, refused, telling
from fltheory.engines.history.histories import (
    Arrivals,
    ComingRound,
    Histories,
    Image,
    Numbers,
    Rounds,
    TooManyHistoriesError,
    Ways,
    WidenedError,
    check_ranges,
    ranges_of,
)
from fltheory.engines.history.steps import Rows
from fltheory.engines.observables import Observable
from fltheory.engines.setting import Setting, without_idle_projection
from fltheory.engines.trajectory import FIELDS, OVERFLOW, Trajectory
from fltheory.exact_or_float import solve
from fltheory.participation.base import Participation, counted
from fltheory.participation.process import process_of
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

# Precisions in ``_BITS`` are tried in turn until results are known to this relative radius, which
# is twice as many digits as any verdict prints. For most runs, the first precision is enough.
RELATIVE_RADIUS = 1e-12
_BITS = (128, 320, 1024, 4096)
_LARGEST_POWERED = 160
_FEWEST_POWERED = 2
_MOST_HISTORIES = 5_000
_MOST_CONTINUED = 1 << 22
_MOST_SETS = 1 << 16
_READ_TOGETHER = 256
_MOST_CLOSED = 64
_NO_ERRORS = np.zeros((0, 4))
# T^(2^20): a map that contracts by less than about 1e-6 per round is not below one by then.
_MOST_SQUARINGS = 20

T = TypeVar("T")
_Key: TypeAlias = tuple[int, int]
"""A history's key: the state of the chain, and the number that identifies its counts in this
run."""
_COUNTED = "counted"


class NotEnclosedError(NotAffineError):
    """The numbers of a setting or of a round cannot be computed in fractions or balls."""


class Work:
    """The cost of a run and its limit, counted rather than timed, so that machines agree.

    A unit is about a microsecond on an idle core of 2024. Reading the map of a round costs two
    units for each combination of participant set, client and pair of entries of the state. Applying
    the map to moments of size n costs ``10 + n^3/32`` units, and ``2 + n^2/16`` more for each state
    of the participation chain that may follow; beyond 128 bits, the terms with powers of n are in
    proportion to the number of bits.

    Parameters
    ----------
    limit : float
        Largest cost, in units; infinite by default.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self._limit = limit
        self._spent = 0.0

    def spend(self, units: float) -> None:
        """Add units to the cost so far.

        Raises
        ------
        NotEnclosedError
            If the cost exceeds the limit.
        """
        self._spent += units
        self.foresee(0.0)

    def foresee(self, units: float) -> None:
        """Raise an error if ``units`` still to come would exceed the limit, without counting them.

        Raises
        ------
        NotEnclosedError
            If they would exceed the limit.
        """
        if self._spent + units > self._limit:
            raise NotEnclosedError(f"enclosing the run costs more than {self._limit:.3g} units")

    def read(self, sets: int, clients: int, width: int) -> None:
        """Add the cost of reading a round's maps."""
        self.spend(2.0 * sets * clients * (width + 1) ** 2)

    @staticmethod
    def of_map(size: int, following: int, bits: int) -> float:
        """Return the cost of applying a map to moments and passing the image on to states."""
        entries = size**3 / 32 + following * size**2 / 16
        return 10 + 2 * following + entries * max(1.0, bits / 128)


@dataclass(frozen=True, eq=False)
class _Together:
    """A map to one next history, where moments M with weight w become ``chance (T M T' + w N)``."""

    map: Any
    noise: Any
    chance: Any
    counted: int


@dataclass(frozen=True, eq=False)
class _Set:
    """A round with one participant set: ``slope s + offset + noise``, and the key of its counts."""

    slope: Entries
    offset: Entries
    noise: Entries
    counted: int
    chance: Any


@dataclass(frozen=True, eq=False)
class _Twin:
    """An algorithm in the run's numbers and in fractions, with the maps of its rounds read so far.

    ``together`` holds these maps by state of the chain and key of the counts.
    """

    own: Algorithm
    exact: Algorithm
    fractional: Algorithm
    together: dict[_Key, Sequence[_Together]] = field(default_factory=dict)


class ExactRun(Rounds):
    """A setting's recursion in one arithmetic.

    Counts are fractions, which are slow to compare, so each combination of counts is numbered.

    Parameters
    ----------
    setting : Setting
    arithmetic : Rational or Balls
        Arithmetic of the moments. Maps are read in it too, or in fractions if the algorithm counts,
        so that equal counts are recognised as equal.
    observe : sequence of Observable
    work : Work, optional
        The cost counter, with its limit.
    """

    most = _MOST_CONTINUED

    def __init__(
        self,
        setting: Setting,
        arithmetic: Arithmetic,
        observe: Sequence[Observable] = (),
        work: Work | None = None,
    ) -> None:
        self._work = Work() if work is None else work
        problem, participation = setting.problem, process_of(setting.participation)
        if not isinstance(problem, QuadraticProblem):
            raise NotEnclosedError(
                f"problem must be a QuadraticProblem to be enclosed, got {type(problem).__name__}"
            )
        if participation.n_states is None:
            raise NotEnclosedError(
                "participation must give its distribution in exact fractions, got "
                f"{participation!r}"
            )
        count = participation.n_outcomes if participation.independent else participation.n_states
        if count > _MOST_SETS and participation.period is None:
            raise NotEnclosedError(
                f"participation must have at most {_MOST_SETS} outcomes or states for a run to be "
                f"enclosed, got {counted(count)}: use arithmetic='float64'"
            )
        setting = without_idle_projection(setting, problem, exact_setting)
        guard_affine(setting)
        guard_in_fractions(setting)
        self._users = runs_users_code(setting.algorithm)
        self._problem = problem
        self._arithmetic = arithmetic
        self._law = participation.law()
        self._observe = observe
        super().__init__(setting, Ways(participation, self._law, RATIONAL.entry, self.most))
        self._read_with(arithmetic)

    def _read_with(self, reading: Arithmetic, random: tuple[str, ...] = ("x",)) -> None:
        self._reading = reading
        self._random = random
        self._numbers = ClientNumbers(self._problem, reading)
        self._algorithm = with_parameters(self.setting.algorithm, reading)
        self._fractional = with_parameters(self.setting.algorithm, RATIONAL)
        self._twins: dict[int, _Twin] = {}
        self._counts: list[Mapping[str, Entries]] = []
        self._number_of: dict[Any, int] = {}
        self._held.clear()
        self._held_forms: dict[int, Any] = {}
        self.__dict__.pop("x_star", None)

    @cached_property
    def x_star(self) -> Entries:
        """(d,) the minimiser of F."""
        return np.asarray(solve(self._numbers.mean_hessian, self._numbers.pull))

    def values(self) -> Entries:
        """Return every quantity, in the order of FIELDS, at the start and after each round."""
        found, powers = self._until_read(self._run)
        return found if powers is None else np.concatenate([found, powers.balls()])

    def floats(self) -> tuple[FloatArray, FloatArray] | None:
        """Return floats near the values with error bounds, or None if these are not known.

        Sums over many rounds are computed in floats where their rounding bounds are small enough.
        Elsewhere they are computed in balls, for instance where an observable changes sign.
        """
        found, powers = self._until_read(self._run)
        parts = [_as_floats(found)]
        if powers is not None:
            parts.append(powers.sharpened())
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        middles, errors = (np.concatenate(each) for each in zip(*known, strict=True))
        return middles, errors

    def _until_read(self, compute: Callable[[], T]) -> T:
        """Compute, and start again if an entry turns out to be random or counts need fractions."""
        while True:
            try:
                return compute()
            except WidenedError as widened:
                self._read_with(self._reading, widened.random)
            except TooManyHistoriesError as error:
                raise NotEnclosedError(str(error)) from error
            except (_CountingError, InexactRoundError):
                if self._reading is RATIONAL:
                    raise
                # Counts and their comparisons require fractions: balls cannot show that two numbers
                # are equal.
                self._read_with(RATIONAL, self._random)

    def _run(self) -> tuple[Entries, _Powers | None]:
        """Return the values computed round by round, and the remaining ones, if any, as powers."""
        now, coming = self.begun(self._random)
        rounds, found = self.setting.rounds, list[list[Any]]()
        alike_from = self._alike_from
        for index in range(rounds):
            if index == self._alike_from:
                powers = self._powered(now, coming, index)
                if powers is not None:
                    return _table(found, self._n_values), powers
            found.append(self._read_off(now))
            before, was = coming, len(now.place)
            now, _ = coming.taken(now, index)
            if index + 1 == rounds:
                break
            coming = self.coming(index + 1, now.place, now.known, now.random)
            if alike_from is not None and index >= alike_from and _same(before, coming):
                alike_from = None
                # All remaining rounds have the same histories, and their total cost may exceed the
                # limit.
                self._work.foresee(self._cost_of(coming, index + 1) * (rounds - index - 1))
            elif len(now.place) > was:
                # The number of histories seldom falls again after it has grown.
                more = len(now.place) / was * (rounds - index - 1)
                self._work.foresee(more * self._cost_of(before, index))
        return _table([*found, self._read_off(now)], self._n_values), None

    @property
    def _n_values(self) -> int:
        return len(FIELDS) + len(self._observe)

    @cached_property
    def _alike_from(self) -> int | None:
        """Index, from 0, of the first of the rounds that are all alike, which is 0, 1 or None."""
        if not self.scheduled:
            return 0
        rounds = self.setting.rounds
        if rounds < 3:
            return None
        second = content(in_round(self.setting.algorithm, 2))
        later = (in_round(self.setting.algorithm, index + 1) for index in range(2, rounds))
        return 1 if all(content(each) == second for each in later) else None

    def initial(self, random: tuple[str, ...]) -> tuple[tuple[str, ...], Mapping[str, Any], Any]:
        """Return the single initial history; an entry that copies the model counts as random.

        If it were treated as a count, each path would be a separate history when there is no noise.
        """
        dim = self._problem.dim
        x0 = entries(self._reading, self.setting.x0)
        space = Space(self._reading, dim)
        identity = entries(self._reading, np.eye(dim, dtype=np.int64))
        x = AffineArray(space, np.concatenate([x0[:, None], identity], axis=1)[None])
        state = in_round(self._algorithm, 1).init(x, self._problem.n_clients)
        self._count_ranges = ranges_of(state, 2**63)
        start = {name: space.forms(array) for name, array in state.items()}
        copies = sorted(name for name, array in start.items() if not array.is_constant)
        self._random = (*random, *(name for name in copies if name not in random))
        self._shapes = {name: start[name].shape[1:] for name in self._random}
        flat = space.namespace.concat([start[n].reshape(1, -1) for n in self._random], axis=1)
        vector = np.append(flat.constant[0] - self._origin(flat.shape[1]), self._one)
        counts = {n: array.constant for n, array in start.items() if n not in self._random}
        column = _matrix(self._arithmetic, vector[:, None])
        known = {_COUNTED: np.array([[self._counted(counts)]])}
        return self._random, known, column * column.transpose()

    def chances(self, chances: Numbers) -> Numbers:
        """Return fractions in the run's arithmetic."""
        return np.array([self._number(p) for p in chances.tolist()])

    def shares(self, moments: Sequence[Any], chances: Numbers) -> list[Any]:
        """Return moments multiplied by probabilities."""
        return [each * p for each, p in zip(moments, self.chances(chances), strict=True)]

    def _counted(self, counts: Mapping[str, Entries]) -> int:
        """Return the key of a combination of counts; different combinations have different keys."""
        key = tuple((name, *map(identity_of, counts[name].flat)) for name in sorted(counts))
        if key not in self._number_of:
            check_ranges(self._count_ranges, counts)
            self._number_of[key] = len(self._counts)
            self._counts.append(counts)
        return self._number_of[key]

    @property
    def _one(self) -> Any:
        return self._reading.entry(1)

    def _number(self, value: Any) -> Any:
        return self._arithmetic.entry(value)

    def _origin(self, width: int) -> Entries:
        rest = np.full(width - self._problem.dim, self._reading.entry(0))
        return np.concatenate([self.x_star, rest])

    def moved(
        self, before: Histories, image: Image, rows: Rows, arrivals: Arrivals
    ) -> tuple[list[Any], None]:
        """Return the moments after a round, by new history, with None for histories not reached."""
        if len(arrivals.place) > _MOST_HISTORIES:
            raise NotEnclosedError(
                f"at most {_MOST_HISTORIES} histories can be enclosed, got {len(arrivals.place)}"
            )
        there = [before.moments[row] for row in rows.tolist()]
        onward, n_products = arrivals.onward.tolist(), len(arrivals.onward)
        if None in before.moments:
            n_products = sum(there[place] is not None for place in onward)
        self._work.spend(self._cost(len(there) - there.count(None), n_products))
        last = image.maps[0].nrows() - 1
        images = [
            None if each is None else map_ * each * map_.transpose() + noise * each[last, last]
            for each, map_, noise in zip(there, image.maps, image.noises, strict=True)
        ]
        after: list[Any] = [None] * len(arrivals.place)
        targets, chances = arrivals.targets.tolist(), arrivals.chances.tolist()
        for place, target, chance in zip(onward, targets, chances, strict=True):
            if images[place] is not None:
                share = images[place] * chance
                after[target] = share if after[target] is None else after[target] + share
        return after, None

    def _cost_of(self, coming: ComingRound, index: int) -> float:
        """Return the cost of advancing the moments of all histories by one round."""
        image, _ = coming.image(index)
        return self._cost(len(image.maps), len(coming.leads_to(image.known, image.ways).onward))

    def _cost(self, maps: int, ahead: int) -> float:
        """Return the cost of applying some maps and adding up their results."""
        size, bits = 1 + self._width, getattr(self._arithmetic, "bits", 512)
        alone, followed = (self._work.of_map(size, count, bits) for count in (0, 1))
        return maps * alone + ahead * (followed - alone)

    @property
    def _width(self) -> int:
        return sum(math.prod(shape) for shape in self._shapes.values())

    def algorithm_in(self, index: int) -> Algorithm:
        """Return a round's algorithm, and keep its copies in the run's numbers."""
        algorithm = super().algorithm_in(index)

        def twin() -> _Twin:
            exact, fractional = (in_round(each, index + 1) for each in both)
            return _Twin(algorithm, exact, fractional)

        both = self._algorithm, self._fractional
        # The algorithm itself is also kept, so that no other object can get its address.
        kept(self._twins, id(algorithm), twin)
        return algorithm

    def branches(self, algorithm: Algorithm) -> Sequence[tuple[str, Any]]:
        """Return the branches with their probabilities, in fractions that sum to one."""
        named = tuple(self._twins[id(algorithm)].fractional.branches)
        chances = [as_fraction(getattr(p, "value", p)) for _, p in named]
        return [
            (name, RATIONAL.entry(p / sum(chances)))
            for (name, _), p in zip(named, chances, strict=True)
        ]

    def image(self, coming: ComingRound, index: int) -> Image:
        """Return the images of histories; those not yet known are read together, in batches."""
        twin = self._twins[id(coming.algorithm)]
        keys = _keys(coming)
        new = np.array([key not in twin.together for key in keys])
        masks = coming.continued.rows
        for some in _batches(np.flatnonzero(new[masks]), masks):
            self._read(coming, twin, some)
        each = [twin.together[key] for key in keys]
        flat = [one for parts in each for one in parts]
        return Image(
            coming.random,
            {_COUNTED: np.array([[one.counted] for one in flat])},
            [one.map for one in flat],
            [one.noise for one in flat],
            _NO_ERRORS,
            (
                np.repeat(np.arange(len(each)), [len(parts) for parts in each]),
                np.array([one.chance for one in flat]),
            ),
        )

    def _read(self, coming: ComingRound, twin: _Twin, places: Rows) -> None:
        """Read and store the images of the histories continued at the given places."""
        continued, keys, sets = coming.continued, _keys(coming), dict[_Key, list[_Set]]()
        for branch, name in enumerate(continued.branches):
            chosen = places[continued.drawn[places] == branch]
            own = [keys[row] for row in continued.rows[chosen].tolist()]
            counts = [self._counts[number] for _, number in own]
            self._work.read(len(own), self._problem.n_clients, self._width)
            known = {n: np.concatenate([each[n] for each in counts]) for n in counts[0]}

            def read(
                some: slice, name: str = name, chosen: Rows = chosen, known: Any = known
            ) -> Any:
                return read_round(
                    twin.exact,
                    name,
                    self._numbers,
                    continued.masks[chosen[some]],
                    {n: array[some] for n, array in known.items()},
                    self._shapes,
                    self._origin(self._width),
                )

            made = read(slice(None))
            if made.widened:
                raise WidenedError((*self._random, *made.widened))
            if counts[0] and self._reading is not RATIONAL:
                raise _CountingError
            if self._users and counts[0] and len(own) > 1:
                _check_alone(made, read)
            chances = continued.chances[chosen].tolist()
            maps = zip(own, made.slopes, made.offsets, made.noises, chances, strict=True)
            for place, (key, slope, offset, noise, chance) in enumerate(maps):
                after = {n: array[place : place + 1] for n, array in made.known.items()}
                one = _Set(slope, offset, noise, self._counted(after), chance)
                sets.setdefault(key, []).append(one)
        for key, each in sets.items():
            twin.together[key] = list(self._together(each))

    def _together(self, sets: Sequence[_Set]) -> Iterator[_Together]:
        """Yield a history's images, merging participant sets with the same slope and counts."""
        groups: dict[tuple[Any, ...], list[_Set]] = {}
        for one in sets:
            slope = tuple(map(identity_of, one.slope.flat)) if len(sets) > 1 else ()
            groups.setdefault((one.counted, slope), []).append(one)
        for members in groups.values():
            weight = sum((one.chance for one in members[1:]), members[0].chance)
            yield _Together(*self._joined(members, weight), weight, members[0].counted)

    def _joined(self, members: Sequence[_Set], weight: Any) -> tuple[Any, Any]:
        """Return one map for sets with one slope; differences of offsets count as noise."""
        slope, mean, spread = members[0].slope, members[0].offset, members[0].noise
        size = len(slope)
        zero = self._reading.entry(0)
        if len(members) > 1:
            shares = [self._reading.entry(image.chance / weight) for image in members]
            mean = sum(p * image.offset for p, image in zip(shares, members, strict=True))
            spread = np.full((size, size), zero)
            for p, image in zip(shares, members, strict=True):
                apart = image.offset - mean
                spread += p * (image.noise + apart[:, None] * apart[None, :])
        noise = np.full((size + 1, size + 1), zero)
        noise[:size, :size] = spread
        whole = np.full((size + 1, size + 1), zero)
        whole[:size, :size], whole[:size, size] = slope, mean
        whole[size, size] = self._one
        return _matrix(self._arithmetic, whole), _matrix(self._arithmetic, noise)

    def _forms(self, place: int) -> Any:
        """Return the quantities' quadratic forms in (s, 1) in a chain state, one per matrix row."""
        dim, size = self._problem.dim, 1 + self._width
        hessian = self._numbers.mean_hessian
        zero = self._reading.entry(0)
        identity = entries(self._reading, np.eye(dim, dtype=np.int64))
        made = []
        for block in (identity, hessian @ hessian, hessian / self._reading.entry(2)):
            form = np.full((size, size), zero)
            form[:dim, :dim] = block
            made.append(form.ravel())
        for item in self._observe:
            own = item.exact_form(self._numbers, self.x_star, self._law.who(place))
            form = np.full((size, size), zero)
            places = np.append(np.arange(dim), size - 1)
            form[np.ix_(places, places)] = own
            made.append(form.ravel())
        return _matrix(self._arithmetic, np.stack(made))

    def _read_off(self, now: Histories) -> list[Any]:
        totals = None
        for place, moments in zip(now.place.tolist(), now.moments, strict=True):
            column = self._kind(moments.nrows() ** 2, 1, moments.entries())
            own = self._forms_of_place(place) * column
            totals = own if totals is None else totals + own
        return [] if totals is None else totals.entries()

    def _forms_of_place(self, place: int) -> Any:
        key = place if self._observe else 0
        if key not in self._held_forms:
            self._held_forms[key] = self._forms(place)
        return self._held_forms[key]

    def _powered(self, now: Histories, coming: ComingRound, index: int) -> _Powers | None:
        """Return the rounds from ``index`` on by matrix powers, or None if that does not pay."""
        rounds = self.setting.rounds - index
        if self._arithmetic is RATIONAL:
            return None
        closed = self._closed(coming, index)
        if closed is None:
            return None
        n = 1 + self._width
        size = len(closed) * n * (n + 1) // 2
        if size > _LARGEST_POWERED or rounds < _FEWEST_POWERED * size:
            return None
        return _Powers.of(
            self._transition(closed, n, index),
            self._start_vector(closed, dict(zip(_keys(now), now.moments, strict=True)), n),
            self._functional(closed, n),
            rounds,
        )

    def _closed(self, coming: ComingRound, index: int) -> list[_Key] | None:
        """Return all histories that can occur, or None if there are many or their counts change."""
        found = dict.fromkeys(_keys(coming))
        while True:
            image, rows = coming.image(index)
            arrivals = coming.leads_to(image.known, image.ways)
            before = coming.known[_COUNTED][rows[arrivals.onward], 0]
            change = before != arrivals.known[_COUNTED][arrivals.targets, 0]
            fresh = [key not in found for key in _keys(arrivals)]
            if (change & np.array(fresh)[arrivals.targets]).any():
                return None
            if not any(fresh):
                return list(found)
            found.update(dict.fromkeys(_keys(arrivals)))
            if len(found) > _MOST_CLOSED:
                return None
            known = {_COUNTED: arrivals.known[_COUNTED][fresh]}
            coming = self.coming(index, arrivals.place[fresh], known, coming.random)

    def _transition(self, closed: Sequence[_Key], n: int, index: int) -> Any:
        """Return the matrix of a round, acting on the upper triangles of all histories' moments."""
        pairs = _upper(n)
        empty = _matrix(self._arithmetic, np.full((n, n), self._reading.entry(0)))
        place, counted = np.array(closed).T
        coming = self.coming(index, place, {_COUNTED: counted[:, None]}, self._random)
        columns = []
        for row in range(len(closed)):
            for a, b in pairs:
                unit = empty * 1
                unit[a, b] = unit[b, a] = self._number(1)
                alone = [unit if other == row else None for other in range(len(closed))]
                after, _ = coming.taken(Histories(place, coming.known, self._random, alone), index)
                reached = dict(zip(_keys(after), after.moments, strict=True))
                images = [reached[key] if reached.get(key) is not None else empty for key in closed]
                columns.append([image[i, j] for image in images for i, j in pairs])
        flat = [item for line in zip(*columns, strict=True) for item in line]
        return self._kind(len(columns), len(columns), flat)

    @property
    def _kind(self) -> Any:
        return fmpq_mat if self._arithmetic is RATIONAL else arb_mat

    def limits(self) -> list[Any] | None:
        """Return the quantities' stationary values, in the order of FIELDS.

        They solve ``v = T v`` with probabilities that sum to one. The result is None if rounds
        differ, histories do not recur, or it is not certain that the start is forgotten. The caller
        must make sure that participation has a limit distribution.
        """
        return None if self.scheduled else self._until_read(self._limits)

    def _limits(self) -> list[Any] | None:
        _, coming = self.begun(self._random)
        closed = self._closed(coming, 0)
        if closed is None:
            return None
        n = 1 + self._width
        transition = self._transition(closed, n, 0)
        if not _forgets(transition, len(closed), n):
            return None
        system, size = transition * -1, transition.nrows()
        for place in range(size):
            system[place, place] = system[place, place] + 1
        # One balance equation of the probabilities follows from the others; their sum replaces it.
        weights = range(size // len(closed) - 1, size, size // len(closed))
        for column in range(size):
            system[weights[0], column] = self._number(int(column in weights))
        right = self._kind(size, 1, [self._number(int(i == weights[0])) for i in range(size)])
        solution = self._functional(closed, n) * system.solve(right)
        return [solution[k, 0] for k in range(solution.nrows())]

    def _start_vector(self, closed: Sequence[_Key], rows: Mapping[_Key, Any], n: int) -> Any:
        zero = self._number(0)
        pairs = [(row, place) for row in closed for place in _upper(n)]
        return arb_mat([[rows[row][place] if row in rows else zero] for row, place in pairs])

    def _functional(self, closed: Sequence[_Key], n: int) -> Any:
        """Return the quadratic forms as rows that act on the upper triangles."""
        lines: list[list[Any]] = [[] for _ in range(self._n_values)]
        for state, _ in closed:
            forms = self._forms_of_place(state)
            for place, line in enumerate(lines):
                line += [
                    forms[place, a * n + b] + (forms[place, b * n + a] if b > a else 0)
                    for a, b in _upper(n)
                ]
        return self._kind(len(lines), len(lines[0]), [item for line in lines for item in line])


def _check_alone(made: Any, read: Callable[[slice], Any]) -> None:
    """Raise RoundRefusedError if a history's image depends on the others in its batch.

    The guard follows only a few paths, and other histories may reach states that are not on them.
    """
    counts = [array.reshape(len(array), -1) for array in made.known.values()]
    for row in telling(np.concatenate(counts, axis=1).astype(float)).tolist():
        alone = read(slice(row, row + 1))
        pairs = [(made.slopes, alone.slopes), (made.offsets, alone.offsets)]
        pairs += [(array, alone.known[name]) for name, array in made.known.items()]
        if not all(np.array_equal(many[row], one[0]) for many, one in pairs):
            raise refused("a round gives a replica another image in a batch than alone")


class _CountingError(Exception):
    """The algorithm counts, so its numbers must be fractions, which can be compared."""


def _keys(histories: Histories | ComingRound | Arrivals) -> list[_Key]:
    """Return each history's state of the chain and the key of its counts."""
    return list(
        zip(histories.place.tolist(), histories.known[_COUNTED][:, 0].tolist(), strict=True)
    )


def _same(one: ComingRound, other: ComingRound) -> bool:
    """Whether two rounds begin with the same histories."""
    return one is other or set(_keys(one)) == set(_keys(other))


def _batches(places: Rows, rows: Rows) -> Iterator[Rows]:
    """Yield batches of about `_READ_TOGETHER` places, without splitting a history."""
    while places.size:
        own = rows[places]
        end = int(np.searchsorted(own, own[min(_READ_TOGETHER, len(own)) - 1], side="right"))
        yield places[:end]
        places = places[end:]


def _upper(n: int) -> list[tuple[int, int]]:
    """Return the index pairs of the upper triangle of an n by n matrix, with the diagonal."""
    return [(a, b) for a in range(n) for b in range(a, n)]


def _forgets(transition: Any, rows: int, n: int) -> bool:
    """Return whether second moments without noise provably vanish: some power has norm below one.

    This is computed in balls even for a matrix of fractions, whose digits would double with every
    squaring.
    """
    pairs = _upper(n)
    own = [place for place, (_, b) in enumerate(pairs) if b < n - 1]
    places = [row * len(pairs) + place for row in range(rows) for place in own]
    size = len(places)
    power = arb_mat(size, size, [arb(transition[i, j]) for i in places for j in places])
    for _ in range(_MOST_SQUARINGS):
        sums = [sum((abs(power[i, j]) for j in range(size)), arb(0)) for i in range(size)]
        if all(each < 1 for each in sums):
            return True
        power = power * power
    return False


@dataclass(frozen=True, eq=False)
class _Powers:
    """``F T^r v`` for r = 0, ..., R, stored as the factors ``F T^j`` and ``T^(k i) v``.

    Attributes
    ----------
    small : arb_mat, (k count, size)
        ``F T^j`` for j = 0, ..., k - 1, each with one row per quantity.
    large : arb_mat, (size, steps)
        ``T^(k i) v`` for i = 0, ..., R // k.
    count, rounds : int
        Number of quantities, and R.
    """

    small: Any
    large: Any
    count: int
    rounds: int

    @classmethod
    def of(cls, transition: Any, start: Any, functional: Any, rounds: int) -> _Powers:
        """Return the powers with k small steps on the left and about R / k large ones on the right.

        k is about the square root of R. It is a power of two, which takes the fewest matrix
        products.
        """
        squarings = math.isqrt(rounds).bit_length() - 1
        stride, lines, large = 1 << squarings, functional, transition
        for _ in range(squarings):
            large = large * large
        left = []
        for _ in range(stride):
            left += lines.entries()
            lines = lines * transition
        vector, right = start, []
        for _ in range(rounds // stride + 1):
            right.append(vector.entries())
            vector = large * vector
        count, size = functional.nrows(), transition.nrows()
        columns = arb_mat([list(line) for line in zip(*right, strict=True)])
        return cls(arb_mat(stride * count, size, left), columns, count, rounds)

    @property
    def stride(self) -> int:
        """k, the number of rounds in a large step."""
        return int(self.small.nrows()) // self.count

    def balls(self) -> Entries:
        """Return the values, (R + 1, count)."""
        return self._by_round(_entries_of(self.small * self.large))

    def sharpened(self) -> tuple[FloatArray, FloatArray] | None:
        """Return floats near the values with error bounds, or None if these are not known.

        Values are summed in floats, except in large steps in which some sum is not known sharply
        enough.
        """
        sums = self.floats()
        if sums is None:
            return _as_floats(self.balls())
        blurred = np.flatnonzero(~_sharp(*sums).all(axis=1))
        steps = np.unique(blurred // self.stride)
        if steps.size:
            chosen = arb_mat(_entries_of(self.large)[:, steps].tolist())
            known = _as_floats(self._in_order(_entries_of(self.small * chosen)))
            if known is None:
                return None
            rounds = (steps[:, None] * self.stride + np.arange(self.stride)).ravel()
            within = rounds <= self.rounds
            for every, some in zip(sums, known, strict=True):
                every[rounds[within]] = some[within]
        return sums

    def floats(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the values summed in floats, with error bounds, or None near an overflow.

        In any order, the error of a sum of n products is at most ``n u / (1 - n u)`` times the sum
        of their absolute values, plus underflow (Higham, 2002, section 3.1).
        """
        left, right = (_as_floats(_entries_of(part)) for part in (self.small, self.large))
        if left is None or right is None:
            return None
        (small, small_error), (large, large_error) = left, right
        size = np.abs(large)
        rounding = 2.0**-53 * (size.shape[0] + 2)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            sums = small @ large
            errors = np.abs(small) @ (large_error + rounding * size)
            errors += small_error @ (size + large_error)
        errors = errors * (1 + 1e-9) + size.shape[0] * float(np.finfo(np.float64).tiny)
        if not (np.abs(sums) + errors < OVERFLOW / 2).all():
            return None
        return self._by_round(sums), self._by_round(errors)

    def _by_round(self, products: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(self._in_order(products)[: self.rounds + 1])

    def _in_order(self, products: NDArray[Any]) -> NDArray[Any]:
        """Rearrange products of small and large steps, (k count, steps), in order of rounds."""
        by_step = products.reshape(-1, self.count, products.shape[1]).transpose(2, 0, 1)
        return by_step.reshape(-1, self.count)


def _matrix(arithmetic: Arithmetic, values: Entries) -> Any:
    """Return a FLINT matrix of an array's entries, converted to an arithmetic."""
    rows, columns = values.shape
    flat = [arithmetic.entry(item) for item in values.flat]
    if arithmetic is RATIONAL:
        return fmpq_mat(rows, columns, flat)
    return arb_mat(rows, columns, flat)


def _table(rows: Sequence[Sequence[Any]], columns: int) -> Entries:
    made = np.empty((len(rows), columns), dtype=object)
    for place, row in enumerate(rows):
        made[place] = row
    return made


def _entries_of(matrix: Any) -> Entries:
    made = np.empty(matrix.nrows() * matrix.ncols(), dtype=object)
    made[:] = matrix.entries()
    return made.reshape(matrix.nrows(), matrix.ncols())


def enclosed_trajectory(
    setting: Setting, observe: Sequence[Observable] = (), work: Work | None = None
) -> Trajectory:
    """Return expected errors that are proved to be within ``rounding_error`` of the truth.

    Infinite values stand for errors proved to exceed half of OVERFLOW.
    """
    names = (*FIELDS, *(item.name for item in observe))
    for bits in _BITS:
        arithmetic = Balls(bits)
        with arithmetic.in_use():
            found = ExactRun(setting, arithmetic, observe, work).floats()
        if found is not None and _is_sharp(*found):
            break
    if found is None:
        raise NotEnclosedError(f"balls of {_BITS[-1]} bits are too coarse for the run")
    middles, errors = found
    broken = np.abs(middles) >= OVERFLOW
    middles[broken] = errors[broken] = np.inf
    rounds = broken.any(axis=1)
    diverged_at = int(np.argmax(rounds)) if rounds.any() else None
    return Trajectory.of(
        dict(zip(names, np.ascontiguousarray(middles.T), strict=True)),
        rounding_error=dict(zip(names, np.ascontiguousarray(errors.T), strict=True)),
        diverged_at=diverged_at,
        enclosed=True,
    )


def enclosed_limits(
    algorithm: Algorithm, problem: QuadraticProblem, participation: Participation
) -> Mapping[str, Any]:
    """Return the stationary values of a trajectory's fields, at the precision in use.

    Raises
    ------
    NotEnclosedError
        If rounds differ, histories do not recur, or it is not certain that the start is forgotten.
    """
    given = Setting(algorithm, problem, participation, 1, np.zeros(problem.dim))
    found = ExactRun(given, Balls(ctx.prec)).limits()
    if found is None:
        raise NotEnclosedError(f"{algorithm!r} must have a limit that can be enclosed")
    return {name: ExactNumber(value) for name, value in zip(FIELDS, found, strict=True)}


def rational_trajectory(
    setting: Setting, observe: Sequence[Observable] = (), work: Work | None = None
) -> Trajectory:
    """Return expected errors as arrays of fractions, whose digits grow with every round."""
    values = ExactRun(setting, RATIONAL, observe, work).values()
    names = (*FIELDS, *(item.name for item in observe))
    fractions: dict[str, Any] = {}
    for place, name in enumerate(names):
        fractions[name] = np.empty(len(values), dtype=object)
        for index, row in enumerate(values):
            fractions[name][index] = Fraction(int(row[place].p), int(row[place].q))
    zeros = {name: np.zeros(len(values)) for name in names}
    return Trajectory.of(fractions, rounding_error=zeros, enclosed=True)


def _as_floats(values: Entries) -> tuple[FloatArray, FloatArray] | None:
    """Return midpoints of balls with error bounds, or None if a ball is infinite or too wide."""
    flat = values.ravel().tolist()
    if not all(map(arb.is_finite, flat)):
        return None
    middles = np.fromiter(map(float, flat), dtype=np.float64, count=len(flat))
    largest = np.flatnonzero(np.abs(middles) >= OVERFLOW)
    if not all(flat[place].abs_lower() > OVERFLOW / 2 for place in largest):
        return None
    middles = middles.reshape(values.shape)
    radii = np.fromiter(map(float, map(arb.rad, flat)), dtype=np.float64, count=len(flat))
    radii = radii.reshape(values.shape)
    tiny = float(np.finfo(np.float64).tiny)
    # This is half a unit in the last place for the float, and a little for the rounding of the
    # radius.
    return middles, radii * (1 + 1e-6) + np.abs(middles) * 2.0**-53 * (1 + 1e-6) + tiny


def _is_sharp(middles: FloatArray, errors: FloatArray) -> bool:
    return bool(_sharp(middles, errors).all())


def _sharp(middles: FloatArray, errors: FloatArray) -> NDArray[np.bool_]:
    """Return which numbers are known to `RELATIVE_RADIUS`; tiny ones need less accuracy."""
    finite = np.isfinite(middles)
    size = np.abs(np.where(finite, middles, 0.0))
    floor = 1e-30 * size.max(axis=0, initial=0.0) + 1e-290
    return np.asarray(np.where(finite, errors, 0.0) <= RELATIVE_RADIUS * size + floor)
