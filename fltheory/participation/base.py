"""What the engines ask of a participation process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fltheory.validation import FloatArray

Masks = NDArray[np.bool_]


class Participation(Protocol):
    """A random process of participant sets, independent over rounds.

    ``marginals`` (N,) and ``pair_inclusions`` (N, N) are exact probabilities: that a client,
    and that a pair of clients, takes part in a round (a client with itself: its marginal).
    """

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        ...

    @property
    def marginals(self) -> FloatArray:
        """(N,) probability that a client takes part."""
        ...

    @property
    def pair_inclusions(self) -> FloatArray:
        """(N, N) probability that a pair of clients takes part."""
        ...

    @property
    def fixed_size(self) -> int | None:
        """The number of participants where it never varies, else None."""
        ...

    @property
    def n_outcomes(self) -> int:
        """How many participant sets have positive probability."""
        ...

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Every participant set of positive probability, as (probability, mask of shape (N,))."""
        ...

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Draw round after round: arrays (replicas, N), True where a client takes part."""
        ...
