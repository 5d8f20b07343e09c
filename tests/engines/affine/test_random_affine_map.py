"""Laws of random affine maps against sums over a few maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fltheory.engines.affine.deviations import SharedSlope
from fltheory.engines.affine.random_affine_map import Effects, RandomAffineMap, mixture

K, N, D = 2, 3, 2
RNG = np.random.default_rng(5)
CHANCES = np.array([0.5, 0.3, 0.2])
A, B = RNG.standard_normal((3, K, N)), RNG.standard_normal((3, K))
A[2] = 0.0
NOISE = np.array([[2.0, 0.5], [0.5, 1.0]])
SUM = SharedSlope(
    RNG.standard_normal((K, N)), RNG.standard_normal((K, D)), np.diag([0.7, 0.2, 0.3]) + 0.1,
    (1.0, 1.0, 1.0), 3.0,
)  # fmt: skip
MATRIX, SECOND, FIRST = (RNG.standard_normal(shape) for shape in ((K, K), (N, N), N))


def law(*, sums: bool) -> RandomAffineMap:
    root = np.sqrt(CHANCES)
    return RandomAffineMap(
        mean_slope=np.tensordot(CHANCES, A, 1),
        mean_offset=CHANCES @ B,
        slopes=root[:, None, None] * A,
        offsets=root[:, None] * B,
        noise=NOISE,
        slope_error=1e-3,
        offset_error=2e-3,
        noise_error=3e-3,
        sums=(SUM,) if sums else (),
    )


@pytest.mark.parametrize("sums", [False, True])
def test_moments_are_those_of_the_maps(sums: bool) -> None:
    found, parts = law(sums=sums), [SUM] if sums else []

    def mean(of_map, of_part):  # type: ignore[no-untyped-def]
        total = sum(p * of_map(a, b) for p, a, b in zip(CHANCES, A, B, strict=True))
        return total + sum(of_part(part) for part in parts)

    def crossed(a: np.ndarray, b: np.ndarray, m: np.ndarray) -> np.ndarray:
        return np.outer(a @ m, b) + np.outer(b, a @ m)

    expected = {
        "spread": mean(lambda a, b: a @ SECOND @ a.T, lambda s: s.spread(SECOND)),
        "dual": mean(lambda a, b: a.T @ MATRIX @ a, lambda s: s.dual(MATRIX)),
        "cross": mean(lambda a, b: crossed(a, b, FIRST), lambda s: s.cross(FIRST)),
        "inflow": mean(lambda a, b: np.outer(b, b), lambda s: s.inflow) + NOISE,
        "gram": mean(lambda a, b: a.T @ a, lambda s: s.dual(np.eye(K))),
        "pulled": mean(lambda a, b: a.T @ b, lambda s: -s.slope.T @ s.push @ s.moments[1:, 0]),
        "square": mean(lambda a, b: b @ b, lambda s: np.trace(s.inflow)),
        "tensor": mean(lambda a, b: np.einsum("ac,bd->abcd", a, a), lambda s: s.spread_tensor),
        "still": 0.2 * np.outer(B[2], B[2]) + NOISE + sum(s.inflow for s in parts),
    }
    answers = {
        "spread": found.spread(SECOND),
        "dual": found.dual(MATRIX),
        "cross": found.cross(FIRST),
        "inflow": found.inflow,
        "gram": found.gram,
        "pulled": found.pulled_offset,
        "square": found.offset_square,
        "tensor": found.spread_tensor,
        "still": found.still_inflow,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(answers[name], value, atol=1e-13, err_msg=name)
    for unit, image in zip(np.eye(N), found.crosses, strict=True):
        np.testing.assert_allclose(image, found.cross(unit), atol=1e-13)
    assert found.size == K
    assert [len(part) for part in found.moving] == [2, 2]


def test_a_law_of_one_is_itself_and_a_share_of_one_is_not() -> None:
    one = law(sums=True)
    assert mixture([(1.0, one)]) is one
    half = mixture([(0.5, one)])
    np.testing.assert_allclose(half.inflow, 0.5 * one.inflow)


def test_mixtures_weigh_moments_and_take_the_largest_errors() -> None:
    one = law(sums=True)
    other = replace(one, noise=3 * NOISE, slope_error=5e-3, offset_error=1e-3, sums=())
    mixed = mixture([(0.25, one), (0.75, other)])
    for name in ("spread", "dual"):
        argument = SECOND if name == "spread" else MATRIX
        expected = 0.25 * getattr(one, name)(argument) + 0.75 * getattr(other, name)(argument)
        np.testing.assert_allclose(getattr(mixed, name)(argument), expected, atol=1e-13)
    np.testing.assert_allclose(mixed.inflow, 0.25 * one.inflow + 0.75 * other.inflow)
    np.testing.assert_allclose(mixed.mean_slope, one.mean_slope)
    np.testing.assert_allclose(mixed.mean_offset, one.mean_offset)
    assert (mixed.slope_error, mixed.offset_error, mixed.noise_error) == (5e-3, 2e-3, 3e-3)


@pytest.mark.parametrize("share", [1.0, -1.0])
@pytest.mark.parametrize("p", [1e-8, 0.25])
def test_mixtures_bound_what_errors_of_chances_do(p: float, share: float) -> None:
    """A factor T that is off by D leaves ``2 |T| |D| + |D|^2`` in second moments."""
    error = 0.5 * p
    for sums in (True, False):
        usual = law(sums=sums)
        rare = replace(usual, slopes=30 * usual.slopes, offsets=30 * usual.offsets, noise=9 * NOISE)
        mixed = mixture([(p, rare), (1 - p, usual)], error)
        true = mixture([(p + share * error, rare), (1 - p - share * error, usual)])
        off = mixed.slope_error - usual.slope_error
        size = np.sqrt(np.trace(mixed.gram))
        assert 0 < np.linalg.norm(true.gram - mixed.gram, "nuc") <= 2 * size * off + off**2
        off = mixed.offset_error - usual.offset_error
        size, lost = np.sqrt(mixed.offset_square), abs(true.offset_square - mixed.offset_square)
        assert 0 < lost <= 2 * size * off + off**2
        off = mixed.noise_error - usual.noise_error
        assert 0 < abs(np.trace(true.noise - mixed.noise)) <= off


UNBALANCED = np.array([[1.0, 0.3, 0.1], [0.3, 0.5, 0.0], [0.1, 0.0, 0.2]])
BALANCED = np.array([[1.0, -0.4, -0.6], [-0.4, 0.9, -0.5], [-0.6, -0.5, 1.1]])


@pytest.mark.parametrize("covariance", [UNBALANCED, BALANCED], ids=["any", "that add up to zero"])
@pytest.mark.parametrize("dim", [3, 41])
def test_effects_of_correlated_numbers(dim: int, covariance: np.ndarray) -> None:
    """From 41 numbers on, deviations may be held by their rows: the moments are the same."""
    rng = np.random.default_rng(2)
    slopes, offsets = np.zeros((3, dim, dim)), np.zeros((3, dim))
    for f in range(2):
        slopes[f, f], offsets[f, f] = rng.standard_normal(dim), 1.0
    offsets[2, 2] = 2.0
    mean_slope, mean_offset = rng.standard_normal((dim, dim)), rng.standard_normal(dim)
    found = Effects(slopes, offsets, covariance, covariance is BALANCED).law(
        mean_slope, mean_offset, np.eye(dim), slope_error=1.0, offset_error=2.0, noise_error=3.0
    )
    assert (found.rows is not None) is (dim > 40)
    second, first = np.diag(np.arange(1.0, dim + 1)), np.ones(dim)
    spread = mean_slope @ second @ mean_slope.T
    inflow = np.outer(mean_offset, mean_offset) + np.eye(dim)
    cross = np.outer(mean_slope @ first, mean_offset)
    for f in range(3):
        for g in range(3):
            spread = spread + covariance[f, g] * slopes[f] @ second @ slopes[g].T
            inflow = inflow + covariance[f, g] * np.outer(offsets[f], offsets[g])
            cross = cross + covariance[f, g] * np.outer(slopes[f] @ first, offsets[g])
    np.testing.assert_allclose(found.spread(second), spread, atol=1e-9)
    np.testing.assert_allclose(found.inflow, inflow, atol=1e-12)
    np.testing.assert_allclose(found.cross(first), cross + cross.T, atol=1e-9)
    assert (found.slope_error, found.offset_error, found.noise_error) == (1.0, 2.0, 3.0)


def test_what_all_have_alike_does_not_move_where_numbers_add_up_to_zero() -> None:
    """Slopes 1/3 of three clients, of whom a fixed number comes: nothing but the mean moves."""
    slopes, offsets = np.full((3, 1, 1), 1 / 3), np.array([[1.0], [2.0], [-1.0]])
    for balanced in (True, False):
        found = Effects(slopes, offsets, BALANCED, balanced).law(
            np.eye(1), np.zeros(1), np.eye(1), slope_error=0.0, offset_error=0.0, noise_error=0.0
        )
        assert (len(found.moving[0]) == 1) is balanced
        # Covariances times products of offsets, and the noise of variance 1.
        np.testing.assert_allclose(found.inflow, [[1 + 4 * 0.9 + 1.1 - 1.6 + 1.2 + 2.0 + 1.0]])
