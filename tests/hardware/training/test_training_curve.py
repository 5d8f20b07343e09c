"""Test accuracy, and what papers report of its course."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from torch import nn  # noqa: E402

from fltheory.hardware.gradients import FlatModel  # noqa: E402
from fltheory.hardware.training.run import FIGURES, Curve, evaluated  # noqa: E402


@pytest.mark.parametrize("n", [1, 999, 2500])
def test_accuracy_and_loss(n: int) -> None:
    torch.manual_seed(0)
    module = nn.Linear(4, 3)
    inputs, labels = torch.rand(n, 4), torch.randint(0, 3, (n,))
    model = FlatModel(module)
    accuracy, loss = evaluated(model, model.initial, inputs, labels)
    outputs = module(inputs).detach().numpy().astype(float)
    exact = np.log(np.exp(outputs).sum(1)) - outputs[np.arange(n), labels.numpy()]
    assert accuracy == pytest.approx(100 * np.mean(outputs.argmax(1) == labels.numpy()))
    assert loss == pytest.approx(exact.mean(), rel=1e-5)


def test_figures() -> None:
    rounds = np.array([2.0, 4.0, 6.0, 8.0, 9.0])
    curve = Curve(rounds, np.array([50.0, 90.0, 60.0, 70.0, 80.0]), rounds)
    found = {name: figure(curve) for name, figure in FIGURES.items()}
    assert found == {
        "last": 80.0,
        "best": 90.0,
        "late": 70.0,
        "time-average": 70.0,
        "deviation": pytest.approx(np.sqrt(200 / 3)),
        "last loss": 9.0,
    }


def test_before_training_counts_only_where_it_is_asked_for() -> None:
    curve = Curve(np.arange(4.0), np.array([10.0, 20, 40, 60]), np.zeros(4))
    average = FIGURES["time-average"]
    assert average(curve.at(None)) == 40
    assert average(curve.at((0, 1, 3))) == 30
    with pytest.raises(ValueError, match="rounds must be ones that were measured, got 7"):
        curve.at((0, 7))
