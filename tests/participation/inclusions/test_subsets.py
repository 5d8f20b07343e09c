"""Enumerations of sets: how many there are, that each differs, and who may be in them."""

from __future__ import annotations

from math import comb

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fltheory.participation.base import between, of_size

masks = st.lists(st.booleans(), min_size=1, max_size=7).map(np.array)


@given(among=masks, data=st.data())
def test_sets_of_a_size_are_counted_by_binomials(among: np.ndarray, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, among.size))
    found = list(of_size(size, among))
    assert len({mask.tobytes() for mask in found}) == len(found) == comb(int(among.sum()), size)
    assert all(mask.sum() == size and not (mask & ~among).any() for mask in found)


@given(varying=masks)
def test_sets_between_two_are_counted_by_powers(varying: np.ndarray) -> None:
    least = ~varying
    least[0] = False
    found = list(between(least, varying))
    assert len({mask.tobytes() for mask in found}) == len(found) == 2 ** int(varying.sum())
    assert all((least <= mask).all() and (mask <= least | varying).all() for mask in found)


def test_their_order() -> None:
    """As in counting: the last client changes first."""
    nobody, all_three = np.zeros(3, dtype=bool), np.ones(3, dtype=bool)
    assert [m.nonzero()[0].tolist() for m in of_size(2, all_three)] == [[0, 1], [0, 2], [1, 2]]
    numbers = [int(mask @ [4, 2, 1]) for mask in between(nobody, all_three)]
    assert numbers == list(range(8))
