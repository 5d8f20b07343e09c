"""Rounds along a record and along the fitted process, where what they give is known."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.advice.population import ClientPopulation
from fltheory.advice.rounds import LogRounds, along_the_process
from fltheory.algorithms import FedAvg
from fltheory.algorithms.table import ALGORITHMS
from fltheory.logs import AvailabilityLog
from fltheory.weights import Training

STEP = 0.25


def population(masks: np.ndarray, noise: float = 0.0) -> ClientPopulation:
    log = AvailabilityLog.from_masks(masks)
    count = log.n_clients
    return ClientPopulation(log, np.full(count, 1 / count), np.ones(count), Training(noise=noise))


def test_a_record_repeated_leads_to_its_periodic_mean() -> None:
    # Two clients in turn, ten rounds each: x_+ = x + s (e_k - x), solved for its period by hand.
    masks = np.repeat(np.eye(2), 10, axis=0)
    found = LogRounds(FedAvg(STEP, 1), population(masks), 0).on_the_log()
    assert found is not None
    kept = (1 - STEP) ** np.arange(1, 11)
    first = (1 - kept[-1]) / (1 - kept[-1] ** 2)  # weight of the first client after its stay
    mean = np.concatenate([1 - kept * first, kept * first]).mean()
    assert found.weights == pytest.approx([mean, 1 - mean], abs=1e-3)
    assert found.weights.sum() == pytest.approx(1)


def test_an_error_is_that_of_the_start_before_anybody_pulls_apart() -> None:
    found = LogRounds(FedAvg(STEP, 1), population(np.ones((20, 3))), 0).on_the_log()
    assert found is not None
    assert found.errors == pytest.approx((1 - STEP) ** np.arange(1, 21))
    assert found.rounds_within(0.75**4) == 4
    assert found.rounds_within(1e-9) is None


def test_noise_is_the_stationary_one() -> None:
    drawn = along_the_process(FedAvg(STEP, 1), population(np.ones((20, 3)), noise=2.0), STEP, 0, 4)
    assert drawn is not None
    # x_+ = (1 - s) x + s times the mean of three noises.
    expected = 4 * STEP**2 / 3 / (1 - (1 - STEP) ** 2)
    assert drawn.noise**2 == pytest.approx(expected, rel=0.2)
    assert drawn.sway == pytest.approx(0, abs=1e-6)


def test_what_diverges_is_none() -> None:
    runs = LogRounds(FedAvg(3.0, 1), population(np.ones((60, 3))), 0)
    assert runs.late_error == np.inf
    assert runs.on_the_log() is None


def test_drawn_branches_are_followed_until_chance_is_small() -> None:
    # With one client always there and a server whose target is half of it, every other round.
    masks = np.tile([True, False], (40, 1))
    told = ALGORITHMS["safari"].among(
        {"client_lr": STEP, "assist_lr": STEP, "local_steps": 1}, **ALGORITHMS["safari"].example(1)
    )
    found = LogRounds(told, population(masks), 0).on_the_log()
    assert found is not None
    assert found.error > 0
    # Half the time towards (1, 0), half towards (1/2, 1/2).
    assert found.weights == pytest.approx([0.75, 0.25], abs=4 * found.error)
    again = LogRounds(FedAvg(STEP, 1), population(masks), 0).on_the_log()
    assert again is not None
    assert again.error == 0
