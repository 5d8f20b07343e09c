"""The public strategies draw what they promise, and shrink a refutation to round numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import settings as options
from hypothesis import strategies as st

from fltheory import strategies, theorems
from fltheory.engines import Setting, exact
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.verify import Outcome, check


@given(strategies.quadratic_problems(max_clients=4, max_dim=2, max_condition=10.0))
def test_problems_stay_within_their_limits(problem: QuadraticProblem) -> None:
    assert 1 <= problem.n_clients <= 4
    assert 1 <= problem.dim <= 2
    assert problem.mu <= problem.L <= 10.0 * problem.mu * (1 + 1e-12)
    assert (problem.sigma_G > 0) <= (problem.n_clients > 1)


@given(st.integers(1, 6).flatmap(strategies.uniform_subsets))
def test_subsets_always_leave_enough_clients(who: UniformSubset) -> None:
    assert 1 <= who.size <= who.n_clients - len(who.excluded)


@pytest.mark.parametrize("name", ["safari", "fedavg"])
def test_settings_keep_steps_in_proportion(name: str) -> None:
    @given(strategies.settings(algorithm=name, max_step_times_smoothness=0.5, max_rounds=5))
    def holds(setting: Setting) -> None:
        assert type(setting.algorithm).__name__.lower() == name
        assert setting.algorithm.client_lr * setting.problem.L <= 0.5 * (1 + 1e-12)
        assert setting.rounds <= 5

    holds()


@given(strategies.settings(algorithm="safari", max_rounds=8))
def test_a_law_holds_on_every_setting_drawn(setting: Setting) -> None:
    """E||x - x*||^2 lies between 2(F - F*)/L and 2(F - F*)/mu."""
    run = exact(
        setting.algorithm, setting.problem, setting.participation, setting.rounds, setting.x0
    )
    L, mu = setting.problem.L, setting.problem.mu
    slack = 1e-9 * (1 + run.squared_distance) + run.rounding_error.squared_distance
    assert (run.squared_distance >= 2 * run.excess_loss / L - slack).all()
    assert (run.squared_distance <= 2 * run.excess_loss / mu + slack).all()


def test_another_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="algorithm must be one of safari, fedavg, got 'sgd'"):
        find(strategies.settings(algorithm="sgd"), lambda setting: True)


def test_shrinking_finds_a_small_setting_for_a_false_claim() -> None:
    """Claim: FedAvg with steps up to 4/L never moves away. Beyond 2/L it soon does."""

    def moves_away(setting: Setting) -> bool:
        run = exact(
            setting.algorithm, setting.problem, setting.participation, setting.rounds, setting.x0
        )
        gain = run.squared_distance[-1] - run.squared_distance[0]
        return bool(gain > 1 and np.isfinite(gain))

    drawn = strategies.settings(algorithm="fedavg", max_step_times_smoothness=4.0, max_rounds=20)
    small = find(drawn, moves_away, settings=options(derandomize=True, database=None))
    assert (small.problem.n_clients, small.problem.dim) == (1, 1)
    assert small.rounds <= 3


def test_a_derived_theorem_survives_random_settings() -> None:
    theorem = theorems.get("sa-fl/5", "derived")

    @given(strategies.settings(max_step_times_smoothness=0.5, max_rounds=10))
    def survives(setting: Setting) -> None:
        assert check(theorem, setting).outcome is not Outcome.REFUTED

    survives()
