"""Weights of fastest convergence: closed forms, and what the paper's guideline A rests on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fltheory import weights


@st.composite
def problems(draw: st.DrawFn) -> dict[str, object]:
    n_clients = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    pi = 10 ** rng.uniform(-draw(st.sampled_from([0.3, 2.0, 6.0])), 0, n_clients)
    spread = 10 ** rng.uniform(-1, 1, n_clients)
    return {
        "availability": pi,
        "a": draw(st.sampled_from([pi, spread, pi * spread])),
        "b": draw(st.sampled_from([0.0, 1e-3, 0.1, 1.0, 100.0])),
        "total": draw(st.sampled_from([0.3, 1.0, 5.0])),
    }


def test_without_offset_more_weight_for_the_less_available() -> None:
    """b = 0, a = pi: (1/2 sum pi q^2) / (pi'q), worked by hand for pi = (1, 1/4), Q = 1.

    q = lambda - theta / pi with sum q = 1 and sum pi q^2 = 2 lambda pi'q. Of the two stationary
    points, (1/3, 2/3) is the one in range: pi'q = 1/2, sum pi q^2 = 2/9, lambda = 2/9.
    """
    found = weights.optimal([1.0, 0.25], a=[1.0, 0.25], b=0.0, objective="convergence")
    np.testing.assert_allclose(found.q, [1 / 3, 2 / 3], rtol=1e-13)
    assert found.optimization_error == pytest.approx(2 / 9, rel=1e-13)
    assert found.availability_multiplier == pytest.approx(2 / 9, rel=1e-13)
    assert found.total_multiplier == pytest.approx(-1 / 9, rel=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 5e-17, 1e-12])
def test_curvatures_that_hardly_count_leave_all_to_the_most_available(scale: float) -> None:
    """As a vanishes (1/2 q'Aq + b) / (pi'q) is b / (pi'q): q is all on the largest pi."""
    pi = np.array([0.7, 0.9, 0.5, 0.3])
    found = weights.optimal(pi, a=scale * pi, b=400.0, objective="convergence")
    np.testing.assert_allclose(found.q, [0.0, 1.0, 0.0, 0.0], atol=1e-12)
    shared = weights.optimal([0.3, 0.9, 0.9], a=scale, b=400.0, objective="convergence")
    np.testing.assert_allclose(shared.q, [0.0, 0.5, 0.5], atol=1e-12)


RARE = np.array([6.63391838e-3, 4.15642820e-5, 1.76133167e-6, 1.25650961e-6, 7.57916628e-2])


@given(problems())
@example({"availability": RARE, "a": RARE, "b": 1e-3, "total": 1.0})
def test_the_form_of_equation_27(problem) -> None:
    """q_k = (lambda pi_k - theta)+ / a_k, and lambda is the minimum itself."""
    found = weights.optimal(**problem, objective="convergence")
    right = found.availability_multiplier * problem["availability"] - found.total_multiplier
    scale = np.abs(found.availability_multiplier * problem["availability"]) + abs(
        found.total_multiplier
    )
    np.testing.assert_array_less(
        np.abs(found.q * problem["a"] - np.maximum(right, 0)), 1e-9 * scale
    )
    assert found.availability_multiplier == pytest.approx(found.error, rel=1e-9)
    np.testing.assert_allclose(found.q.sum(), problem["total"], rtol=1e-12)


@given(problems())
def test_guideline_a_needs_a_large_enough_offset(problem) -> None:
    """theta > 0 exactly if b > 1/2 q'Aq, and only then is a client left out.

    With a in proportion to pi as in Theorem 2, the weights then rise with availability, as the
    guideline says; if not, they fall.
    """
    found = weights.optimal(**problem, objective="convergence")
    quadratic = 0.5 * float(problem["a"] @ found.q**2)
    if abs(problem["b"] - quadratic) < 1e-6 * (problem["b"] + quadratic):
        return
    speeds_up = problem["b"] > quadratic
    assert (found.total_multiplier > 0) == speeds_up
    if not speeds_up:
        assert found.q.min() > 0
    if problem["a"] is problem["availability"]:
        steps = np.diff(found.q[np.argsort(problem["availability"])])
        tolerance = 1e-9 * found.q.max()
        assert (steps if speeds_up else -steps).min(initial=0.0) >= -tolerance


@given(problems(), st.integers(0, 1000))
def test_no_random_weights_are_better(problem, seed: int) -> None:
    found = weights.optimal(**problem, objective="convergence")
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = found.q + found.q.mean() * 10 ** rng.uniform(-5, 0) * rng.random(found.q.size)
        other *= problem["total"] * (rng.random(found.q.size) < 0.8) / other.sum()
        if other.sum() == 0:
            continue
        other *= problem["total"] / other.sum()
        shown = float(problem["availability"] @ other)
        error = (0.5 * float(problem["a"] @ other**2) + problem["b"]) / shown
        assert error >= found.error * (1 - 1e-12)


@pytest.mark.parametrize("b", [0.0, 0.5, 50.0])
def test_an_independent_solver_agrees(b: float) -> None:
    rng = np.random.default_rng(3)
    pi, a = rng.uniform(0.05, 1, 200), rng.uniform(50, 200, 200)
    found = weights.optimal(pi, a=a, b=b, objective="convergence")
    conic = weights.optimal(pi, np.full(200, 1 / 200), a=a, b=b, bias=0.0, method="cvxpy")
    assert conic.error == pytest.approx(found.error, rel=1e-8)
    assert weights.optimal(pi, np.full(200, 1 / 200), a=a, b=b, bias=0.0).error == found.error


def test_a_vanishing_bias_is_the_limit_of_small_ones() -> None:
    """The bias left out costs at most bias * chi2 at the optimum that has it."""
    pi, alpha = np.array([0.9, 0.5, 0.3]), np.array([0.2, 0.3, 0.5])
    none = weights.optimal(pi, a=1.0, b=0.1, objective="convergence")
    for bias in (1e-3, 1e-6, 1e-9):
        some = weights.optimal(pi, alpha, a=1.0, b=0.1, bias=bias)
        assert none.error <= some.optimization_error * (1 + 1e-14)
        assert some.error - none.error <= bias * float(((alpha - none.p) ** 2 / none.p).sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.0], 1.0), r"availability must be above 0 .* got 0 for client 1"),
        (([0.5, 0.5], 0.0), r"a must be positive .* got 0 for client 0"),
        (([], 1.0), r"availability must have shape"),
    ],
)
def test_bad_input_is_named(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weights.optimal(arguments[0], a=arguments[1], b=1.0, objective="convergence")
