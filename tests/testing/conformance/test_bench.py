"""Where expected and actual models part."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.testing.conformance.bench import Comparison

EXPECTED = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, None),
        ({(1, 0): 3.0625}, None),  # as far as it may be
        ({(1, 0): 3.125}, 1),
        ({(1, 1): 3.875, (2, 0): 0.0}, 1),
        ({(2, 1): np.nan}, 2),
        ({(0, 1): np.inf}, 0),
    ],
    ids=["alike", "at the tolerance", "above", "below, twice", "no number", "infinite"],
)
def test_the_first_row_that_is_off_by_more_than_the_tolerance(changes, first) -> None:
    actual = EXPECTED.copy()
    for place, value in changes.items():
        actual[place] = value
    assert Comparison(EXPECTED, actual, 0.0625).first_wrong == first
    assert Comparison(EXPECTED, actual, np.full((3, 2), 0.0625)).first_wrong == first
