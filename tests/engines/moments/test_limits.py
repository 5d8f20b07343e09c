"""Stationary limits against closed forms, a fixed point in many digits, and long runs."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import RawMoments, many_digits, random_problem, solve

from fltheory.algorithms import FedAR, FedAvg, Safari
from fltheory.engines import Setting, exact, paths, stationary
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.moments import limits
from fltheory.engines.moments.limits import StationaryLimit
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
SETTINGS = {
    "one Hessian per client": (FedAvg(0.2, 3), random_problem(0, 4, 2), UniformSubset(4, 2)),
    "shared Hessian": (FedAvg(0.2, 3), random_problem(1, 4, 3, shared=True), UniformSubset(4, 2)),
    "exclusions": (FedAvg(0.2, 2), random_problem(2, 5, 2), UniformSubset(5, 2, excluded=(0, 3))),
    "assisted": (Safari(0.6, 0.2, 0.3, 2), random_problem(3, 4, 2), UniformSubset(4, 1)),
    "server only": (Safari(0.0, 0.2, 0.3, 2), random_problem(4, 4, 2), UniformSubset(4, 1)),
    "by swaps": (FedAvg(0.2, 2, server_lr=0.8), random_problem(5, 9, 2), UniformSubset(9, 4)),
}


@pytest.fixture(params=["direct", "Krylov"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with elimination and with the iterative solver for large states."""
    if request.param == "Krylov":
        monkeypatch.setattr(limits, "_LARGEST_DIRECT_SYSTEM", 0)
    return request.param


def assert_infinite(limit: StationaryLimit) -> None:
    assert not limit.converges
    values = [*(getattr(limit, field) for field in FIELDS), limit.bias, *limit.mean]
    assert np.isposinf(values).all()
    assert limit.rounding_error == {}


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize("case", SETTINGS)
def test_limit_is_the_fixed_point_in_many_digits(case: str) -> None:
    algorithm, problem, participation = SETTINGS[case]
    limit = stationary(Setting(algorithm, problem, participation, 1, problem.x_star))
    with mpmath.workdps(50):
        moments = RawMoments.of(algorithm, problem, participation, many_digits)
        expected = {name: float(value) for name, value in moments.limit().items()}
        mean = solve(moments.raw.identity - moments.slope, moments.offset)
        bias = mpmath.sqrt(sum((mean - moments.raw.x_star) ** 2))
    assert limit.converges
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(limit, name), value, rtol=1e-11)
    np.testing.assert_allclose(limit.mean, mean.astype(float), rtol=1e-11)
    np.testing.assert_allclose(limit.bias, float(bias), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("case", SETTINGS)
def test_limit_is_where_long_runs_end(case: str) -> None:
    algorithm, problem, participation = SETTINGS[case]
    limit = stationary(Setting(algorithm, problem, participation, 1, problem.x_star))
    run = exact(Setting(algorithm, problem, participation, 800, problem.x_star + 3.0))
    for name in FIELDS:
        np.testing.assert_allclose(getattr(limit, name), run[name][-1], rtol=1e-11)


@pytest.mark.usefixtures("solver")
@given(
    step=st.floats(0.05, 0.6),
    steps=st.integers(1, 6),
    mixed=st.floats(0.2, 1.0),
    sigma=st.floats(0.0, 2.0),
)
def test_two_noisy_points(step: float, steps: int, mixed: float, sigma: float) -> None:
    """One of two mirrored clients per round: ``E s^2 = ((1-a)^2 c^2 + v) / (1 - a^2)``.

    With ``a = (1 - lr h)^K`` and noise ``v = lr^2 sigma^2 (1 - a^2) / (1 - (1 - lr h)^2)``.
    """
    problem = QuadraticProblem([[mixed]], [[-1.0], [1.0]], sigma=sigma)
    limit = stationary(
        Setting(FedAvg(step, steps), problem, UniformSubset(2, 1), 1, problem.x_star)
    )
    decay = 1 - step * mixed
    a = decay**steps
    noise = (step * sigma) ** 2 / (1 - decay**2)
    expected = (1 - a) / (1 + a) + noise
    np.testing.assert_allclose(limit.squared_distance, expected, rtol=1e-11)
    np.testing.assert_allclose(limit.squared_gradient, mixed**2 * expected, rtol=1e-11)
    np.testing.assert_allclose(limit.excess_loss, mixed / 2 * expected, rtol=1e-11)
    assert limit.bias < 1e-12


@pytest.mark.usefixtures("solver")
@given(seed=st.integers(0, 1000), step=st.floats(0.1, 1.2), sigma=st.floats(0.1, 2.0))
def test_energy_balance_of_full_gradient_steps(seed: int, step: float, sigma: float) -> None:
    """A step ``s - lr (H s + noise)`` keeps ``E||s||^2`` when ``2 E s'Hs = lr E||H s + noise||^2``.

    The left is four times the excess loss; the noise of an average of N is sigma^2 / N.
    """
    problem = random_problem(seed, 3, 3, sigma=sigma)
    limit = stationary(Setting(FedAvg(step, 1), problem, UniformSubset(3, 3), 1, problem.x_star))
    arrived = step * (limit.squared_gradient + sigma**2 / 3)
    np.testing.assert_allclose(4 * limit.excess_loss, arrived, rtol=1e-10)
    assert limit.bias < 1e-12


def test_what_counts_the_rounds_has_no_limit_by_one_map() -> None:
    """FedAR with everybody there converges, but its round asks for counts: no single affine map.

    It once said infinity, as its count of rounds grows for ever. The model halves its distance.
    """
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    setting = Setting(FedAR(0.5, 1), problem, UniformSubset(2, 2), 40, problem.x_star + 1.0)
    with pytest.raises(NotAffineError, match="a comparison of a value that depends on the model"):
        stationary(setting)
    np.testing.assert_allclose(paths(setting).squared_distance, 0.25 ** np.arange(41), rtol=1e-11)


@pytest.mark.parametrize(("step", "tolerance"), [(1e-6, 1e-9), (2 - 1e-6, 1e-9), (2 - 1e-9, 1e-6)])
def test_contraction_close_to_one(step: float, tolerance: float) -> None:
    """K = 1 and h = 1: ``E s^2 = step / (2 - step)`` from the closed form above."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    limit = stationary(Setting(FedAvg(step, 1), problem, UniformSubset(2, 1), 1, problem.x_star))
    np.testing.assert_allclose(limit.squared_distance, step / (2 - step), rtol=tolerance)


@pytest.mark.usefixtures("solver")
@pytest.mark.parametrize(
    ("problem", "step"),
    [
        (QuadraticProblem([[1.0]], [[-1.0], [1.0]]), 3.0),
        (QuadraticProblem([[1.0]], [[-1.0], [1.0]]), 2.0),
        (QuadraticProblem([[[1.0]], [[4.0]]], [[0.0], [0.0]]), 0.6),
        (QuadraticProblem(np.diag([1.0, 0.5]), [[-1.0, 0.0], [1.0, 1.0]], sigma=1.0), 2.5),
        (random_problem(6, 2, 3, curvatures=(1.0, 5.0)), 1.5),
    ],
    ids=["diverging", "undamped", "mean converges", "one direction", "rotated"],
)
def test_divergence_is_infinite(problem: QuadraticProblem, step: float) -> None:
    assert_infinite(
        stationary(Setting(FedAvg(step, 1), problem, UniformSubset(2, 1), 1, problem.x_star))
    )


def test_divergence_within_one_round_is_infinite() -> None:
    """The factor (1 - 1000)^120 of one round is beyond float64."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    assert_infinite(
        stationary(Setting(FedAvg(1e3, 120), problem, UniformSubset(2, 1), 1, problem.x_star))
    )


@given(low=st.floats(0.1, 2.0), high=st.floats(0.1, 2.0), step=st.floats(0.1, 3.0))
def test_converges_exactly_where_the_mean_square_factor_is_below_one(
    low: float, high: float, step: float
) -> None:
    """One coordinate, one of two curvatures a round: ``E a^2 < 1`` decides."""
    factor = ((1 - step * low) ** 2 + (1 - step * high) ** 2) / 2
    problem = QuadraticProblem([[[low]], [[high]]], [[-1.0], [1.0]])
    limit = stationary(Setting(FedAvg(step, 1), problem, UniformSubset(2, 1), 1, problem.x_star))
    if abs(factor - 1) > 1e-9:
        assert limit.converges == (factor < 1)
        assert math.isfinite(limit.squared_distance) == (factor < 1)


def test_large_states_are_solved_iteratively(monkeypatch: pytest.MonkeyPatch) -> None:
    """45 coordinates that decouple: each is a stationary AR(1) of its own."""
    refuse = property(lambda equations: pytest.fail("elimination"))
    monkeypatch.setattr(limits._Equations, "_factors", refuse)
    h, step, sigma = np.geomspace(1.0, 0.3, 45), 0.5, 0.9
    optima = np.random.default_rng(0).standard_normal((5, 45))
    problem = QuadraticProblem(np.diag(h), optima, sigma=sigma)
    limit = stationary(Setting(FedAvg(step, 1), problem, UniformSubset(5, 1), 1, problem.x_star))
    inflow = (step * h) ** 2 * optima.var(axis=0) + (step * sigma) ** 2 / 45
    squares = inflow / (1 - (1 - step * h) ** 2)
    np.testing.assert_allclose(limit.squared_distance, squares.sum(), rtol=1e-11)
    np.testing.assert_allclose(limit.squared_gradient, squares @ h**2, rtol=1e-11)
    np.testing.assert_allclose(limit.excess_loss, squares @ h / 2, rtol=1e-11)


def test_iterative_solver_says_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_LARGEST_DIRECT_SYSTEM", 0)
    monkeypatch.setattr("scipy.sparse.linalg.gmres", lambda _, right, **options: (right, 200))
    with pytest.raises(ArithmeticError, match=r"state of size 2.*follow engines\.exact"):
        stationary(
            Setting(FedAvg(0.1, 1), random_problem(7, 3, 2), UniformSubset(3, 1), 1, [0.0, 0.0])
        )


def test_bad_input_is_named() -> None:
    problem = nonconvex(3, 2, L=1.0, sigma_G=1.0)
    rippled = Setting(FedAvg(0.1, 1), problem, UniformSubset(3, 1), 1, [0.0, 0.0])
    with pytest.raises(NotAffineError, match=r"RippledProblem.*use engines\.monte_carlo"):
        stationary(rippled)
    with pytest.raises(ValueError, match=r"participation must be over the problem's 3 clients.*4"):
        Setting(FedAvg(0.1, 1), random_problem(8, 3, 2), UniformSubset(4, 1), 1, [0.0, 0.0])


@pytest.mark.parametrize("step", [0.1, 1e-3, 1e-6, 1e-10, 1e-13])
@pytest.mark.parametrize("shift", [0.0, 1.0, 1e6])
def test_rounding_bound_covers_the_error_as_contraction_fades(step: float, shift: float) -> None:
    """Two clients on a line with curvature 1 and optima shift -/+ 1, one drawn a round.

    The model's variance solves v = (1 - e)^2 v + e^2, so v = e / (2 - e); its mean is x*.
    """
    problem = QuadraticProblem([[1.0]], [[shift - 1], [shift + 1]])
    limit = stationary(Setting(FedAvg(step, 1), problem, UniformSubset(2, 1), 1, problem.x_star))
    error = abs(limit.squared_distance - step / (2 - step))
    assert error <= limit.rounding_error["squared_distance"]
    assert limit.bias <= limit.rounding_error["bias"]


def test_rounding_bound_is_tight_enough_to_be_of_use() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    limit = stationary(Setting(FedAvg(0.1, 1), problem, UniformSubset(2, 1), 1, problem.x_star))
    assert limit.rounding_error["squared_distance"] < 1e-10 * limit.squared_distance
