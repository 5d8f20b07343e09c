"""What the gallery knows of a wrong implementation, and local steps of gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Vector = np.ndarray
Run = Callable[..., np.ndarray]


class Client(Protocol):
    """Whoever trains: its exact gradient, its loss and how much data it has."""

    n_samples: int

    def gradient(self, x: Vector) -> Vector: ...
    def loss(self, x: Vector) -> float: ...


@dataclass(frozen=True)
class Fault:
    """One fault of one algorithm.

    Attributes
    ----------
    says : str
        What a user would report.
    points : str
        What a message that helps matches, whatever the case of its letters: a regular expression,
        agreed on before any message was read.
    seen : str
        Where something of the kind was reported, "owner/repository#number"; empty where unknown.
    """

    says: str
    points: str
    seen: str = ""


@dataclass(frozen=True)
class Implementation:
    """An algorithm in plain NumPy by the contract of `check_algorithm`, and its faults.

    Attributes
    ----------
    run : callable
        ``run(x0, clients, trace, *, client_lr, local_steps, server_lr, fault="", **options)``.
    faults : mapping of str to Fault
    options : callable
        Options for a number of clients, drawn with a generator.
    """

    run: Run
    faults: Mapping[str, Fault]
    options: Callable[[np.random.Generator, int], Mapping[str, Any]]


def descend(client: Client, x: Vector, lr: float, steps: int, push: Vector | float = 0.0) -> Vector:
    """Return the client's model after so many steps along its gradient plus ``push``."""
    y = np.array(x)
    for _ in range(steps):
        y = y - lr * (client.gradient(y) + push)
    return y


def shares(weights: Sequence[float], present: Sequence[int]) -> dict[int, float]:
    """Return weights of those present that sum to one; none where nobody has any."""
    total = sum(weights[i] for i in present)
    return {i: weights[i] / total for i in present if total > 0}
