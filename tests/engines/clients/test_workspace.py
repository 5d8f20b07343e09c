"""Memory that is used again, and products in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.engines.clients import summed_maps
from fltheory.engines.clients.summed_maps import Scratch, product


def test_memory_is_used_again_and_grows() -> None:
    scratch = Scratch()
    small = scratch.array("a", 2, 3)
    assert small.shape == (2, 3)
    assert np.shares_memory(scratch.array("a", 6), small)
    assert np.shares_memory(scratch.array("a", 2, 2), small)
    assert not np.shares_memory(scratch.array("b", 2, 3), small)
    larger = scratch.array("a", 7)
    assert not np.shares_memory(larger, small)
    assert np.shares_memory(scratch.array("a", 7), larger)


@pytest.mark.parametrize("given", [False, True])
def test_products_are_made_some_rows_at_a_time(
    given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By 12 numbers with at most 30 multiplications: two rows at a time, and never none."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((5, 3)), rng.standard_normal((3, 4))
    rows: list[int] = []
    matmul = np.matmul

    def noted(some, *rest, **options):  # type: ignore[no-untyped-def]
        rows.append(len(some))
        return matmul(some, *rest, **options)

    monkeypatch.setattr(np, "matmul", noted)
    for most, expected in ((30, [2, 2, 1]), (1, [1] * 5), (60, [5])):
        monkeypatch.setattr(summed_maps, "_LARGEST_PRODUCT", most)
        rows.clear()
        out = np.full((5, 4), np.nan) if given else None
        found = product(left, right, out)
        assert rows == expected
        assert out is None or found is out
        np.testing.assert_allclose(found, left @ right)
    assert product(left, np.zeros((3, 0))).shape == (5, 0)
