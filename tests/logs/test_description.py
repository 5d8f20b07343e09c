"""What is said of logs whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fltheory.logs import AvailabilityLog, describe
from fltheory.logs.description import (
    _halves,
    batch_shares,
    clearest_cycle,
    largest_eigenvalue,
    marginal_intervals,
)
from fltheory.logs.transitions import clopper_pearson, draw_log, eigenvalue_intervals, fit_on_off
from fltheory.participation import MarkovOnOff, Trace


def zones_log(rounds: int = 960, clients: int = 30, seed: int = 0) -> AvailabilityLog:
    """Return a log of three zones eight hours apart, in which the first overtone is coherent."""
    rng = np.random.default_rng(seed)
    hour = (np.arange(rounds)[:, None] + np.arange(clients) % 3 * 8) % 24
    return AvailabilityLog.from_masks(rng.random(hour.shape) < np.where(hour < 10, 0.7, 0.1))


def test_batches_are_means_of_the_matrix() -> None:
    masks = np.random.default_rng(0).random((200, 4)) < 0.4
    log = AvailabilityLog.from_masks(masks)
    np.testing.assert_allclose(batch_shares(log), masks.reshape(20, 10, 4).mean(axis=1))
    whole = masks[:168].reshape(8, 21, 4)  # 8 cycles of 21 rounds and half a cycle more
    found = batch_shares(AvailabilityLog.from_masks(masks[:170]), period=21)
    np.testing.assert_allclose(found, whole.mean(axis=1))


def test_exact_intervals_are_scipys() -> None:
    hits, trials = np.array([0, 3, 10, 0]), np.array([10, 10, 10, 0])
    lower, upper = clopper_pearson(hits, trials, 0.1)
    for at in range(3):
        expected = stats.binomtest(int(hits[at]), int(trials[at])).proportion_ci(0.9, "exact")
        np.testing.assert_allclose([lower[at], upper[at]], expected, atol=1e-12)
    assert (lower[3], upper[3]) == (0, 1)


def test_transitions_are_counted_as_in_the_matrix() -> None:
    masks = np.random.default_rng(1).random((300, 5)) < [0.1, 0.5, 0.9, 0, 1]
    estimate, lower, upper = eigenvalue_intervals(AvailabilityLog.from_masks(masks), 0.05)
    for client in range(3):
        now, then = masks[:-1, client], masks[1:, client]
        assert estimate[client] == pytest.approx(then[now].mean() - then[~now].mean())
        assert lower[client] < estimate[client] < upper[client]
    assert np.isnan(estimate[3:]).all()


def test_fitted_chains_are_those_of_the_trace() -> None:
    masks = np.random.default_rng(2).random((80, 6)) < [0.1, 0.3, 0.5, 0.7, 0.9, 1]
    found = fit_on_off(AvailabilityLog.from_masks(masks))
    expected = Trace(masks).as_on_off()
    np.testing.assert_allclose(found.availability, expected.availability)
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=1e-12)
    # In turn: the chain would be periodic.
    assert fit_on_off(AvailabilityLog.from_masks([[0], [1]] * 5)).correlation[0] < -0.999


def test_a_drawn_log_is_the_process() -> None:
    chains = MarkovOnOff([0.2, 0.7, 0], [0.5, 0.9, 0])
    masks = chains.masks(np.random.default_rng(4), 1)
    expected = np.concatenate([next(masks) for _ in range(60)])
    log = draw_log(chains, 60, seed=4, clients=["a", "b", "c"])
    np.testing.assert_array_equal(log.present(), expected)


@pytest.mark.parametrize("rounds", [960, 1000])
def test_a_day_is_found_though_its_zones_cancel(rounds: int) -> None:
    period, p_value = clearest_cycle(zones_log(rounds), np.random.default_rng(0))
    assert period == pytest.approx(24, rel=0.005)
    assert p_value < 1e-9


def test_memory_alone_is_no_cycle() -> None:
    """Forty logs of chains: at 5% each, eight or more alarms have a chance below 0.001."""
    chains = MarkovOnOff(np.linspace(0.1, 0.8, 12), 0.8)
    found = [
        clearest_cycle(draw_log(chains, 500, seed=seed), np.random.default_rng(seed))[0]
        for seed in range(40)
    ]
    assert sum(period is not None for period in found) < 8


def test_intervals_of_marginals_cover_under_memory() -> None:
    """400 intervals at 95% of clients with second eigenvalue 0.8: below 90% has chance 2e-5."""
    chains = MarkovOnOff(np.full(400, 0.4), 0.8)
    log = draw_log(chains, 2000, seed=3)
    found = marginal_intervals(log, batch_shares(log))
    covered = np.count_nonzero((found[:, 1] <= 0.4) & (found[:, 2] >= 0.4))
    assert covered >= 360
    np.testing.assert_allclose(found[:, 2] - found[:, 1], 4 * 0.033, rtol=0.9)


def test_what_is_described() -> None:
    masks = zones_log(480, 12).present().copy()
    masks[:, 0], masks[:, 1] = False, True
    masks[240:, 2] = False
    log = AvailabilityLog.from_masks(masks)
    found = describe(log, period=24)
    assert (found.never_there, found.always_there) == (("client 0",), ("client 1",))
    assert found.marginals[0, 2] == pytest.approx(1 - 0.025 ** (1 / 480))  # none of 480
    assert found.changed == 1
    assert found.halves_p_value < 1e-3
    assert found.sampled == (10, 480)
    assert [fit.model for fit in found.fits][-1] == "cyclic"
    runs = [np.diff(np.flatnonzero(np.diff(np.r_[0, c, 0]) != 0))[::2] for c in masks.T]
    whole = [run[c[0] : len(run) - c[-1]] for run, c in zip(runs, masks.astype(int).T, strict=True)]
    np.testing.assert_allclose(found.stays, np.quantile(np.concatenate(whole), (0.1, 0.5, 0.9, 1)))


def test_a_largest_eigenvalue_is_in_its_interval() -> None:
    chains = MarkovOnOff(np.full(20, 0.5), np.r_[np.full(19, 0.2), 0.9])
    estimate, lower, upper = largest_eigenvalue(draw_log(chains, 3000, seed=1))
    assert lower < 0.9 < upper
    assert estimate == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    "masks", [np.ones((5, 2)), [[1, 0], [0, 1]], np.eye(3)], ids=["all", "turns", "once"]
)
def test_small_logs_are_described(masks) -> None:
    found = describe(AvailabilityLog.from_masks(masks))
    assert len(found.document()["each"]) == found.log.n_clients


def test_bad_arguments() -> None:
    log = AvailabilityLog.from_masks([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="period must be from 2 rounds to the log's 2, got 1"):
        describe(log, period=1)
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, got -1"):
        describe(log, seed=-1)


def test_a_client_that_never_changes_in_a_half_gives_no_warning() -> None:
    """SciPy's test of shares warns of equal ones; warnings are errors here."""
    there = np.zeros((400, 2), dtype=bool)
    there[:200, 0] = True
    there[200:, 0] = np.random.default_rng(1).random(200) < 0.5
    there[:, 1] = True  # is not tested
    log = AvailabilityLog.from_masks(there)
    batches = batch_shares(log)
    p_value, changed = _halves(log, batches)
    assert batches[:10, 0].tolist() == [1] * 10
    late = batches[10:, 0]
    statistic = (1 - late.mean()) / (late.std(ddof=1) / np.sqrt(10))
    # The constant half adds no variance, so Welch's degrees of freedom are those of the other.
    by_hand = 2 * stats.t.sf(statistic, 9)
    # Two p-values are corrected: the client's, and the total's, which changes as the client does.
    assert p_value == pytest.approx(2 * by_hand, rel=1e-6, abs=0)
    assert changed == 1
