"""What Flower's nodes hold: Ray's workers import this."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from serving import instances
from torch import nn

from fltheory.flower import local_client_app
from fltheory.hardware.clients.single_client import SingleClient

of = instances()


class NoisyQuadratic:
    """A client whose every gradient has noise, the same whenever a round is the same."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._hessian, self._optimum = of["hessians"][number], of["optima"][number]
        self._level = of["sigma"] / len(self._optimum) ** 0.5

    def local_sgd(self, x: Any, *, steps: int, lr: float, draw: Any, **_: Any) -> Any:
        """Return the model after noisy steps."""
        rng = np.random.default_rng([self._number, draw[0]])
        for _step in range(steps):
            noise = self._level * rng.standard_normal(len(x))
            x = x - lr * (self._hessian @ (x - self._optimum) + noise)
        return x


@lru_cache
def quadratic_client(number: int) -> NoisyQuadratic:
    return NoisyQuadratic(number)


@lru_cache
def digits_client(number: int) -> SingleClient:
    torch.set_num_threads(1)
    mine = of["owner"] == number
    module = nn.Linear(of["images"].shape[1], int(of["classes"]), dtype=torch.float64)
    return SingleClient(module, torch.tensor(of["images"][mine]), torch.tensor(of["labels"][mine]))


class EitherProblem:
    """A client of both problems, told apart by the length of the model."""

    n_samples = 1

    def __init__(self, number: int) -> None:
        self._number = number

    def local_sgd(self, x: Any, **given: Any) -> Any:
        """Return the model after local steps on the problem that it is of."""
        is_quadratic = len(x) == of["optima"].shape[1]
        client = quadratic_client if is_quadratic else digits_client
        return client(self._number).local_sgd(x, **given)

    def loss(self, x: Any, draw: Any) -> float:
        """Refuse: nobody asks."""
        raise NotImplementedError("neither FedAvg nor SAFARI asks for losses")


client_app = local_client_app(EitherProblem)
