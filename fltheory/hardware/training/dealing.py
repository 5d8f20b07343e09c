"""The kinds of partition that an experiment may ask for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fltheory import validation
from fltheory.hardware import partitions
from fltheory.hardware.datasets.images import ImageData, Labels
from fltheory.hardware.partitions import Partition
from fltheory.hardware.training.strict import checked_flag
from fltheory.read_only import ReadOnlyArrays


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


class Dealing(Protocol):
    """A way to deal training images to clients."""

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        ...

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        ...


@dataclass(frozen=True)
class Evenly:
    """All images at random, sizes within one."""

    n_clients: int

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=1)

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        return _plain(partitions.evenly(data.train.labels, self.n_clients, rng), data)


@dataclass(frozen=True)
class ByClasses:
    """``classes_per_client`` classes for every client: SA-FL's p."""

    n_clients: int
    classes_per_client: int
    equal: bool = False

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=1)
        validation.whole_number("classes_per_client", self.classes_per_client, at_least=1)
        checked_flag("equal", self.equal)

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        parts = partitions.classes_per_client(
            data.train.labels, self.n_clients, self.classes_per_client, rng, equal=self.equal
        )
        return _plain(parts, data)


@dataclass(frozen=True)
class TwoClasses:
    """Two classes for every client, equal sizes: FedAR's."""

    n_clients: int

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=1)

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        return _plain(partitions.two_classes(data.train.labels, self.n_clients, rng), data)


@dataclass(frozen=True)
class ByDirichlet:
    """Random shares of the classes: FedAU's."""

    n_clients: int
    concentration: float

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=1)
        validation.positive("concentration", self.concentration)

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        parts = partitions.dirichlet(
            data.train.labels, self.n_clients, rng, concentration=self.concentration
        )
        return _plain(parts, data)


@dataclass(frozen=True)
class WithLabelSwap:
    """Images at random; the second half of the clients has pairs of labels swapped: CA-Fed's.

    Test images are dealt in the same way and swapped with their clients, so that the accuracy
    is the mean over clients.
    """

    n_clients: int
    pairs: int

    def __post_init__(self) -> None:
        validation.whole_number("n_clients", self.n_clients, at_least=2)
        validation.whole_number("pairs", self.pairs, at_least=1)

    def deal(self, data: ImageData, rng: np.random.Generator) -> Dealt:
        """Deal the images."""
        train, test = data.train.labels, data.test.labels
        parts = partitions.evenly(train, self.n_clients, rng)
        test_parts = partitions.evenly(test, self.n_clients, rng)
        swap = partitions.label_swap(data.n_classes, rng, pairs=self.pairs)
        second = range(self.n_clients // 2, self.n_clients)
        return Dealt(
            parts,
            partitions.swapped(train, parts, second, swap),
            partitions.swapped(test, test_parts, second, swap),
        )


def _plain(parts: Partition, data: ImageData) -> Dealt:
    return Dealt(parts, data.train.labels, data.test.labels)


DEALINGS: Mapping[str, Callable[..., Dealing]] = {
    "evenly": Evenly,
    "classes": ByClasses,
    "two classes": TwoClasses,
    "dirichlet": ByDirichlet,
    "label swap": WithLabelSwap,
}
