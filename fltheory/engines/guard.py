"""A guard that runs real rounds: each must be a pure function and match the map read from it.

Engines read a round's map from the algorithm's own code and use it for all rounds alike. This is
correct if a round is a *pure function* of state, clients, participants and branch, is the same for
each replica, and does the same on numbers as on forms. The guard checks this on real rounds of the
setting itself: consecutive ones at the beginning, and some up to the last. They run on drawn paths
of participants, from states of the run and from states far away on both sides of each.

The findings are final. A round whose only side effect is to advance a random generator is random,
so it is seeded and sampled. A round with any other side effect is refused, because no run of it
means anything; the message says what the round changed. A round that is pure but does not match the
map read from it has no exact moments.
"""

from __future__ import annotations

import os
import random
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import prod
from threading import RLock
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fltheory.algorithms.contract import Algorithm, Schedule, State, in_round
from fltheory.content import (
    Generator,
    attributes_of,
    cached_by_content,
    class_attributes_of,
    content,
    functions_of,
    globals_read,
    is_users,
    kept,
    kept_by,
    put_back,
    reached_from,
    runs_users_code,
    seed_again,
    state_of,
)
from fltheory.engines.affine.numbers import (
    FLOAT64,
    RATIONAL,
    Arithmetic,
    InexactRoundError,
    entries,
    with_parameters,
)
from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.affine.shaken import (
    NO_MORE,
    Losses,
    chance_error,
    losses,
    shaken_clients,
)
from fltheory.engines.affine.symbolic.clients import ClientNumbers, FormClients
from fltheory.engines.affine.symbolic.forms import (
    AffineArray,
    NotAffineError,
    Space,
    nothing_refused,
)
from fltheory.engines.clients.analytic_clients import (
    NoiseSource,
    ReplicaIndices,
    Silence,
    analytic_clients,
)
from fltheory.engines.setting import Setting, in_float64
from fltheory.participation.base import Masks
from fltheory.participation.process import process_of
from fltheory.problems.base import Problem
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray, shown

# Number of participant paths followed, and number of rows in a round, which include both far ends.
_PATHS = 3
_ROWS = 9
# Number of replicas that are also run alone, in the first check and in all rounds that are not
# affine.
_ALONE = 6
_ALL_ALONE = 192
_FEW_ALONE = 3
# By how much a number must leave the range seen so far, as a share of that range.
_STEP = 1 / 16
# Most rounds of a user's run that are all run, and most clients whose sets are counted.
_WHOLE_RUN = 4096
_MOST_CLIENTS = 1024
# Numbers of rounds run: the first ones, the later ones, and the total if all rounds are alike.
_CONSECUTIVE = 16
_SPREAD = 8
_FEWEST = 4
_FAR = 2.0**8
_NEAR = 2.0**-20
_FARTHEST = 1e100
# Operations in a round besides sums over clients and coordinates, such as local steps and weights.
_OPERATIONS = 4096
# Sums may be taken in a different order in a batch than alone.
_ALIKE = 1e-9
# Clients times model dimension; beyond this, a single round costs as much as the recursion.
_LARGEST = 200_000
_NUMBERS_AT_ONCE = 1 << 21
# The number of replicas that sampled runs process together.
_BATCH = 512
_SEED = 0x6775617264
_FEW_CLIENTS = 3
_FEW_NUMBERS = 1 << 15
_FACTORS = np.array([0.0, 1.0, -1.0, 2.0])
_NO_DATA = ModuleType | type | BuiltinFunctionType | np.ufunc


_GENERATORS = RLock()
# The guard's rounds may leave a refused algorithm in a state that no longer changes.
_REFUSED: dict[Hashable, str] = {}


class RoundRefusedError(ValueError):
    """A round is not a pure function of state, clients, participants and branch."""


class RandomRoundError(NotAffineError):
    """A round draws from its own generator, so it has no map but can be sampled."""


@dataclass(frozen=True)
class Findings:
    """The findings from real rounds of a setting, none of which was refused.

    Attributes
    ----------
    draws_from : str
        The generator from which a round draws in its own code, or empty if there is none.
    differs : str
        How a real round deviates from its forms, or empty if none does.
    apart : bool
        Whether replicas of different rounds must be kept in separate batches, because a round uses
        the counts of some replicas for all of them. This is correct as long as all replicas are in
        the same round.
    losses : Losses
        The factors by which the rounds' rounding errors exceed the stated bounds.
    """

    draws_from: str = ""
    differs: str = ""
    apart: bool = False
    losses: Losses = NO_MORE


def guarded(setting: Setting) -> Findings:
    """Return the findings from real rounds of a setting, cached by the setting's content.

    Raises
    ------
    RoundRefusedError
        If a round is not a pure function, or does not return a state.
    """
    told = _REFUSED and _REFUSED.get(content(setting.algorithm, generators=False))
    if told:
        raise RoundRefusedError(told)
    return _guarded(in_float64(setting))


def guard_affine(setting: Setting) -> Findings:
    """Return the findings, checking that a setting's rounds are the affine maps read from them.

    Raises
    ------
    RoundRefusedError
        If a round is not a pure function, or does not return a state.
    NotAffineError
        If a round deviates from the map read from forms. The error is a `RandomRoundError` if the
        round draws random numbers itself.
    """
    found = guard_certain(setting)
    if found.differs:
        raise NotAffineError(found.differs)
    return found


def guard_in_fractions(setting: Setting) -> None:
    """Check that the first round is the same in fractions and in floats, up to rounding.

    Raises
    ------
    NotAffineError
        If it is not the same, for instance because a number is truncated: 100 times 0.29 is 29 in
        fractions, but just below 29 in floats.
    """
    told = _in_fractions(setting)
    if told:
        raise NotAffineError(told)


def guard_certain(setting: Setting) -> Findings:
    """Return the findings, checking that a round is a deterministic function of its arguments.

    Raises
    ------
    RoundRefusedError
        If a round is not a pure function, or does not return a state.
    RandomRoundError
        If a round draws random numbers itself.
    """
    found = guarded(setting)
    if found.draws_from:
        raise RandomRoundError(
            "the algorithm's round must be a deterministic function of its arguments for exact "
            f"moments, but it draws from {found.draws_from}: use engines.monte_carlo"
        )
    return found


def rounds_now(setting: Setting, *_: Any) -> Hashable:
    """Return what a few of a user's rounds give now: cached results are valid while it stays so.

    Rounds may read what no content shows, such as files, the environment or context variables.
    """
    if not runs_users_code(setting.algorithm):
        return None
    with seeded(setting.algorithm, np.random.SeedSequence(_SEED)):
        try:
            return tuple(_RealRounds(in_float64(setting)).sample())
        except Exception as error:
            # The engine runs the same rounds, and reports the error.
            return repr(error)


@cached_by_content(64, as_long_as=rounds_now, by_precision=False)
def _guarded(setting: Setting) -> Findings:
    before = content(setting.algorithm, generators=False)
    try:
        return _found(setting)
    except RoundRefusedError as error:
        after, told = content(setting.algorithm, generators=False), str(error)
        if after != before:
            kept(_REFUSED, after, lambda: told, 64)
        raise


def _found(setting: Setting, again: bool = False) -> Findings:
    algorithm = setting.algorithm
    # The seed is one that nobody else uses, so that a round that reseeds a generator is also
    # noticed.
    with seeded(algorithm, np.random.SeedSequence(_SEED)):
        watch = _Watch(algorithm)
        try:
            with no_fresh_seed(algorithm):
                return _watched(setting, watch)
        except RoundRefusedError:
            if again or not watch.only_imported():
                raise
    return _found(setting, again=True)


def _watched(setting: Setting, watch: _Watch) -> Findings:
    algorithm, rounds = setting.algorithm, _RealRounds(setting)
    # Only some rounds are run, but the branches of all rounds are checked, as engines do.
    asked = None
    for index in range(1, 1 + setting.rounds if isinstance(algorithm, Schedule) else 1):
        before, asked = asked, in_round(algorithm, index)
        if asked is not before:
            _check_branches(asked, index)
    told = rounds.unequal()
    differs = "" if told else rounds.differs()
    rounds.see_all()
    draws_from, told = watch.draws_from(), told or rounds.told
    if told and not draws_from:
        raise refused(told)
    return Findings(draws_from, differs, rounds.apart, rounds.losses)


@cached_by_content(64, as_long_as=rounds_now, by_precision=False)
def _in_fractions(setting: Setting) -> str:
    floats = in_float64(setting)
    real, algorithm = _RealRounds(floats), in_round(setting.algorithm, 1)
    assert isinstance(floats.problem, QuadraticProblem)
    forms = _Forms(floats.problem, RATIONAL)
    try:
        for one in real.run(("x",), [1]):
            exact = with_parameters(algorithm, RATIONAL)
            space, image = forms.image(_Round(1, exact, one.now.branch), one.who, one.before, {})
            for name, array in one.after.items():
                made = entries(FLOAT64, space.forms(image[name]).constant)
                expected = np.broadcast_to(made, np.shape(array))
                tolerance = _tolerance(floats.problem)
                _check_misses(1, np.asarray(array)[None], expected[None], 1.0, tolerance)
    except InexactRoundError:
        return ""  # the run itself reports what cannot be computed in fractions
    except NotAffineError as error:
        return f"in fractions {error}"
    return ""


class _Watch:
    """A record of everything a round could change; only random generators may change."""

    def __init__(self, algorithm: Algorithm | Schedule) -> None:
        self._algorithm = algorithm
        self._own, self._generators = self._held()
        self._modules = set(sys.modules)

    def _held(self) -> tuple[dict[str, Hashable], dict[str, Hashable]]:
        own = {n: content(value, generators=False) for n, value in _own(self._algorithm).items()}
        return own, {name: content(one) for name, one in _generators(self._algorithm).items()}

    def draws_from(self) -> str:
        """Return the name of the first generator that has advanced, or an empty string.

        Raises
        ------
        RoundRefusedError
            If anything else has changed.
        """
        own, generators = self._held()
        for name in (*own, *self._own):
            if name not in own or name not in self._own or own[name] != self._own[name]:
                raise refused(f"{name} changed while the rounds ran")
        moved = [name for name, state in generators.items() if self._generators.get(name) != state]
        return moved[0] if moved else ""

    def only_imported(self) -> bool:
        """Return whether modules were imported for the first time, and all else is unchanged."""
        own, _ = self._held()
        unchanged = all(own.get(name) == value for name, value in self._own.items())
        return unchanged and not sys.modules.keys() <= self._modules


# --- what a round may not touch -----------------------------------------------------------------


def _own(algorithm: Algorithm | Schedule) -> dict[str, Any]:
    """Return, by name, everything that a round could change besides its result."""
    held = {f"self.{name}": value for name, value in attributes_of(algorithm).items()}
    for cls in reached_from(algorithm).classes:
        held |= dict(class_attributes_of(cls))
        for function in functions_of(cls):
            held |= _beside(function, set())
    return held


def _beside(function: FunctionType, seen: set[FunctionType]) -> dict[str, Any]:
    """Return, by name, the data that a function keeps or reads in addition to its arguments."""
    seen.add(function)
    name = function.__qualname__
    held = kept_by(function)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    held |= {f"a default of {name}": defaults} if defaults else {}
    held |= {f"the global {key}": value for key, value in globals_read(function).items()}
    data: dict[str, Any] = {}
    for key, value in held.items():
        if not isinstance(value, FunctionType):
            data |= {} if isinstance(value, _NO_DATA) else {key: value}
        elif value not in seen and is_users(value.__module__):
            data |= _beside(value, seen)
    return data


def _generators(algorithm: Algorithm | Schedule) -> dict[str, Generator]:
    """Return, by name, the random generators from which a round may draw in its own code."""
    held: dict[str, Generator] = {
        "NumPy's global generator": np.random.mtrand._rand,
        "Python's global generator": getattr(random, "_inst"),  # noqa: B009
    }
    for name, value in _own(algorithm).items():
        for generator in reached_from(value).generators:
            if all(generator is not known for known in held.values()):
                held[name] = generator
    return held


@contextmanager
def seeded(algorithm: Algorithm | Schedule, seed: np.random.SeedSequence) -> Iterator[None]:
    """Seed an algorithm's own generators, and restore their state afterwards.

    Only one thread does this at a time, because some generators are global. If another thread
    advanced one of them, it would look as if the round had advanced it.
    """
    with _GENERATORS:
        generators = _generators(algorithm).values()
        states = [state_of(one) for one in generators]
        try:
            for generator, child in zip(generators, seed.spawn(len(generators)), strict=True):
                seed_again(generator, child)
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                put_back(generator, state)


@contextmanager
def no_fresh_seed(algorithm: Algorithm | Schedule) -> Iterator[None]:
    """Refuse an algorithm that asked the operating system for randomness, which cannot be seeded.

    The draws may matter so rarely that repeated runs do not differ. So calls are watched with a
    profile function. A profiler written in Python keeps running meanwhile; if one in C is running,
    nothing is watched. NumPy's generators and `secrets` call `os.urandom`; Python's own generators
    do so in C, so their seeding is watched instead.
    """
    asked: list[str] = []
    before: Any = sys.getprofile()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and argument is os.urandom:
            asked.append("os.urandom")
        elif event == "call" and frame.f_code is random.Random.seed.__code__:
            asked.extend(["random.Random"] if frame.f_locals["a"] is None else [])
        if before is not None:
            before(frame, event, argument)

    if not runs_users_code(algorithm) or not (before is None or callable(before)):
        yield
        return
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)
    if asked:
        raise refused(
            f"it draws randomness from the operating system ({asked[0]}): draw from a generator "
            "that the algorithm keeps, which is then seeded"
        )


@contextmanager
def _unwarned() -> Iterator[None]:
    """Hide warnings, but leave NumPy's error handling as the user has set it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- real rounds --------------------------------------------------------------------------------


class SharedDraws:
    """Normal numbers shared by groups of four replicas, multiplied by 0, 1, -1 and 2.

    Parameters
    ----------
    seed : int
    replicas : int
    """

    def __init__(self, seed: int, replicas: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._factors = np.tile(_FACTORS, replicas // _FACTORS.size)

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return the numbers of each row, for its replica."""
        group = replica_of_row // _FACTORS.size
        order = np.argsort(replica_of_row, kind="stable")
        firsts = np.searchsorted(replica_of_row[order], replica_of_row[order], side="left")
        rank = np.empty(replica_of_row.size, dtype=np.intp)
        rank[order] = np.arange(replica_of_row.size) - firsts
        shape = int(group.max(initial=0)) + 1, int(rank.max(initial=0)) + 1, width
        numbers = self._rng.standard_normal(shape)
        return np.asarray(self._factors[replica_of_row][:, None] * numbers[group, rank])


@dataclass(frozen=True, eq=False)
class _Round:
    """A round to run, given by its index, algorithm and branch."""

    index: int
    algorithm: Algorithm
    branch: str


@dataclass(frozen=True, eq=False)
class _Seen:
    """A real round without noise: the states before and after it, near and far away.

    Arrays are (rows, ...), except ``beyond``, which has twice as many rows: the states after a
    round from ``before + way``, then those from ``before - way``.
    """

    now: _Round
    who: Masks
    before: State
    after: State
    way: State
    beyond: State


class _RealRounds:
    """Real rounds of a setting, run to compare them with the same rounds on forms.

    Parameters
    ----------
    setting : Setting
        A setting in floats.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._problem = problem = setting.problem
        self.told, self.apart, self.losses = "", False, NO_MORE
        self._users = runs_users_code(setting.algorithm)
        self._size = problem.n_clients * problem.dim
        self._noisy = problem.sigma > 0 or problem.server_sigma > 0
        self._scale = max(1.0, float(np.abs(setting.x0).max(initial=0.0)))
        if isinstance(problem, QuadraticProblem) and self._size <= _LARGEST:
            self._scale = max(self._scale, float(np.abs(problem.optima).max()))
        self._clients = analytic_clients(problem, Silence())
        self._random: tuple[str, ...] = ("x",)

    def _start(self, rows: int) -> State:
        x0 = np.tile(self._setting.x0, (rows, 1))
        given = x0.copy()
        algorithm = _algorithm_in(self._setting, 1)
        state = algorithm.init(x0, self._problem.n_clients)
        if not np.array_equal(x0, given):
            raise refused("init changed, in place, the model that it was given")
        _check_state("init", state, rows, None)
        return state

    def _round(
        self,
        now: _Round,
        state: State,
        who: Masks,
        noise: NoiseSource | None = None,
        errors: AbstractContextManager[None] | None = None,
    ) -> State:
        """Run a round, and check that it leaves its arguments unchanged."""
        given, index = {name: np.array(array) for name, array in state.items()}, now.index
        present = who.copy()
        clients = self._clients if noise is None else self._clients.with_noise(noise)
        try:
            with errors or np.errstate(all="ignore"):
                after = now.algorithm.round(state, clients, who, now.branch)
        except ValueError:
            raise
        except Exception as error:
            if errors and isinstance(error, FloatingPointError):
                # Only because NumPy is set to raise, which it is not in engines.
                return self._round(now, state, who, noise)
            raise refused(f"round {index} raises {type(error).__name__}: {error}") from error
        for name, before in given.items():
            if name not in state or not _same(before, np.asarray(state[name])):
                raise refused(f"round {index} changed its argument state[{name!r}] in place")
        if not np.array_equal(who, present):
            raise refused(f"round {index} changed its argument who in place")
        _check_state(f"round {index}", after, len(who), given)
        return after

    def unequal(self) -> str:
        """Return how a round differs between runs or between replicas, or "".

        Replicas with different states and participants are run together and alone.
        """
        if self._size > _LARGEST:
            return ""
        rng = np.random.default_rng(1)
        # The package's own algorithms are run in such batches by tests.
        whole = self._users and self._size * _BATCH <= _NUMBERS_AT_ONCE
        many = _BATCH if whole else _ALONE
        drawn = next(self._setting.participation.masks(rng, many)).copy()
        # This does what `np.unique` of the rows would do, which takes as long as all rounds
        # together.
        sets = sorted({mask.tobytes() for mask in drawn})[:_ALONE]
        few = np.frombuffer(b"".join(sets), dtype=drawn.dtype).reshape(len(sets), -1)
        who = np.concatenate([few, self._sets, drawn])[: max(many, len(few) + len(self._sets))]
        start = self._start(len(who))
        for name, array in self._start(1).items():
            if not _same(np.broadcast_to(array, start[name].shape), start[name]):
                return f"init gives a replica another {name!r} in a batch than alone"
        moved = start["x"] + self._scale * rng.standard_normal(start["x"].shape)
        state = {**start, "x": moved}
        last = self._setting.rounds if isinstance(self._setting.algorithm, Schedule) else 1
        for index in sorted({1, last}):
            algorithm = _algorithm_in(self._setting, index)
            for branch in _likely(algorithm):
                now = _Round(index, algorithm, branch)
                first = self._round(now, state, who)
                told = self._run_again(now, state, who, first)
                told = told or self._beside_others(now, state, who, first, range(len(few)))
                if told:
                    return told
        return ""

    def see_all(self) -> None:
        """Run all rounds of a user's run once: they may change or draw something only later.

        Rounds without counts and without a schedule are all the same function.
        """
        state, rounds = self._start(_PATHS), self._setting.rounds
        alike = set(state) <= set(self._random) and self._one_after_another
        if not self._users or alike or rounds * self._size > _LARGEST or rounds > _WHOLE_RUN:
            return
        rng = np.random.default_rng(2)
        masks = self._setting.participation.masks(rng, _PATHS)
        for index, who in zip(range(1, rounds + 1), masks, strict=False):
            algorithm = in_round(self._setting.algorithm, index)
            branches = _likely(algorithm)
            made = [self._round(_Round(index, algorithm, b), state, who.copy()) for b in branches]
            state = made[int(rng.integers(len(made)))]
            if not _finite(state):
                return

    @cached_property
    def _sets(self) -> Masks:
        """All participant sets that engines may enumerate, if the round is a user's.

        Use of other replicas' sets shows only in a batch with all sets, rare ones too.
        """
        process = process_of(self._setting.participation)
        none = np.zeros((0, self._problem.n_clients), dtype=bool)
        if not self._users or self._problem.n_clients > _MOST_CLIENTS:
            return none
        count = process.n_outcomes if process.independent else process.n_states
        if count is None or count * self._size > _NUMBERS_AT_ONCE:
            return none
        if process.independent:
            return np.array([mask for _, mask in process.outcomes()])
        who = process.law().who
        return np.array([mask for state in range(count) for _, mask in who(state)])

    def _on_all_sets(self, random: tuple[str, ...]) -> list[_Seen]:
        """Run the first round, and the last if it may differ, for all participant sets."""
        some, rng = self._sets, np.random.default_rng(3)
        last = self._setting.rounds if isinstance(self._setting.algorithm, Schedule) else 1
        return [
            self._seen(_Round(index, algorithm, branch), some, self._start(len(some)), random, rng)
            for index in sorted({1, last} if len(some) else {})
            for algorithm in [_algorithm_in(self._setting, index)]
            for branch in _likely(algorithm)
        ]

    def sample(self) -> Iterator[bytes]:
        """Yield the results of a few rounds, under the error handling that is set outside."""
        state, rounds = self._start(1), self._setting.rounds
        masks = self._setting.participation.masks(np.random.default_rng(0), 1)
        indices = {min(index, rounds) for index in (1, 2, 3, (3 + rounds) // 2, rounds)}
        for index, who in zip(sorted(indices), masks, strict=False):
            algorithm = in_round(self._setting.algorithm, index)
            for branch in _likely(algorithm):
                now = _Round(index, algorithm, branch)
                after = self._round(now, state, who.copy(), errors=_unwarned())
                yield from (sha256(np.asarray(each).tobytes()).digest() for each in after.values())
            state = after

    def check_batch(self, index: int, state: State, who: Masks, rows: Iterable[int]) -> None:
        """Raise RoundRefusedError if some replicas become something else in a batch than alone."""
        algorithm = in_round(self._setting.algorithm, index)
        for branch in _likely(algorithm):
            now = _Round(index, algorithm, branch)
            together = self._round(now, state, who)
            told = self._beside_others(now, state, who, together, rows)
            if told:
                raise refused(told)

    def _run_again(self, now: _Round, state: State, who: Masks, first: State) -> str:
        """Return how a second run of a round, or a run with entries reordered, differs, or ""."""
        backwards = {name: state[name] for name in reversed(list(state))}
        ways: list[tuple[State, str, AbstractContextManager[None] | None]] = [
            (state, "when it is run again", None),
            (backwards, "with the state's entries in another order", None),
        ]
        if self._users:
            # Engines silence NumPy's warnings, on which a round may depend.
            ways.append((state, "where NumPy may warn, or raise", _unwarned()))
        for again, how, errors in ways:
            other = _unlike(first, self._round(now, again, who, errors=errors))
            if other:
                return f"round {now.index} gives a different {other!r} {how}"
        return ""

    def _beside_others(
        self, now: _Round, state: State, who: Masks, together: State, rows: Iterable[int]
    ) -> str:
        """Return how one of some replicas of a batch differs from a run of it alone, or ""."""

        def alone(row: slice) -> State:
            return self._round(now, {name: array[row] for name, array in state.items()}, who[row])

        other = other_alone(together, rows, alone)
        return other and f"round {now.index} gives a replica {other}"

    def differs(self) -> str:
        """Return how real rounds deviate from their forms, or "" if no deviation is found.

        Clients that are not quadratic have no forms, but the rounds are still run.
        """
        problem = self._problem
        if not isinstance(problem, QuadraticProblem) or self._size > _LARGEST:
            list(self.run(()))
            return ""
        forms = _Forms(problem)
        try:
            random = forms.random_at_start(self._setting)
            while True:
                seen = list[_Seen]()
                widened = self._widened(forms, random, seen)
                if not widened:
                    break
                random = (*random, *widened)
            if not set(seen[0].before) <= set(random):
                self._side_by_side(seen)
            self._random, self.losses = random, self._largest_losses(problem, seen, random)
            return ""
        except NotAffineError as error:
            list(self.run(()))
            return str(error)

    def _widened(
        self, forms: _Forms, random: tuple[str, ...], seen: list[_Seen]
    ) -> tuple[str, ...]:
        """Compare rounds with forms, collect them, and return further entries the model moves."""
        for one in self.run(random):
            seen.append(one)
            widened = forms.check(one, random)
            if widened:
                return widened
        of_sets = (forms.check(one, random) for one in self._on_all_sets(random))
        return next(filter(None, of_sets), ())

    def _largest_losses(
        self, problem: QuadraticProblem, seen: Sequence[_Seen], random: tuple[str, ...]
    ) -> Losses:
        """Return the largest `losses` of the first round, and of later ones that may differ."""
        most, shaken = NO_MORE, shaken_clients(problem)
        scheduled = isinstance(self._setting.algorithm, Schedule)
        alike = set(seen[0].before) <= set(random) and not scheduled
        last = len(seen) - 1
        indices = {seen[place].now.index for place in ((0,) if alike else (0, last // 4, last))}
        for one in [one for one in seen if one.now.index in indices]:
            shapes = {name: np.shape(one.before[name])[1:] for name in random}
            width = sum(map(prod, shapes.values())) + _FEW_CLIENTS * problem.dim
            if self._size * width > _NUMBERS_AT_ONCE:
                continue
            # Each client's noise has its own symbols, so only a few clients are used. Subsets of
            # these are used, because offsets at x* may cancel if all are present.
            drawn, every = one.who[0], np.arange(problem.n_clients)
            few, even = every < _FEW_CLIENTS, every % 2 == 0
            sets = [few, few & even, few & ~even, drawn & (drawn.cumsum() <= _FEW_CLIENTS)]
            who = np.stack(sets)[: max(1, _FEW_NUMBERS // (self._size * width))]
            state = {n: np.repeat(array[:1], len(who), axis=0) for n, array in one.before.items()}
            known = {name: array for name, array in state.items() if name not in random}
            found = losses(self._setting, shaken, one.now.index, one.now.branch, who, known, shapes)
            most = Losses(*np.maximum(most, found).tolist())
        if not self._users:
            # The branch probabilities of the package's own algorithms are rounded only once.
            return most
        visited = {one.now.index for one in (seen if scheduled else seen[:1])}
        errors = [chance_error(self._setting.algorithm, index) for index in visited]
        return most._replace(chance=max(errors))

    def _side_by_side(self, seen: Sequence[_Seen]) -> None:
        """Record whether a replica's result depends on replicas of other counts or rounds."""
        scheduled = isinstance(self._setting.algorithm, Schedule)
        kinds: dict[Hashable, list[_Seen]] = {}
        for one in seen:
            kind = content(one.now.algorithm) if scheduled else ""
            kinds.setdefault((kind, one.now.branch), []).append(one)
        for some in kinds.values():
            last, count = some[-1], len(some[0].who)
            of_last = self._beside_others(last.now, last.before, last.who, last.after, range(count))
            self.told = self.told or of_last
            rows = np.linspace(0, len(some) * count - 1, _ALONE).astype(int)
            state = {n: np.concatenate([one.before[n] for one in some])[rows] for n in last.before}
            who = np.concatenate([one.who for one in some])[rows]
            try:
                together = self._round(last.now, state, who)
                mixed = self._beside_others(last.now, state, who, together, range(len(rows)))
            except ValueError:
                mixed = "refused"
            self.apart = self.apart or bool(mixed)

    def run(self, random: tuple[str, ...], visited: Sequence[int] = ()) -> Iterator[_Seen]:
        """Run rounds from the start on drawn paths of participants, in every branch."""
        rng = np.random.default_rng(0)
        names = set(self._start(1))
        # Without counts and without a schedule, all rounds are the same function.
        alike = names <= set(random) and self._one_after_another
        visited = visited or self._visited(_FEWEST if alike else _CONSECUTIVE + _SPREAD)
        rows = _PATHS if random else max(_PATHS, _ALL_ALONE // len(visited))
        if self._size > _LARGEST:
            rows = 1
        state = self._start(rows)
        masks = self._setting.participation.masks(rng, rows)
        for index, who in zip(visited, masks, strict=False):
            algorithm = _algorithm_in(self._setting, index)
            branches = _likely(algorithm)
            made = [
                self._seen(_Round(index, algorithm, branch), who.copy(), state, random, rng)
                for branch in branches
            ]
            yield from made
            state = self._goes_on(made[int(rng.integers(len(branches)))], random)
            if not _finite(state):
                return

    @cached_property
    def _one_after_another(self) -> bool:
        """Whether the same object runs in all rounds from the second on."""
        schedule, rounds = self._setting.algorithm, self._setting.rounds
        if not isinstance(schedule, Schedule):
            return True
        second = in_round(schedule, min(2, rounds))
        return all(in_round(schedule, index) is second for index in range(3, rounds + 1))

    def _visited(self, most: int) -> list[int]:
        """Return indices of about ``most`` rounds to run: first ones, and some up to the last."""
        rounds = self._setting.rounds
        count = max(_FEWEST, min(most, _NUMBERS_AT_ONCE // (_ROWS * self._size)))
        first = 1 if self._size > _LARGEST else max(count - _SPREAD, _FEWEST - 1)
        later = np.geomspace(first + 1, max(rounds, first + 1), count - first)
        places = {*range(1, first + 1), *(later.astype(int).tolist() if first > 1 else ())}
        if self._users and isinstance(self._setting.algorithm, Schedule):
            # A kind of algorithm may run in a single round.
            kinds = (type(in_round(self._setting.algorithm, r)) for r in range(rounds, 0, -1))
            places |= set(dict(zip(kinds, range(rounds, 0, -1), strict=True)).values())
        return sorted(index for index in places if index <= rounds)

    def _seen(
        self,
        now: _Round,
        who: Masks,
        before: State,
        random: tuple[str, ...],
        rng: np.random.Generator,
    ) -> _Seen:
        after = self._round(now, before, who)
        if not random and len(who) > 1:
            # Runs on numbers are computed in batches, regardless of the round.
            self.told = self.told or self._beside_others(now, before, who, after, range(len(who)))
        way = self._way(before, random, rng)
        beyond: State = {}
        if random:
            both = {
                name: np.concatenate([array + way.get(name, 0), array - way.get(name, 0)])
                for name, array in before.items()
            }
            try:
                beyond = self._round(now, both, np.tile(who, (2, 1)))
            except ValueError as error:
                raise _missed(now.index, f"raises far from the start: {error}") from error
        return _Seen(now, who, before, after, way, beyond)

    def _way(
        self, before: State, random: tuple[str, ...], rng: np.random.Generator
    ) -> dict[str, FloatArray]:
        """Return the displacements from some states to the other ends of their test lines.

        The ends are far away, except for the first of several states. Its line leads to a model
        close to x* with almost empty memory, which would reveal a threshold on small updates.
        """
        sizes = [np.abs(before[name]).max(initial=self._scale) for name in random]
        far = min(_FAR * max(sizes, default=0.0), _FARTHEST)
        way = {name: rng.uniform(-1.0, 1.0, before[name].shape) for name in random}
        for name, array in way.items():
            small = _NEAR * self._scale * array[0]
            array *= far
            if len(array) > 1:
                end = self._problem.x_star if name == "x" else 0.0
                array[0] = end + small - before[name][0]
        return way

    def _goes_on(self, seen: _Seen, random: tuple[str, ...]) -> State:
        """Return the states after a round, with noise if there is any.

        This also checks that the round is affine in its noise: with opposite draws, the state must
        move equally far in the opposite direction.
        """
        if not (self._noisy and random):
            return seen.after
        four = _FACTORS.size
        noise = SharedDraws(seen.now.index, four * len(seen.who))
        before = {name: np.repeat(array, four, axis=0) for name, array in seen.before.items()}
        who = np.repeat(seen.who, four, axis=0)
        after = self._round(seen.now, before, who, noise)
        for name in random:
            made = after[name].reshape(len(seen.who), four, -1)
            still, there, back, twice = (made[:, place] for place in range(four))
            with np.errstate(all="ignore"):
                expected = np.stack([2 * still - there, 2 * there - still])
            found = np.stack([back, twice])
            _check_misses(seen.now.index, found, expected, self._scale, _tolerance(self._problem))
        return {name: array[1::four] for name, array in after.items()}


class SampledTogether:
    """Checks that replicas sampled in one batch become what each does alone.

    A user's round may use the numbers of other replicas where the guard's few paths never lead:
    ``if (absent >= 5).any()``. So some replicas are also run alone whenever a number is smaller or
    larger than any before.

    Parameters
    ----------
    setting : Setting
        With floats.
    """

    def __init__(self, setting: Setting) -> None:
        self._rounds = _RealRounds(setting) if runs_users_code(setting.algorithm) else None
        self._ends: dict[str, tuple[FloatArray, FloatArray]] = {}

    def check(self, index: int, state: State, who: Masks) -> None:
        """Raise RoundRefusedError if a round makes something else of a replica alone."""
        if self._rounds is None or len(who) == 1:
            return
        farthest = [
            row
            for name, array in (*state.items(), ("who", who))
            for row in self._farthest(name, np.real(array).reshape(len(who), -1).astype(float))
        ]
        if farthest:
            turned = np.roll(farthest, index)[: _FEW_ALONE - 1].tolist()
            self._rounds.check_batch(index, state, who, {*turned, index % len(who)})

    def _farthest(self, name: str, numbers: FloatArray) -> list[int]:
        """Return the rows with a number smaller or larger than any before.

        Whole numbers may be counts, and any change matters; other numbers must leave the range by a
        share of it.
        """
        least, most = numbers.min(axis=0), numbers.max(axis=0)
        low, high = self._ends.get(name, (np.inf, -np.inf))
        step = np.where(least == np.rint(least), 0.0, _STEP * np.fmax(high - low, 0.0))
        # A number that all rows share says nothing about other rows.
        lower = np.flatnonzero((least < low - step) & (least < most))
        higher = np.flatnonzero((most > high + step) & (least < most))
        self._ends[name] = np.fmin(low, least), np.fmax(high, most)
        return [
            *numbers[:, lower].argmin(axis=0).tolist(),
            *numbers[:, higher].argmax(axis=0).tolist(),
        ]


class _Forms:
    """The same rounds on forms, each along the line through one state and another far away.

    Parameters
    ----------
    problem : QuadraticProblem
    arithmetic : Arithmetic
    """

    def __init__(self, problem: QuadraticProblem, arithmetic: Arithmetic = FLOAT64) -> None:
        silent = copy(problem)
        object.__setattr__(silent, "sigma", 0.0)
        object.__setattr__(silent, "server_sigma", 0.0)
        self._arithmetic = arithmetic
        self._numbers = ClientNumbers(silent, arithmetic)
        self._tolerance = _tolerance(problem)
        self._scale = max(1.0, float(np.abs(problem.optima).max()))

    def random_at_start(self, setting: Setting) -> tuple[str, ...]:
        """Return the entries that depend on the model in round 1, the model itself first."""
        algorithm = _algorithm_in(setting, 1)
        space = Space(FLOAT64, 1)
        x0 = setting.x0
        line = AffineArray(space, np.stack([x0, np.ones_like(x0)], axis=-1)[None])
        started = _on_forms("init", lambda: algorithm.init(line, setting.problem.n_clients))
        random = ["x", *sorted(_moving(space, started) - {"x"})]
        who = next(setting.participation.masks(np.random.default_rng(0), 1)).copy()
        state = algorithm.init(setting.x0[None], setting.problem.n_clients)
        while True:
            way = {name: np.ones(state[name].shape) for name in random}
            moving: set[str] = set()
            for branch in _likely(algorithm):
                moving |= _moving(*self.image(_Round(1, algorithm, branch), who, state, way))
            if moving <= set(random):
                return tuple(random)
            random += sorted(moving - set(random))

    def check(self, one: _Seen, random: tuple[str, ...]) -> tuple[str, ...]:
        """Compare a real round with forms, and return any further entries that depend on the model.

        Raises
        ------
        NotAffineError
            If they differ (the message gives the round), or if forms refuse an operation.
        """
        space, image = self.image(one.now, one.who, one.before, one.way)
        widened = sorted(_moving(space, image) - set(random))
        if widened:
            return tuple(widened)
        for name, real in one.after.items():
            form = space.forms(image[name])
            there = np.broadcast_to(form.constant, np.shape(real))
            step = np.broadcast_to(form.linear(1)[..., 0], np.shape(real))
            with np.errstate(all="ignore"):
                both = np.stack([there, there + step, there - step])
            reals = np.concatenate([real, one.beyond[name]]).reshape(both.shape)
            before = np.abs(one.before[name]) + np.abs(one.way.get(name, 0.0))
            before = before.reshape(len(before), -1).max(axis=1, initial=self._scale)
            _check_misses(one.now.index, reals, both, before, self._tolerance)
        return ()

    def image(self, now: _Round, who: Masks, state: State, way: State) -> tuple[Space, State]:
        space = Space(self._arithmetic, 1)
        forms = {
            name: AffineArray(space, np.stack([array, way[name]], axis=-1))
            if name in way
            else space.constants(np.asarray(array))
            for name, array in state.items()
        }
        clients = FormClients(self._numbers, space)
        with np.errstate(all="ignore"):
            made = _on_forms("round", lambda: now.algorithm.round(forms, clients, who, now.branch))
        if set(made) != set(state):
            raise NotAffineError(
                "the algorithm's round must return the same entries for every kind of array"
            )
        return space, made


def _on_forms(what: str, run: Callable[[], Any]) -> Any:
    """Run part of an algorithm on forms; any error means that there is no affine map."""
    try:
        with nothing_refused():
            return run()
    except (NotAffineError, InexactRoundError):
        raise
    except Exception as error:
        raise NotAffineError(
            f"the algorithm's {what} must run on arrays of any kind for exact moments, but on "
            f"symbolic arrays it raises {type(error).__name__}: {error}: use engines.monte_carlo"
        ) from error


def _moving(space: Space, state: State) -> set[str]:
    """Return the names of the entries that are not constant."""
    return {name for name, array in state.items() if not space.forms(array).is_constant}


def _algorithm_in(setting: Setting, index: int) -> Algorithm:
    """Return the algorithm of a round, after checking its branches.

    Raises
    ------
    RoundRefusedError
        If a schedule changes an algorithm that it has returned.
    ValueError
        If the branches' probabilities are not in [0, 1] or do not sum to 1.
    """
    schedule = setting.algorithm
    algorithm = in_round(schedule, index)
    _check_branches(algorithm, index)
    if isinstance(schedule, Schedule):
        before = content(algorithm)
        in_round(schedule, 1 + index % setting.rounds)
        if content(algorithm) != before:
            raise refused(f"the object that the schedule's at({index}) returned was changed by at")
    return algorithm


def _check_branches(algorithm: Algorithm, index: int) -> None:
    if isinstance(algorithm.branches, Iterator) and algorithm.branches is algorithm.branches:
        raise refused(f"branches are {shown(algorithm.branches)}, which can be read once only")
    chances = [chance for _, chance in algorithm.branches]
    if not all(chance >= 0 for chance in chances) or not abs(float(sum(chances)) - 1) <= 1e-9:
        raise ValueError(
            f"branches must have probabilities of at least 0 that sum to 1, got {chances} in round "
            f"{index}"
        )


def _likely(algorithm: Algorithm) -> list[str]:
    return [name for name, chance in algorithm.branches if chance > 0]


def refused(what: str) -> RoundRefusedError:
    """Return the error for a round that is not a pure function."""
    return RoundRefusedError(
        "a round must be a pure function of state, clients, participants and branch (new arrays, "
        f"nothing kept outside the state), but {what}"
    )


def _check_state(made_by: str, state: Any, rows: int, before: Mapping[str, Any] | None) -> None:
    """Raise RoundRefusedError unless a state has the required entries and shapes."""
    if not isinstance(state, Mapping):
        raise refused(f"{made_by} returned {shown(state)} instead of a state, a mapping of arrays")
    names = {"x", *state} if before is None else set(before)
    if set(state) != names:
        raise refused(f"{made_by} returned the entries {sorted(state)} instead of {sorted(names)}")
    for name, array in state.items():
        got, kind = np.shape(array), np.asarray(array).dtype
        if kind.kind not in "biufc":
            raise refused(f"{made_by} returned {name!r} of type {kind}, which is not numeric")
        must_be = (rows, *got[1:]) if before is None else before[name].shape
        if got != must_be:
            raise refused(
                f"{made_by} returned {name!r} of shape {got} instead of {must_be}: the first axis "
                "of every entry is the replicas"
            )


def _finite(state: State) -> bool:
    return all(np.isfinite(array).all() for array in state.values())


def _same(one: Any, other: Any) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    return left.shape == right.shape and np.array_equal(left, right, equal_nan=_floats(left, right))


def _unlike(one: State, other: State) -> str:
    """Return the name of an entry in which two states differ, or nothing."""
    return next((name for name, array in one.items() if not _same(array, other[name])), "")


def _floats(*arrays: np.ndarray) -> bool:
    return all(array.dtype.kind == "f" for array in arrays)


def telling(counts: FloatArray) -> NDArray[np.intp]:
    """Return the rows with the smallest or largest value of some count, and some in between.

    Running these rows alone is the best test for code that uses other replicas' counts: ``if
    (absent >= 5).any()`` shows once it is true for some row.
    """
    between = np.linspace(0, len(counts) - 1, _ALONE).astype(int)
    return np.unique(np.concatenate([counts.argmin(axis=0), counts.argmax(axis=0), between]))


def other_alone(together: State, rows: Iterable[int], run: Callable[[slice], State]) -> str:
    """Return which entry of some replica differs between its runs in a batch and alone, or ""."""
    for row in rows:
        here = slice(row, row + 1)
        alone = run(here)
        for name, array in together.items():
            if not _close(array[here], alone[name]):
                return f"another {name!r} in a batch than alone"
    return ""


def _close(one: Any, other: Any) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    if not _floats(left, right):
        return bool(np.array_equal(left, right))
    if not (np.isfinite(left) & np.isfinite(right)).all():
        return True
    size = max(float(np.abs(right).max(initial=0.0)), 1.0)
    return bool(np.abs(left - right).max(initial=0.0) <= _ALIKE * size)


def _tolerance(problem: Problem) -> float:
    """Return the allowed difference of two computations, relative to their largest number.

    Each computation sums over N clients and d coordinates, one by one at worst, in addition to its
    other operations. The error of each operation is at most the unit roundoff of the largest
    number.
    """
    return 2 * UNIT_ROUNDOFF * (_OPERATIONS + problem.n_clients + problem.dim)


def _check_misses(
    index: int,
    reals: FloatArray,
    expected: FloatArray,
    scale: float | FloatArray,
    tolerance: float,
) -> None:
    """Raise NotAffineError if numbers of a real round differ from those expected.

    Arrays are (places, rows, ...), and each row is measured relative to its largest number or its
    ``scale``, whichever is larger. Values beyond the range of floats are skipped: the engines
    report in which round a run overflows.
    """
    reals, expected = (array.reshape(*array.shape[:2], -1) for array in (reals, expected))
    known = np.isfinite(reals) & np.isfinite(expected)
    with np.errstate(all="ignore"):
        misses = np.where(known, np.abs(reals - expected), 0.0).max(axis=(0, 2), initial=0.0)
    lost = np.isnan(reals) & (np.abs(expected) < _FARTHEST)
    sizes = np.maximum(np.where(known, np.abs(reals), 0.0).max(axis=(0, 2), initial=0.0), scale)
    if (misses > tolerance * sizes).any() or lost.any():
        row = int((misses / sizes).argmax())
        raise _missed(
            index,
            f"deviates from its affine map by {misses[row]:.1e}, with numbers of up to "
            f"{sizes[row]:.1e}",
        )


def _missed(index: int, how: str) -> NotAffineError:
    return NotAffineError(
        f"the algorithm's round must be affine in its state; run from real states, round {index} "
        f"{how}: use engines.monte_carlo"
    )
