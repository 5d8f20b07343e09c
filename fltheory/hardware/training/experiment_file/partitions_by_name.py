"""The kinds of partition that an experiment may ask for, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from fltheory import validation
from fltheory.files.tables import checked_flag
from fltheory.hardware import partitions
from fltheory.hardware.datasets.images import ImageData, Labels
from fltheory.hardware.partitions import Partition
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
