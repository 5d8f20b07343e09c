"""Records of who was present in each round of a deployment, stored as stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import category

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.participation.base import Masks
from fltheory.participation.chains import checked_masks
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

Rounds = NDArray[np.int64]

# Control characters, ends of lines and of paragraphs, halves of surrogate pairs.
_NO_NAME = frozenset({"Cc", "Zl", "Zp", "Cs"})


@dataclass(frozen=True, eq=False)
class AvailabilityLog(ReadOnlyArrays):
    """A record of who was online, one row per stay: a run of rounds in which a client was online.

    A client's stays are separate and in order. Memory grows with the number of stays, not with
    clients times rounds. `read_log` makes a log from a file, `from_masks` from an array.

    Parameters
    ----------
    clients : sequence of str, (N,)
        Names.
    n_rounds : int
        Rounds that were recorded.
    who : array of int, (stays,)
        The client of each stay, an index of ``clients``.
    first, stop : array of int, (stays,)
        The stay's first round, from 0, and the round after its last.
    between_rounds : int, default 0
        Number of stays in the file that lie between the starts of two rounds, so that they are in
        no round.

    Raises
    ------
    ValueError
        If names are empty or appear twice, rounds are outside the record, or stays overlap or
        touch.

    Examples
    --------
    >>> log = AvailabilityLog(("ann", "bob"), 4, who=[0, 0, 1], first=[0, 3, 1], stop=[2, 4, 3])
    >>> log.marginals.tolist(), log.present(1, 3).astype(int).tolist()
    ([0.75, 0.5], [[1, 1], [0, 1]])
    """

    clients: tuple[str, ...]
    n_rounds: int
    who: Rounds
    first: Rounds
    stop: Rounds
    between_rounds: int

    def __init__(
        self,
        clients: Sequence[str],
        n_rounds: int,
        who: ArrayLike,
        first: ArrayLike,
        stop: ArrayLike,
        *,
        between_rounds: int = 0,
    ) -> None:
        validation.instance_of("clients", clients, Iterable, "names")
        names = _names(clients)
        rounds = validation.whole_number("n_rounds", n_rounds, at_least=1)
        columns = [_indices(*pair) for pair in (("who", who), ("first", first), ("stop", stop))]
        if len({column.shape for column in columns}) > 1:
            raise ValueError(
                "who, first and stop must have one shape, got "
                + ", ".join(str(column.shape) for column in columns)
            )
        owner, begin, end = (column[np.lexsort((columns[1], columns[0]))] for column in columns)
        _check_stays(len(names), rounds, owner, begin, end)
        lost = validation.whole_number("between_rounds", between_rounds, at_least=0)
        fields = {"clients": names, "n_rounds": rounds, "who": owner, "first": begin, "stop": end}
        for name, value in {**fields, "between_rounds": lost}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"AvailabilityLog({self.n_clients} clients, {self.n_rounds} rounds, "
            f"{self.who.size} stays)"
        )

    @classmethod
    @checks_kinds
    def from_masks(cls, masks: ArrayLike, clients: Sequence[str] | None = None) -> AvailabilityLog:
        """Return the log of an array of 0 and 1, (rounds, N).

        Parameters
        ----------
        masks : array of 0 and 1, (rounds, N)
        clients : sequence of str, (N,), optional
            Names; ``client 0``, ``client 1``, ... by default.

        Raises
        ------
        ValueError
            If the shape or an entry is wrong.
        """
        there = checked_masks("masks", masks, "rounds")
        rounds, count = there.shape
        names = [f"client {index}" for index in range(count)] if clients is None else list(clients)
        if len(names) != count:
            raise ValueError(f"clients must be {count} names, got {len(names)}")
        edges = np.zeros((count, rounds + 2), dtype=np.int8)
        edges[:, 1:-1] = there.T
        change = np.diff(edges, axis=1)
        who, first = np.nonzero(change == 1)
        return cls(names, rounds, who, first, np.nonzero(change == -1)[1])

    @property
    def n_clients(self) -> int:
        """N, all clients, including those never online."""
        return len(self.clients)

    @cached_property
    def rounds_present(self) -> Rounds:
        """Number of rounds in which each client was online, (N,)."""
        lengths = (self.stop - self.first).astype(np.float64)
        return np.bincount(self.who, lengths, minlength=self.n_clients).astype(np.int64)

    @cached_property
    def marginals(self) -> FloatArray:
        """Share of rounds in which each client was online, (N,)."""
        return np.asarray(self.rounds_present / self.n_rounds)

    @cached_property
    def n_present(self) -> Rounds:
        """Number of clients online in each round, (n_rounds,)."""
        comes = np.bincount(self.first, minlength=self.n_rounds + 1)
        leaves = np.bincount(self.stop, minlength=self.n_rounds + 1)
        return np.cumsum(comes - leaves)[: self.n_rounds]

    def present(
        self, first: int = 0, stop: int | None = None, clients: ArrayLike | None = None
    ) -> Masks:
        """Return who was online in a range of rounds, (rounds, N).

        Parameters
        ----------
        first, stop : int
            The first round, from 0, and the round after the last; all rounds by default.
        clients : array of int, optional
            Indices of the clients to include; all by default.

        Raises
        ------
        ValueError
            If the range is outside the record.
        """
        first = validation.whole_number("first", first, at_least=0)
        end = self.n_rounds if stop is None else validation.whole_number("stop", stop, at_least=1)
        if not first < end <= self.n_rounds:
            raise ValueError(
                f"first and stop must be a range of rounds within {self.n_rounds}, "
                f"got {first} and {end}"
            )
        chosen = np.arange(self.n_clients) if clients is None else _indices("clients", clients)
        column = np.full(self.n_clients, -1)
        column[chosen] = np.arange(chosen.size)
        asked = (column[self.who] >= 0) & (self.first < end) & (self.stop > first)
        place = column[self.who[asked]]
        # A client's stays are separate, so no two of them change the same entry.
        change = np.zeros((chosen.size, end - first + 1), dtype=np.int8)
        change[place, np.maximum(self.first[asked], first) - first] = 1
        change[place, np.minimum(self.stop[asked], end) - first] = -1
        return np.ascontiguousarray(np.cumsum(change[:, :-1], axis=1, dtype=np.int8).T != 0)


def _names(clients: Sequence[str]) -> tuple[str, ...]:
    names = tuple(clients)
    for name in names:
        validation.text("clients", name)
        # A byte order mark comes from concatenated files.
        if name != name.strip().strip("\ufeff") or not _NO_NAME.isdisjoint(map(category, name)):
            raise ValueError(
                "clients must be one-line names of printable characters with no spaces around "
                f"them, got {name!a}"
            )
    if not names:
        raise ValueError("clients must contain at least one name, got none")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"clients must have different names, got {twice!r} twice")
    return names


def _indices(name: str, values: ArrayLike) -> Rounds:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name} must be whole numbers in a row, got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)  # an empty list would be of floats


def _check_stays(n_clients: int, n_rounds: int, who: Rounds, first: Rounds, stop: Rounds) -> None:
    wrong = np.flatnonzero((who < 0) | (who >= n_clients))
    if wrong.size:
        raise ValueError(f"who must be in 0 .. {n_clients - 1}, got {who[wrong[0]]}")
    wrong = np.flatnonzero((first < 0) | (first >= stop) | (stop > n_rounds))
    if wrong.size:
        at = wrong[0]
        raise ValueError(
            f"first and stop must have 0 <= first < stop <= {n_rounds}, "
            f"got {first[at]} and {stop[at]} for client {who[at]}"
        )
    wrong = np.flatnonzero((who[1:] == who[:-1]) & (first[1:] <= stop[:-1]))
    if wrong.size:
        at = wrong[0]
        raise ValueError(
            f"stays of a client must be separate, got one that ends before round {stop[at]} and "
            f"one that begins in round {first[at + 1]} for client {who[at]}"
        )
