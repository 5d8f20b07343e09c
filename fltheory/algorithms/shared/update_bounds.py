"""How far a round can move the model, whoever has taken part: for bounds on what is not sampled.

An algorithm that can say so has a method ``update_bounds``; of one that has none nothing is known
beforehand, and a sample of its runs bounds no expectation from above.
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

    ``Delta_i`` is what ``steps`` steps of local SGD with ``lr`` change. The limits hold for every
    sequence of participant sets, and of models too where the weights depend on those.

    Attributes
    ----------
    steps : int
    lr : float
    largest : array, (N,)
    total : float
        An upper bound on ``sum_i w_i``. It may be less than the sum of ``largest`` only if the
        weights depend on who takes part and on nothing else.
    stale : bool
        Whether ``Delta_i`` may be from an earlier model than x; all of them have the same lr.
    by_server : bool
        Whether the steps are the server's own, on F: then N is 1.
    corrected : bool
        Whether ``c - c_i`` is added to every gradient, with c_i zero, or the mean of the gradients
        of client i in a round (before or along its steps), and c the mean of all c_i.
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
    """An algorithm that knows the largest weights of its updates."""

    def update_bounds(self, n_clients: int, round_index: int) -> Mapping[str, UpdateBounds]:
        """Return what bounds a round, the first being 1, for each of the algorithm's branches."""
        ...


@runtime_checkable
class CountedWeights(BoundedUpdates, Protocol):
    """An algorithm whose weight of a client depends only on when that client was present.

    Its state is the model and counts, which are kept for every client alike.
    """

    def counted(self, counts: State, who: Array) -> State:
        """Return the counts after one more round, with ``who`` present."""
        ...

    def weights_if_present(self, counts: State, n_clients: int) -> Array:
        """Return at least the weight of an update in the round after these counts."""
        ...
