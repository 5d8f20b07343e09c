"""What stays true along every trajectory, under every participation process, to rounding."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

from fltheory.algorithms import (
    AdaFed,
    ClusterFedVarp,
    F3ast,
    FedAR,
    FedAU,
    FedAvg,
    FedAvgIS,
    FedVarp,
    Mifa,
    Scaffold,
    Unbiased,
)
from fltheory.algorithms.contract import Algorithm, State
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.engines.clients.analytic_clients import GaussianNoise, Silence, SteppedClients
from fltheory.engines.simulation import simulate
from fltheory.problems import QuadraticProblem
from tests.comparison import ALPHA, PROBLEM, PROCESSES, X0, P

LR, STEPS, REPLICAS, ROUNDS, N = 0.2, 2, 16, 40, 3
QUIET = SteppedClients(PROBLEM, Silence())


@pytest.fixture(params=PROCESSES)
def process(request: pytest.FixtureRequest):
    return PROCESSES[request.param]


def trajectory(
    algorithm: Algorithm, process, clients=QUIET
) -> list[tuple[State, np.ndarray, State]]:
    """Return the state before each round, who takes part in it, and the state after it."""
    pairs = simulate(
        algorithm,
        clients,
        process,
        np.tile(X0, (REPLICAS, 1)),
        participation_rng=np.random.default_rng(1),
        branch_rng=np.random.default_rng(2),
    )
    held = [(state, who.copy()) for state, who in islice(pairs, ROUNDS + 1)]
    return [(before, who, after) for (before, who), (after, _) in pairwise(held)]


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def mean_over(who: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean of (replicas, N, d) over those present, zero where nobody is."""
    count = np.maximum(who.sum(axis=1), 1)[:, None]
    return np.where(who[:, :, None], values, 0.0).sum(axis=1) / count


@pytest.mark.parametrize("option", [1, 2])
def test_scaffolds_stored_control_is_the_mean_of_the_clients(process, option) -> None:
    """``c <- c + 1/N sum_S (c_i^+ - c_i)``, stored, is mean c_i, and makes the same models."""
    algorithm = Scaffold(LR, STEPS, option=option, server_lr=1.2)
    c = np.zeros((REPLICAS, 2))
    for before, who, after in trajectory(algorithm, process):
        correction = c[:, None] - before["c_i"]
        moves = QUIET.local_sgd(before["x"], who, steps=STEPS, lr=LR, correction=correction)
        same(after["x"], before["x"] + 1.2 * mean_over(who, moves))
        c = c + (after["c_i"] - before["c_i"]).sum(axis=1) / N
        same(c, after["c_i"].mean(axis=1))
        same(after["c_i"][~who], before["c_i"][~who])


def test_scaffolds_controls_of_option_two_add_up_to_the_gradients_along_the_way(process) -> None:
    """``K eta c_i^+ = x - y_K + K eta (c_i - c)``: what Algorithm 1 prints."""
    for before, who, after in trajectory(Scaffold(LR, STEPS), process):
        correction = before["c_i"].mean(axis=1, keepdims=True) - before["c_i"]
        moves = QUIET.local_sgd(before["x"], who, steps=STEPS, lr=LR, correction=correction)
        same(STEPS * LR * after["c_i"][who], -(moves + STEPS * LR * correction)[who])


@pytest.mark.parametrize("clusters", [(0, 1, 2), (0, 1, 0)])
def test_fedvarps_running_mean_is_the_memorys_mean(process, clusters) -> None:
    """``m <- m + 1/N sum_c |c| (y_c^+ - y_c)`` makes the steps ``mean_S (Delta - y) + m``."""
    whole, reach = len(set(clusters)) == N, LR * STEPS
    algorithm: Algorithm = ClusterFedVarp(clusters, LR, STEPS)
    m = np.zeros((REPLICAS, 2))
    for before, who, after in trajectory(FedVarp(LR, STEPS) if whole else algorithm, process):
        own, renewed = before["y"][:, list(clusters)], after["y"][:, list(clusters)]
        fresh = QUIET.local_sgd(before["x"], who, steps=STEPS, lr=LR) / -reach
        step = mean_over(who, fresh - own) + who.any(axis=1, keepdims=True) * m
        same(after["x"], before["x"] - reach * step)
        m = m + (renewed - own).sum(axis=1) / N
        same(m, renewed.mean(axis=1))


@pytest.mark.parametrize("start", ["zero", "wait"])
def test_mifas_steps_are_along_the_running_mean_of_the_table(process, start) -> None:
    table, seen = np.zeros((REPLICAS, N, 2)), np.zeros((REPLICAS, N), dtype=bool)
    running = np.zeros((REPLICAS, 2))
    for before, who, after in trajectory(Mifa(LR, STEPS, start=start), process):
        fresh = QUIET.local_sgd(before["x"], who, steps=STEPS, lr=LR) / -LR
        running = running + np.where(who[:, :, None], fresh - table, 0.0).sum(axis=1) / N
        table, seen = np.where(who[:, :, None], fresh, table), seen | who
        same(after["updates"].mean(axis=1), running)
        moves = seen.all(axis=1, keepdims=True) if start == "wait" else True
        same(after["x"], before["x"] - LR * np.where(moves, running, 0.0))


def test_fedar_weighs_contributors_by_age_and_divides_by_their_number(process) -> None:
    """Ages, contributors and the sum of the weights from who was there alone."""
    algorithm = FedAR(LR, STEPS, weight=CappedLinear(0.5, 1.75), cutoff=2)
    last = np.full((REPLICAS, N), -1)
    for t, (before, who, after) in enumerate(trajectory(algorithm, process)):
        last = np.where(who, t, last)
        ages = np.where(last >= 0, t - last, t + 1)
        np.testing.assert_array_equal(after["inactive"], ages)
        np.testing.assert_array_equal(after["appeared"], last >= 0)
        weights = np.minimum(1 + 0.5 * ages, 1.75)[:, :, None]
        contributes = (last >= 0) & (ages <= 2)
        same(after["x"], before["x"] - LR * mean_over(contributes, weights * after["updates"]))


def test_fedaus_intervals_add_up_to_the_rounds(process) -> None:
    """Ended intervals times their mean, and the open one, fill the time exactly."""
    for t, (_, _, after) in enumerate(trajectory(FedAU(LR, STEPS, cutoff=4), process), start=1):
        ended = np.where(after["intervals"] > 0, after["omega"] * after["intervals"], 0.0)
        same(ended + after["lasted"], np.full((REPLICAS, N), float(t)))


def test_f3asts_rates_add_up_to_the_chosen(process) -> None:
    """``sum r`` goes to ``(1 - beta) sum r + beta`` times the number chosen, at most 2."""
    for before, who, after in trajectory(F3ast(ALPHA, 2, LR, STEPS, smoothing=0.1), process):
        chosen = np.minimum(who.sum(axis=1), 2)
        same(after["rate"].sum(axis=1), 0.9 * before["rate"].sum(axis=1) + 0.1 * chosen)


def sums_of_weights(who: np.ndarray, before: State) -> dict[str, np.ndarray]:
    p, alpha = np.array(P), np.array(ALPHA)
    somebody = who.any(axis=1).astype(float)
    return {
        "FedAvg": somebody,
        "AdaFed": somebody,
        "FedAvg-IS": who @ (1 / (N * p)),
        "Unbiased": who @ (alpha / p),
        "FedAU": (who * before.get("omega", np.ones(N))).sum(axis=1) / N,
    }


@pytest.mark.parametrize("name", ["FedAvg", "AdaFed", "FedAvg-IS", "Unbiased", "FedAU"])
def test_weights_add_up_to_what_they_should(process, name) -> None:
    """With equal clients a round moves the model by the sum of the weights times one change."""
    algorithm = {
        "FedAvg": FedAvg(LR, STEPS),
        "AdaFed": AdaFed(ALPHA, P, LR, STEPS),
        "FedAvg-IS": FedAvgIS(P, LR, STEPS),
        "Unbiased": Unbiased(ALPHA, P, LR, STEPS),
        "FedAU": FedAU(LR, STEPS, cutoff=4),
    }[name]
    alike = SteppedClients(QuadraticProblem([[1.0, 0.0], [0.0, 0.5]], np.zeros((N, 2))), Silence())
    shrink = 1 - (1 - LR * np.array([1.0, 0.5])) ** STEPS
    for before, who, after in trajectory(algorithm, process, alike):
        total = sums_of_weights(who, before)[name]
        expected = before["x"] * (1 - total[:, None] * shrink)
        np.testing.assert_allclose(after["x"], expected, rtol=1e-11, atol=1e-13)


def test_noise_breaks_no_invariant_of_the_memory(process) -> None:
    """SCAFFOLD and FedVARP with noisy gradients: the change of the mean is the sum over S by N."""
    noisy = SteppedClients(PROBLEM, GaussianNoise(np.random.default_rng(5)))
    for algorithm, entry in ((Scaffold(LR, STEPS), "c_i"), (FedVarp(LR, STEPS), "y")):
        for before, who, after in trajectory(algorithm, process, noisy):
            change = np.where(who[:, :, None], after[entry] - before[entry], 0.0)
            same(after[entry].mean(axis=1), before[entry].mean(axis=1) + change.sum(axis=1) / N)
