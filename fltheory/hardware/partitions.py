"""Partitions of a training set among clients, as in the papers.

The partitioning functions take the labels (n,) and return a tuple of index arrays, one per client,
in random order. No image is dealt twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.hardware.datasets.images import Labels
from fltheory.validation import FloatArray

Indices: TypeAlias = NDArray[np.intp]
Partition: TypeAlias = tuple[Indices, ...]

_MIXING = 20
_DRAWS = 100


def evenly(labels: ArrayLike, n_clients: int, rng: np.random.Generator) -> Partition:
    """Deal all images at random, so that client sizes differ by at most one (CA-Fed, V).

    Raises
    ------
    ValueError
        If there are fewer images than clients.
    """
    classes = _checked_labels(labels)
    n_clients = validation.whole_number("n_clients", n_clients, at_least=1)
    if classes.size < n_clients:
        raise ValueError(
            f"n_clients must be at most the number of images, {classes.size}, got {n_clients}"
        )
    return tuple(np.array_split(rng.permutation(classes.size), n_clients))


def classes_per_client(
    labels: ArrayLike,
    n_clients: int,
    p: int,
    rng: np.random.Generator,
    *,
    equal: bool = False,
) -> Partition:
    """Deal every client p random classes, and every class evenly (SA-FL, B.1).

    The paper does not say whether each client draws its classes independently. If so, with p = 1
    and ten clients, a third of the classes would belong to nobody, and accuracies above 70 % would
    be impossible. But Table 1 reports 84.49 % and, without four clients, 57.05 %. So every class
    goes to the same number of clients, or nearly the same if p n_clients is not a multiple of the
    number of classes. All such partitions are equally likely.

    Parameters
    ----------
    labels : array of int, (n,)
    n_clients : int
    p : int
        Number of classes per client.
    rng : numpy.random.Generator
    equal : bool
        Whether all clients get the same number of images of each of their classes, as large as
        possible; the remaining images are not used. Otherwise all images are dealt, and each class
        is split equally to within one image.

    Raises
    ------
    ValueError
        If there are fewer than p classes, the classes cannot all be dealt, or a class has fewer
        images than clients.
    """
    classes = _checked_labels(labels)
    n_clients = validation.whole_number("n_clients", n_clients, at_least=1)
    p = validation.whole_number("p", p, at_least=1)
    kinds, counts = np.unique(classes, return_counts=True)
    if p > kinds.size:
        raise ValueError(f"p must be at most the number of classes, {kinds.size}, got {p}")
    if p * n_clients < kinds.size:
        raise ValueError(
            f"p times n_clients must be at least {kinds.size}, so that every class has a client, "
            f"got {p} * {n_clients}"
        )
    holders = np.full(kinds.size, p * n_clients // kinds.size)
    holders[rng.permutation(kinds.size)[: p * n_clients % kinds.size]] += 1
    short = np.flatnonzero(counts < holders)
    if short.size:
        raise ValueError(
            f"labels must hold an image of class {kinds[short[0]]} for each of its "
            f"{holders[short[0]]} clients, got {counts[short[0]]}"
        )
    share = int((counts // holders).min()) if equal else None
    return _dealt(classes, kinds, _deal(holders, n_clients, p, rng), share, rng)


def two_classes(labels: ArrayLike, n_clients: int, rng: np.random.Generator) -> Partition:
    """Deal every client two classes, and all clients the same number of images (FedAR, 6.1).

    Classes are cut into 2 n_clients shards of equal size. This is the largest size for which there
    are enough shards and no client has to get two of the same class. So larger classes go to more
    clients. Images outside the shards are not used; there are none if all classes have the same
    size and their shards divide it.

    Raises
    ------
    ValueError
        If there are too few classes or images.
    """
    classes = _checked_labels(labels)
    n_clients = validation.whole_number("n_clients", n_clients, at_least=1)
    kinds, counts = np.unique(classes, return_counts=True)
    wanted = 2 * n_clients
    size = classes.size // wanted
    while size and np.minimum(counts // size, n_clients).sum() < wanted:
        size -= 1
    if not size:
        raise ValueError(
            "labels must hold enough images of two classes or more for "
            f"{wanted} shards, two for each of n_clients, got {classes.size} of {kinds.size}"
        )
    shards = np.minimum(counts // size, n_clients)
    while shards.sum() > wanted:
        shards[np.argmax(shards + rng.random(kinds.size))] -= 1
    return _dealt(classes, kinds, _deal(shards, n_clients, 2, rng), size, rng)


def dirichlet(
    labels: ArrayLike,
    n_clients: int,
    rng: np.random.Generator,
    *,
    concentration: float = 0.1,
) -> Partition:
    """Deal all images by clients' random shares of the classes (FedAU's experiments).

    Client n draws kappa_n ~ Dir(concentration) over the classes and gets the part ``kappa_nc /
    sum_m kappa_mc`` of class c, as in the authors' code. Sizes therefore differ. If a client has no
    images, shares are redrawn, at most a hundred times. `class_shares` of the result can be passed
    to `correlated_availability` of `fltheory.participation.bernoulli`.

    Raises
    ------
    ValueError
        If there are so few images that some client gets none.
    """
    classes = _checked_labels(labels)
    n_clients = validation.whole_number("n_clients", n_clients, at_least=1)
    validation.positive("concentration", concentration)
    kinds = np.unique(classes)
    for _ in range(_DRAWS if classes.size >= n_clients else 0):
        kappa = rng.dirichlet(np.full(kinds.size, concentration), n_clients)
        taken = np.cumsum(kappa / kappa.sum(axis=0), axis=0)
        parts: list[list[Indices]] = [[] for _ in range(n_clients)]
        for column, kind in enumerate(kinds):
            images = rng.permutation(np.flatnonzero(classes == kind))
            cuts = np.rint(images.size * taken[:-1, column]).astype(np.intp)
            for part, piece in zip(parts, np.split(images, cuts), strict=True):
                part.append(piece)
        dealt = tuple(rng.permutation(np.concatenate(part)) for part in parts)
        if all(part.size for part in dealt):
            return dealt
    raise ValueError(
        f"labels must hold enough images for {n_clients} clients at concentration "
        f"{concentration}, got {classes.size}: a client would have none"
    )


def class_shares(labels: ArrayLike, partition: Sequence[Indices], n_classes: int) -> FloatArray:
    """Return each client's shares of the classes, (n_clients, n_classes); rows sum to one."""
    classes = _checked_labels(labels)
    counts = [np.bincount(classes[part], minlength=n_classes) for part in partition]
    return np.array([count / count.sum() for count in counts])


def label_swap(n_classes: int, rng: np.random.Generator, *, pairs: int = 2) -> Labels:
    """Draw the relabelling that swaps random pairs of classes (CA-Fed, V).

    Returns
    -------
    array, (n_classes,)
        The new label of each class; 2 ``pairs`` classes change, and applying it twice gives the
        identity.

    Raises
    ------
    ValueError
        If there are too few classes.
    """
    pairs = validation.whole_number("pairs", pairs, at_least=1)
    n_classes = validation.whole_number("n_classes", n_classes, at_least=2 * pairs)
    swap = np.arange(n_classes, dtype=np.int64)
    chosen = rng.permutation(n_classes)[: 2 * pairs].reshape(2, pairs)
    swap[chosen] = chosen[::-1]
    return swap


def swapped(
    labels: ArrayLike, partition: Sequence[Indices], group: Iterable[int], swap: ArrayLike
) -> Labels:
    """Return the labels after relabelling one group of clients (CA-Fed's second group).

    Parameters
    ----------
    labels : array of int, (n,)
    partition : sequence of index arrays
    group : iterable of int
        Clients whose images are relabelled.
    swap : array, (n_classes,)
        New label of each class, from `label_swap`; apply it to the group's test images as well.

    Raises
    ------
    ValueError
        If ``group`` names a client that does not exist.
    """
    classes = _checked_labels(labels).copy()
    new = np.asarray(swap, dtype=np.int64)
    for client in group:
        if not 0 <= client < len(partition):
            raise ValueError(f"group must name clients 0 .. {len(partition) - 1}, got {client}")
        classes[partition[client]] = new[classes[partition[client]]]
    return classes


def _checked_labels(labels: ArrayLike) -> Labels:
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or array.min() < 0:
        raise ValueError(
            "labels must be classes of shape (n,), n at least 1, counted from 0, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _deal(
    holders: NDArray[np.intp], n_clients: int, p: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw which clients hold which classes, with p per client and ``holders[c]`` for class c.

    One after another, the clients take the classes with the most places left, which never gets
    stuck. Random switches of two clients' classes, which form a symmetric walk, then make all such
    tables equally likely.
    """
    left = holders.copy()
    holds = np.zeros((n_clients, holders.size), dtype=bool)
    for client in rng.permutation(n_clients):
        chosen = np.lexsort((rng.random(left.size), -left))[:p]
        holds[client, chosen] = True
        left[chosen] -= 1
    who, what = np.nonzero(holds)
    for first, second in rng.integers(who.size, size=(_MIXING * who.size, 2)):
        a, b, x, y = who[first], who[second], what[first], what[second]
        if not holds[a, y] and not holds[b, x]:
            holds[[a, b], [x, y]], holds[[a, b], [y, x]] = False, True
            what[first], what[second] = y, x
    return holds


def _dealt(
    classes: Labels,
    kinds: Labels,
    holds: NDArray[np.bool_],
    share: int | None,
    rng: np.random.Generator,
) -> Partition:
    """Split each class among its holders: all its images, or ``share`` images for each holder."""
    parts: list[list[Indices]] = [[] for _ in holds]
    for column in np.flatnonzero(holds.any(axis=0)):
        images = rng.permutation(np.flatnonzero(classes == kinds[column]))
        owners = rng.permutation(np.flatnonzero(holds[:, column]))
        if share is not None:
            images = images[: share * owners.size]
        for owner, piece in zip(owners, np.array_split(images, owners.size), strict=True):
            parts[owner].append(piece)
    return tuple(rng.permutation(np.concatenate(part)) for part in parts)
