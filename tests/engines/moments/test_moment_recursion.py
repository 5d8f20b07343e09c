"""The exact engine: closed forms, rounding error bounds, symmetries, divergence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    RawMoments,
    many_digits,
    participant_excess_loss,
    participant_gradient_sum,
    participant_sets,
    random_problem,
)

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import Setting, exact
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.moments import moment_recursion
from fltheory.engines.observables import ParticipantExcessLoss, ParticipantGradientSum
from fltheory.engines.trajectory import Trajectory
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex, quadratic

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


def shared_diagonal_errors(
    algorithm: FedAvg, problem: QuadraticProblem, size: int, rounds: int, x0: np.ndarray
) -> dict[str, np.ndarray]:
    """Closed form for clients that share a diagonal Hessian, equally weighted and none excluded.

    Coordinates decouple: ``s' = rho s + (1 - rho)(sample mean of c) + noise``. The sample mean
    of m out of N without replacement has variance ``var(c) (N - m) / (m (N - 1))`` (Cochran,
    Sampling Techniques, theorem 2.2, for the population variance with divisor N).
    """
    n, dim = problem.n_clients, problem.dim
    h = np.diag(problem.hessians)
    decay = 1 - algorithm.client_lr * h
    rho = decay**algorithm.local_steps
    sampling = problem.optima.var(axis=0) * (n - size) / (size * (n - 1)) if n > 1 else 0 * h
    steps = np.arange(algorithm.local_steps)
    noise = (algorithm.client_lr * problem.sigma) ** 2 / dim / size
    inflow = (1 - rho) ** 2 * sampling + noise * (decay[:, None] ** (2 * steps)).sum(axis=1)
    squares = (x0 - problem.optima.mean(axis=0)) ** 2
    history = []
    for _ in range(rounds + 1):
        history.append(squares)
        squares = rho**2 * squares + inflow
    table = np.array(history)
    return {
        "squared_distance": table.sum(axis=1),
        "squared_gradient": table @ h**2,
        "excess_loss": 0.5 * table @ h,
    }


@pytest.mark.parametrize(
    ("n_clients", "size", "dim", "steps"),
    [(2, 1, 1, 1), (5, 2, 3, 4), (5, 5, 3, 4), (60, 13, 4, 3), (12, 3, 30, 2), (40, 39, 27, 2)],
    ids=["tiny", "enumerated", "full", "swaps", "factored", "factored swaps"],
)
def test_shared_diagonal_hessian(n_clients: int, size: int, dim: int, steps: int) -> None:
    rng = np.random.default_rng(dim)
    problem = QuadraticProblem(
        np.diag(np.geomspace(2.0, 0.1, dim)), rng.standard_normal((n_clients, dim)), sigma=0.7
    )
    algorithm, x0 = FedAvg(0.3, steps), rng.standard_normal(dim)
    run = exact(Setting(algorithm, problem, UniformSubset(n_clients, size), 20, x0))
    for name, expected in shared_diagonal_errors(algorithm, problem, size, 20, x0).items():
        np.testing.assert_allclose(run[name], expected, rtol=1e-11)


@given(
    factor=st.floats(0.01, 0.5),
    steps=st.integers(1, 5),
    size=st.integers(1, 4),
    dim=st.integers(1, 4),
)
def test_identical_clients_without_noise_contract(
    factor: float, steps: int, size: int, dim: int
) -> None:
    """``||x_r - x*||^2 = (1 - lr h)^{2 K r} ||x_0 - x*||^2`` whoever takes part."""
    problem = QuadraticProblem(2.0 * np.eye(dim), np.full((4, dim), 3.0))
    run = exact(
        Setting(FedAvg(factor / 2, steps), problem, UniformSubset(4, size), 10, np.full(dim, 1.0))
    )
    expected = 4.0 * dim * (1 - factor) ** (2 * steps * np.arange(11))
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-11)
    np.testing.assert_allclose(run.excess_loss, expected, rtol=1e-11)
    np.testing.assert_allclose(run.squared_gradient, 4 * expected, rtol=1e-11)


# --- the rounding error bound covers the error ----------------------------------------------


def true_trajectory(
    algorithm: FedAvg | Safari,
    problem: QuadraticProblem,
    participation: UniformSubset,
    rounds: int,
    x0: Any,
) -> dict[str, list[Any]]:
    """Follow the moments in 60 digits, with both observables where ``algorithm`` is FedAvg."""
    moments = RawMoments.of(algorithm, problem, participation, many_digits)
    sets = participant_sets(participation)
    gradients = [
        moments.raw.local_gradients(i, algorithm.local_steps, algorithm.client_lr)
        for i in range(problem.n_clients)
    ]
    truth = moments.trajectory(x0, rounds)
    pairs = list(moments.moments(x0, min(rounds, 5)))
    truth["participant_excess_loss"] = [
        participant_excess_loss(moments.raw, sets, *pair) for pair in pairs
    ]
    truth["participant_gradient_sum"] = [
        participant_gradient_sum(gradients, sets, *pair) for pair in pairs
    ]
    return truth


def worst_share_of_bound(
    algorithm: FedAvg | Safari,
    problem: QuadraticProblem,
    participation: UniformSubset,
    rounds: int,
    x0: Any,
) -> tuple[float, Trajectory]:
    """Return the largest |error| / bound over all quantities and rounds."""
    observe = [
        ParticipantExcessLoss(),
        ParticipantGradientSum(algorithm.local_steps, algorithm.client_lr),
    ]
    run = exact(Setting(algorithm, problem, participation, rounds, x0), observe=observe)
    assert run.rounding_error is not None
    with mpmath.workdps(60):
        truth = true_trajectory(algorithm, problem, participation, rounds, x0)
        shares = [
            abs(mpmath.mpf(float(value)) - right) / mpmath.mpf(float(bound))
            for name, values in truth.items()
            for value, right, bound in zip(
                run[name], values, run.rounding_error[name], strict=False
            )
        ]
        return float(max(shares)), run


def moved(problem: QuadraticProblem, shift: float) -> QuadraticProblem:
    return QuadraticProblem(
        problem.hessians,
        problem.optima + shift,
        sigma=problem.sigma,
        server_sigma=problem.server_sigma,
    )


BENIGN = {
    "one Hessian per client": (FedAvg(0.1, 3), random_problem(0, 5, 2), (5, 2), 50),
    "shared Hessian": (FedAvg(0.1, 3), random_problem(1, 5, 2, shared=True), (5, 2), 50),
    "long run": (FedAvg(0.1, 3), random_problem(2, 5, 2), (5, 2), 600),
    "64 sets, enumerated": (FedAvg(0.2, 2), random_problem(3, 64, 1), (64, 1), 30),
    "126 sets, by swaps": (FedAvg(0.1, 3), random_problem(4, 9, 2), (9, 4), 30),
    "server assistance": (Safari(0.6, 0.1, 0.2, 2), random_problem(5, 4, 2), (4, 2), 100),
    "contraction near one": (FedAvg(1e-5, 1), random_problem(6, 4, 2), (4, 2), 300),
}
HARD = {
    "ill-conditioned": (
        FedAvg(0.01, 3),
        random_problem(7, 5, 2, curvatures=(1e-4, 100.0)),
        (5, 2),
        300,
    ),
    "designed, condition number 1e6": (
        Safari(0.5, 1e-3, 1e-3, 5),
        quadratic(6, 2, 1e3, 1e-3, 3.0, sigma=1.0, server_sigma=2.0),
        (6, 2),
        100,
    ),
    "far from the origin": (FedAvg(0.1, 3), moved(random_problem(8, 5, 2), 1e7), (5, 2), 100),
    "slow and far from the origin": (
        FedAvg(1e-4, 1),
        moved(random_problem(11, 5, 2), 1e7),
        (5, 2),
        300,
    ),
    "diverging": (
        FedAvg(0.7, 1),
        random_problem(9, 4, 2, curvatures=(1.0, 10.0)),
        (4, 2),
        100,
    ),
    "growing within a round": (
        FedAvg(0.37, 60),
        QuadraticProblem([[9.3]], [[-1.0], [1.0]]),
        (2, 1),
        3,
    ),
    "many local steps": (
        FedAvg(0.1, 200),
        random_problem(10, 4, 2, curvatures=(0.01, 10.0)),
        (4, 2),
        5,
    ),
}


@pytest.mark.parametrize("case", [*BENIGN, *HARD])
def test_rounding_error_is_within_its_bound(case: str) -> None:
    algorithm, problem, participation, rounds = (BENIGN | HARD)[case]
    x0 = problem.x_star + np.linspace(1.0, 2.0, problem.dim)
    share, _ = worst_share_of_bound(algorithm, problem, UniformSubset(*participation), rounds, x0)
    assert share <= 1.0


@pytest.mark.parametrize("case", BENIGN)
def test_rounding_bound_is_useful(case: str) -> None:
    algorithm, problem, participation, rounds = BENIGN[case]
    x0 = problem.x_star + np.linspace(1.0, 2.0, problem.dim)
    run = exact(Setting(algorithm, problem, UniformSubset(*participation), rounds, x0))
    assert run.rounding_error is not None
    for name in FIELDS:
        assert (run.rounding_error[name] <= 1e-6 * run[name]).all()


@given(
    seed=st.integers(0, 10**6),
    clients=st.integers(2, 5),
    size=st.integers(1, 2),
    dim=st.integers(1, 3),
    shared=st.booleans(),
    step=st.floats(0.01, 1.5),
    steps=st.sampled_from([1, 2, 5, 50]),
    sigma=st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
    floor=st.floats(1e-5, 0.9),
    start=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_rounding_error_is_within_its_bound_on_random_settings(
    seed: int,
    clients: int,
    size: int,
    dim: int,
    shared: bool,
    step: float,
    steps: int,
    sigma: float,
    floor: float,
    start: float,
) -> None:
    problem = random_problem(
        seed, clients, dim, shared=shared, sigma=sigma, curvatures=(floor, 1.0)
    )
    x0 = problem.x_star + start * np.linspace(-1.0, 1.5, dim)
    share, _ = worst_share_of_bound(
        FedAvg(step, steps), problem, UniformSubset(clients, size), 6, x0
    )
    assert share <= 1.0


@pytest.mark.parametrize(
    ("curvature", "step", "steps", "spread", "sigma"),
    [
        (1.3, 2 - 1 / 500, 500, 0.0, 0.0),
        (2.3, 1.999, 100, 1.0, 1.0),
        (2.3, 1.999, 300, 1.0, 0.0),
        (2.3, 1.999, 500, 0.0, 1.0),
        (2.3, 2.01, 500, 1.0, 1.0),
    ],
    ids=["contraction", "offsets and noise", "gradient sum", "noise alone", "growth"],
)
def test_rounding_error_is_within_its_bound_at_the_edge_of_stability(
    curvature: float, step: float, steps: int, spread: float, sigma: float
) -> None:
    """Near ``lr h = 2`` the power ``(1 - lr h)^K`` loses K units in the last place."""
    problem = QuadraticProblem([[curvature]], [[1.0 - spread], [1.0 + spread]], sigma=sigma)
    share, _ = worst_share_of_bound(
        FedAvg(step / curvature, steps), problem, UniformSubset(2, 1), 5, [2.0]
    )
    assert share <= 1.0


# --- symmetries ------------------------------------------------------------------------------


def assert_same(left: Trajectory, right: Trajectory, factors: dict[str, float]) -> None:
    for name in FIELDS:
        np.testing.assert_allclose(
            left[name], factors.get(name, 1.0) * right[name], rtol=1e-9, atol=1e-13
        )


ALGORITHMS = st.one_of(
    st.builds(FedAvg, st.floats(0.01, 0.6), st.integers(1, 4), server_lr=st.floats(0.5, 1.5)),
    st.builds(
        Safari, st.floats(0.0, 1.0), st.floats(0.01, 0.6), st.floats(0.01, 0.6), st.integers(1, 4)
    ),
)
PARTICIPATIONS = st.builds(
    UniformSubset, st.just(5), st.integers(1, 4), excluded=st.sampled_from([(), (3,)])
)
START = np.array([1.5, -2.0, 0.5])


@given(ALGORITHMS, PARTICIPATIONS, st.integers(0, 50), st.floats(-100.0, 100.0))
def test_translation_changes_nothing(
    algorithm: FedAvg | Safari, participation: UniformSubset, seed: int, shift: float
) -> None:
    problem = random_problem(seed, 5, 3)
    assert_same(
        exact(Setting(algorithm, moved(problem, shift), participation, 6, START + shift)),
        exact(Setting(algorithm, problem, participation, 6, START)),
        {},
    )


@given(ALGORITHMS, PARTICIPATIONS, st.integers(0, 50))
def test_rotation_changes_nothing(
    algorithm: FedAvg | Safari, participation: UniformSubset, seed: int
) -> None:
    problem = random_problem(seed, 5, 3)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
    turned = QuadraticProblem(
        turn @ problem.hessians @ turn.T,
        problem.optima @ turn.T,
        sigma=problem.sigma,
        server_sigma=problem.server_sigma,
    )
    assert_same(
        exact(Setting(algorithm, turned, participation, 6, turn @ START)),
        exact(Setting(algorithm, problem, participation, 6, START)),
        {},
    )


@given(ALGORITHMS, PARTICIPATIONS, st.integers(0, 50), st.floats(1e-3, 1e3))
def test_scaling_space_scales_squares(
    algorithm: FedAvg | Safari, participation: UniformSubset, seed: int, scale: float
) -> None:
    problem = random_problem(seed, 5, 3)
    scaled = QuadraticProblem(
        problem.hessians,
        problem.optima * scale,
        sigma=problem.sigma * scale,
        server_sigma=problem.server_sigma * scale,
    )
    left = exact(Setting(algorithm, scaled, participation, 6, START * scale))
    right = exact(Setting(algorithm, problem, participation, 6, START))
    for name in FIELDS:
        np.testing.assert_allclose(left[name], scale**2 * right[name], rtol=1e-9)


@given(ALGORITHMS, PARTICIPATIONS, st.integers(0, 50), st.floats(0.1, 10.0))
def test_steeper_losses_with_shorter_steps_walk_the_same_path(
    algorithm: FedAvg | Safari, participation: UniformSubset, seed: int, factor: float
) -> None:
    """Gradients times s and step sizes over s give the same models."""
    problem = random_problem(seed, 5, 3)
    steeper = QuadraticProblem(
        problem.hessians * factor,
        problem.optima,
        sigma=problem.sigma * factor,
        server_sigma=problem.server_sigma * factor,
    )
    shorter = replace(algorithm, client_lr=algorithm.client_lr / factor)
    if isinstance(shorter, Safari):
        shorter = replace(shorter, assist_lr=shorter.assist_lr / factor)
    assert_same(
        exact(Setting(shorter, steeper, participation, 6, START)),
        exact(Setting(algorithm, problem, participation, 6, START)),
        {"squared_gradient": factor**2, "excess_loss": factor},
    )


@given(ALGORITHMS, st.permutations(range(5)), st.integers(0, 50))
def test_names_of_clients_do_not_matter(
    algorithm: FedAvg | Safari, order: list[int], seed: int
) -> None:
    problem = random_problem(seed, 5, 3)
    weights = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    arguments = {"sigma": 0.5, "server_sigma": 0.3}
    left = QuadraticProblem(
        problem.hessians[order], problem.optima[order], target_weights=weights[order], **arguments
    )
    right = QuadraticProblem(problem.hessians, problem.optima, target_weights=weights, **arguments)
    excluded = 3
    assert_same(
        exact(
            Setting(
                algorithm, left, UniformSubset(5, 2, excluded=(order.index(excluded),)), 6, START
            )
        ),
        exact(Setting(algorithm, right, UniformSubset(5, 2, excluded=(excluded,)), 6, START)),
        {},
    )


# --- one computation, several ways -----------------------------------------------------------


@pytest.mark.parametrize(("n_clients", "size"), [(4, 2), (10, 4)])
def test_factored_advance_agrees_with_the_dense_one(
    monkeypatch: pytest.MonkeyPatch, n_clients: int, size: int
) -> None:
    problem, participation = random_problem(11, n_clients, 5), UniformSubset(n_clients, size)
    arguments = (Safari(0.7, 0.2, 0.1, 3), problem, participation, 40, np.ones(5))
    dense = exact(Setting(*arguments))
    monkeypatch.setattr(moment_recursion, "_LARGEST_DENSE_STATE", 0)
    factored = exact(Setting(*arguments))
    for name in FIELDS:
        np.testing.assert_allclose(factored[name], dense[name], rtol=1e-12)


def test_halves_of_symmetric_moments_move_as_the_whole_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole map as a matrix is another path; of rounds that change, each runs once."""
    problem = random_problem(17, 6, 12)
    setting = Setting(Safari(0.7, 0.2, 0.1, 3), problem, UniformSubset(6, 3), 40, np.arange(12.0))
    halved = exact(setting)
    monkeypatch.setattr(moment_recursion, "_halved_advance", moment_recursion._dense_advance)
    dense = exact(setting)
    for name in FIELDS:
        np.testing.assert_allclose(halved[name], dense[name], rtol=1e-12)
        # What is stated for rounding covers either way.
        stated = 2 * np.asarray(halved.rounding_error[name])
        assert (np.abs(halved[name] - dense[name]) <= stated).all()


def test_large_states_take_the_factored_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 24 dimensions; the dense map of 25 would already hold 400 000 numbers."""
    monkeypatch.setattr(moment_recursion, "_dense_advance", lambda step: pytest.fail("dense"))
    exact(
        Setting(
            FedAvg(0.1, 1),
            random_problem(12, 2, 25, shared=True),
            UniformSubset(2, 1),
            2,
            np.ones(25),
        )
    )


def test_history_does_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (FedAvg(0.2, 2), random_problem(13, 4, 2), UniformSubset(4, 2), 23, [1.0, 2.0])
    whole = exact(Setting(*arguments))
    monkeypatch.setattr(moment_recursion, "_NUMBERS_AT_ONCE", 5 * 7)
    blocks = exact(Setting(*arguments))
    for name in FIELDS:
        np.testing.assert_allclose(blocks[name], whole[name], rtol=1e-14)


# --- divergence ------------------------------------------------------------------------------


def test_divergence_is_dated_and_infinite() -> None:
    """With ``s' = -2 s`` and s_0 = 1 the square is 4^r; 4^499 is the first above 1e300."""
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]])
    run = exact(Setting(FedAvg(3.0, 1), problem, UniformSubset(2, 1), 600, [1.0]))
    assert run.diverged_at == math.ceil(300 / math.log10(4)) == 499
    np.testing.assert_allclose(run.squared_distance[:499], 4.0 ** np.arange(499), rtol=1e-10)
    assert run.rounding_error is not None
    for arrays in (run, run.rounding_error):
        for name in FIELDS:
            assert np.isposinf(arrays[name][499:]).all()
            assert np.isfinite(arrays[name][:499]).all()


def test_second_moments_can_diverge_while_the_mean_converges() -> None:
    """Factors 0.4 and -1.4, each with probability 1/2: mean -0.5, mean square 1.06."""
    problem = QuadraticProblem([[[1.0]], [[4.0]]], [[0.0], [0.0]])
    run = exact(Setting(FedAvg(0.6, 1), problem, UniformSubset(2, 1), 200, [1.0]))
    np.testing.assert_allclose(run.squared_distance, 1.06 ** np.arange(201), rtol=1e-11)
    assert run.diverged_at is None


def test_a_run_that_converges_has_not_diverged(mixed_hessians: QuadraticProblem) -> None:
    run = exact(Setting(FedAvg(0.1, 2), mixed_hessians, UniformSubset(3, 2), 100, [1.0, 1.0]))
    assert run.diverged_at is None
    assert run.rounds == 100


def test_the_rounding_bound_is_never_nan() -> None:
    """At x* nothing moves, but the bound of an unstable recursion overflows."""
    problem = QuadraticProblem([[1.0]], [[1.0], [1.0]])
    run = exact(Setting(FedAvg(3.0, 1), problem, UniformSubset(2, 1), 1500, [1.0]))
    assert run.rounding_error is not None
    assert not np.isnan(run.rounding_error.squared_distance).any()


def test_divergence_within_the_first_round() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    run = exact(Setting(FedAvg(1e3, 120), problem, UniformSubset(2, 1), 3, [1.0]))
    assert run.diverged_at == 1
    assert run.squared_distance[0] == 1.0
    assert np.isposinf(run.squared_distance[1:]).all()


def test_nonconvex_problems_are_refused() -> None:
    problem = nonconvex(3, 2, L=1.0, sigma_G=1.0)
    with pytest.raises(NotAffineError, match=r"RippledProblem.*use engines\.monte_carlo"):
        exact(Setting(FedAvg(0.1, 1), problem, UniformSubset(3, 1), 5, [0.0, 0.0]))
