"""Bounds on how far a round can move the model, for any participants.

Algorithms with known bounds have a method ``update_bounds``. Without it, a sample of runs gives no
upper bound on an expectation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from fltheory.algorithms.contract import Array, State
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class UpdateBounds(ReadOnlyArrays):
    """A round ``x <- x + sum_i w_i Delta_i`` with ``0 <= w_i <= largest_i``.

    ``Delta_i`` is the change by ``steps`` steps of local SGD with ``lr``. The limits hold for every
    sequence of participant sets and, if the weights depend on the models, for every sequence of
    models.

    Attributes
    ----------
    steps : int
    lr : float
    largest : array, (N,)
    total : float
        An upper bound on ``sum_i w_i``. It may be less than the sum of ``largest`` only if the
        weights depend on who takes part and on nothing else.
    stale : bool
        Whether ``Delta_i`` may start from an earlier model than x; all updates have the same lr.
    by_server : bool
        Whether the steps are the server's own, on F; N is then 1.
    corrected : bool
        Whether ``c - c_i`` is added to every gradient. Here c_i is zero, or the mean of client i's
        gradients in a round (before or along its steps), and c is the mean of all c_i.
    """

    steps: int
    lr: float
    largest: FloatArray
    total: float
    stale: bool = False
    by_server: bool = False
    corrected: bool = False


@runtime_checkable
class BoundedUpdates(Protocol):
    """An algorithm with known largest weights of its updates."""

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Return the bounds of a round, counted from 1, for each of the algorithm's branches."""
        ...


@runtime_checkable
class CountedWeights(BoundedUpdates, Protocol):
    """An algorithm that weights a client only by the rounds in which that client was present.

    Its state is the model and counts, kept in the same way for every client.
    """

    def counted(self, counts: State, who: Array) -> State:
        """Return the counts after one more round, with ``who`` present."""
        ...

    def weights_if_present(self, counts: State, n_clients: int) -> Array:
        """Return an upper bound on the weight of an update in the round after these counts."""
        ...
