"""Rounds along a record and along the fitted process, where what they give is known."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.advice.population import ClientPopulation
from fltheory.advice.rounds import LogRounds
from fltheory.algorithms import FedAvg
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
    found = LogRounds(FedAvg(STEP, 1), population(np.ones((400, 3)), noise=2.0), 0).on_the_log()
    assert found is not None
    # x_+ = (1 - s) x + s times the mean of three noises.
    expected = 4 * STEP**2 / 3 / (1 - (1 - STEP) ** 2)
    assert found.noise**2 == pytest.approx(expected, rel=0.2)
    assert found.squares == pytest.approx(expected, rel=0.8)
    assert found.sway == pytest.approx(0, abs=1e-6)


def test_pulls_are_those_of_each_batch() -> None:
    """Clients in turn by the twentieth of the rounds pull each alone, wherever the model was."""
    masks = np.repeat(np.tile(np.eye(2), (10, 1)), 8, axis=0)
    found = LogRounds(FedAvg(STEP, 1), population(masks), 0).on_the_log()
    assert found is not None
    assert found.pulls == pytest.approx(np.tile(np.eye(2), (10, 1)), abs=0.02)


def test_what_diverges_is_none() -> None:
    runs = LogRounds(FedAvg(3.0, 1), population(np.ones((60, 3))), 0)
    assert runs.late_error == np.inf
    assert runs.on_the_log() is None
