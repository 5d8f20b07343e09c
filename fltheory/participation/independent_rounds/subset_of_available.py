"""What subsets drawn among clients of independent availability have in common."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.participation.independent_rounds.bernoulli import Bernoulli
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class SubsetOfAvailable(ReadOnlyArrays):
    """Clients are available independently, and ``size`` of them are wanted.

    Parameters
    ----------
    availability : array, (N,)
        Probabilities in (0, 1].
    size : int
        S, from 1 to N.

    Raises
    ------
    ValueError
        For other values.
    """

    availability: FloatArray
    size: int

    def __init__(self, availability: ArrayLike, size: int) -> None:
        p = Bernoulli(availability).availability
        size = validation.whole_number("size", size, at_least=1)
        if size > p.size:
            raise ValueError(f"size must be at most the number of clients, {p.size}, got {size}")
        object.__setattr__(self, "availability", p)
        object.__setattr__(self, "size", size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_clients} clients, size={self.size})"

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.availability.size)
