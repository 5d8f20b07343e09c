"""What one round does to histories' moments and to what may be wrong with them, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import FedAU, FedAvg, FedAWE, FedVarp, Mifa, Safari, Scaffold, Unbiased
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact, paths
from fltheory.engines.affine.probe import UNIT_ROUNDOFF
from fltheory.engines.history.steps import HistoryErrors, HistoryStep
from fltheory.engines.trajectory import FIELDS, Trajectory
from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import QuadraticProblem

Engine = Callable[[Setting], Trajectory]

ALL = np.eye(1)[None]


def one_history(**changes: object) -> HistoryStep:
    """x becomes x/2 + 1 and noise of variance 3, with chance 1/2, where E x^2 = 4 and E x = 0."""
    step = HistoryStep(
        before=np.diag([4.0, 1.0])[None],
        rows=np.array([0]),
        maps=np.array([[[0.5, 1.0], [0.0, 1.0]]]),
        noises=np.array([[[3.0]]]),
        errors=np.zeros((1, 4)),
        onward=np.array([0]),
        targets=np.array([0]),
        chances=np.array([0.5]),
        n_clients=3,
    )
    return replace(step, **changes)  # type: ignore[arg-type]


def after(step: HistoryStep, before: HistoryErrors) -> HistoryErrors:
    return before.after(step, step.gathered(step.images(step.before)))


NOTHING = HistoryErrors(np.zeros((2, 1, 2, 2)), np.zeros((1, 1)))


def test_moments_go_through_maps_and_on_to_targets() -> None:
    """Two histories, x halved or moved by one; the second goes on to either of two, the first to
    the second: 1/4 (x2 + 1) and 1/2 x1/2 + 3/4 (x2 + 1)."""
    step = one_history(
        before=np.array([np.diag([4.0, 1.0]), np.diag([16.0, 2.0])]),
        rows=np.array([0, 1]),
        maps=np.array([[[0.5, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]]),
        noises=np.array([[[3.0]], [[0.0]]]),
        onward=np.array([1, 0, 1]),
        targets=np.array([0, 1, 1]),
        chances=np.array([0.25, 0.5, 0.75]),
    )
    first, second = np.diag([1.0 + 3.0, 1.0]), np.array([[18.0, 2.0], [2.0, 2.0]])
    found = step.gathered(step.images(step.before))
    np.testing.assert_array_equal(found, [0.25 * second, 0.5 * first + 0.75 * second])
    stacked = step.gathered(step.images(np.stack([step.before, 2 * step.before])))
    np.testing.assert_array_equal(stacked, [found, 2 * found])
    # As many that sparse sums are taken.
    place = np.arange(200)
    many = replace(
        step,
        before=np.tile(step.before[:1], (200, 1, 1)) * (1 + place[:, None, None]),
        rows=place,
        maps=np.tile(step.maps[:1], (200, 1, 1)),
        noises=np.zeros((200, 1, 1)),
        onward=np.append(place, 0),
        targets=np.append(place[::-1], 3),
        chances=np.ones(201),
    )
    found = many.gathered(many.images(many.before))[:, 0, 0]
    np.testing.assert_array_equal(found, (200.0 - place) + (place == 3))


def test_operations_of_a_round_by_hand() -> None:
    """8 + 2 x 2 + 1 + 3 = 16 roundings, times two entries, of (2/2 + 1)^2, of 1 and of noise."""
    found = after(one_history(), NOTHING).bounds / UNIT_ROUNDOFF
    expected = 0.5 * np.diag([2 * 16 * 4.0 + 16 * 3.0, 2 * 16.0])
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-14)
    assert not found[1].any()


def test_errors_of_maps_and_noise_by_hand() -> None:
    """.1 x 2 + .2 = .4 comes to .8, half of 1.6, which is 1.2; a fifth of the noise is unsure.

    What operations have lost before, [[8, 2], [2, 1]], is mapped to [[5, 2], [2, 1]] and takes
    the noise's 3 along.
    """
    before = HistoryErrors(
        np.array([[[[8.0, 2.0], [2.0, 1.0]]], [[[2.56, 0.0], [0.0, 0.0]]]]), np.zeros((1, 1))
    )
    found = after(one_history(errors=np.array([[0.1, 0.2, 0.2, 0.0]])), before)
    np.testing.assert_allclose(found.bounds[0, 0], 0.5 * np.array([[8.6, 2], [2, 1]]), rtol=1e-12)
    np.testing.assert_allclose(found.bounds[1, 0], 0.5 * np.diag([1.44, 0]), rtol=1e-12)
    assert found.noise.tolist() == [[1.5]]


def test_a_forms_error_by_hand() -> None:
    """Of a value of 29/2 noise has made 2: 2 x 3 + 2 sqrt(25/2 x 2 x 4) + 8, for twice x^2."""
    bounds = np.array([[np.diag([1.0, 9.0]), np.diag([2.0, 9.0])], 2 * [np.diag([2.0, 0.0])]])
    found = HistoryErrors(bounds, np.ones((1, 1))).of_forms(2 * ALL, np.array([14.5]))
    assert found == pytest.approx(2 * 3 + 2 * np.sqrt(12.5 * 8) + 8, rel=1e-14)


def test_the_start_is_rounded_too() -> None:
    """A distance of 5/2 is off by two units, and its square by two more: six of 25/4."""
    start = np.outer([2.5, 0.0, 1.0], [2.5, 0.0, 1.0])[None]
    found = HistoryErrors.at_start(start).of_forms(ALL, np.array([6.25]))
    assert found == pytest.approx(6 * UNIT_ROUNDOFF * 6.25, rel=1e-12)


def test_one_map_that_is_always_off_the_same_way_meets_its_bound() -> None:
    """x is halved, or times .501: the squares after five rounds differ by all that was allowed."""
    step = one_history(
        before=np.diag([1.0, 1.0])[None],
        maps=np.diag([0.5, 1.0])[None],
        noises=np.zeros((1, 1, 1)),
        errors=np.array([[1e-3, 0.0, 0.0, 0.0]]),
        chances=np.ones(1),
    )
    errors, moments = NOTHING, step.before
    for count in range(1, 6):
        moments = (step := replace(step, before=moments)).gathered(step.images(moments))
        errors = errors.after(step, moments)
        (bound,) = errors.of_forms(ALL, moments[:, 0, 0])
        off = 0.501 ** (2 * count) - 0.5 ** (2 * count)
        assert off == pytest.approx(bound, rel=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_runs_with_other_maps_stay_within_the_bound(seed: int) -> None:
    """Three histories, maps that are off by 1e-4 in a direction of their own, over six rounds."""
    rng = np.random.default_rng(seed)
    size, histories = 4, 3
    before = np.stack([m @ m.T for m in rng.standard_normal((histories, size, size))])
    errors, true, form = HistoryErrors(np.zeros((2, *before.shape)), np.zeros((3, 3))), before, 0.0
    for _ in range(6):
        maps = rng.standard_normal((histories, size, size)) * 10.0 ** rng.uniform(-1, 1)
        maps[:, -1] = np.eye(size)[-1]
        off = np.zeros_like(maps)
        direction = rng.standard_normal((histories, 3))
        off[:, :3, :3] = rng.choice([0, 1]) * direction[:, :, None] * rng.standard_normal(3)
        off[:, :3, 3] = direction
        slope = np.linalg.norm(off[:, :3, :3], axis=(1, 2))
        scale = 1e-4 / np.linalg.norm(off, axis=(1, 2))
        offset = np.linalg.norm(direction, axis=1)
        draws = rng.dirichlet(np.ones(histories), histories)
        step = HistoryStep(
            before=before,
            rows=np.arange(histories),
            maps=maps,
            noises=np.tile(np.eye(3) * rng.uniform(0, 5), (histories, 1, 1)),
            errors=np.stack([slope * scale, offset * scale, 0 * slope, 0 * slope], axis=1),
            onward=np.repeat(np.arange(histories), histories),
            targets=np.tile(np.arange(histories), histories),
            chances=draws.ravel(),
            n_clients=1,
        )
        after_it = step.gathered(step.images(before))
        other = replace(step, before=true, maps=maps + off * scale[:, None, None])
        errors, before, true = (
            errors.after(step, after_it),
            after_it,
            other.gathered(other.images(true)),
        )
        matrix = np.diag(rng.uniform(0, 1, 2))[None]
        values = np.einsum("pab,fab->f", before[:, :2, :2], matrix)
        gap = np.abs(np.einsum("pab,fab->f", true[:, :2, :2], matrix) - values)
        (bound,) = errors.of_forms(matrix, values)
        assert gap <= 1.01 * bound
        form = max(form, float(gap[0] / bound))
    assert form > 0.02


CHANCES = [0.3, 0.5, 0.8, 0.4]
ALGORITHMS = (
    FedAvg(0.06, 3),
    Safari(0.3, 0.06, 0.06, 3),
    Scaffold(0.06, 3),
    FedVarp(0.06, 3),
    Mifa(0.06, 3, start="zero"),
)


@pytest.mark.parametrize(
    "participation", [UniformSubset(4, 2), Bernoulli(CHANCES), MarkovOnOff(CHANCES, 0.25)]
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bounds_by_histories_are_no_wider_than_by_growth(
    algorithm: Algorithm, participation: Participation
) -> None:
    """At every round, and with memory after 40 rounds a tenth as wide, on clients far apart."""
    problem = random_problem(3, 4, 3, sigma=0.3)
    setting = Setting(algorithm, problem, participation, 40, [3.0] * 3)
    by_histories, by_growth = paths(setting).rounding_error, exact(setting).rounding_error
    assert by_histories is not None
    assert by_growth is not None
    ratio = by_histories.squared_distance / by_growth.squared_distance
    assert ratio.max() < 1.1
    assert ratio[-1] < (0.1 if isinstance(algorithm, Scaffold | FedVarp | Mifa) else 0.7)


def test_errors_add_up_where_the_truth_is_nothing() -> None:
    """A map that is off by .1 the same way n times is off by n of them, and its square by n^2."""
    step = one_history(
        before=np.diag([0.0, 1.0])[None],
        maps=np.eye(2)[None],
        noises=np.zeros((1, 1, 1)),
        errors=np.array([[0.0, 0.1, 0.0, 0.0]]),
        chances=np.ones(1),
    )
    errors = NOTHING
    for count in range(1, 6):
        errors = after(step, errors)
        (bound,) = errors.of_forms(ALL, np.zeros(1))
        assert bound == pytest.approx((0.1 * count) ** 2, rel=1e-12)


@pytest.mark.parametrize("engine", [paths, exact])
def test_a_start_far_off_is_rounded_before_a_round_makes_much_of_it(engine: Engine) -> None:
    """x0 - x* is 3e-4, of which rounding x0 near 1e8 has taken a hundred thousandth."""
    problem = QuadraticProblem([[1e4]], [[1e8 + 0.1]])
    setting = Setting(FedAvg(1.0, 1), problem, Bernoulli([0.5]), 3, [1e8 + 0.1003])
    assert worst_ratio(engine(setting), exact(setting, arithmetic="rational")) < 1


def test_moments_of_thousands_of_histories_are_added_up_within_the_bound() -> None:
    """Of C(14, 7) sets each makes a history of its own, and all of them of the same size."""
    problem = QuadraticProblem([[1.0]], [[0.0]] * 14)
    setting = Setting(FedAU(1e-9, 1), problem, UniformSubset(14, 7), 1, [1.9])
    truth = 1.9**2 * (1 - 1e-9 / 2) ** 2
    run = paths(setting)
    assert run.rounding_error is not None
    assert abs(run.squared_distance[1] - truth) < 0.5 * run.rounding_error["squared_distance"][1]


def test_a_step_of_the_servers_that_makes_much_of_small_changes_is_within_the_bound() -> None:
    """Changes are taken as they are, not as differences of models that have been rounded."""
    problem = QuadraticProblem([[0.7]], [[0.1], [1.3]])
    algorithm = FedAWE(1e-4, 1, server_lr=1e4)
    setting = Setting(algorithm, problem, UniformSubset(2, 2), 3, [1.0])
    assert worst_ratio(paths(setting), exact(setting, arithmetic="rational")) < 0.5


RARE = 1 - 1e-9
UNLIKELY = [
    Setting(FedAvg(1.0, 1), QuadraticProblem([[1.0]], [[0.1]]), Bernoulli([RARE]), 4, [1.0]),
    Setting(FedAvg(1.0, 1), QuadraticProblem([[1.0]], [[0.1]]), MarkovOnOff([RARE], 0.9), 4, [1.0]),
    # Two absences in a row have the chance of half a billionth.
    Setting(
        FedAvg(1.0, 1), QuadraticProblem([[1.0]], [[0.1]]), MarkovOnOff([0.5], -RARE), 6, [1.0]
    ),
    Setting(FedAvg(1.0, 1), QuadraticProblem([[1.0]], [[0.1]]), AtMost([RARE], 1), 4, [1.0]),
    Setting(
        Safari(RARE, 0.5, 1e6, 1),
        QuadraticProblem([[[1.0]], [[2.0]]], [[0.0], [1.0]]),
        Bernoulli([0.5, 0.5]),
        3,
        [1.0],
    ),
]


@pytest.mark.parametrize("engine", [paths, exact])
@pytest.mark.parametrize("setting", UNLIKELY)
def test_what_is_all_due_to_a_rare_chance_is_within_the_bound(
    setting: Setting, engine: Engine
) -> None:
    """One minus a float near one would be off by 3e-8 of itself."""
    assert worst_ratio(engine(setting), exact(setting, arithmetic="rational")) < 0.1


@pytest.mark.parametrize("engine", [paths, exact])
def test_optima_are_rounded_before_a_round_that_diverges(engine: Engine) -> None:
    """Where rounds of 1/p = 1e5 are all that moves a start near optima near 1e8."""
    problem = QuadraticProblem([[1.0]], [[123456789.1], [123456789.3]])
    rare = Unbiased([0.5, 0.5], [1e-4, 1e-3], 0.5, 1)
    setting = Setting(rare, problem, UniformSubset(2, 1), 3, [123456789.21])
    assert worst_ratio(engine(setting), exact(setting, arithmetic="rational")) < 0.5


@pytest.mark.parametrize("engine", [paths, exact])
def test_the_mean_hessian_of_a_thousand_clients_is_rounded_that_often(engine: Engine) -> None:
    """Equal ones that are added up one after another lose the same each time."""
    problem = QuadraticProblem([[[1.1]]] * 1000, [[0.3]] * 1000)
    setting = Setting(FedAvg(0.1, 1), problem, UniformSubset(1000, 1000), 1, [1.0])
    assert worst_ratio(engine(setting), exact(setting, arithmetic="rational")) < 1


def worst_ratio(run: Trajectory, truth: Trajectory) -> float:
    """Return the largest true error over its stated bound."""
    assert run.rounding_error is not None
    return max(
        float(abs(Fraction(float(value)) - expected)) / float(stated)
        for field in FIELDS
        for value, stated, expected in zip(
            run[field], run.rounding_error[field], truth[field], strict=True
        )
    )
