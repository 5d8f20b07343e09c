"""Local SGD on samples of the data, against plain loops in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from torch import nn  # noqa: E402

from fltheory.hardware.clients import sampled_losses  # noqa: E402
from fltheory.hardware.clients.batches import Batches  # noqa: E402
from fltheory.hardware.clients.sampled_losses import SampledLosses  # noqa: E402
from fltheory.hardware.gradients import (  # noqa: E402
    FlatModel,
    batch_losses,
    cross_entropy,
)

ROWS, STEPS, WIDTH, FEATURES, CLASSES, SAMPLES, LR = 2, 5, 3, 4, 3, 20, 0.4


@pytest.fixture
def inputs() -> Any:
    return torch.from_numpy(np.random.default_rng(1).normal(size=(SAMPLES, FEATURES)))


@pytest.fixture
def targets() -> Any:
    return torch.from_numpy(np.random.default_rng(2).integers(0, CLASSES, SAMPLES))


@pytest.fixture
def batches() -> Batches:
    """Return batches with one row that stops after three of the steps."""
    rng = np.random.default_rng(3)
    takes = torch.ones(STEPS, ROWS, dtype=torch.float64)
    takes[3:, 1] = 0
    samples = torch.from_numpy(rng.integers(0, SAMPLES, (STEPS, ROWS, WIDTH)))
    return Batches(samples, takes[:, :, None].expand(-1, -1, WIDTH) / WIDTH, takes)


@pytest.fixture(params=["auto", "vmap"])
def losses(request: pytest.FixtureRequest, inputs: Any, targets: Any) -> SampledLosses:
    model = FlatModel(nn.Linear(FEATURES, CLASSES).double())
    of_batches = batch_losses(model, cross_entropy, way=request.param)
    return SampledLosses(of_batches, inputs, targets)


def softmax_gradient(y: Any, inputs: Any, targets: Any) -> tuple[float, Any]:
    """Return the mean loss of a linear layer and its gradient, from the formulas."""
    matrix, bias = y[: FEATURES * CLASSES].reshape(CLASSES, FEATURES), y[FEATURES * CLASSES :]
    odds = np.exp(inputs @ matrix.T + bias)
    shares = odds / odds.sum(1, keepdims=True)
    loss = -np.log(shares[np.arange(len(targets)), targets]).mean()
    pull = (shares - np.eye(CLASSES)[targets]) / len(targets)
    return loss, np.concatenate([(pull.T @ inputs).ravel(), pull.sum(0)])


def start() -> Any:
    return torch.from_numpy(np.random.default_rng(4).normal(size=(ROWS, CLASSES * (FEATURES + 1))))


def test_losses_and_gradients_on_the_first_batch(
    losses: SampledLosses, batches: Batches, inputs: Any, targets: Any
) -> None:
    y = start()
    for row in range(ROWS):
        places = batches.samples[0, row]
        loss, gradient = softmax_gradient(
            y[row].numpy(), inputs[places].numpy(), targets[places].numpy()
        )
        assert losses.losses(y, batches)[row].item() == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(losses.gradients(y, batches)[row], gradient, atol=1e-14)


@pytest.mark.parametrize("fetched", [1, 2 * ROWS * WIDTH * FEATURES * 8, 2**22])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("pushed", [False, True])
def test_descent_is_a_loop_of_steps(
    losses: SampledLosses,
    batches: Batches,
    inputs: Any,
    targets: Any,
    decay: float,
    pushed: bool,
    fetched: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many steps' samples are fetched at once: one, two with one left over, or all."""
    monkeypatch.setattr(sampled_losses, "_FETCHED_BYTES", fetched)
    y = start()
    push = torch.from_numpy(np.random.default_rng(5).normal(size=y.shape))
    found = losses.descend(y, batches, LR, decay=decay, push=push if pushed else None)
    for row in range(ROWS):
        expected = y[row].numpy().copy()
        for step in range(int(batches.takes[:, row].sum())):
            places = batches.samples[step, row]
            gradient = softmax_gradient(expected, inputs[places].numpy(), targets[places].numpy())
            pull = decay * expected + (push[row].numpy() if pushed else 0.0)
            expected = expected - LR * (gradient[1] + pull)
        np.testing.assert_allclose(found[row], expected, atol=1e-12)


def test_where_it_starts_is_kept(losses: SampledLosses, batches: Batches) -> None:
    y = start()
    losses.descend(y, batches, LR)
    assert torch.equal(y, start())
