"""Optimal weights: closed forms, brute force, the optimality conditions, an independent solver."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory import weights
from fltheory.validation import FloatArray
from fltheory.weights import conic, newton
from fltheory.weights.optimum import OptimalWeights
from fltheory.weights.trade_off import TradeOff


def value(
    q: FloatArray, pi: FloatArray, alpha: FloatArray, a: FloatArray, b: float, bias: float
) -> tuple[float, float]:
    """Return both errors as the paper writes them, over q."""
    p = pi * q / (pi @ q)
    return (0.5 * a @ q**2 + b) / (pi @ q), bias * float(((alpha - p) ** 2 / p).sum())


@st.composite
def problems(draw: st.DrawFn, most_clients: int = 8) -> dict[str, object]:
    """Problems whose terms differ in size by up to six orders of magnitude."""
    n_clients = draw(st.integers(1, most_clients))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rarest = draw(st.sampled_from([0.1, 1.0, 3.0]))
    alpha = 0.01 / n_clients + 0.99 * rng.dirichlet(np.ones(n_clients))
    return {
        "availability": 10 ** rng.uniform(-rarest, 0, n_clients),
        "target_weights": alpha / alpha.sum(),
        "a": n_clients * 10 ** rng.uniform(-2, 2, n_clients),
        "b": draw(st.sampled_from([0.0, 0.01, 1.0, 100.0])),
        "bias": draw(st.sampled_from([1e-3, 0.1, 1.0, 1e3])),
        "total": draw(st.sampled_from([0.5, 1.0, 20.0])),
    }


def errors_of(found: OptimalWeights, problem: dict[str, object]) -> tuple[float, float]:
    return value(
        found.q,
        problem["availability"],
        problem["target_weights"],
        problem["a"],
        problem["b"],
        problem["bias"],
    )


def test_one_client_takes_all() -> None:
    """(1/2 a Q^2 + b) / (pi Q) with a = 3, b = 2, Q = 4, pi = 1/4: 26."""
    found = weights.optimal([0.25], [1.0], a=3.0, b=2.0, bias=5.0, total=4.0)
    assert found.q.tolist() == [4.0]
    assert found.p.tolist() == [1.0]
    assert found.optimization_error == pytest.approx(26.0, rel=1e-14)
    assert found.bias_error == 0


@pytest.mark.parametrize("n_clients", [2, 7, 5000])
@pytest.mark.parametrize("bias", [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("b", [0.0, 3.0])
def test_alike_clients_share_alike(n_clients: int, bias: float, b: float) -> None:
    """By symmetry q = Q/N, so the error is (a Q^2 / (2N) + b) / (pi Q)."""
    found = weights.optimal(
        np.full(n_clients, 0.3),
        np.full(n_clients, 1 / n_clients),
        a=2.0,
        b=b,
        bias=bias,
        total=6.0,
    )
    np.testing.assert_allclose(found.q, 6.0 / n_clients, rtol=1e-12)
    assert found.optimization_error == pytest.approx((36.0 / n_clients + b) / 1.8, rel=1e-12)
    assert found.bias_error == pytest.approx(0.0, abs=1e-12 * bias)


def test_a_heavy_bias_gives_the_unbiased_weights() -> None:
    """Guideline C, Section III-B: as the bias grows q tends to alpha / pi, at rate 1 / bias."""
    pi, alpha = np.array([0.9, 0.5, 0.02]), np.array([0.2, 0.3, 0.5])
    unbiased = alpha / pi / (alpha / pi).sum()
    gaps = [
        np.abs(weights.optimal(pi, alpha, a=1.0, b=1.0, bias=bias).q / unbiased - 1).max()
        for bias in (1e4, 1e6, 1e8)
    ]
    assert gaps[2] < 1e-5
    np.testing.assert_allclose(gaps[0] / gaps[1], 100, rtol=0.05)
    np.testing.assert_allclose(gaps[1] / gaps[2], 100, rtol=0.05)


@pytest.mark.parametrize("bias", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("pi", [(0.9, 0.4), (0.5, 0.5), (1.0, 1e-3)])
@pytest.mark.parametrize("b", [0.0, 2.0])
def test_two_clients_against_brute_force(pi, bias: float, b: float) -> None:
    """A grid of 200 001 points in logit(q_1 / Q), narrowed once around its least value."""
    pi, alpha, a = np.array(pi), np.array([0.3, 0.7]), np.array([1.0, 2.0])

    def values(logits: FloatArray) -> FloatArray:
        q = 2.0 / (1 + np.exp(np.stack([-logits, logits])))
        shown = pi @ q
        p = pi[:, None] * q / shown
        chi2 = ((alpha[:, None] - p) ** 2 / p).sum(axis=0)
        return (0.5 * a @ q**2 + b) / shown + bias * chi2

    grid = np.linspace(-25, 25, 200_001)
    middle = grid[values(grid).argmin()]
    fine = middle + np.linspace(-1e-3, 1e-3, 200_001)
    found = weights.optimal(pi, alpha, a=a, b=b, bias=bias, total=2.0)
    least = values(fine).min()
    assert found.error == pytest.approx(least, rel=1e-12)
    best = fine[values(fine).argmin()]
    assert math.log(found.q[0] / found.q[1]) == pytest.approx(best, abs=1e-5)


@given(problems())
def test_the_errors_are_those_of_the_weights(problem) -> None:
    found = weights.optimal(**problem)
    assert found.q.min() > 0
    np.testing.assert_allclose(found.q.sum(), problem["total"], rtol=1e-12)
    shown = problem["availability"] * found.q
    np.testing.assert_allclose(found.p, shown / shown.sum(), rtol=1e-10)
    optimization, bias = errors_of(found, problem)
    assert found.optimization_error == pytest.approx(optimization, rel=1e-10)
    assert found.bias_error == pytest.approx(bias, rel=1e-8, abs=1e-10 * optimization)


@given(problems())
def test_the_gradient_over_q_is_flat(problem) -> None:
    """Optimality re-derived over q: the derivatives of the sum in every q_k agree.

    With D = pi'q, E = (1/2 q'Aq + b) / D, chi2 + 1 = sum_k alpha_k^2 D / (pi_k q_k): the
    derivative is (a_k q_k - E pi_k) / D + bias (S pi_k - D alpha_k^2 / (pi_k q_k^2)), with
    S = sum_k alpha_k^2 / (pi_k q_k).
    """
    pi, alpha, a = (problem[name] for name in ("availability", "target_weights", "a"))
    found = weights.optimal(**problem)
    assert found.kkt_residual < 1e-9
    q, shown = found.q, float(pi @ found.q)
    error = errors_of(found, problem)[0]
    terms = np.stack(
        [
            a * q / shown,
            -error * pi / shown,
            problem["bias"] * pi * (alpha**2 / (pi * q)).sum(),
            -problem["bias"] * shown * alpha**2 / (pi * q**2),
        ]
    )
    slope = terms.sum(axis=0)
    price = float(slope @ q) / problem["total"]
    np.testing.assert_array_less(
        np.abs(slope - price), 1e-9 * (np.abs(terms).sum(axis=0) + abs(price))
    )
    largest = np.abs(terms).sum(axis=0).max()
    assert price == pytest.approx(-found.total_multiplier / shown, abs=1e-8 * largest)


@given(problems(), st.integers(0, 1000))
def test_no_random_weights_are_better(problem, seed: int) -> None:
    found = weights.optimal(**problem)
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(20, found.q.size)) * 10 ** rng.uniform(-4, 1, size=(20, 1))
    for q in found.q * np.exp(noise):
        scaled = problem["total"] * q / q.sum()
        other = sum(
            value(
                scaled, *(problem[n] for n in ("availability", "target_weights", "a", "b", "bias"))
            )
        )
        assert other >= found.error * (1 - 1e-12)


@given(problems(), st.integers(0, 1000))
def test_the_order_of_clients_does_not_matter(problem, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(problem["a"].size)
    shuffled = dict(problem)
    for name in ("availability", "target_weights", "a"):
        shuffled[name] = problem[name][order]
    np.testing.assert_allclose(
        weights.optimal(**shuffled).q, weights.optimal(**problem).q[order], rtol=1e-7
    )


@given(problems(), st.sampled_from([0.1, 7.0, 1e3]))
def test_a_larger_total_is_a_change_of_units(problem, factor: float) -> None:
    """For q = c q', the terms c^2 a / c and b / c: total c Q with a / c, c b gives c q'."""
    rescaled = dict(problem)
    rescaled["total"] = factor * problem["total"]
    rescaled["a"] = problem["a"] / factor
    rescaled["b"] = problem["b"] * factor
    small, large = weights.optimal(**problem), weights.optimal(**rescaled)
    np.testing.assert_allclose(large.q, factor * small.q, rtol=1e-7)
    assert large.error == pytest.approx(small.error, rel=1e-11)


@pytest.mark.parametrize(
    "n_clients", [2, 24, 1000, pytest.param(10_000, marks=pytest.mark.soundness)]
)
@pytest.mark.parametrize("bias", [1.0, 1e-2])
def test_an_independent_solver_agrees(n_clients: int, bias: float) -> None:
    """The errors to 1e-8; the weights to 1e-3, as an error changes by their square."""
    rng = np.random.default_rng(n_clients)
    pi, alpha = rng.uniform(0.05, 1, n_clients), rng.dirichlet(np.full(n_clients, 5.0))
    options = {"a": 2 * n_clients * pi, "b": 0.5, "bias": bias}
    fast = weights.optimal(pi, alpha, **options)
    conic = weights.optimal(pi, alpha, **options, method="cvxpy")
    assert (fast.method, conic.method) == ("newton", "cvxpy")
    assert fast.kkt_residual < 1e-12
    assert conic.error == pytest.approx(fast.error, rel=1e-8)
    assert conic.error >= fast.error * (1 - 1e-13)
    np.testing.assert_allclose(conic.q, fast.q, rtol=1e-3)


def test_a_million_clients() -> None:
    rng = np.random.default_rng(5)
    pi, alpha = rng.uniform(0.05, 1, 10**6), rng.dirichlet(np.full(10**6, 5.0))
    found = weights.optimal(pi, alpha, a=2e6 * pi, b=0.5, bias=0.01)
    assert found.kkt_residual < 1e-9
    assert found.q.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("bias", [1e-6, 1e-2, 1e2, 1e6])
@pytest.mark.parametrize("b", [0.0, 1e-4, 1e4])
def test_availabilities_over_six_orders_of_magnitude(bias: float, b: float) -> None:
    pi = np.logspace(-6, 0, 301)
    alpha = np.full(301, 1 / 301)
    found = weights.optimal(pi, alpha, a=301 * pi, b=b, bias=bias)
    assert found.kkt_residual < 1e-9
    assert sum(value(found.q, pi, alpha, 301 * pi, b, bias)) == pytest.approx(found.error, rel=1e-9)


def test_without_noise_only_availability_counts() -> None:
    """a = 0: p_k = alpha_k sqrt(bias / (b / (pi_k Q) + c)), c such that p sums to one."""
    pi, alpha = np.array([1.0, 0.5, 0.1]), np.array([0.2, 0.5, 0.3])
    found = weights.optimal(pi, alpha, a=0.0, b=0.4, bias=2.0)
    steepness = 2.0 * alpha**2 / found.p**2 - 0.4 / pi
    np.testing.assert_allclose(steepness, steepness[0], rtol=1e-12)
    np.testing.assert_allclose(found.p.sum(), 1.0, rtol=1e-14)


def test_with_neither_noise_nor_offset_only_the_bias_counts() -> None:
    found = weights.optimal([0.9, 0.3], [0.4, 0.6], a=0.0, b=0.0, bias=1.0, total=5.0)
    np.testing.assert_allclose(found.p, [0.4, 0.6], rtol=1e-14)
    np.testing.assert_allclose(found.q, [10 / 11, 45 / 11], rtol=1e-14)


def test_auto_turns_to_the_conic_solver_where_newton_is_stuck() -> None:
    """One client without noise: against a grid of 200 001 points of [0.5, 1]."""
    pi, alpha, a = np.array([0.9, 0.3]), np.array([0.4, 0.6]), np.array([0.0, 1.0])
    found = weights.optimal(pi, alpha, a=a, b=0.0, bias=1e-3)
    assert found.method == "cvxpy"
    grid = np.linspace(0.5, 1 - 1e-6, 200_001)
    least = min(sum(value(np.array([q, 1 - q]), pi, alpha, a, 0.0, 1e-3)) for q in grid[::20])
    assert found.error == pytest.approx(least, rel=1e-6)
    with pytest.raises(ArithmeticError, match="found by newton have a KKT residual of nan"):
        weights.optimal(pi, alpha, a=a, b=0.0, bias=1e-3, method="newton")


@pytest.mark.parametrize("counted", ["odd", "few"])
def test_many_clients_that_no_sample_stands_for(counted: str) -> None:
    """Equal availabilities, every second client sampled: targets on the others, or on three."""
    n_clients = 5000
    alpha = np.zeros(n_clients)
    alpha[1 :: 2 if counted == "odd" else 2000] = 1.0
    alpha /= alpha.sum()
    found = weights.optimal(np.full(n_clients, 0.4), alpha, a=3.0, b=1.0, bias=0.5)
    assert found.kkt_residual < 1e-9
    for group in (alpha > 0, alpha == 0):
        np.testing.assert_allclose(found.q[group], found.q[group][0], rtol=1e-9)


@pytest.mark.parametrize("rarest", [1.0, 6.0])
@pytest.mark.parametrize("bias", [1e-8, 1e-2, 1e3])
def test_large_problems_of_all_kinds(rarest: float, bias: float) -> None:
    rng = np.random.default_rng(6)
    pi = 10 ** rng.uniform(-rarest, 0, 30_000)
    alpha = rng.dirichlet(np.ones(30_000))
    found = weights.optimal(pi, alpha, a=3e4 * pi, b=0.5, bias=bias)
    assert found.method == "newton"
    assert found.kkt_residual < 1e-9
    assert sum(value(found.q, pi, alpha, 3e4 * pi, 0.5, bias)) == pytest.approx(found.error)


def test_a_client_of_no_importance_may_be_left_out() -> None:
    """Without a target, client 2 serves speed alone: in use when often there, else not."""
    for pi, used in ((0.9, True), (0.01, False)):
        found = weights.optimal([0.5, 0.5, pi], [0.5, 0.5, 0.0], a=1.0, b=2.0, bias=0.1)
        assert (found.q[2] > 0) == used
        assert found.kkt_residual < 1e-12
        conic = weights.optimal(
            [0.5, 0.5, pi], [0.5, 0.5, 0.0], a=1.0, b=2.0, bias=0.1, method="cvxpy"
        )
        assert conic.error == pytest.approx(found.error, rel=1e-8)


def test_the_bias_is_not_convex_in_q() -> None:
    """Appendix E takes chi2 as convex in q; with three clients it is not, on a segment."""
    pi, alpha = np.array([1.0, 0.01, 0.01]), np.array([0.001, 0.998, 0.001])

    def chi2(q: FloatArray) -> float:
        p = pi * q / (pi @ q)
        return float(((alpha - p) ** 2 / p).sum())

    left, right = np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.4, 0.1])
    assert chi2((left + right) / 2) > 1.01 * (chi2(left) + chi2(right)) / 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"availability": [0.5, 0.0]},
            r"above 0 .*, because the bias of a client that never shows up is infinite, got 0 "
            r"for client 1",
        ),
        ({"availability": [0.0, 0.5], "bias": 0.0}, r"above 0 and at most 1, got 0 for client 0"),
        ({"availability": [0.5, 1.5]}, r"availability must be above 0 and at most 1, got 1\.5"),
        ({"availability": [0.5, -1.0]}, r"availability must be .* got -1 for client 1"),
        ({"availability": [0.5, np.nan]}, r"availability must be finite, got nan"),
        ({"availability": [[0.5, 0.5]]}, r"availability must have shape \(N,\) .* got \(1, 2\)"),
        ({"availability": []}, r"availability must have shape \(N,\) with N >= 1, got \(0,\)"),
        ({"target_weights": [0.5, 0.4]}, r"target_weights must sum to 1, got a sum of 0\.9"),
        ({"target_weights": [1.5, -0.5]}, r"target_weights must not be negative, got -0\.5 for cl"),
        ({"target_weights": [1.0]}, r"target_weights must have shape \(2,\), got \(1,\)"),
        ({"a": [1.0, -1.0]}, r"a must not be negative, got -1 for client 1"),
        ({"a": [1.0, 1.0, 1.0]}, r"a must have shape \(2,\), got \(3,\)"),
        ({"a": 0.0, "bias": 0.0}, r"a must be positive where bias \* target_weights is 0"),
        ({"b": -1.0}, r"b must be a number from 0 to 1e\+100, got -1\.0"),
        ({"bias": math.inf}, r"bias must be a number from 0 to 1e\+100, got inf"),
        ({"total": 0.0}, r"total must be a finite number above 0, got 0\.0"),
        ({"method": "guess"}, r"method must be one of auto, newton, cvxpy, got 'guess'"),
    ],
)
def test_bad_input_is_named(changed, message: str) -> None:
    arguments = {
        "availability": [0.5, 0.5],
        "target_weights": [0.5, 0.5],
        "a": 1.0,
        "b": 1.0,
        "bias": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        weights.optimal(**(arguments | changed))


@pytest.mark.parametrize(("method", "module"), [("newton", newton), ("cvxpy", conic)])
def test_an_inaccurate_point_is_never_returned(monkeypatch, method: str, module) -> None:
    """A point one percent off in its first entry, whatever the solver says of it."""
    exact = module.importance

    def off(problem: TradeOff) -> FloatArray:
        p = exact(problem) * np.array([1.01, 1.0, 1.0])
        return p / p.sum()

    monkeypatch.setattr(module, "importance", off)
    with pytest.raises(ArithmeticError, match=rf"found by {method} have a KKT residual of \d"):
        weights.optimal([0.9, 0.5, 0.2], np.full(3, 1 / 3), a=1.0, b=1.0, bias=1.0, method=method)
