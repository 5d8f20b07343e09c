"""Running rounds on histories, on affine forms or, if nothing is random, on numbers.

Forms of one history are small, and calling NumPy on them costs more than the arithmetic. So the
maps of several coming rounds are computed in one run of the algorithm's round, with each history of
each round as a separate replica. The counts with which those rounds begin come from running real
rounds. A map is used only for the counts, participants and branch for which it was made. If the
guard has found that a round does not treat every replica alike, maps are made round by round.

The guard follows only a few paths, and histories may reach states that are not on them. So a round
written by a user is also run here on single histories, in particular those with extreme counts.
Code that uses other replicas' counts, such as ``if (absent >= 5).any()``, shows once its condition
is true for some history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fltheory.algorithms.contract import Algorithm, State, in_round
from fltheory.content import kept, runs_users_code
from fltheory.engines.affine.numbers import FLOAT64
from fltheory.engines.affine.probe import CLIENTS_AS_ONE, reading_errors
from fltheory.engines.affine.state_layout import balanced_units, telling_sets
from fltheory.engines.affine.symbolic.clients import ClientNumbers, joined, read_round
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence, analytic_clients
from fltheory.engines.guard import guarded, other_alone, refused, telling
from fltheory.engines.history.histories import (
    ComingRound,
    Continuation,
    Image,
    RoundKey,
    Rounds,
    Ways,
    distinct,
)
from fltheory.engines.history.steps import Rows
from fltheory.engines.setting import Setting
from fltheory.engines.simulation import round_by_branch
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_NUMBERS_AT_ONCE = 1 << 22
_NUMBERS_AHEAD = 1 << 19
_MOST_ROUNDS_AHEAD = 512
_MOST_IMAGES = 7


class AffineRounds(Rounds):
    """Rounds on affine forms: the model is random, counts are known.

    Parameters
    ----------
    setting : Setting
    problem : QuadraticProblem
    ways : Ways
    """

    def __init__(self, setting: Setting, problem: QuadraticProblem, ways: Ways) -> None:
        super().__init__(setting, ways)
        self._problem = problem
        self._numbers = ClientNumbers(problem, FLOAT64)
        first = in_round(setting.algorithm, 1)
        self._start = dict(first.init(setting.x0[None], problem.n_clients))
        self._origins: dict[tuple[str, ...], FloatArray] = {}
        self._balanced: dict[tuple[str, ...], FloatArray] = {}
        self._images: dict[int, tuple[Algorithm, dict[RoundKey, Image]]] = {}
        self._ahead = 1
        found = guarded(setting)
        self._replicas_alike, self._losses = not found.apart, found.losses
        self._users = runs_users_code(setting.algorithm)
        self._unused: set[RoundKey] = set()

    def initial(self, random: tuple[str, ...]) -> tuple[tuple[str, ...], State, FloatArray]:
        """Return the initial history."""
        offset = joined(self._start, random)[0] - self._origin(random)
        vector = np.append(offset / self.units(random), 1.0)
        known = {name: array for name, array in self._start.items() if name not in random}
        return random, known, np.outer(vector, vector)

    def far(self, names: tuple[str, ...]) -> FloatArray:
        """Return the absolute initial values of the random entries, in units."""
        return np.abs(joined(self._start, names)[0]) / self.units(names)

    def _origin(self, names: tuple[str, ...]) -> FloatArray:
        """Return the origin of the random entries: x* for the model, and zero for memory."""
        if names not in self._origins:
            width = sum(int(np.prod(np.shape(self._start[name])[1:])) for name in names)
            zeros = np.zeros(width - self._problem.dim)
            self._origins[names] = np.concatenate([self._problem.x_star, zeros])
        return self._origins[names]

    def units(self, names: tuple[str, ...]) -> FloatArray:
        """Return the units of the random entries, as in `StateLayout`."""
        if names not in self._balanced:
            shapes = {name: np.shape(self._start[name])[1:] for name in names}
            first = in_round(self.setting.algorithm, 1)
            sets = telling_sets(self._problem.n_clients)
            known = {
                name: np.repeat(array, len(sets), axis=0)
                for name, array in self._start.items()
                if name not in names
            }

            def slopes(branch: str) -> FloatArray:
                read = self._numbers, sets, known, shapes, self._origin(names)
                return np.asarray(read_round(first, branch, *read).slopes)

            try:
                self._balanced[names] = balanced_units(first, slopes, shapes)
            except NotAffineError:
                # The round may not be affine for these sets, but still be affine for the sets that
                # occur.
                self._balanced[names] = np.ones(self._origin(names).size)
        return self._balanced[names]

    def image(self, coming: ComingRound, index: int) -> Image:
        """Return the images of the continued histories, computed once for rounds that are alike."""
        # The algorithm is kept with its images, so that no other object can get its address.
        own = coming.algorithm
        images = kept(self._images, id(own), lambda: (own, dict[RoundKey, Image]()))[1]
        key = coming.key
        if key not in images:
            self._run(coming, index, images)
        self._unused.discard(key)
        return images[key]

    def _run(self, coming: ComingRound, index: int, images: dict[RoundKey, Image]) -> None:
        """Compute the images of a round and of rounds that will follow."""
        # This is twice as many as last time, as long as all planned rounds were used.
        rounds = self._ahead if self._replicas_alike and not self._unused else 1
        self._ahead = min(2 * rounds, _MOST_ROUNDS_AHEAD)
        planned, real = self._planned_rounds(coming, index, images, rounds)
        made = self._images_together(planned)
        if real:
            # These are the counts from real rounds, for which the new histories are already
            # computed.
            made = [replace(i, known=known) for i, known in zip(made, real, strict=True)]
        found = dict(zip((one.key for one in planned), made, strict=True))
        images.update(found)
        self._unused = set(found)
        while len(images) > _MOST_IMAGES + len(found):
            images.pop(next(iter(images)))

    def _numbers_of_one(self, random: tuple[str, ...]) -> int:
        """Return roughly how many numbers the forms of one history contain."""
        return (self._origin(random).size + 1) ** 2 * self._problem.n_clients

    def _planned_rounds(
        self, coming: ComingRound, index: int, images: Mapping[RoundKey, Image], rounds: int
    ) -> tuple[list[ComingRound], list[dict[str, FloatArray]]]:
        """Return a round and those after it, found by real rounds, up to a known round."""
        most = _NUMBERS_AHEAD // self._numbers_of_one(coming.random)
        ahead = index + 1
        if rounds == 1 or 2 * len(coming.continued.rows) > most or not self._alike(coming, ahead):
            return [coming], []
        some = self._some(coming.random)

        def counts_after(one: ComingRound) -> dict[str, FloatArray]:
            after = _real_round(one, self._real_clients, some)
            return {name: array for name, array in after.items() if name not in some}

        planned, real, rows = [coming], [counts_after(coming)], len(coming.continued.rows)
        keys = {coming.key}
        while len(planned) < rounds:
            latest = planned[-1]
            arrivals = latest.leads_to(real[-1])
            if not self._alike(coming, ahead):
                break
            following = self.coming(ahead, arrivals.place, arrivals.known, coming.random)
            ahead += 1
            key, rows = following.key, rows + len(following.continued.rows)
            if rows > most or key in images or key in keys:
                break
            keys.add(key)
            planned.append(following)
            real.append(counts_after(following))
        return planned, real

    def _alike(self, coming: ComingRound, index: int) -> bool:
        """Whether a round with this index exists and has the same algorithm."""
        return index < self.setting.rounds and self.algorithm_in(index) is coming.algorithm

    def _some(self, random: tuple[str, ...]) -> State:
        """Return values for the random entries; counts do not depend on them, so any values do."""
        return {name: self._start[name] for name in random}

    @cached_property
    def _real_clients(self) -> QuadraticClients:
        return QuadraticClients(self._problem, Silence())

    def _images_together(self, planned: Sequence[ComingRound]) -> list[Image]:
        """Return the images of rounds of one algorithm, from one run of its round."""
        if self._users:
            batch = _Batch.of(planned)
            other = _other_alone(batch, self._real_clients, self._some(batch.random))
            if other and len(planned) == 1:
                raise refused(f"a round gives a replica {other}")
            if other:
                self._replicas_alike = False
                return [image for one in planned for image in self._images_together([one])]
        if len(planned) == 1 and not planned[0].place.any():
            # With a single chain state, histories differ in their counts, so all rows are distinct.
            return [self._image_of_distinct(_Batch.of(planned), np.arange(len(planned[0].table)))]
        first, inverse = distinct(np.concatenate([coming.table for coming in planned]))
        made = _repeated(self._image_of_distinct(_Batch.of(planned), first), inverse)
        ends = np.cumsum([len(coming.continued.rows) for coming in planned])
        return [
            _repeated(made, slice(end - len(coming.continued.rows), end))
            for coming, end in zip(planned, ends.tolist(), strict=True)
        ]

    def _image_of_distinct(self, batch: _Batch, chosen: Rows) -> Image:
        continued = batch.continued
        at_once = max(1, _NUMBERS_AT_ONCE // self._numbers_of_one(batch.random))
        parts: list[Image] = []
        places: list[Rows] = []
        for branch, name in enumerate(continued.branches):
            of_branch = chosen[continued.drawn[chosen] == branch]
            for first in range(0, len(of_branch), at_once):
                some = of_branch[first : first + at_once]
                parts.append(self._forms_image(batch, name, some))
                places.append(np.flatnonzero(np.isin(chosen, some)))
        order = np.argsort(np.concatenate(places), kind="stable")
        return _repeated(_joined_images(parts), order)

    def _forms_image(self, batch: _Batch, branch: str, chosen: Rows) -> Image:
        random, rows = batch.random, batch.continued.rows[chosen]
        origin, n = self._origin(random), self._origin(random).size
        made = read_round(
            batch.algorithm,
            branch,
            self._numbers,
            batch.continued.masks[chosen],
            {name: array[rows] for name, array in batch.known.items()},
            {name: np.shape(self._start[name])[1:] for name in random},
            origin,
        )
        units = self.units(random)
        maps, inverse = np.zeros((len(rows), n + 1, n + 1)), 1 / units[:, None]
        maps[:, :n, :n], maps[:, :n, n] = inverse * made.slopes * units, made.offsets / units
        maps[:, n, n] = 1.0
        names = (*random, *made.widened)
        known = {name: array for name, array in made.known.items() if name not in names}
        # The map of a single set is read as in `Probe`, which covers only sets with a few clients.
        several = max(1.0, self._problem.n_clients / CLIENTS_AS_ONE)
        errors = reading_errors(
            maps[:, :n, :n], maps[:, :n, n], origin / units, self._numbers, several
        )
        *of_maps, of_chances = self._losses
        chance = min(p for name, p in batch.algorithm.branches if name == branch and p > 0)
        off = np.full((len(rows), 1), of_chances / chance)
        errors = np.concatenate([errors * of_maps, off], axis=1)
        return Image(names, known, maps, inverse * made.noises * inverse.T, errors)


class KnownRounds(Rounds):
    """Rounds on numbers: without noise, the history determines the model.

    The algorithm's round may then be any function, on any analytic clients.

    Parameters
    ----------
    setting : Setting
    ways : Ways
    """

    def __init__(self, setting: Setting, ways: Ways) -> None:
        super().__init__(setting, ways)
        self._clients = analytic_clients(setting.problem, Silence())
        self._users = runs_users_code(setting.algorithm)

    def initial(self, random: tuple[str, ...]) -> tuple[tuple[str, ...], State, FloatArray]:
        """Return the initial history, which has no random entries."""
        first = in_round(self.setting.algorithm, 1)
        known = dict(first.init(self.setting.x0[None], self.setting.problem.n_clients))
        return (), known, np.ones((1, 1))

    def image(self, coming: ComingRound, index: int) -> Image:
        """Return the images of the continued histories under a round."""
        other = self._users and _other_alone(coming, self._clients, {})
        if other:
            raise refused(f"a round gives a replica {other}")
        known, count = _real_round(coming, self._clients, {}), len(coming.continued.rows)
        return Image(
            (), known, np.ones((count, 1, 1)), np.zeros((count, 0, 0)), np.zeros((count, 4))
        )


def _real_round(
    coming: ComingRound | _Batch, clients: Any, some: State, chosen: slice = slice(None)
) -> State:
    """Run a round on real clients without noise, given values (1, ...) of the random entries."""
    continued = coming.continued
    rows = continued.rows[chosen]
    state = {key: array[rows] for key, array in coming.known.items()}
    state |= {key: np.repeat(array, len(rows), axis=0) for key, array in some.items()}
    names = list(continued.branches)
    with np.errstate(all="ignore"):
        return round_by_branch(
            coming.algorithm,
            state,
            clients,
            continued.masks[chosen],
            names,
            continued.drawn[chosen],
        )


def _other_alone(coming: ComingRound | _Batch, clients: Any, some: State) -> str:
    """Return which entry of a history differs between a run in a batch and a run alone, or ""."""
    rows = coming.continued.rows
    if len(rows) == 1 or not coming.known:
        return ""
    counts = joined(coming.known, sorted(coming.known))[rows]
    together = _real_round(coming, clients, some)
    return other_alone(
        together, telling(counts), lambda row: _real_round(coming, clients, some, row)
    )


@dataclass(frozen=True, eq=False)
class _Batch:
    """Histories of some rounds of one algorithm, to be run as replicas of one round."""

    algorithm: Algorithm
    random: tuple[str, ...]
    known: Mapping[str, FloatArray]
    continued: Continuation

    @classmethod
    def of(cls, planned: Sequence[ComingRound]) -> _Batch:
        first, each = planned[0], [coming.continued for coming in planned]
        starts = np.cumsum([0, *(len(coming.place) for coming in planned[:-1])])
        rows = [continued.rows + start for continued, start in zip(each, starts, strict=True)]
        return cls(
            first.algorithm,
            first.random,
            {name: np.concatenate([one.known[name] for one in planned]) for name in first.known},
            Continuation(
                np.concatenate(rows),
                np.concatenate([continued.masks for continued in each]),
                first.continued.branches,
                np.concatenate([continued.drawn for continued in each]),
                np.concatenate([continued.chances for continued in each]),
            ),
        )


def _repeated(image: Image, rows: Rows | slice) -> Image:
    return Image(
        image.random,
        {name: array[rows] for name, array in image.known.items()},
        image.maps[rows],
        image.noises[rows],
        image.errors[rows],
    )


def _joined_images(parts: Sequence[Image]) -> Image:
    """Join images; an entry that is random in any of them is random in all."""
    first = parts[0]
    random = {name: None for part in parts for name in part.random}
    maps, noises, errors = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("maps", "noises", "errors")
    )
    known = {
        name: np.concatenate([part.known[name] for part in parts])
        for name in first.known
        if name not in random
    }
    return Image(tuple(random), known, maps, noises, errors)
