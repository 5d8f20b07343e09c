"""Intervals for means: they cover for every law, and stay useful where laws are tame."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit
from scipy.stats import binom

from fltheory.evidence.truths import least_mean, mean_within


def two_point(draws: int, low: float, high: float):
    """Mean and standard error of every sample of two values, by how many are high."""
    many = np.arange(draws + 1)
    mean = low + (high - low) * many / draws
    spread = (high - low) * np.sqrt(many * (draws - many) / draws / (draws - 1))
    return mean, spread / np.sqrt(draws)


@pytest.mark.parametrize("draws", [2, 20, 500])
@pytest.mark.parametrize("low", [0.0, 0.4])
def test_the_chance_to_miss_is_as_stated_for_two_values(draws: int, low: float) -> None:
    """The exact chance of a miss, by the binomial law, for any chance of the higher value.

    Nothing is drawn here: there are no false alarms.
    """
    mean, error = two_point(draws, low, 1.0)
    zero, top = np.zeros_like(mean), np.ones_like(mean)
    for chance in (0.2, 1e-3, 1e-9):
        least = least_mean(mean, error, draws, chance)
        ends = mean_within(mean, error, draws, floor=zero, ceiling=top, error_probability=chance)
        for p in (1e-6, 1e-4, 1e-2, 0.1, 0.5, 0.9, 0.99, 1 - 1e-4):
            truth = low + (1 - low) * p
            law = binom.pmf(np.arange(draws + 1), draws, p)
            assert law[least > truth].sum() <= chance
            assert law[ends[0] > truth].sum() <= chance / 2
            assert law[ends[1] < truth].sum() <= chance / 2


def test_a_sample_of_equal_draws_has_no_interval_of_width_zero() -> None:
    """An event of chance p is missed by n draws with (1 - p)^n: p up to log(2/delta)/n is open."""
    zero, one = np.zeros(1), np.ones(1)
    _, upper = mean_within(zero, zero, 300, floor=zero, ceiling=one, error_probability=1e-6)
    assert (1 - upper[0]) ** 300 <= 0.5e-6
    assert upper[0] < 1.5 * np.log(2e6) / 300
    lower, _ = mean_within(one, zero, 300, floor=zero, ceiling=one, error_probability=1e-6)
    assert lower[0] < 1 - np.log(2e6) / 300 * 0.9


@pytest.mark.parametrize("relative", [0.2, 0.5, 1.0, 2.0])
def test_intervals_of_tame_variables_are_hardly_wider_than_students(relative: float) -> None:
    """A range of four times the mean, 2,000 draws."""
    draws, chance = 2000, 1e-12
    mean, error = np.ones(1), np.array([relative / np.sqrt(draws)])
    lower, upper = mean_within(
        mean, error, draws, floor=np.zeros(1), ceiling=np.full(1, 4.0), error_probability=chance
    )
    student = -float(stdtrit(draws - 1, chance / 2)) * error[0]
    assert student < mean[0] - lower[0] < 2 * student
    assert student < upper[0] - mean[0] < 2 * student + 4 * np.log(24 / chance) / draws


def test_either_end_has_half_of_the_error_probability() -> None:
    mean, error, zero = np.full(1, 0.3), np.full(1, 0.01), np.zeros(1)
    ends = mean_within(mean, error, 90, floor=zero, ceiling=zero + 1, error_probability=0.02)
    assert ends[0] == least_mean(mean, error, 90, 0.01)
    assert ends[1] == 1 - least_mean(1 - mean, error, 90, 0.01)


def test_no_range_no_end() -> None:
    one, nowhere = np.ones(1), np.full(1, np.inf)
    ends = mean_within(one, one, 50, floor=-nowhere, ceiling=nowhere, error_probability=0.1)
    assert [end.tolist() for end in ends] == [[-np.inf], [np.inf]]
    lower, upper = mean_within(
        one, 0 * one, 50, floor=0 * one, ceiling=nowhere, error_probability=0.1
    )
    assert 0 < lower[0] < 1
    assert upper[0] == np.inf


def test_a_mean_outside_its_range_says_nothing_of_that_end() -> None:
    """The other end stands on the other limit alone: least_mean at half of the chance."""
    two, one = np.full(1, 2.0), np.ones(1)
    above = mean_within(two, 0 * two, 50, floor=0 * two, ceiling=one, error_probability=0.1)
    assert above[0] == least_mean(two, 0 * two, 50, 0.05)
    assert above[1] == np.inf
    below = mean_within(two, 0 * two, 50, floor=3 * one, ceiling=5 * one, error_probability=0.1)
    assert below[0] == -np.inf
    assert below[1] == 5 - least_mean(3 * one, 0 * one, 50, 0.05)


@pytest.mark.parametrize("chance", [0.3, 1e-6])
def test_draws_beyond_a_ceiling_do_not_lower_the_end_for_what_is_below(chance: float) -> None:
    """Against the same draws cut off at the ceiling, for all ways that they can be far beyond."""
    rng = np.random.default_rng(0)
    for spread, draws in [(s, n) for s in (0.1, 1.0, 10.0, 1e4) for n in (5, 50, 2000)] * 20:
        values = rng.uniform(0, 1, draws)
        far = rng.random(draws) < rng.choice([0.5, 0.1, 2 / draws])
        values[far] += spread * rng.exponential(size=far.sum())
        ends = []
        for sample in (values, np.minimum(values, 1.0)):
            mean, error = sample.mean(keepdims=True), sample.std(ddof=1, keepdims=True)
            ends.append(
                mean_within(
                    mean, error / np.sqrt(draws), draws,
                    floor=np.zeros(1), ceiling=np.ones(1), error_probability=chance,
                )[1]
            )  # fmt: skip
        assert ends[0] >= ends[1] - 1e-12
