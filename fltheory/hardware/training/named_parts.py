"""The parts that an experiment names: algorithms, partitions of images, participation."""

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
    """Return the facts that methods may use, by name: steps, ``rounds`` and client facts.

    Oracles know each client's availability and, under Markov participation or a log, also its
    second eigenvalue. All clients have equal weight. ``assist_lr`` is None without a server.
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
    """An algorithm by name, with its options; step sizes and steps come from the experiment.

    The names are those of `fltheory.algorithms.table`; ``average all`` is FedAvg with weights 1/N
    for any participants. Algorithms that take the availability get it, and CA-Fed also gets the
    correlation. All clients have equal weight. F3AST's ``smoothing`` is 1/rounds unless it is
    given.
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
        """The algorithm's entry in the table of algorithms."""
        return listed(self.name)

    @property
    def uses_server(self) -> bool:
        """Whether it uses the server's own images."""
        return "assist_lr" in self.listed.told

    def algorithm(self, given: Mapping[str, Any]) -> Algorithm | Schedule:
        """Return the algorithm in the given `circumstances`.

        An unknown option raises ValueError, which names it.
        """
        entry = self.listed
        for name in entry.told:
            if name not in given:
                raise ValueError(f"algorithm.name must not be {entry.title} {_MISSING[name]}")
        options = dict(self.options)
        if entry.algorithm is F3ast:
            # This is as in CA-Fed's code; the value 0.01 of Ribero et al. is meant for thousands of
            # rounds.
            options.setdefault("smoothing", 1 / given["rounds"])
        told = {name: given[name] for name in entry.told}
        return made(entry, options, "algorithm", told=told)


@dataclass(frozen=True, eq=False)
class Dealt(ReadOnlyArrays):
    """A partition of the images, together with the labels to use.

    Attributes
    ----------
    parts : tuple of index arrays
        Indices of each client's images among the training images.
    train_labels, test_labels : array of int
    """

    parts: Partition
    train_labels: Labels
    test_labels: Labels


Split: TypeAlias = Callable[[Labels, int, np.random.Generator], Partition]


@dataclass(frozen=True)
class Dealing(ReadOnlyArrays):
    """A way to deal training images to a number of clients."""

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
    """Deal every client the same number of classes, SA-FL's p."""
    # Checked when the file is read, because `partitions` uses another name for it.
    p = validation.whole_number("classes_per_client", classes_per_client, at_least=1)
    checked_flag("equal", equal)

    def split(labels: Labels, n: int, rng: np.random.Generator) -> Partition:
        kinds = np.unique(labels).size
        if p > kinds:
            raise ValueError(f"classes_per_client must be at most the data's {kinds}, got {p}")
        return partitions.classes_per_client(labels, n, p, rng, equal=equal)

    return Dealing(n_clients, split)


def _two_classes(n_clients: int) -> Dealing:
    """Deal every client two classes and equally many images, as in FedAR."""
    return Dealing(n_clients, partitions.two_classes)


def _dirichlet(n_clients: int, concentration: float) -> Dealing:
    """Deal random shares of the classes, as in FedAU."""
    validation.positive("concentration", concentration)
    return Dealing(n_clients, partial(partitions.dirichlet, concentration=concentration))


@dataclass(frozen=True)
class _LabelSwap(Dealing):
    """Random images, with pairs of labels swapped for the second half of the clients (CA-Fed).

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
        """Return the process for clients with the given shares of the classes, (N, classes)."""

    def check_rounds(self, rounds: int) -> None:  # noqa: B027  a process lasts for ever
        """Raise ValueError if the process is a record of fewer than ``rounds`` rounds."""

    def identity(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what identifies it, given its table in the file; by default, the table itself."""
        return table


@dataclass(frozen=True)
class Uniform(Presence):
    """``size`` clients drawn uniformly per round, never the first ``excluded`` (SA-FL's m and s).

    Clients are dealt their images at random, so excluding the first ones loses no generality.
    """

    size: int
    excluded: int = 0

    def __post_init__(self) -> None:
        # With a negative number, the range would be empty, and nobody would be excluded.
        validation.whole_number("excluded", self.excluded, at_least=0)

    def process(self, class_shares: FloatArray, rng: np.random.Generator) -> Participation:
        """Return the process."""
        excluded = range(min(self.excluded, len(class_shares)))
        return UniformSubset(len(class_shares), self.size, excluded=tuple(excluded))


@dataclass(frozen=True)
class UniformAvailability(Presence):
    """Independent clients with availabilities drawn uniformly from [least, 1], as in FedAR.

    With ``most``, at most that many of the available clients are drawn, as in FedAR's FedAvg (S =
    50).
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
    """Availability correlated with the data, in one of FedAU's three patterns.

    ``pattern`` is ``"bernoulli"``, ``"markov"`` or ``"cyclic"``. An absent client of the Markov
    pattern returns with probability ``transition`` (0.05 in the authors' code) if its availability
    allows that. A cycle has ``period`` rounds (100 by default).
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
        # The second eigenvalue is 1 - P(comes) - P(goes), where P(goes) = P(comes) (1 - p) / p <=
        # 1.
        comes = np.minimum(self.transition, np.divide(p, 1 - p, where=p < 1, out=np.ones_like(p)))
        return MarkovOnOff(p, np.where(p < 1, 1 - comes / p, 0.0))


@dataclass(frozen=True)
class FourClasses(Presence):
    """CA-Fed's four classes of clients (Section V-A): high or low availability and correlation.

    In each half of the clients, a random half is available with probability 1/2 + g, and the others
    with 1/2 - g. In each of these groups, a random half has lambda = nu; for the others, lambda is
    drawn from a normal distribution with standard deviation epsilon. The number of clients must be
    a multiple of 8.
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
    """Participation replayed from a log of who was online.

    Client k is the k-th client of the log, in order of first appearance; the log must have as many
    clients as the experiment. Training begins with the log's round ``first_round``. A log that is
    shorter than the training is refused, unless ``repeat`` makes it start again after its last
    round. Oracles use the whole log: the shares of rounds, and the chains fitted to clients. A run
    is identified by the content of the log, not by the file's name or format, or by the clients'
    names.
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
        """Raise ValueError if the log has too few rounds."""
        if rounds > self.played.rounds_left:
            raise ValueError(
                f"file must be a log of at least the {rounds} rounds of training from round "
                f"{self.first_round} on, got {self.played.rounds_left} in {self.file!r}; "
                "repeat = true lets it begin again"
            )

    def identity(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the table with the content of the log instead of its file name."""
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
    """Return a log, cached for all cells of a table as long as the file does not change."""
    return read_log(path, round_length=round_length)


PRESENCES: Mapping[str, Callable[..., Presence]] = {
    "uniform": Uniform,
    "uniform availability": UniformAvailability,
    "by class shares": ByClassShares,
    "four classes": FourClasses,
    "log": Recorded,
}
