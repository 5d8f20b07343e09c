"""The apps of SuperLink and SuperNodes in `two_supernodes.py`: SCAFFOLD on two nodes' digits.

The model is a softmax regression in NumPy, as a node starts a process for every message and would
import torch each time. The client provides loss and gradient.
"""

from __future__ import annotations

import numpy as np
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from fltheory.algorithms import Scaffold
from fltheory.flower import AlgorithmStrategy, local_client_app
from fltheory.hardware.datasets import load
from fltheory.validation import FloatArray

CLASSES = 10


class Softmax:
    """Softmax regression on some of the images, with a ridge."""

    def __init__(self, images: FloatArray, labels: np.ndarray) -> None:
        self._inputs = np.column_stack([images.reshape(len(images), -1), np.ones(len(images))])
        self._labels = labels

    @property
    def n_samples(self) -> int:
        return len(self._labels)

    def logits(self, x: FloatArray) -> FloatArray:
        return self._inputs @ x.reshape(-1, CLASSES)

    def loss(self, x: FloatArray) -> float:
        logits = self.logits(x)
        right = logits[np.arange(self.n_samples), self._labels]
        return float(np.mean(np.logaddexp.reduce(logits, axis=1) - right) + 5e-5 * x @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        logits = self.logits(x)
        push = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
        push[np.arange(self.n_samples), self._labels] -= 1
        return (self._inputs.T @ push).reshape(-1) / self.n_samples + 1e-4 * x


def client(number: int) -> Softmax:
    """Return the client of a node, with the even digits or the odd ones."""
    train = load("digits").train
    mine = train.labels % 2 == number
    return Softmax(train.images[mine], train.labels[mine])


def accuracy(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    test = load("digits").test
    (x,) = arrays.to_numpy_ndarrays()
    found = Softmax(test.images, test.labels).logits(x).argmax(1)
    return MetricRecord({"accuracy": float((found == test.labels).mean())})


client_app = local_client_app(client)
server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    scaffold = Scaffold(client_lr=0.5, local_steps=10)
    strategy = AlgorithmStrategy(scaffold, n_clients=2, fraction_evaluate=0.0)
    strategy.start(
        grid,
        ArrayRecord([np.zeros(65 * CLASSES)]),
        num_rounds=int(context.run_config["rounds"]),
        timeout=30.0,
        evaluate_fn=accuracy,
    )
