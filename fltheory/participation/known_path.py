"""Participation that is known beforehand, round by round."""

from __future__ import annotations

from itertools import islice

import numpy as np

from fltheory import validation
from fltheory.participation.base import Masks, Participation
from fltheory.participation.with_memory.cyclic import Cyclic
from fltheory.participation.with_memory.trace import Trace


def known_path(participation: Participation, rounds: int) -> Masks | None:
    """Return who takes part in each round, (rounds, N); None where chance has a part in it.

    Known are cycles, traces that begin with a given round, and everybody always.

    Raises
    ------
    ValueError
        For fewer than one round.

    Examples
    --------
    >>> known_path(Cyclic([2, 1], [0, 0]), 3).astype(int).tolist()
    [[1, 1], [0, 1], [1, 1]]
    """
    rounds = validation.whole_number("rounds", rounds, at_least=1)
    is_known = (
        isinstance(participation, Cyclic)
        or (isinstance(participation, Trace) and participation.start is not None)
        or participation.fixed_size == participation.n_clients
    )
    if not is_known:
        return None
    if participation.fixed_size == participation.n_clients:
        return np.ones((rounds, participation.n_clients), dtype=bool)
    drawn = participation.masks(np.random.default_rng(0), 1)
    return np.concatenate([mask.copy() for mask in islice(drawn, rounds)])
