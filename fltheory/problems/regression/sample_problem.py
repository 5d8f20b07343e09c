"""Clients on samples of their own, with a ridge penalty: what their losses have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fltheory import validation
from fltheory.problems.weights import checked_target_weights, weights_or_uniform
from fltheory.read_only import ReadOnlyArrays, read_only
from fltheory.validation import FloatArray


class SampleProblem(ReadOnlyArrays, ABC):
    """``F_i(x) = mean_j f_ij(x) + ridge/2 ||x||^2`` over client i's samples.

    Such losses have no noise level or dissimilarity in closed form, so this is not a `Problem` for
    the exact engine; what it shares with one has the same name.

    Attributes
    ----------
    samples : array, (n, d)
        Of all clients, a client after another.
    starts : array of int, (N + 1,)
        Where each client's samples begin, and their number.
    ridge : float
        Coefficient of the penalty, above 0.
    alpha : array, (N,)
        Target weights.
    """

    samples: NDArray[np.floating]
    starts: NDArray[np.intp]
    ridge: float
    alpha: FloatArray

    def _set(
        self,
        data: Sequence[NDArray[np.floating]],
        ridge: float,
        target_weights: ArrayLike | None,
        **further: Any,
    ) -> None:
        """Set the fields from each client's checked samples, and further ones as they are."""
        weights = checked_target_weights(target_weights, len(data))
        fields = {
            "samples": read_only(np.concatenate(data)),
            "starts": np.cumsum([0, *(len(part) for part in data)]),
            "ridge": validation.positive("ridge", ridge),
            "alpha": weights_or_uniform(weights, len(data)),
            **further,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return int(self.starts.size - 1)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """(N,) how many samples each client has."""
        return np.diff(self.starts)

    @property
    def sample_weights(self) -> FloatArray:
        """(n,) ``alpha_i / n_i`` of every sample: F is the sum of losses with these weights."""
        return np.repeat(self.alpha / self.sizes, self.sizes)

    def rows_of(self, client: int) -> slice:
        """Return which of the samples are a client's."""
        return slice(int(self.starts[client]), int(self.starts[client + 1]))

    @property
    @abstractmethod
    def x_star(self) -> FloatArray:
        """(dim,) minimiser of F."""

    @cached_property
    def F_star(self) -> float:
        """The minimum of F: its value at `x_star`."""
        return float(self.loss(self.x_star))

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points (..., dim)."""
        return np.asarray(self.client_losses(x) @ self.alpha)

    @abstractmethod
    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., dim)."""
