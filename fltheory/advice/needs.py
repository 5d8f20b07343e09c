"""What an algorithm needs of a deployment, beside clients that train."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fltheory.algorithms.contract import SERVER, Algorithm

_COUNTED = 3


@dataclass(frozen=True)
class Needs:
    """What somebody has to provide.

    Attributes
    ----------
    vectors, numbers : int
        Kept of each client: vectors as long as the model, and single numbers.
    facts : tuple of str
        What must be known of clients beforehand, e.g. ``availability``.
    server_data : bool
        Whether the server needs data like all clients'.
    """

    vectors: int
    numbers: int
    facts: tuple[str, ...]
    server_data: bool

    @classmethod
    def of(cls, algorithm: Algorithm, facts: Iterable[str], n_clients: int = _COUNTED) -> Needs:
        """Return what an algorithm needs, read off the state that it keeps and its branches.

        Parameters
        ----------
        algorithm : Algorithm
        facts : iterable of str
            What it had to be told of its clients.
        n_clients : int
            Clients that it is made for.
        """
        # As many coordinates as clients, and the server's vectors would look like clients' numbers.
        dim = n_clients + 1
        state = algorithm.init(np.zeros((1, dim)), n_clients)
        shapes = [np.shape(array) for name, array in state.items() if name != "x"]
        return cls(
            vectors=shapes.count((1, n_clients, dim)),
            numbers=shapes.count((1, n_clients)),
            facts=tuple(facts),
            server_data=any(name == SERVER for name, _ in algorithm.branches),
        )

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """Order by what is hardest to come by: data, memory, knowledge, numbers."""
        return self.server_data, self.vectors, len(self.facts), self.numbers

    def __str__(self) -> str:
        parts = ["server data"] if self.server_data else []
        parts += [_number(self.vectors, "vector")] if self.vectors else []
        parts += [f"known {' and '.join(self.facts)}"] if self.facts else []
        parts += [_number(self.numbers, "number")] if self.numbers else []
        return ", ".join(parts) or "nothing"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''} per client"
