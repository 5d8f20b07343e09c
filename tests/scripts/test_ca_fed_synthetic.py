"""CA-Fed's experiment: its instance, its figures by hand, tuning, and order of work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from docs.scripts.ca_fed import (
    CHOICES,
    METHODS,
    PAPER,
    PUBLISHED_RATES,
    SyntheticPlan,
    algorithm,
    figures,
    instance,
    keys,
    logged_points,
    measure,
    run,
)

QUICK = SyntheticPlan(
    6, runs=2, dim=3, train_size=20, test_size=30, client_lrs=(0.03, 0.1), server_lrs=(1.0,)
)


def test_a_row_by_hand() -> None:
    """Run 0: 50 60 70 80, run 1: 50 50 60 40. Maxima 80 and 60; means 65 and 50.

    Second half: 70 80 and 60 40, deviations 5 and 10. Running averages end 60 65 and
    160/3 50, deviations 5/2 and 5/3. Logged are the start, 90 and 10, and round 2: maxima 90
    and 50, means 75 and 30.
    """
    row = figures(np.array([[90.0, 10], [50, 50], [60, 50], [70, 60], [80, 40]]))
    assert (row.maximum, row.time_average, row.deviation) == (70.0, 57.5, 7.5)
    assert (row.logged_maximum, row.logged_average) == (70.0, 52.5)
    assert row.deviation_of_average == pytest.approx((5 / 2 + 5 / 3) / 2)


def test_logged_points_are_those_of_the_authors_loop() -> None:
    """``if ((ii < 40) and (ii % 3 == 1)) or ((ii % log_freq) == (log_freq - 1))``, log_freq 10.

    The model is also evaluated before the loop; round ii of the loop is the (ii + 1)th.
    """
    for rounds in (1, 2, 39, 40, 41, 150):
        after = [ii + 1 for ii in range(rounds) if (ii < 40 and ii % 3 == 1) or ii % 10 == 9]
        assert logged_points(rounds) == [0, *after]
    assert len(logged_points(150)) == 28


def test_the_instance_is_the_papers() -> None:
    """24 clients, 12 per group; in each 6 with pi = 0.9 and 6 with 0.1; half of each nu = 0.9."""
    drawn = instance(SyntheticPlan(), 0)
    pi, nu = drawn.participation.availability, drawn.participation.correlation
    assert drawn.train.n_clients == 24
    np.testing.assert_array_equal(drawn.train.sizes, 150)
    assert drawn.train.ridge == 0.01
    for group in (slice(0, 12), slice(12, 24)):
        for level in (0.9, 0.1):
            of_class = np.isclose(pi[group], level)
            assert of_class.sum() == 6
            assert (nu[group][of_class] == 0.9).sum() == 3
    weak = nu[nu != 0.9]
    assert (np.abs(weak) < 0.06).all()
    assert weak.std() > 0


def test_labels_of_the_second_group_are_flipped_with_probability_a_fifth() -> None:
    """Bayes' accuracy b of the first group makes 0.8 b + 0.2 (1 - b) in the second."""
    plan = SyntheticPlan(train_size=1, test_size=4000)
    drawn = instance(plan, 3)
    rng = np.random.default_rng([3, 0])
    truth = rng.standard_normal(plan.dim)
    test = drawn.test
    right = (test.samples @ truth > 0) == (test.signs > 0)
    first, second = right[: 12 * 4000].mean(), right[12 * 4000 :].mean()
    assert second == pytest.approx(0.2 + 0.6 * first, abs=0.01)
    assert drawn.best == pytest.approx((first + second) / 2, rel=1e-12)


def test_seeds_differ_and_repeat() -> None:
    one, same, other = instance(QUICK, 1), instance(QUICK, 1), instance(QUICK, 2)
    np.testing.assert_array_equal(one.train.samples, same.train.samples)
    assert not np.array_equal(one.train.samples, other.train.samples)


def test_methods_have_the_papers_parameters() -> None:
    drawn = instance(QUICK, 0)
    ours = {method: algorithm(method, QUICK, drawn, 0.1, 0.5) for method in METHODS}
    names = [type(a).__name__ for a in ours.values()]
    assert names == ["Unbiased", "F3ast", "AdaFed", "CAFed", "CAFed"]
    fed: Any = ours["CA-Fed"]
    assert (fed.threshold, fed.loss_smoothing, fed.kappa_bar) == (0.0, 0.2, 1.0)
    assert fed.known_minima is None
    with pytest.raises(ValueError, match=r"method must be one of Unbiased, .*, got 'FedAvg'"):
        algorithm("FedAvg", QUICK, drawn, 0.1, 0.5)


def test_a_method_is_measured_with_the_rates_that_are_best_in_other_runs() -> None:
    result = measure((4, "Unbiased"), QUICK)
    drawn = instance(QUICK, 4)
    tried = {
        lr: run(QUICK, drawn, algorithm("Unbiased", QUICK, drawn, lr, 1.0), [4, 1])
        for lr in (0.03, 0.1)
    }
    best = max(tried, key=lambda lr: tried[lr].time_average)
    assert result.rates["time-average"] == (best, 1.0)
    assert result.rates["published"] == PUBLISHED_RATES["Unbiased"]
    again = run(QUICK, drawn, algorithm("Unbiased", QUICK, drawn, best, 1.0), [4, 2])
    assert result.figures["time-average"] == again
    assert tried[best] != again
    assert set(result.figures) == set(CHOICES)


def test_only_ca_fed_excludes_clients() -> None:
    drawn = instance(QUICK, 0)
    for method in METHODS:
        row = run(QUICK, drawn, algorithm(method, QUICK, drawn, 0.1, 1.0), [0, 2])
        assert (row.kept_more is not None) == method.startswith("CA-Fed")
        assert 0 < row.time_average <= row.maximum <= 100


def test_tuning_grids_are_the_papers() -> None:
    np.testing.assert_allclose(SyntheticPlan().client_lrs, 10 ** np.array([-3, -2.5, -2, -1.5, -1]))
    np.testing.assert_allclose(SyntheticPlan().server_lrs, 10 ** np.array([-2, -1.5, -1, -0.5, 0]))
    assert set(PAPER) < set(METHODS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rounds": 1}, r"rounds must be a whole number of at least 2, got 1"),
        ({"runs": 0}, r"runs must be a whole number of at least 1, got 0"),
        ({"start_spread": -1.0}, r"start_spread must be a finite number of at least 0, got -1\.0"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\), got 1\.0"),
        ({"client_lrs": ()}, r"client_lrs must hold at least one step size, got none"),
        ({"server_lrs": (0.0,)}, r"server_lrs must be a finite number above 0, got 0\.0"),
    ],
)
def test_bad_plan_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SyntheticPlan(**changed)


def test_keys_need_a_seed() -> None:
    with pytest.raises(ValueError, match="seeds must be a whole number of at least 1, got 0"):
        keys(0)
