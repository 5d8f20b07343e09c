"""A client of its own, against gradients written down."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from fltheory.hardware.clients.batches import LocalTraining
from fltheory.hardware.clients.single_client import SingleClient

A = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
B = np.array([1.0, -1.0, 2.0])
X = np.array([0.3, -0.7])


def client(training: LocalTraining | None = None, seed: int = 0) -> SingleClient:
    module = torch.nn.Linear(2, 1, bias=False, dtype=torch.float64)
    return SingleClient(
        module,
        torch.tensor(A),
        torch.tensor(B),
        training=training,
        loss=lambda outputs, targets: 0.5 * (outputs[:, 0] - targets) ** 2,
        seed=seed,
    )


def gradient(x: np.ndarray) -> np.ndarray:
    return A.T @ (A @ x - B) / 3


def test_full_batches_are_gradient_descent() -> None:
    push, y = np.array([0.1, -0.2]), X
    for _ in range(4):
        y = y - 0.05 * (gradient(y) + push + 0.7 * (y - X))
    found = client().local_sgd(X, steps=4, lr=0.05, correction=push, proximal=0.7)
    np.testing.assert_allclose(found, y, rtol=0, atol=1e-14)


def test_loss_and_gradient_are_means_over_its_samples() -> None:
    one = client()
    assert one.n_samples == 3
    assert one.loss(X) == pytest.approx(0.5 * np.mean((A @ X - B) ** 2), rel=1e-14)
    np.testing.assert_allclose(one.gradient(X), gradient(X), rtol=0, atol=1e-14)


def test_batches_are_those_of_the_draw_and_the_seed() -> None:
    def trained(draw: tuple[int, ...], seed: int = 0) -> list[float]:
        one = client(LocalTraining(1, sampling="replacement"), seed)
        return one.local_sgd(X, steps=9, lr=0.05, draw=draw).tolist()

    assert trained((3, 0)) == trained((3, 0))
    assert len({tuple(trained(*it)) for it in [((3, 0),), ((3, 1),), ((4, 0),), ((3, 0), 1)]}) == 4
