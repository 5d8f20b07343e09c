"""Second moments of sums over participants, against sums over all that may happen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from fltheory.engines.affine.deviations import OwnSlopes, SharedSlope

K, N, D, CLIENTS = 3, 4, 2, 3
RNG = np.random.default_rng(1)
INTO, START = RNG.standard_normal((K, D)), RNG.standard_normal((D, N))
SLOPES, OPTIMA = RNG.standard_normal((CLIENTS, D, D)), RNG.standard_normal((CLIENTS, D))
CHANCES = (0.2, 0.5, 0.9)
SECOND, MATRIX = RNG.standard_normal((N, N)), RNG.standard_normal((K, K))
FIRST = RNG.standard_normal(N)
SIZES = (2.0, 3.0, 5.0)


def cases(slopes: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Yield each deviation ``A = Q G B`` and ``b = -Q g`` of three coins with its probability."""
    for there in product((0, 1), repeat=CLIENTS):
        chance = np.prod([p if one else 1 - p for one, p in zip(there, CHANCES, strict=True)])
        z = np.array(there) - np.array(CHANCES)
        summed = np.einsum("i,iab->ab", z, slopes)
        pulled = np.einsum("i,iab,ib->a", z, slopes, OPTIMA)
        yield float(chance), INTO @ summed @ START, -INTO @ pulled


def shared() -> SharedSlope:
    rows = np.hstack([np.ones((CLIENTS, 1)), OPTIMA])
    variances = [p * (1 - p) for p in CHANCES]
    moments = np.einsum("i,ia,ib->ab", variances, rows, rows)
    push = INTO @ SLOPES[0]
    return SharedSlope(push @ START, push, moments, SIZES, 7.0)


def own() -> OwnSlopes:
    pulls = np.einsum("iab,ib->ia", SLOPES, OPTIMA)
    rows = np.hstack([SLOPES.reshape(CLIENTS, -1), pulls])
    variances = [p * (1 - p) for p in CHANCES]
    covariance = np.einsum("i,ia,ib->ab", variances, rows, rows)
    return OwnSlopes.of(INTO, START, covariance, SIZES, 7.0)


BOTH = {"shared": (shared, np.tile(SLOPES[:1], (CLIENTS, 1, 1))), "own": (own, SLOPES)}


@pytest.mark.parametrize("factor", [1.0, 0.25])
@pytest.mark.parametrize("kind", BOTH)
def test_moments_are_those_of_all_cases(kind: str, factor: float) -> None:
    make, slopes = BOTH[kind]
    found = make().scaled(factor)
    expected = {
        "spread": 0.0, "dual": 0.0, "cross": 0.0, "inflow": 0.0, "tensor": 0.0,
    }  # fmt: skip
    for chance, a, b in cases(slopes):
        half = np.outer(a @ FIRST, b)
        expected["spread"] += chance * (a @ SECOND @ a.T)
        expected["dual"] += chance * (a.T @ MATRIX @ a)
        expected["cross"] += chance * (half + half.T)
        expected["inflow"] += chance * np.outer(b, b)
        expected["tensor"] += chance * np.einsum("ac,bd->abcd", a, a)
    answers = {
        "spread": found.spread(SECOND),
        "dual": found.dual(MATRIX),
        "cross": found.cross(FIRST),
        "inflow": found.inflow,
        "tensor": found.spread_tensor,
    }
    for name, value in answers.items():
        np.testing.assert_allclose(value, factor * expected[name], atol=1e-12, err_msg=name)
    assert not found.still


def spectral(matrix: np.ndarray) -> float:
    return float(np.linalg.svd(np.abs(matrix), compute_uv=False)[0])


def test_sizes_of_terms_and_how_many_there_are() -> None:
    """Each moment times what it is multiplied by on both sides, entries by their sizes."""
    into, start = spectral(INTO), spectral(START)
    push, slope = spectral(INTO @ SLOPES[0]), spectral(INTO @ SLOPES[0] @ START)
    assert shared().works == pytest.approx((2 * slope**2, 2 * 3 * slope * push, 5 * push**2))
    assert own().works == pytest.approx(
        (2 * (into * start) ** 2, 2 * 3 * into**2 * start, 5 * into**2)
    )
    assert shared().scaled(0.5).sizes == own().scaled(0.5).sizes == (1.0, 1.5, 2.5)
    assert shared().operations == 7
    # d^2 terms for the moments, twice d for Q and twice as many rows as B has.
    assert own().operations == 7 + D**2 + 2 * D + 2 * D


def test_where_slopes_do_not_vary() -> None:
    still = shared()
    moments = still.moments.copy()
    moments[0], moments[:, 0] = 0.0, 0.0
    quiet = SharedSlope(still.slope, still.push, moments, SIZES, 7.0)
    assert quiet.still
    np.testing.assert_array_equal(quiet.spread(SECOND), np.zeros((K, K)))
    np.testing.assert_array_equal(quiet.cross(FIRST), np.zeros((K, K)))
    for part, whole in (("of_slopes", False), ("of_both", False), ("none", True)):
        kept = own()
        arrays = {name: 0 * getattr(kept, name) for name in ("of_slopes", "of_both")}
        if part != "none":
            arrays[part] = getattr(kept, part)
        changed = OwnSlopes(
            INTO, START, arrays["of_slopes"], arrays["of_both"], kept.of_offsets, SIZES, 7.0
        )
        assert changed.still is whole
