"""The public strategies draw what they promise, and shrink a refutation to round numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import settings as options
from hypothesis import strategies as st

from fltheory import strategies, theorems
from fltheory.engines import Setting, exact
from fltheory.engines.fedau_weights.dependent_weight_error import weight_error_under
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


@given(st.data(), st.integers(1, 4))
def test_participation_of_fedau_is_valid_and_varied(data, n_clients: int) -> None:
    """What is drawn has been accepted by its class; marginals are probabilities, none zero."""
    for drawn in (strategies.bernoullis, strategies.cycles, strategies.on_off_chains):
        who = data.draw(drawn(n_clients))
        assert who.n_clients == n_clients
        assert (who.marginals > 0).all()
        assert (who.marginals <= 1).all()


@given(st.data())
def test_weight_errors_are_means_of_squares_anywhere(data) -> None:
    """Jensen: E[(p omega - 1)^2] >= (p E omega - 1)^2 >= 0, and (p - 1)^2 at first."""
    setting = data.draw(strategies.settings(algorithm="fedau", max_rounds=12))
    who, cutoff = setting.participation, setting.algorithm.cutoff
    errors = weight_error_under(who, cutoff, setting.rounds)
    assert (errors.values >= 0).all()
    np.testing.assert_allclose(errors.values[:, 0], (who.marginals - 1) ** 2, atol=1e-15)
    longest = min(cutoff, setting.rounds)
    largest = np.maximum((who.marginals - 1) ** 2, (who.marginals * longest - 1) ** 2)
    assert (errors.values <= largest[:, None] + errors.error + 1e-15).all()


@pytest.mark.parametrize("name", ["safari", "fedavg", "fedau"])
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
    run = exact(setting)
    L, mu = setting.problem.L, setting.problem.mu
    slack = 1e-9 * (1 + run.squared_distance) + run.rounding_error.squared_distance
    assert (run.squared_distance >= 2 * run.excess_loss / L - slack).all()
    assert (run.squared_distance <= 2 * run.excess_loss / mu + slack).all()


def test_another_algorithm_is_refused() -> None:
    with pytest.raises(
        ValueError, match="algorithm must be one of safari, fedavg, fedau, got 'sgd'"
    ):
        find(strategies.settings(algorithm="sgd"), lambda setting: True)


def test_shrinking_finds_a_small_setting_for_a_false_claim() -> None:
    """Claim: FedAvg with steps up to 4/L never moves away. Beyond 2/L it soon does."""

    def moves_away(setting: Setting) -> bool:
        run = exact(setting)
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
