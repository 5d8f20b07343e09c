"""Partitions: what is dealt, to whom, and how evenly."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fltheory.hardware import partitions
from fltheory.participation.bernoulli import correlated_availability

SEEDS = st.integers(0, 2**32 - 1)
CLASS_SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=7)


def labels_of(sizes, seed):
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


def assert_disjoint(parts, n):
    dealt = np.concatenate(parts)
    assert np.unique(dealt).size == dealt.size
    assert dealt.size == 0 or (dealt.min() >= 0 and dealt.max() < n)


def counts_of(labels, parts, n_classes):
    return np.array([np.bincount(labels[part], minlength=n_classes) for part in parts])


@given(CLASS_SIZES, st.integers(1, 9), SEEDS)
def test_evenly_covers_all_in_equal_parts(sizes, n_clients, seed):
    labels = labels_of(sizes, seed)
    assume(labels.size >= n_clients)
    parts = partitions.evenly(labels, n_clients, np.random.default_rng(seed))
    assert_disjoint(parts, labels.size)
    lengths = [part.size for part in parts]
    assert sum(lengths) == labels.size
    assert max(lengths) - min(lengths) <= 1


@given(st.data(), SEEDS, st.booleans())
def test_classes_per_client(data, seed, equal):
    n_classes, n_clients = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 8))
    p = data.draw(st.integers(1, n_classes))
    assume(p * n_clients >= n_classes)
    sizes = data.draw(st.lists(st.integers(8, 40), min_size=n_classes, max_size=n_classes))
    labels = labels_of(sizes, seed)
    rng = np.random.default_rng(seed)
    parts = partitions.classes_per_client(labels, n_clients, p, rng, equal=equal)
    assert_disjoint(parts, labels.size)
    counts = counts_of(labels, parts, n_classes)
    assert ((counts > 0).sum(axis=1) == p).all()
    holders = (counts > 0).sum(axis=0)
    assert holders.max() - holders.min() <= 1
    if equal:
        (share,) = set(counts[counts > 0].tolist())
        assert share == min(size // held for size, held in zip(sizes, holders, strict=True))
        return
    assert counts.sum(axis=0).tolist() == sizes
    for column in counts.T:
        held = column[column > 0]
        assert held.max() - held.min() <= 1


def test_every_table_of_holders_is_equally_likely():
    """Four clients, two of four classes each: 90 tables; false alarm 1e-9 (chi-squared).

    Finds deals that fill one client after another: then the first two share no class or both.
    """
    labels = np.repeat(np.arange(4), 2)
    rng = np.random.default_rng(11)
    draws = 1800
    found: Counter[bytes] = Counter()
    for _ in range(draws):
        parts = partitions.classes_per_client(labels, 4, 2, rng)
        found[counts_of(labels, parts, 4).tobytes()] += 1
    rows = [tuple(int(c in pair) for c in range(4)) for pair in combinations(range(4), 2)]
    tables = sum(
        np.array_equal(np.sum(table, axis=0), [2, 2, 2, 2])
        for table in np.array(np.meshgrid(*[range(6)] * 4)).reshape(4, -1).T
        for table in [np.array([rows[i] for i in table])]
    )
    assert tables == len(found) == 90
    statistic = sum((count - draws / 90) ** 2 / (draws / 90) for count in found.values())
    from scipy.stats import chi2

    assert statistic < chi2.isf(1e-9, 89)


def test_any_class_may_have_one_holder_more():
    labels = np.repeat(np.arange(3), 4)
    found = set()
    for seed in range(40):
        parts = partitions.classes_per_client(labels, 4, 1, np.random.default_rng(seed))
        found.add(int((counts_of(labels, parts, 3) > 0).sum(axis=0).argmax()))
    assert found == {0, 1, 2}


@pytest.mark.parametrize(
    ("sizes", "n_clients", "p", "message"),
    [
        ([5, 5], 4, 3, "p must be at most the number of classes, 2, got 3"),
        ([5, 5, 5], 2, 1, "p times n_clients must be at least 3, so that every class has a client"),
        ([5, 1], 4, 1, "an image of class 1 for each of its 2 clients, got 1"),
        ([5, 5], 0, 1, "n_clients must be a whole number of at least 1, got 0"),
        ([5, 5], 2, 0, "p must be a whole number of at least 1, got 0"),
    ],
)
def test_classes_that_cannot_be_dealt(sizes, n_clients, p, message):
    with pytest.raises(ValueError, match=message):
        partitions.classes_per_client(labels_of(sizes, 0), n_clients, p, np.random.default_rng(0))


@given(st.lists(st.integers(1, 60), min_size=2, max_size=6), st.integers(1, 9), SEEDS)
def test_two_classes_and_equal_sizes(sizes, n_clients, seed):
    labels = labels_of(sizes, seed)
    wanted = 2 * n_clients

    def shards(size):
        return sum(min(count // size, n_clients) for count in sizes)

    rng = np.random.default_rng(seed)
    if shards(1) < wanted:
        with pytest.raises(ValueError, match="labels must hold enough images of two classes"):
            partitions.two_classes(labels, n_clients, rng)
        return
    parts = partitions.two_classes(labels, n_clients, rng)
    assert_disjoint(parts, labels.size)
    counts = counts_of(labels, parts, len(sizes))
    assert ((counts > 0).sum(axis=1) == 2).all()
    (share,) = set(counts[counts > 0].tolist())
    assert shards(share) >= wanted > shards(share + 1)


def test_balanced_classes_leave_nothing():
    """CIFAR-10's 50,000 images for 100 clients: 500 each, 250 of each class (FedAR)."""
    labels = np.repeat(np.arange(10), 5000)
    parts = partitions.two_classes(labels, 100, np.random.default_rng(0))
    counts = counts_of(labels, parts, 10)
    assert np.unique(counts).tolist() == [0, 250]
    assert counts.sum() == 50_000


@given(CLASS_SIZES, st.integers(1, 6), st.sampled_from([0.1, 1.0, 100.0]), SEEDS)
def test_dirichlet_covers_all_and_leaves_nobody_without(sizes, n_clients, concentration, seed):
    labels = labels_of(sizes, seed)
    assume(labels.size >= 20 * n_clients)
    rng = np.random.default_rng(seed)
    parts = partitions.dirichlet(labels, n_clients, rng, concentration=concentration)
    assert_disjoint(parts, labels.size)
    assert sum(part.size for part in parts) == labels.size
    assert min(part.size for part in parts) > 0


@pytest.mark.parametrize("sizes", [[1, 1], [19, 1]])
def test_dirichlet_with_too_few_images(sizes):
    """One image too few, and exactly as many, which only one split in 50,000 would serve."""
    labels = np.repeat([0, 1], sizes)
    with pytest.raises(ValueError, match=f"for 20 clients .* got {labels.size}: a client would"):
        partitions.dirichlet(labels, 20, np.random.default_rng(0), concentration=1e-3)


def test_dirichlet_shares_a_class_as_the_drawn_kappa_say():
    """The first draw from the generator is kappa; what is dealt is within one image of it."""
    labels = np.repeat(np.arange(3), [1000, 500, 700])
    kappa = np.random.default_rng(8).dirichlet([0.5] * 3, 20)
    parts = partitions.dirichlet(labels, 20, np.random.default_rng(8), concentration=0.5)
    expected = kappa / kappa.sum(axis=0) * [1000, 500, 700]
    assert abs(counts_of(labels, parts, 3) - expected).max() <= 1


def test_dirichlet_is_concentrated_as_asked():
    labels = np.repeat(np.arange(10), 500)

    def largest_share(concentration):
        parts = partitions.dirichlet(
            labels, 20, np.random.default_rng(2), concentration=concentration
        )
        return partitions.class_shares(labels, parts, 10).max(axis=1).mean()

    assert largest_share(0.1) > 0.5
    assert largest_share(1000.0) < 0.15


def test_availability_goes_with_the_shares():
    labels = np.repeat(np.arange(10), 500)
    rng = np.random.default_rng(3)
    parts = partitions.dirichlet(labels, 50, rng)
    shares = partitions.class_shares(labels, parts, 10)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    for part, row in zip(parts, shares, strict=True):
        expected = [(labels[part] == kind).mean() for kind in range(10)]
        np.testing.assert_allclose(row, expected, rtol=1e-12)
    p = correlated_availability(shares, rng, mean=0.1, least=0.02)
    assert p.shape == (50,)


@given(st.integers(1, 4), st.integers(0, 6), SEEDS)
def test_label_swap_is_its_own_inverse(pairs, more, seed):
    n_classes = 2 * pairs + more
    swap = partitions.label_swap(n_classes, np.random.default_rng(seed), pairs=pairs)
    assert sorted(swap) == list(range(n_classes))
    np.testing.assert_array_equal(swap[swap], np.arange(n_classes))
    assert (swap != np.arange(n_classes)).sum() == 2 * pairs


def test_too_few_classes_to_swap():
    with pytest.raises(ValueError, match="n_classes must be a whole number of at least 4, got 3"):
        partitions.label_swap(3, np.random.default_rng(0))


@given(CLASS_SIZES, SEEDS)
def test_swapped_touches_the_group_alone(sizes, seed):
    labels = labels_of(sizes, seed)
    rng = np.random.default_rng(seed)
    parts = partitions.evenly(labels, min(4, labels.size), rng)
    swap = partitions.label_swap(8, rng)
    group = range(len(parts) // 2, len(parts))
    before = labels.copy()
    found = partitions.swapped(labels, parts, group, swap)
    np.testing.assert_array_equal(labels, before)
    for client, part in enumerate(parts):
        expected = swap[labels[part]] if client in group else labels[part]
        np.testing.assert_array_equal(found[part], expected)


@pytest.mark.parametrize("client", [-1, 2])
def test_group_of_strangers(client):
    parts = (np.array([0]), np.array([1]))
    with pytest.raises(ValueError, match=rf"group must name clients 0 \.\. 1, got {client}"):
        partitions.swapped([0, 1], parts, [client], [1, 0])


@pytest.mark.parametrize("labels", [[], [[0, 1]], [0.5, 1.0], [-1, 0]])
def test_labels_are_classes(labels):
    with pytest.raises(ValueError, match="labels must be classes of shape"):
        partitions.evenly(labels, 1, np.random.default_rng(0))


def test_more_clients_than_images():
    with pytest.raises(
        ValueError, match="n_clients must be at most the number of images, 2, got 3"
    ):
        partitions.evenly([0, 1], 3, np.random.default_rng(0))
