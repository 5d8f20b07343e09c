"""The distance of participation from uniform sampling."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.exact_or_float import is_exact
from fltheory.participation.base import Participation, counted, mean_size
from fltheory.participation.process import process_of

_MOST_SETS = 65_536
# Probabilities sum to one, and each has a relative error of a few rounding errors. So a distance or
# a mean size has an error of the same order, however many sets there are, and smaller distances are
# treated as zero.
_ROUNDING = 1e-12


def distance_from_uniform(participation: Participation) -> Any:
    """Return the total variation distance between participation and a uniform draw of equal size.

    The uniform draw takes the expected number of participants out of all clients. If that number is
    not an integer, there is no such draw, and the distance is 1. Distances below 1e-12 are returned
    as 0.

    Raises
    ------
    ValueError
        If there are more than 65,536 participant sets.

    Examples
    --------
    >>> from fltheory.participation import UniformSubset
    >>> distance_from_uniform(UniformSubset(4, 1, excluded=(0,)))
    0.25
    """
    process, exact = process_of(participation), is_exact(participation.marginals)
    size, n_clients = mean_size(participation), participation.n_clients
    if process.uniform_draw is not None:
        drawn, excluded = process.uniform_draw
        return _distance_by_exclusion(n_clients, n_clients - len(excluded), drawn, exact)
    near = size if exact or abs(size - round(size)) > _ROUNDING * n_clients else round(size)
    whole = next((k for k in range(n_clients + 1) if near == k), None)
    if whole is None:
        return 1
    if participation.n_outcomes > _MOST_SETS:
        raise ValueError(
            f"participation must have at most {_MOST_SETS} participant sets to compare with "
            f"uniform sampling, got {counted(participation.n_outcomes)}"
        )
    uniform = Fraction(1, math.comb(n_clients, whole))
    if exact:
        shares = [share for share, mask in process.exact_outcomes() if mask.sum() == whole]
        return 1 - sum(min(share, uniform) for share in shares)
    share: defaultdict[bytes, float] = defaultdict(float)
    for probability, mask in participation.outcomes():
        if mask.sum() == whole:
            share[mask.tobytes()] += probability
    distance = 1 - math.fsum(min(value, float(uniform)) for value in share.values())
    return distance if distance > _ROUNDING else 0.0


def _distance_by_exclusion(n_clients: int, eligible: int, size: int, exact: bool) -> Any:
    """Return the probability that a uniform draw from all clients includes an excluded one.

    A set of eligible clients is likelier in this process than in a draw from all clients, and other
    sets are impossible. So the distributions overlap by ``C(P, m) / C(N, m)``, a product of m
    fractions.
    """
    if exact:
        return 1 - Fraction(math.comb(eligible, size), math.comb(n_clients, size))
    drawn = np.arange(size)
    return float(1 - ((eligible - drawn) / (n_clients - drawn)).prod())
