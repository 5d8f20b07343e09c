"""Dissimilarity, noise and curvature measured from gradients of clients of whom all is known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fltheory.advice.gradients_file import ClientGradients
from fltheory.advice.measured_clients import measure_clients

DIM = 30


def gradients_of(
    curvatures: np.ndarray,
    optima: np.ndarray,
    models: np.ndarray,
    *,
    sigma: float = 0.0,
    batches: int = 4,
    rng: np.random.Generator | None = None,
) -> ClientGradients:
    """Return gradients ``c_k (x - o_k)`` with Gaussian noise of size sigma."""
    rng = rng or np.random.default_rng(0)
    count, dim = optima.shape

    def at(client: int, x: np.ndarray) -> np.ndarray:
        noise = rng.standard_normal((batches, dim)) * sigma / np.sqrt(dim)
        return curvatures[client] * (x - optima[client]) + noise

    return ClientGradients(
        tuple(f"client {client}" for client in range(count)),
        tuple(f"point {point}" for point in range(len(models))),
        tuple(tuple(at(client, x) for x in models) for client in range(count)),
        models,
    )


def log_uniform(condition: float, count: int) -> np.ndarray:
    return condition ** -((np.arange(count) + 0.5) / count)


def on_a_sphere(count: int, radius: float, rng: np.random.Generator, dim: int = DIM) -> np.ndarray:
    """Return points at a distance, pairs of them opposite to each other."""
    half = rng.standard_normal((count // 2, dim))
    half *= radius / np.linalg.norm(half, axis=1, keepdims=True)
    return np.concatenate((half, -half))


def test_all_is_exact_for_equal_curvatures_without_noise() -> None:
    # F = 3/2 ||x||^2 + ...: the start is 2 away, the optima 0.5, so Gamma = 3/2 0.5^2 = 3 2^2 / 32.
    rng = np.random.default_rng(1)
    optima = on_a_sphere(10, 0.5, rng)
    models = np.stack([2 * np.eye(DIM)[0], 0.3 * np.eye(DIM)[1], np.zeros(DIM)])
    found = measure_clients(
        gradients_of(np.full(10, 3.0), optima, models), np.ones(10), n_clients=10
    )
    assert found.sigma == 0
    assert found.sigma_G == pytest.approx(1.5)
    assert found.start_slope == pytest.approx(6)
    assert found.curvature == pytest.approx(3)
    assert found.smoothness == pytest.approx(3, rel=1e-6)
    assert found.condition is not None
    assert found.condition.value == pytest.approx(1, abs=1e-6)
    assert found.dissimilarity.value == pytest.approx(1 / 32, rel=1e-6)
    # It is sigma_G^2 / (2 ||grad F(w_0)||^2), whatever the curvature.
    alone = replace(gradients_of(np.full(10, 3.0), optima, models), models=None)
    again = measure_clients(alone, np.ones(10), n_clients=10)
    assert again.curvature is None
    assert again.dissimilarity.value == pytest.approx(1 / 32)


def test_unlike_curvatures_are_told_from_their_mean_and_spread() -> None:
    # Optima are placed so that F's is at 0, where ||grad F_k|| = c_k radius.
    count, condition, rng = 400, 9.0, np.random.default_rng(2)
    each = log_uniform(condition, count // 2)
    curvatures = np.concatenate((each, each))
    optima = on_a_sphere(count, 0.5, rng)
    models = np.stack([np.eye(DIM)[0], np.zeros(DIM)])
    gradients = gradients_of(curvatures, optima, models, batches=2)
    found = measure_clients(gradients, np.ones(count), n_clients=count)
    assert found.condition is not None
    assert found.condition.value == pytest.approx(condition, rel=1e-3)
    assert found.smoothness == pytest.approx(1, rel=1e-3)
    # ||w_0 - w*|| = 1: Gamma = radius^2/2.
    assert found.dissimilarity.value == pytest.approx(0.125, rel=1e-3)


def test_intervals_hold_for_sampled_clients_and_noise() -> None:
    # Truths: radius 1, start at 2 from w*, so dissimilarity is (1/2)^2/2; noise is 1.5/(1 x 2).
    condition, trials, count = 4.0, 200, 20
    held = np.zeros(3)
    estimates = []
    for trial in range(trials):
        rng = np.random.default_rng([3, trial])
        curvatures = condition ** -rng.random(count)
        optima = rng.standard_normal((count, 200))
        optima /= np.linalg.norm(optima, axis=1, keepdims=True)
        models = np.stack([2 * np.eye(200)[0], np.zeros(200)])
        drawn = gradients_of(curvatures, optima, models, sigma=1.5, batches=4, rng=rng)
        found = measure_clients(drawn, np.ones(count), n_clients=10**6)
        assert found.condition is not None
        truths = (0.75, 0.125, condition)
        each = (found.noise, found.dissimilarity, found.condition)
        held += [one.low <= truth <= one.high for one, truth in zip(each, truths, strict=True)]
        estimates.append([one.value for one in each])
    # Of 200 intervals of 95%, 170 hold but for 1e-8; the jackknife of squares is near its level.
    assert (held >= 170).all(), held
    page = Path(__file__).parents[2] / "docs" / "how-to" / "advise.md"
    said = re.findall(r"(\d+)(?:\s+times)? for (?:noise|dissim|the cond)", page.read_text("utf-8"))
    assert held == pytest.approx([float(number) for number in said], abs=2)
    medians = np.median(estimates, axis=0)
    np.testing.assert_allclose(medians, (0.75, 0.125, condition), rtol=0.1)


def test_noise_of_minibatches_is_no_dissimilarity() -> None:
    # Without the correction sigma_G^2 would be 1 + 25/4.
    rng = np.random.default_rng(4)
    optima = on_a_sphere(200, 1.0, rng)
    models = np.stack([3 * np.eye(DIM)[0], np.zeros(DIM)])
    drawn = gradients_of(np.ones(200), optima, models, sigma=5.0, rng=rng)
    found = measure_clients(drawn, np.ones(200), n_clients=200)
    assert found.sigma == pytest.approx(5, rel=0.05)
    assert found.sigma_G == pytest.approx(1, rel=0.2)


def test_importance_counts() -> None:
    optima = np.array([[0.0], [0.0], [4.0]])
    models = np.array([[10.0], [1.0]])
    gradients = gradients_of(np.ones(3), optima, models)
    found = measure_clients(gradients, np.array([1.0, 2.0, 1.0]), n_clients=3)
    # F's gradient at 1 is 0; differences are 1, 1, -3 with weights 1/4, 1/2, 1/4.
    assert found.sigma_G == pytest.approx(np.sqrt(0.75 + 9 / 4))
    assert found.start_slope == pytest.approx(9)


def test_what_is_given_by_hand_counts() -> None:
    rng = np.random.default_rng(5)
    models = np.stack([2 * np.eye(DIM)[0], np.zeros(DIM)])
    gradients = gradients_of(np.ones(6), on_a_sphere(6, 1, rng), models, sigma=1.0, rng=rng)
    found = measure_clients(gradients, np.ones(6), n_clients=6)
    assert found.in_training({"noise": 3.0})["noise"] == 3
    assert set(found.in_training({})) == {"noise", "dissimilarity", "condition"}
    # Noise is in units of L ||w_0 - w*||; log-uniform up to L, the mean is (1 - 1/e)/1 of L.
    by_hand = measure_clients(
        replace(gradients, models=None), np.ones(6), n_clients=6, condition=np.e
    )
    alone = measure_clients(replace(gradients, models=None), np.ones(6), n_clients=6)
    assert by_hand.noise.value == pytest.approx(alone.noise.value * (1 - 1 / np.e))


@pytest.mark.parametrize(
    ("optima", "models", "sigma", "said"),
    [
        ([[1.0], [1.0], [1.0]], [[1.0], [0.5]], 1.0, "first point, 'point 0', must exceed noise"),
        ([[1.0], [1.0], [1.0]], [[50.0], [0.5]], 0.0, "last point, 'point 1', must differ"),
        ([[1.0], [1.2], [1.4]], [[50.0], [50.0]], 0.0, "models at different points must differ"),
    ],
)
def test_what_does_not_stand_out_is_refused(optima, models, sigma: float, said: str) -> None:
    gradients = gradients_of(np.ones(3), np.array(optima), np.array(models), sigma=sigma)
    with pytest.raises(ValueError, match=said):
        measure_clients(gradients, np.ones(3), n_clients=3)


def test_a_loss_that_falls_off_has_no_curvature() -> None:
    optima = np.array([[1.0], [1.2], [1.4]])
    gradients = gradients_of(-np.ones(3), optima, np.array([[50.0], [40.0]]))
    with pytest.raises(ValueError, match="got a curvature of -1"):
        measure_clients(gradients, np.ones(3), n_clients=3)
