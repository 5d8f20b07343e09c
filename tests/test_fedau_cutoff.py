"""The best cut-off, against all of them, and against the paper's choices."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.fedau import best_cutoff, corollary_cutoff, weight_errors
from fltheory.logs import AvailabilityLog
from tests.engines.fraction_runs import rational_weight_error


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("rounds", [2, 30, 200])
def test_no_cutoff_is_better(p: float, rounds: int) -> None:
    found = best_cutoff(p, rounds)
    every = weight_errors(p, rounds, np.arange(1, rounds + 1))
    assert found.best.error == every.min()
    assert found.best.error == every[int(found.best.cutoff) - 1]
    assert found.best.error <= min(found.corollary.error, found.experiments.error, found.none.error)


def test_errors_are_means_over_rounds_and_clients() -> None:
    p = [Fraction(1, 4), Fraction(1, 2)]
    expected = np.mean([[float(e) for e in rational_weight_error(each, 3, 12)] for each in p])
    found = weight_errors([float(each) for each in p], 12, [3])
    assert found == pytest.approx([expected], rel=1e-12)


def test_clients_that_are_alike_count_each() -> None:
    one, other = (weight_errors(p, 60, [2, 9]) for p in (0.1, 0.97))
    together = weight_errors([0.1, 0.97, 0.1], 60, [2, 9])
    assert together == pytest.approx((2 * one + other) / 3, rel=1e-12)


def test_small_errors_have_as_many_digits() -> None:
    """Whoever is nearly always there has errors below what the transform resolves."""
    for p in (0.999, 1 - 1e-6):
        exact = [weight_error(p, longest, 50).values.mean() for longest in (1, 2)]
        assert exact[0] < 1.1e-6
        assert weight_errors(p, 50, [1, 2]) == pytest.approx(exact, rel=1e-9)


def test_a_cutoff_beyond_the_horizon_is_none() -> None:
    found = weight_errors(0.1, 40, [40, 1000, math.inf])
    assert found[0] == pytest.approx(found[2], rel=1e-12)
    assert found[1] == pytest.approx(found[2], rel=1e-12)


def test_the_corollarys_choice_by_hand() -> None:
    """c = 1/(1 - 0.1)^2, so log_c 1000 = ln 1000 / (2 * 0.10536) = 32.78."""
    assert corollary_cutoff([0.5, 0.1], 1000) == 33
    assert corollary_cutoff(1.0, 1000) == 1
    assert corollary_cutoff(0.9999, 3) == 1


def test_a_population_is_judged_together() -> None:
    """Rare clients want a long cut-off, frequent ones do not mind: the best lies with the rare."""
    rare, both = best_cutoff(0.05, 150), best_cutoff([0.05, 0.95], 150)
    every = weight_errors([0.05, 0.95], 150, np.arange(1, 151))
    assert both.best.error == every.min()
    assert abs(both.best.cutoff - rare.best.cutoff) <= 2


def plainly(masks: np.ndarray, cutoff: float, rounds: int) -> float:
    """Return the mean of (p omega - 1)^2 with FedAU's omega, looping over clients and rounds."""
    total, ever = 0.0, np.flatnonzero(masks.any(axis=0))
    for there in masks[:, ever].T:
        omega, intervals, ended, lasted = 1.0, 0, 0, 0
        for now in there[:rounds]:
            total += (there.mean() * omega - 1) ** 2
            lasted += 1
            if now or lasted == cutoff:
                intervals, ended, lasted = intervals + 1, ended + lasted, 0
                omega = ended / intervals
    return total / rounds / ever.size


@pytest.mark.parametrize("seed", range(6))
def test_errors_along_a_log_are_those_of_its_own_rounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    masks = np.repeat(rng.random((20, 5)) < [0.02, 0.2, 0.5, 0.9, 0], rng.integers(1, 5), axis=0)
    log, rounds = AvailabilityLog.from_masks(masks), int(rng.integers(2, len(masks)))
    cutoffs = [1, 2, 3, 8, 50, math.inf]
    expected = [plainly(masks, cutoff, rounds) for cutoff in cutoffs]
    assert weight_errors(log, rounds, cutoffs) == pytest.approx(expected, rel=1e-12)


def test_long_absences_want_another_cutoff_than_coins() -> None:
    """Who stays away long: the cut-off for independent rounds of the same shares is far off."""
    there = np.concatenate([np.ones((40, 1)), np.zeros((400, 1))] * 5) > 0
    masks = np.hstack([there, np.roll(there, 80, axis=0)])
    log = AvailabilityLog.from_masks(masks)
    found = best_cutoff(log)
    errors = [plainly(masks, cutoff, 2200) for cutoff in range(1, 200, 10)]
    # Two means of 4,400 numbers, added up in other orders.
    assert found.best.error <= min(errors) * (1 + 4400 * np.finfo(float).eps)
    coins = best_cutoff(log.marginals, 2200).best.cutoff
    assert plainly(masks, coins, 2200) > 1.4 * found.best.error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 10), r"p must be in \(0, 1\], got 0"),
        (([0.5, 1.5], 10), r"p must be in \(0, 1\], got 1.5 for client 1"),
        ((0.5, 1), "rounds must be a whole number of at least 2"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        best_cutoff(*arguments)
