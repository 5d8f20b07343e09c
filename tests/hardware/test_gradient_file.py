"""Gradients of torch modules, as a file that says what the clients are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fltheory.advice import measure_clients, read_gradients

torch = pytest.importorskip("torch")

from fltheory.hardware import module_at, write_gradients  # noqa: E402


class Around:
    """Minibatches of one number each, whose mean square from a weight has a known gradient.

    The output is the weight itself, so that the gradient of ``(w - y)^2 c / 2`` is ``c (w - y)``.
    """

    def __init__(self, optimum: np.ndarray) -> None:
        self.optimum = torch.tensor(optimum)

    def __iter__(self) -> Iterator[tuple]:
        eye = torch.eye(self.optimum.numel(), dtype=torch.float64)
        while True:
            yield eye, self.optimum[:, None]


def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return 1.5 * ((outputs - targets) ** 2).sum()


def test_quadratic_clients_are_measured_from_torch(tmp_path: Path) -> None:
    # Gradients 3 (x - o_k), optima at 0.5 from 0, the start at 2: Gamma = 3/2 / 4 = 3 2^2 / 32.
    optima = {
        name: 0.5 * sign * np.eye(4)[axis]
        for axis, pair in enumerate(("ab", "cd", "ef"))
        for name, sign in zip(pair, (1, -1), strict=True)
    }
    clients = {name: Around(optimum) for name, optimum in optima.items()}
    models = [module_at([0, 0, 0, 2.0]), module_at([0, 0, 0, 0])]
    file = tmp_path / "gradients.csv"
    write_gradients(file, models, clients, loss, batches=3)
    gradients = read_gradients(file, list("abcdef"))
    assert [len(part) for at in gradients.gradients for part in at] == [3] * 12
    found = measure_clients(gradients, np.ones(6), n_clients=6)
    assert found.sigma == pytest.approx(0, abs=1e-12)
    assert found.smoothness == pytest.approx(3, rel=1e-6)
    assert found.dissimilarity.value == pytest.approx(1 / 32, rel=1e-6)


def test_of_large_models_some_coordinates_are_kept(tmp_path: Path) -> None:
    clients = {name: Around(np.full(50, number)) for number, name in enumerate("abc", 1)}
    file = tmp_path / "gradients.csv"
    write_gradients(file, [module_at(np.zeros(50))], clients, loss, coordinates=10, seed=3)
    found = read_gradients(file, list("abc"))
    assert found.models is not None
    assert found.models.shape == (1, 10)
    assert (found.gradients[1][0] == -6).all()


@pytest.mark.parametrize(
    ("models", "batches", "said"),
    [
        (
            [[0.0], [0.0, 1.0]],
            [4, 4],
            r"models must all have the same number of "
            r"parameters, got \[1, 2\]",
        ),
        ([[0.0]], [4, 1], "at least 4 minibatches each, got 1 of 'b'"),
    ],
)
def test_what_cannot_be_measured_is_refused(tmp_path: Path, models, batches, said: str) -> None:
    batch = (torch.ones((1, 1), dtype=torch.float64), torch.ones((1, 1), dtype=torch.float64))
    clients = {name: [batch] * count for name, count in zip("ab", batches, strict=True)}
    file = tmp_path / "gradients.csv"
    with pytest.raises(ValueError, match=said):
        write_gradients(file, [module_at(x) for x in models], clients, loss)
    assert not file.exists()
