"""Rows with correlated coefficients against the dense sums that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.engines.affine import deviations, random_affine_map
from fltheory.engines.affine.deviations import CorrelatedRows
from fltheory.engines.affine.random_affine_map import Effects, RandomAffineMap, mixture
from fltheory.engines.moments.moment_map import MomentMap, packed

SIZE, MAPS = 6, 5
NO_ERRORS = {"slope_error": 0.0, "offset_error": 0.0, "noise_error": 0.0}


def effects(seed: int) -> Effects:
    """Return maps with two rows each, one of them shared by all, and correlated coefficients."""
    rng = np.random.default_rng(seed)
    slopes, offsets = np.zeros((MAPS, SIZE, SIZE)), np.zeros((MAPS, SIZE))
    for index in range(MAPS):
        rows = [0, 1 + index]
        slopes[index, rows] = rng.standard_normal((2, SIZE))
        offsets[index, rows] = rng.standard_normal(2)
    root = rng.standard_normal((MAPS, MAPS))
    return Effects(slopes, offsets, root @ root.T, balanced=False)


def law(seed: int, largest_dense: int, monkeypatch: pytest.MonkeyPatch) -> RandomAffineMap:
    monkeypatch.setattr(random_affine_map, "LARGEST_DENSE_STATE", largest_dense)
    rng = np.random.default_rng(seed + 1)
    mean, offset = rng.standard_normal((SIZE, SIZE)), rng.standard_normal(SIZE)
    return effects(seed).law(mean, offset, np.eye(SIZE), **NO_ERRORS)


def by_sums(seed: int, second: np.ndarray) -> np.ndarray:
    """Return ``sum_fg C_fg D_f M D_g'``."""
    parts = effects(seed)
    return np.einsum("fg,fab,bc,gdc->ad", parts.covariance, parts.slopes, second, parts.slopes)


@given(seed=st.integers(0, 1000), sparse=st.booleans())
def test_rows_stand_for_the_sum_over_pairs_of_maps(seed: int, sparse: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deviations, "_SPARSE", 1.0 if sparse else 0.0)
        _compare_with_sums(seed)


def _compare_with_sums(seed: int) -> None:
    parts = effects(seed)
    rows = CorrelatedRows.of(parts.slopes, parts.offsets, parts.covariance)
    rng = np.random.default_rng(seed)
    second, first, weight = (
        rng.standard_normal((SIZE, SIZE)),
        rng.standard_normal(SIZE),
        np.eye(SIZE),
    )
    expected = by_sums(seed, second)
    assert rows.count == 2 * MAPS
    np.testing.assert_allclose(rows.spread(second), expected, atol=1e-11)
    np.testing.assert_allclose(
        np.einsum("abcd,cd->ab", rows.spread_tensor, second), expected, atol=1e-11
    )
    pushed = np.einsum("fg,fab,b,gc->ac", parts.covariance, parts.slopes, first, parts.offsets)
    np.testing.assert_allclose(rows.cross(first), pushed + pushed.T, atol=1e-11)
    inflow = np.einsum("fg,fa,gb->ab", parts.covariance, parts.offsets, parts.offsets)
    np.testing.assert_allclose(rows.inflow, inflow, atol=1e-11)
    assert (rows.dual(weight) * second).sum() == pytest.approx(np.trace(expected), abs=1e-10)


def test_rows_and_factors_are_two_forms_of_one_law(monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows, by_factors = law(3, 0, monkeypatch), law(3, 40, monkeypatch)
    assert by_rows.rows is not None
    assert by_factors.rows is None
    rng = np.random.default_rng(0)
    root, first = rng.standard_normal((SIZE, SIZE)), rng.standard_normal(SIZE)
    found, expected = (
        MomentMap(one)(packed(root @ root.T, first, np.ones(()))) for one in (by_rows, by_factors)
    )
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-11, atol=1e-11)
    for name in ("gram", "inflow", "pulled_offset", "offset_square", "spread_tensor"):
        np.testing.assert_allclose(
            getattr(by_rows, name), getattr(by_factors, name), rtol=1e-11, atol=1e-10
        )
    np.testing.assert_allclose(by_rows.dual(root), by_factors.dual(root), atol=1e-10)
    sizes = [MomentMap(one).rounding for one in (by_rows, by_factors)]
    for name in ("second_gain", "offset_size"):
        assert getattr(sizes[0], name) == pytest.approx(getattr(sizes[1], name), rel=1e-12)


def test_a_mixture_mixes_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [law(seed, 0, monkeypatch) for seed in (4, 5)]
    mixed = mixture([(0.25, parts[0]), (0.75, parts[1])])
    second = np.diag(np.arange(1.0, SIZE + 1))
    expected = 0.25 * parts[0].spread(second) + 0.75 * parts[1].spread(second)
    np.testing.assert_allclose(mixed.spread(second), expected, rtol=1e-12, atol=1e-12)


def test_no_rows_at_all() -> None:
    none = CorrelatedRows.of(np.zeros((2, SIZE, SIZE)), np.zeros((2, SIZE)), np.eye(2))
    assert not none.spread(np.eye(SIZE)).any()
    assert none.work(*none.norms) == 0.0
