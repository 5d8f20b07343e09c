"""The sampled engine: agreement with the exact one, reproducibility, divergence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.observables import ParticipantExcessLoss, ParticipantGradientSum
from fltheory.engines.trajectory import RoundArrays
from fltheory.participation import MarkovOnOff, Trace, UniformSubset
from fltheory.problems import Problem, QuadraticProblem, nonconvex
from tests.drawn import in_turn

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
OBSERVED = ("participant_gradient_sum", "participant_excess_loss")
PER_CLIENT, SHARED = random_problem(1, 5, 2), random_problem(2, 5, 2, shared=True)
ONE_COORDINATE = random_problem(3, 5, 1)
SETTINGS = {
    "shared Hessian": (FedAvg(0.3, 3), SHARED, UniformSubset(5, 2)),
    "one Hessian per client": (FedAvg(0.3, 3), PER_CLIENT, UniformSubset(5, 2)),
    "exclusions": (FedAvg(0.3, 3), PER_CLIENT, UniformSubset(5, 2, excluded=(1, 4))),
    "m = 1": (FedAvg(0.3, 2), PER_CLIENT, UniformSubset(5, 1)),
    "m = N": (FedAvg(0.3, 2), SHARED, UniformSubset(5, 5)),
    "K = 1": (FedAvg(0.3, 1), PER_CLIENT, UniformSubset(5, 3)),
    "server step size": (FedAvg(0.3, 2, server_lr=0.5), SHARED, UniformSubset(5, 3)),
    "assisted": (Safari(0.6, 0.3, 0.2, 2), PER_CLIENT, UniformSubset(5, 2)),
    "server only": (Safari(0.0, 0.3, 0.2, 2), ONE_COORDINATE, UniformSubset(5, 2)),
}
REPLICAS = 20_000
SIGMAS = 8.0


@pytest.mark.parametrize(("case", "step_by_step"), in_turn(SETTINGS, [False, True], of=2))
def test_agrees_with_the_exact_engine(case: str, step_by_step: bool) -> None:
    """No mean of 20 000 replicas is 8 standard errors from its expectation.

    Two-sided normal tail beyond 8: 1.3e-15. The samples are squares of near-Gaussians, of
    skewness below 6; Cramer's correction exp(skewness 8^3 / (6 sqrt(20 000))) inflates the
    upper tail by at most 40. With 18 runs, 6 rounds and 5 quantities (540 comparisons), the
    false-alarm probability is below 3e-11. Detects differences of 8 standard errors, some
    8% of a standard deviation.
    """
    algorithm, problem, participation = SETTINGS[case]
    observe = [ParticipantGradientSum(2, 0.2), ParticipantExcessLoss()]
    x0 = np.full(problem.dim, 1.5)
    truth = exact(Setting(algorithm, problem, participation, 5, x0), observe=observe)
    run = monte_carlo(
        Setting(algorithm, problem, participation, 5, x0),
        replicas=REPLICAS,
        seed=7,
        observe=observe,
        step_by_step=step_by_step,
    )
    assert run.replicas == REPLICAS
    assert run.diverged_at is None
    assert run.standard_error is not None
    for name in (*FIELDS, *OBSERVED):
        slack = SIGMAS * run.standard_error[name] + 1e-12 * (1 + truth[name])
        assert (np.abs(run[name] - truth[name]) <= slack).all(), name


def _round_by_hand(x: float, mask: np.ndarray) -> float:
    """FedAvg, step 1/2, K = 1, losses (x - c)^2 / 2 with c = -1 and 1; nobody: no move."""
    moves = [0.5 * (centre - x) for centre, there in zip((-1.0, 1.0), mask, strict=True) if there]
    return x + (sum(moves) / len(moves) if moves else 0.0)


def test_participation_with_memory_is_sampled() -> None:
    """Four rounds against the sum over all 4^4 paths of two on-off chains.

    A mean of 20 000 bounded runs lies within 8 standard errors but for a probability below
    1e-13, that is 0.03; rounds drawn afresh would end at 0.45 instead of 0.69.
    """
    chains = MarkovOnOff([0.3, 0.6], [0.8, 0.5])
    chain = chains.as_chain()
    expected = np.zeros(5)
    paths = [(weight, state, 1.0) for state, weight in enumerate(chain.initial)]
    expected[0] = 1.0
    for rounds in range(1, 5):
        paths = [(w, state, _round_by_hand(x, chain.state_masks[state])) for w, state, x in paths]
        expected[rounds] = sum(w * x**2 for w, _, x in paths)
        paths = [
            (w * chain.transition[state, target], target, x)
            for w, state, x in paths
            for target in range(4)
        ]
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    for participation in (chains, chain):
        run = monte_carlo(
            Setting(FedAvg(0.5, 1), problem, participation, 4, [1.0]), replicas=REPLICAS, seed=7
        )
        assert run.standard_error is not None
        miss = np.abs(run.squared_distance - expected)
        assert (miss <= SIGMAS * run.standard_error.squared_distance + 1e-12).all()


def test_a_trace_from_its_start_is_followed_exactly() -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    recorded = np.array([[1, 0], [0, 0], [1, 1], [0, 1]])
    run = monte_carlo(
        Setting(FedAvg(0.5, 1), problem, Trace(recorded, start=2), 5, [1.0]), replicas=2, seed=0
    )
    x, expected = 1.0, [1.0]
    for row in (2, 3, 0, 1, 2):
        x = _round_by_hand(x, recorded[row])
        expected.append(x**2)
    np.testing.assert_allclose(run.squared_distance, expected, rtol=1e-14, atol=1e-15)


def test_standard_error_is_the_deviation_of_the_mean() -> None:
    """One noisy step from x*: ``s^2 = v chi^2_1`` with ``v = (lr sigma)^2``.

    Its variance is 2 v^2, so the standard error is ``v sqrt(2 / n)``. The sample variance of
    chi^2_1 has relative deviation ``sqrt((kurtosis - 1) / n) = sqrt(14 / n)``, 2.2% at
    n = 30 000: a factor within [0.8, 1.25] is over 8 deviations wide on the standard error
    (which has half of that), a false alarm below 1e-12 allowing for its heavy tail.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [0.0]], sigma=2.0)
    run = monte_carlo(
        Setting(FedAvg(0.5, 1), problem, UniformSubset(2, 1), 1, [0.0]), replicas=30_000, seed=1
    )
    assert run.standard_error is not None
    expected = np.sqrt(2 / 30_000)
    assert 0.8 * expected < run.standard_error.squared_distance[1] < 1.25 * expected
    assert run.standard_error.squared_distance[0] == 0.0


def test_without_randomness_every_replica_is_gradient_descent() -> None:
    """Full participation and no noise on nonconvex clients: a plain loop gives the numbers."""
    problem = nonconvex(4, 3, L=2.0, sigma_G=1.5, x_star=[1.0, -1.0, 0.5], seed=3)
    x0 = np.array([3.0, 2.0, -1.0])
    run = monte_carlo(
        Setting(FedAvg(0.2, 3), problem, UniformSubset(4, 4), 6, x0), replicas=3, seed=0
    )
    x = x0.copy()
    for round_ in range(7):
        offset = x - problem.x_star
        ripple = problem.frequency * offset
        gradient = problem.curvature * offset + problem.amplitude * problem.frequency * np.sin(
            ripple
        )
        loss = (problem.curvature / 2 * offset**2 + problem.amplitude * (1 - np.cos(ripple))).sum()
        np.testing.assert_allclose(run.squared_distance[round_], offset @ offset, rtol=1e-12)
        np.testing.assert_allclose(run.squared_gradient[round_], gradient @ gradient, rtol=1e-11)
        np.testing.assert_allclose(run.excess_loss[round_], loss, rtol=1e-12)
        ends = []
        for tilt in problem.tilts:
            y = x.copy()
            for _ in range(3):
                away = y - problem.x_star
                wave = problem.amplitude * problem.frequency * np.sin(problem.frequency * away)
                y = y - 0.2 * (problem.curvature * away + wave + tilt)
            ends.append(y)
        x = np.mean(ends, axis=0)


# --- reproducibility -------------------------------------------------------------------------


def sampled(problem: Problem, seed: int, *, step_by_step: bool = False) -> RoundArrays:
    """Run 1300 replicas, which make three chunks."""
    return monte_carlo(
        Setting(Safari(0.7, 0.2, 0.1, 2), problem, UniformSubset(5, 2), 4, np.ones(problem.dim)),
        replicas=1300,
        seed=seed,
        observe=[ParticipantExcessLoss()],
        step_by_step=step_by_step,
    )


def assert_identical(left: RoundArrays, right: RoundArrays) -> None:
    for name in (*FIELDS, "participant_excess_loss"):
        np.testing.assert_array_equal(left[name], right[name])


@pytest.mark.parametrize("step_by_step", [False, True])
@pytest.mark.parametrize("problem", [PER_CLIENT, SHARED, nonconvex(5, 2, L=1.0, sigma_G=1.0)])
def test_same_seed_same_bits_whatever_the_processors(
    problem: Problem, step_by_step: bool, processors: Callable[[int], None]
) -> None:
    runs = []
    for count in (1, 2, 3, 16):
        processors(count)
        runs.append(sampled(problem, 5, step_by_step=step_by_step))
    for run in runs[1:]:
        assert_identical(run, runs[0])


def test_another_seed_gives_other_numbers() -> None:
    left, right = sampled(PER_CLIENT, 5), sampled(PER_CLIENT, 6)
    assert (left.squared_distance[1:] != right.squared_distance[1:]).all()


def test_replicas_of_different_chunks_are_independent() -> None:
    """A second chunk with the stream of the first would leave the means as they were."""

    def first_chunk(replicas: int) -> np.ndarray:
        run = monte_carlo(
            Setting(FedAvg(0.2, 1), PER_CLIENT, UniformSubset(5, 2), 3, [1.0, 1.0]),
            replicas=replicas,
            seed=0,
        )
        return run.squared_distance[1:]

    assert (first_chunk(1024) != first_chunk(512)).all()


def test_observables_do_not_disturb_the_run() -> None:
    arguments = (FedAvg(0.2, 2), PER_CLIENT, UniformSubset(5, 2), 4, [1.0, 1.0])
    plain = monte_carlo(Setting(*arguments), replicas=100, seed=2)
    watched = monte_carlo(
        Setting(*arguments), replicas=100, seed=2, observe=[ParticipantGradientSum(2, 0.2)]
    )
    for name in FIELDS:
        np.testing.assert_array_equal(plain[name], watched[name])


@pytest.mark.parametrize("count", [1, 2])
def test_progress_counts_replicas(count: int, processors: Callable[[int], None]) -> None:
    processors(count)
    seen: list[tuple[int, int]] = []
    monte_carlo(
        Setting(FedAvg(0.2, 1), PER_CLIENT, UniformSubset(5, 2), 1, [0.0, 0.0]),
        replicas=1100,
        seed=0,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(512, 1100), (1024, 1100), (1100, 1100)]


def test_an_error_in_a_worker_reaches_the_caller(processors: Callable[[int], None]) -> None:
    class Broken(ParticipantExcessLoss):
        def sample(self, *arguments: object) -> np.ndarray:
            raise ArithmeticError("broken observable")

    processors(4)
    with pytest.raises(ArithmeticError, match="broken observable"):
        monte_carlo(
            Setting(FedAvg(0.2, 1), PER_CLIENT, UniformSubset(5, 2), 2, [0.0, 0.0]),
            replicas=9999,
            seed=0,
            observe=[Broken()],
        )


@pytest.mark.parametrize("replicas", [2, 511, 512, 513, 1025])
def test_mean_and_standard_error_are_those_of_all_replicas(
    replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merged over chunks, they equal the two-pass mean and deviation of the pooled sample."""
    pool: list[np.ndarray] = []

    class Recorder:
        name = "recorded"

        def sample(
            self, problem: Problem, clients: object, x: np.ndarray, who: np.ndarray
        ) -> np.ndarray:
            values = x[:, 0] + 1e6
            pool.append(values)
            return values

    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    run = monte_carlo(
        Setting(FedAvg(0.2, 1), PER_CLIENT, UniformSubset(5, 2), 1, [0.0, 0.0]),
        replicas=replicas,
        seed=0,
        observe=[Recorder()],
    )
    final = np.concatenate(pool[1::2])
    assert final.size == replicas
    assert run.standard_error is not None
    np.testing.assert_allclose(run["recorded"][1], final.mean(), rtol=1e-14)
    np.testing.assert_allclose(
        run.standard_error["recorded"][1], final.std(ddof=1) / np.sqrt(replicas), rtol=1e-8
    )


# --- divergence and bad input ----------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0),
        nonconvex(2, 1, L=1.0, sigma_G=1.0, sigma=1.0),
    ],
    ids=["quadratic", "nonconvex"],
)
@pytest.mark.parametrize("replicas", [200, 1500], ids=["one chunk", "three chunks"])
def test_divergence_is_dated_and_infinite(problem: Problem, replicas: int) -> None:
    run = monte_carlo(
        Setting(FedAvg(1e3, 1), problem, UniformSubset(2, 1), 150, [1.0]), replicas=replicas, seed=0
    )
    assert run.diverged_at is not None
    assert run.standard_error is not None
    for arrays in (run, run.standard_error):
        for name in FIELDS:
            assert np.isposinf(arrays[name][run.diverged_at :]).all()
            assert np.isfinite(arrays[name][: run.diverged_at]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicas": 1}, r"replicas must be a whole number of at least 2, got 1"),
        ({"replicas": 10.0}, r"replicas must be a whole number of at least 2, got 10\.0"),
        ({"seed": -1}, r"seed must be a whole number of at least 0, got -1"),
        ({"rounds": 0}, r"rounds must be a whole number of at least 1, got 0"),
        ({"x0": [0.0]}, r"x0 must have shape \(2,\), got \(1,\)"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    good = {"rounds": 1, "x0": [0.0, 0.0], "replicas": 10, "seed": 0}
    given = good | arguments
    draws = {name: given.pop(name) for name in ("replicas", "seed")}
    parts = (FedAvg(0.1, 1), PER_CLIENT, UniformSubset(5, 2))
    with pytest.raises(ValueError, match=message):
        monte_carlo(Setting(*parts, **given), **draws)
