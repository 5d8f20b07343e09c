"""A log of stays is the matrix of who was there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fltheory.logs import AvailabilityLog

MATRICES = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=9))


@given(MATRICES)
def test_stays_are_the_matrix(masks) -> None:
    log = AvailabilityLog.from_masks(masks)
    np.testing.assert_array_equal(log.present(), masks)
    np.testing.assert_array_equal(log.marginals, masks.mean(axis=0))
    np.testing.assert_array_equal(log.n_present, masks.sum(axis=1))
    np.testing.assert_array_equal(log.rounds_present, masks.sum(axis=0))
    assert (log.n_rounds, log.n_clients) == masks.shape


@given(MATRICES, st.data())
def test_a_part_is_a_part_of_the_matrix(masks, data) -> None:
    rounds, count = masks.shape
    first = data.draw(st.integers(0, rounds - 1))
    stop = data.draw(st.integers(first + 1, rounds))
    clients = data.draw(st.lists(st.integers(0, count - 1), unique=True))
    found = AvailabilityLog.from_masks(masks).present(first, stop, clients)
    np.testing.assert_array_equal(found, masks[first:stop, clients])


def test_stays_may_come_in_any_order() -> None:
    log = AvailabilityLog(("a", "b"), 5, who=[1, 0, 1], first=[4, 0, 1], stop=[5, 2, 2])
    assert log.present().astype(int).T.tolist() == [[1, 1, 0, 0, 0], [0, 1, 0, 0, 1]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clients": ()}, "clients must contain at least one name, got none"),
        ({"clients": ("a", "a")}, "different names, got 'a' twice"),
        ({"clients": ("a", " b")}, "no spaces around them, got ' b'"),
        ({"clients": ("a", "b\nc")}, r"one-line names .*, got 'b\\nc'"),
        ({"n_rounds": 0}, "n_rounds must be a whole number of at least 1, got 0"),
        ({"who": [0, 2]}, r"who must be in 0 .. 1, got 2"),
        ({"who": [0]}, r"one shape, got \(1,\), \(2,\), \(2,\)"),
        ({"first": [0.0, 1.0]}, "first must be whole numbers"),
        ({"stop": [2, 6]}, "0 <= first < stop <= 5, got 3 and 6 for client 1"),
        ({"who": [0, 0], "first": [0, 2]}, "must be separate, got one that ends before round 2"),
    ],
)
def test_bad_stays_are_refused(changed, message) -> None:
    good = {"clients": ("a", "b"), "n_rounds": 5, "who": [0, 1], "first": [0, 3], "stop": [2, 5]}
    AvailabilityLog(**good)
    with pytest.raises(ValueError, match=message):
        AvailabilityLog(**{**good, **changed})


def test_names_may_come_one_by_one() -> None:
    assert AvailabilityLog.from_masks([[1], [0]], iter(["ann"])).clients == ("ann",)


def test_a_range_outside_the_record_is_refused() -> None:
    log = AvailabilityLog.from_masks([[1], [0]], ["ann"])
    with pytest.raises(ValueError, match="within 2, got 1 and 3"):
        log.present(1, 3)
    with pytest.raises(ValueError, match="clients must be 1 names, got 2"):
        AvailabilityLog.from_masks([[1], [0]], ["ann", "bob"])
