"""How far who takes part is from uniform sampling."""

from __future__ import annotations

import math
from collections import defaultdict

from fltheory.participation.base import Participation
from fltheory.participation.uniform_subset import UniformSubset

_MOST_SETS = 65_536
_ROUNDING = 1e-12


def mean_size(participation: Participation) -> float:
    """Return the expected number of participants of a round."""
    size = participation.fixed_size
    return float(participation.marginals.sum()) if size is None else float(size)


def distance_from_uniform(participation: Participation) -> float:
    """Return the total variation between a round's participants and a uniform draw of as many.

    The uniform draw is of the expected number of participants, out of all clients; where that
    is not a whole number there is none, and the distance is 1. Below 1e-12 it counts as 0.

    Raises
    ------
    ValueError
        For more than 65,536 participant sets.

    Examples
    --------
    >>> distance_from_uniform(UniformSubset(4, 1, excluded=(0,)))
    0.25
    """
    size, n_clients = mean_size(participation), participation.n_clients
    if abs(size - round(size)) > _ROUNDING * n_clients:
        return 1.0
    if isinstance(participation, UniformSubset) and not participation.excluded:
        return 0.0
    if participation.n_outcomes > _MOST_SETS:
        raise ValueError(
            f"participation must have at most {_MOST_SETS} participant sets to compare with "
            f"uniform sampling, got {participation.n_outcomes}"
        )
    share: defaultdict[bytes, float] = defaultdict(float)
    for probability, mask in participation.outcomes():
        if mask.sum() == round(size):
            share[mask.tobytes()] += probability
    uniform = 1 / math.comb(n_clients, round(size))
    distance = 1 - math.fsum(min(value, uniform) for value in share.values())
    return distance if distance > _ROUNDING else 0.0
