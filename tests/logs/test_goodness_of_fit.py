"""Each model fits its own draws, and not those of the others."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.logs import AvailabilityLog
from fltheory.logs.goodness_of_fit import clusters, correlations, fits, holm
from fltheory.participation import MarkovOnOff
from fltheory.participation.base import Masks

ROUNDS, CLIENTS = 360, 15


def drawn(model: str, seed: int) -> Masks:
    """Return who was there by a law that is the model's."""
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.2, 0.8, CLIENTS)

    def chain(availability, memory):
        masks = MarkovOnOff(availability, memory).masks(rng, 1)
        return np.concatenate([next(masks) for _ in range(ROUNDS)])

    coins = rng.random((ROUNDS, CLIENTS))
    hour = (np.arange(ROUNDS)[:, None] + np.arange(CLIENTS) % 3 * 8) % 24
    match model:
        case "independent":
            return coins < shares
        case "on-off Markov":
            return chain(shares, rng.uniform(0.4, 0.8, CLIENTS))
        case "clustered":
            return chain([0.5, 0.6], [0.6, 0.4])[:, np.arange(CLIENTS) % 2] & (coins < shares)
    return coins < shares * np.where(hour < 10, 0.9, 0.1)


MODELS = ("independent", "on-off Markov", "clustered", "cyclic")


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_seldom_rejected_where_it_is_true(model: str) -> None:
    """Eight logs at 5% each: five or more alarms have a chance below 0.0001."""
    alarms = 0
    for seed in range(8):
        log = AvailabilityLog.from_masks(drawn(model, seed))
        found = fits(log, np.random.default_rng(seed), 24 if model == "cyclic" else None, draws=39)
        alarms += next(fit.p_value for fit in found if fit.model == model) <= 0.05
    assert alarms < 5


@pytest.mark.parametrize(
    ("model", "false"),
    [
        ("on-off Markov", {"independent"}),
        ("clustered", {"independent", "on-off Markov"}),
        ("cyclic", {"independent", "on-off Markov", "clustered"}),
    ],
)
def test_what_is_false_is_rejected(model: str, false: set[str]) -> None:
    log = AvailabilityLog.from_masks(drawn(model, 1))
    found = fits(log, np.random.default_rng(1), 24.0)
    assert false <= {fit.model for fit in found if fit.rejected}
    assert model not in {fit.model for fit in found if fit.rejected}


def test_clusters_are_those_that_come_together() -> None:
    """Who is rarely there may stand alone; nobody stands with the other cluster."""
    labels = clusters(drawn("clustered", 0))
    assert len(set(zip(labels, np.arange(CLIENTS) % 2, strict=True))) == len(set(labels))
    assert np.sort(np.bincount(labels))[-2:].sum() >= 12
    assert set(clusters(drawn("independent", 0))) == {0}


def test_clients_that_always_come_together_are_described() -> None:
    half = np.random.default_rng(3).random((40, 4)) < [0.1, 0.4, 0.6, 0.8]
    assert len(clusters(np.repeat(half, 2, axis=1))) == 8


def test_correlations_are_numpys() -> None:
    there = drawn("clustered", 3)
    np.testing.assert_allclose(correlations(there), np.corrcoef(there.T), atol=1e-12)


def test_holm_by_hand() -> None:
    """0.01 four times, 0.02 three times, 0.03 twice, 0.04 once, and never below the one before."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_without_anybody_who_comes_and_goes_nothing_is_fitted() -> None:
    log = AvailabilityLog.from_masks(np.ones((9, 2)))
    assert fits(log, np.random.default_rng(0)) == ()
