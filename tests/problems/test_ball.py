"""Largest affine norms over a ball, against samples, duality and solvable cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from fltheory.problems import Ball
from fltheory.problems.ball import largest_affine_norm, quadratic_maximiser


def dual_bound(slope: np.ndarray, offset: np.ndarray, radius: float) -> float:
    """Minimise ``lam rho^2 + g'(lam I - M)^{-1} g + ||b||^2`` over ``lam > lambda_max(M)``.

    Any such lam gives an upper bound (weak duality), so that the minimiser found need not
    be perfect; strong duality makes the best of them equal to the maximum.
    """
    values, basis = np.linalg.eigh(slope.T @ slope)
    pull = basis.T @ slope.T @ offset

    largest = max(values[-1], 0.0)

    def bound(log_gap: float) -> float:
        gap = np.exp(log_gap)  # may be below the last digit of lam itself
        inverse = float(pull @ (pull / (gap + (largest - values))))
        return (largest + gap) * radius**2 + inverse + float(offset @ offset)

    scale = np.log(max(np.linalg.norm(pull) / radius, 1e-30))
    best = minimize_scalar(
        bound, bounds=(scale - 45, scale + 5), method="bounded", options={"xatol": 1e-12}
    )
    return float(np.sqrt(best.fun))


@st.composite
def affine_maps(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw maps of any shape and rank, with offsets in general or in special position."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    slope = rng.standard_normal((rows, columns)) * 10 ** draw(st.floats(-3.0, 3.0))
    if draw(st.booleans()):
        slope[:, 0] = 0.0
    offset = rng.standard_normal(rows) * 10 ** draw(st.floats(-3.0, 3.0))
    return slope, offset, 10 ** draw(st.floats(-2.0, 2.0))


@given(affine_maps())
def test_dominates_points_and_meets_the_dual_bound(
    case: tuple[np.ndarray, np.ndarray, float],
) -> None:
    slope, offset, radius = case
    value = largest_affine_norm(slope, offset, radius)
    rng = np.random.default_rng(0)
    points = rng.standard_normal((200, slope.shape[1]))
    points *= radius * rng.random((200, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    points[::2] *= radius / np.linalg.norm(points[::2], axis=1, keepdims=True)
    found = np.linalg.norm(points @ slope.T + offset, axis=1).max()
    assert found <= value * (1 + 1e-12)
    np.testing.assert_allclose(value, dual_bound(slope, offset, radius), rtol=1e-7)


SOLVABLE = {
    "aligned": (np.diag([1.0, 3.0]), [0.0, 1.0], 2.0, 7.0),
    "no offset": (np.diag([1.0, 3.0]), [0.0, 0.0], 2.0, 6.0),
    "no slope": (np.zeros((2, 3)), [3.0, 4.0], 2.0, 5.0),
    "identity": (np.eye(2), [3.0, 4.0], 2.0, 7.0),
    "one coordinate": (np.array([[2.0]]), [-1.0], 3.0, 7.0),
    "wide": (np.array([[3.0, 4.0]]), [1.0], 2.0, 11.0),
    "tall": (np.array([[3.0], [4.0]]), [0.0, 5.0], 1.0, np.sqrt(9 + 81)),
    "hard case": (np.diag([2.0, 1.0]), [0.0, 1.5], 1.0, np.sqrt(7.0)),
    "hard direction, strong pull": (np.diag([2.0, 1.0]), [0.0, 4.0], 1.0, 5.0),
    "degenerate": (np.diag([2.0, 2.0]), [0.0, 0.0], 1.0, 2.0),
}


@pytest.mark.parametrize("case", SOLVABLE)
def test_solvable_cases(case: str) -> None:
    """By hand. Hard case: y = (cos, sin) maximises 4 cos^2 + (sin + 3/2)^2 at sin = 1/2: 7."""
    slope, offset, radius, expected = SOLVABLE[case]
    value = largest_affine_norm(slope, np.array(offset), radius)
    np.testing.assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("flatter", "offset", "expected"),
    [(2.0, [0.0, 1e-200], 2.0), (1.0, [1e-310, 1.5], np.sqrt(7.0))],
)
def test_pull_near_the_smallest_numbers(
    flatter: float, offset: list[float], expected: float
) -> None:
    """The offset's smallest entry is far below rounding in these answers."""
    value = largest_affine_norm(np.diag([2.0, flatter]), np.array(offset), 1.0)
    np.testing.assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.parametrize("pull", [0.0, 1e-200, 1e-60, 1e-20, 1e-8, 1e-3])
def test_next_to_the_hard_case(pull: float) -> None:
    """A dense sweep of the circle bounds the maximum to second order in its spacing."""
    slope, offset = np.diag([2.0, 1.0]), np.array([pull, 1.5])
    angles = np.linspace(0, 2 * np.pi, 200_001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sweep = np.linalg.norm(circle @ slope.T + offset, axis=1).max()
    value = largest_affine_norm(slope, offset, 1.0)
    assert sweep <= value * (1 + 1e-13)
    np.testing.assert_allclose(value, sweep, rtol=1e-9)


@given(affine_maps(), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_homogeneity(
    case: tuple[np.ndarray, np.ndarray, float], length: float, size: float
) -> None:
    """A longer radius with a flatter slope is the same; values scale with the map."""
    slope, offset, radius = case
    value = largest_affine_norm(slope, offset, radius)
    np.testing.assert_allclose(
        largest_affine_norm(size * slope / length, size * offset, length * radius),
        size * value,
        rtol=1e-11,
    )


def test_ball_holds_a_copy() -> None:
    centre = np.zeros(2)
    ball = Ball(centre, 1)
    centre[0] = 7.0
    np.testing.assert_array_equal(ball.centre, [0.0, 0.0])
    assert ball.radius == 1.0


@pytest.mark.parametrize(
    ("centre", "radius", "message"),
    [
        ([[0.0]], 1.0, r"centre must have shape \(dim,\), got \(1, 1\)"),
        ([0.0, np.nan], 1.0, r"centre must be finite, got nan"),
        ([0.0], 0.0, r"radius must be a finite number above 0, got 0\.0"),
        ([0.0], np.inf, r"radius must be a finite number above 0, got inf"),
    ],
)
def test_bad_input_is_named(centre: object, radius: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ball(centre, radius)


@pytest.mark.parametrize("seed", range(20))
def test_quadratics_of_either_sign_are_largest_where_said(seed: int) -> None:
    """Against points of the ball, and their ascent: no point does better."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    hessian = root + root.T - seed % 3 * 3 * np.eye(3)
    gradient = rng.normal(size=3) * (0.0 if seed % 5 == 4 else 10.0 ** (seed % 4 - 2))
    radius = float(10.0 ** rng.uniform(-1, 1))
    best = quadratic_maximiser(hessian, gradient, radius)
    points = rng.normal(size=(20_000, 3))
    points *= radius / np.linalg.norm(points, axis=1, keepdims=True)
    points[::2] *= rng.random((10_000, 1)) ** (1 / 3)

    def value(y: np.ndarray) -> np.ndarray:
        return np.einsum("...i,ij,...j->...", y, hessian, y) / 2 + y @ gradient

    assert np.linalg.norm(best) <= radius * (1 + 1e-9)
    spread = np.ptp(value(points))
    assert value(points).max() <= value(best) + 1e-9 * spread
    assert value(points).max() >= value(best) - 0.02 * spread


def test_a_pull_across_the_widest_direction_is_the_hard_case() -> None:
    """Largest at (y, z) with z = 1/(2 - 1) and y to the boundary: hand-worked at radius 2."""
    best = quadratic_maximiser(np.diag([1.0, 2.0]), np.array([1.0, 0.0]), 2.0)
    np.testing.assert_allclose(np.abs(best), [1.0, np.sqrt(3.0)], rtol=1e-9)
