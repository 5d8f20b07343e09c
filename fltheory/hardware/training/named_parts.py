"""The parts that an experiment may name: algorithms, partitions of images, participation."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fltheory import validation
from fltheory.algorithms import F3ast
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.table import Listed, listed
from fltheory.files.tables import checked_flag, made
from fltheory.hardware import partitions
from fltheory.hardware.datasets.images import ImageData, Labels
from fltheory.hardware.partitions import Partition
from fltheory.logs.availability_log import AvailabilityLog
from fltheory.logs.log_file import read_log
from fltheory.logs.played_log import PlayedLog
from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, Participation, UniformSubset
from fltheory.participation.bernoulli import correlated_availability
from fltheory.participation.cyclic import fedau_cycles
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_MISSING = {
    "assist_lr": "without a table [server]",
    "correlation": "unless participation is a Markov chain or a log",
}


def circumstances(
    client_lr: float,
    local_steps: int,
    assist_lr: float | None,
    rounds: int,
    participation: Participation,
) -> dict[str, Any]:
    """Return what methods are told, by name: steps, ``rounds``, and what is known about clients.

    Oracles are told who is how available, under Markov's participation, or a log, also each
    client's second eigenvalue; all clients weigh alike. ``assist_lr`` is None where there is no
    server.
    """
    n_clients = participation.n_clients
    alike = np.full(n_clients, 1.0 / n_clients)
    known: dict[str, Any] = {
        "client_lr": client_lr,
        "local_steps": local_steps,
        "rounds": rounds,
        "target_weights": alike,
        "aggregation_weights": tuple(alike.tolist()),
        "availability": participation.marginals,
    }
    if assist_lr is not None:
        known["assist_lr"] = assist_lr
    correlation = getattr(participation, "correlation", None)
    if correlation is not None:
        known["correlation"] = np.broadcast_to(correlation, n_clients)
    return known


@dataclass(frozen=True)
class NamedMethod:
    """An algorithm by name with options of its own; step sizes and steps come from outside.

    The names are those of `fltheory.algorithms.table`; ``average all`` is FedAvg with weights 1/N
    whoever is present. Those that may know the availability know it here (CA-Fed the correlation
    too), and all clients weigh alike. F3AST's ``smoothing`` is 1/rounds unless it is given.
    """

    name: str
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        try:
            listed(self.name)
        except ValueError as error:
            raise ValueError(f"algorithm.{error}") from error

    @property
    def listed(self) -> Listed:
        """Its line in the table of algorithms."""
        return listed(self.name)

    @property
    def uses_server(self) -> bool:
        """Whether it uses the server's own images."""
        return "assist_lr" in self.listed.told

    def algorithm(self, given: Mapping[str, Any]) -> Algorithm | Schedule:
        """Return the algorithm in `circumstances`; ValueError names an option it does not take."""
        entry = self.listed
        for name in entry.told:
            if name not in given:
                raise ValueError(f"algorithm.name must not be {entry.title} {_MISSING[name]}")
        options = dict(self.options)
        if entry.algorithm is F3ast:
            # As in CA-Fed's code: Ribero et al.'s 0.01 is made for thousands of rounds.
            options.setdefault("smoothing", 1 / given["rounds"])
        told = {name: given[name] for name in entry.told}
        return made(entry, options, "algorithm", told=told)


@dataclass(frozen=True, eq=False)
class Dealt(ReadOnlyArrays):
    """Who has which images, and the labels that hold for them.

    Attributes
    ----------
    parts : tuple of index arrays
        Places of each client's images among the training images.
    train_labels, test_labels : array of int
    """

    parts: Partition
    train_labels: Labels
    test_labels: Labels


Split: TypeAlias = Callable[[Labels, int, np.random.Generator], Partition]


@dataclass(frozen=True)
class Dealing(ReadOnlyArrays):
    """A way to deal training images to clients: their number, and who gets which places."""

    n_clients: int
    split: Split

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=1)

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        labels = data.train.labels
        return Dealt(self.split(labels, self.n_clients, rng), labels, data.test.labels)


def _evenly(n_clients: int) -> Dealing:
    return Dealing(n_clients, partitions.evenly)


def _classes(n_clients: int, classes_per_client: int, equal: bool = False) -> Dealing:
    """Deal every client as many classes: SA-FL's p."""
    # Checked here, where the file is read: partitions has another name for it.
    p = validation.whole_number("classes_per_client", classes_per_client, at_least=1)
    checked_flag("equal", equal)

    def split(labels: Labels, n: int, rng: np.random.Generator) -> Partition:
        kinds = np.unique(labels).size
        if p > kinds:
            raise ValueError(f"classes_per_client must be at most the data's {kinds}, got {p}")
        return partitions.classes_per_client(labels, n, p, rng, equal=equal)

    return Dealing(n_clients, split)


def _two_classes(n_clients: int) -> Dealing:
    """Deal every client two classes, equal sizes: FedAR's."""
    return Dealing(n_clients, partitions.two_classes)


def _dirichlet(n_clients: int, concentration: float) -> Dealing:
    """Deal random shares of the classes: FedAU's."""
    validation.positive("concentration", concentration)
    return Dealing(n_clients, partial(partitions.dirichlet, concentration=concentration))


@dataclass(frozen=True)
class _LabelSwap(Dealing):
    """Images at random; the second half of the clients has pairs of labels swapped: CA-Fed's.

    Test images are dealt in the same way and swapped with their clients, so that the accuracy
    is the mean over clients.
    """

    pairs: int

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        train, test = data.train.labels, data.test.labels
        parts, test_parts = (self.split(labels, self.n_clients, rng) for labels in (train, test))
        swap = partitions.label_swap(data.n_classes, rng, pairs=self.pairs)
        second = range(self.n_clients // 2, self.n_clients)
        return Dealt(
            parts,
            partitions.swapped(train, parts, second, swap),
            partitions.swapped(test, test_parts, second, swap),
        )


def _label_swap(n_clients: int, pairs: int) -> Dealing:
    validation.whole_number("n_clients", n_clients, at_least=2)
    validation.whole_number("pairs", pairs, at_least=1)
    return _LabelSwap(n_clients, partitions.evenly, pairs)


DEALINGS: Mapping[str, Callable[..., Dealing]] = {
    "evenly": _evenly,
    "classes": _classes,
    "two classes": _two_classes,
    "dirichlet": _dirichlet,
    "label swap": _label_swap,
}


class Presence(ABC):
    """A way to draw who takes part."""

    @abstractmethod
    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process for clients with these shares of the classes, (N, classes)."""

    def check_rounds(self, rounds: int) -> None:  # noqa: B027  a process lasts for ever
        """Raise ValueError where there are fewer rounds than these."""

    def identity(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what tells it from others, made from its table of the file: by default, that."""
        return table


@dataclass(frozen=True)
class Uniform(Presence):
    """``size`` clients per round; the first ``excluded`` never: SA-FL's m and s.

    Clients are dealt their images at random, so the first are as good as any.
    """

    size: int
    excluded: int = 0

    def __post_init__(self) -> None:
        # Of a negative number there is no range, and nobody would be excluded.
        validation.whole_number("excluded", self.excluded, at_least=0)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        excluded = range(min(self.excluded, len(class_shares)))
        return UniformSubset(len(class_shares), self.size, excluded=tuple(excluded))


@dataclass(frozen=True)
class UniformAvailability(Presence):
    """Independent clients, each available with a probability uniform in [least, 1]: FedAR's.

    With ``most``, that number of the available clients is drawn: its FedAvg (S = 50).
    """

    least: float
    _: KW_ONLY
    most: int | None = None

    def __post_init__(self) -> None:
        validation.probability("least", self.least)
        if self.most is not None:
            validation.whole_number("most", self.most, at_least=1)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        if self.most is not None and self.most > len(class_shares):
            raise ValueError(
                f"most must be at most the {len(class_shares)} clients, got {self.most}"
            )
        p = rng.uniform(self.least, 1.0, len(class_shares))
        return Bernoulli(p) if self.most is None else AtMost(p, self.most)


@dataclass(frozen=True)
class ByClassShares(Presence):
    """Availability that goes with the data: FedAU's, in one of its three patterns.

    ``pattern`` is ``"bernoulli"``, ``"markov"`` or ``"cyclic"``. A Markov client that is away
    comes with probability ``transition`` (0.05 in the authors' code), where its availability
    allows that; a cycle has ``period`` rounds (100).
    """

    pattern: str
    mean: float
    least: float
    concentration: float
    _: KW_ONLY
    transition: float = 0.05
    period: int = 100

    def __post_init__(self) -> None:
        validation.one_of("pattern", self.pattern, ("bernoulli", "markov", "cyclic"))
        validation.probability("transition", self.transition)
        validation.whole_number("period", self.period, at_least=1)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        p = correlated_availability(
            class_shares, rng, mean=self.mean, least=self.least, concentration=self.concentration
        )
        if self.pattern == "bernoulli":
            return Bernoulli(p)
        if self.pattern == "cyclic":
            return fedau_cycles(p, self.period, rng)
        # Its second eigenvalue is 1 - P(comes) - P(goes), P(goes) = P(comes) (1 - p) / p <= 1.
        comes = np.minimum(self.transition, np.divide(p, 1 - p, where=p < 1, out=np.ones_like(p)))
        return MarkovOnOff(p, np.where(p < 1, 1 - comes / p, 0.0))


@dataclass(frozen=True)
class FourClasses(Presence):
    """CA-Fed's clients (Section V-A): more or less available, correlated or weakly so.

    In each half of the clients, a random half is available with probability 1/2 + g, the rest
    with 1/2 - g; of each such class a random half has lambda = nu, the rest normal lambda with
    standard deviation epsilon. The number of clients must be a multiple of 8.
    """

    g: float
    nu: float
    epsilon: float

    def __post_init__(self) -> None:
        validation.real_number("g", self.g, "in [0, 1/2)", lambda g: 0 <= g < 0.5)
        validation.real_number("nu", self.nu, "in (-1, 1)", lambda nu: -1 < nu < 1)
        validation.nonnegative("epsilon", self.epsilon)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        n_clients = len(class_shares)
        if n_clients % 8:
            raise ValueError(f"n_clients must be a multiple of 8 for four classes, got {n_clients}")
        kinds = np.array([[True, True], [True, False], [False, True], [False, False]])
        half = np.repeat(kinds, n_clients // 8, axis=0)
        more, correlated = np.concatenate([rng.permutation(half), rng.permutation(half)]).T
        weak = self.epsilon * rng.standard_normal(n_clients)
        pi = np.where(more, 0.5 + self.g, 0.5 - self.g)
        return MarkovOnOff(pi, np.where(correlated, self.nu, weak))


@dataclass(frozen=True)
class Recorded(Presence):
    """The rounds of a log of who was online, one after another.

    Client k is the k-th of the log, in the order in which its names first come; there must be as
    many. Training begins with the log's round ``first_round``. A log that is over sooner than
    training is refused, unless ``repeat`` lets its first round come after its last. Oracles are
    told what the whole log says: shares of rounds, and the chains fitted to clients.

    A run is known by what the log says, not by the file's name, its form or the clients' names.
    """

    file: str
    _: KW_ONLY
    round_length: float | None = None
    first_round: int = 0
    repeat: bool = False
    played: PlayedLog = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        validation.text("file", self.file)
        path = Path(self.file)
        checked_flag("repeat", self.repeat)
        if not path.is_file():
            raise ValueError(f"file must be an existing file, got {self.file!r}")
        about = path.stat()
        log = _log(path, self.round_length, about.st_mtime_ns, about.st_size)
        played = PlayedLog(log, first_round=self.first_round, repeat=self.repeat)
        object.__setattr__(self, "played", played)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process; nothing is drawn."""
        if len(class_shares) != self.played.n_clients:
            raise ValueError(
                f"file must be a log of as many clients as the partition has, "
                f"{len(class_shares)}, got {self.played.n_clients} in {self.file!r}"
            )
        return self.played

    def check_rounds(self, rounds: int) -> None:
        """Raise ValueError where the log is over before."""
        if rounds > self.played.rounds_left:
            raise ValueError(
                f"file must be a log of at least the {rounds} rounds of training from round "
                f"{self.first_round} on, got {self.played.rounds_left} in {self.file!r}; "
                "repeat = true lets it begin again"
            )

    def identity(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the log says in the place of its file."""
        log = self.played.log
        digest = hashlib.sha256(f"{log.n_clients} {log.n_rounds} ".encode())
        for stays in (log.who, log.first, log.stop):
            digest.update(stays.astype("<i8").tobytes())
        return {
            "kind": table["kind"],
            "log": digest.hexdigest(),
            "first_round": self.first_round,
            "repeat": self.repeat,
        }


@lru_cache(maxsize=2)
def _log(path: Path, round_length: float | None, modified: int, size: int) -> AvailabilityLog:
    """Return a log, read once for all cells of a table as long as its file stays as it is."""
    return read_log(path, round_length=round_length)


PRESENCES: Mapping[str, Callable[..., Presence]] = {
    "uniform": Uniform,
    "uniform availability": UniformAvailability,
    "by class shares": ByClassShares,
    "four classes": FourClasses,
    "log": Recorded,
}
