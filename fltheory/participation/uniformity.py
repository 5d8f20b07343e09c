"""How far who takes part is from uniform sampling."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.exact_or_float import is_exact, number
from fltheory.participation.base import Masks, Participation
from fltheory.participation.inclusions.subsets import counted
from fltheory.participation.independent_rounds.uniform_subset import UniformSubset
from fltheory.participation.with_memory.cyclic import Cyclic

_MOST_SETS = 65_536
_ROUNDING = 1e-12


def mean_size(participation: Participation) -> Any:
    """Return the expected number of participants of a round."""
    size = participation.fixed_size
    return number(participation.marginals.sum()) if size is None else size


def distance_from_uniform(participation: Participation) -> Any:
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
    if is_exact(participation.marginals):
        return _exact_distance(participation)
    size, n_clients = mean_size(participation), participation.n_clients
    if abs(size - round(size)) > _ROUNDING * n_clients:
        return 1.0
    if isinstance(participation, UniformSubset):
        return _distance_by_exclusion(participation)
    _check_number_of_sets(participation)
    share: defaultdict[bytes, float] = defaultdict(float)
    for probability, mask in participation.outcomes():
        if mask.sum() == round(size):
            share[mask.tobytes()] += probability
    uniform = 1 / math.comb(n_clients, round(size))
    distance = 1 - math.fsum(min(value, uniform) for value in share.values())
    return distance if distance > _ROUNDING else 0.0


def _distance_by_exclusion(participation: UniformSubset) -> float:
    """Return 1 less the chance that a uniform draw of all clients is one of the eligible's.

    A set of eligible clients is likelier here than among all, any other set is impossible: what
    the laws share is ``C(P, m) / C(N, m)``, a product of m fractions.
    """
    if not participation.excluded:
        return 0.0
    drawn = np.arange(participation.size)
    fractions = (participation.eligible.size - drawn) / (participation.n_clients - drawn)
    return float(1 - fractions.prod())


def _check_number_of_sets(participation: Participation) -> None:
    if participation.n_outcomes > _MOST_SETS:
        raise ValueError(
            f"participation must have at most {_MOST_SETS} participant sets to compare with "
            f"uniform sampling, got {counted(participation.n_outcomes)}"
        )


def _exact_distance(participation: Participation) -> Any:
    """Return the same in fractions, in which a whole number is one."""
    size, n_clients = mean_size(participation), participation.n_clients
    if isinstance(participation, UniformSubset) and not participation.excluded:
        return 0
    whole = next((k for k in range(n_clients + 1) if size == k), None)
    if whole is None:
        return 1
    _check_number_of_sets(participation)
    share: defaultdict[bytes, Any] = defaultdict(int)
    for probability, mask in _exact_outcomes(participation):
        if mask.sum() == whole:
            share[mask.tobytes()] += probability
    uniform = Fraction(1, math.comb(n_clients, whole))
    return 1 - sum(value if value < uniform else uniform for value in share.values())


def _exact_outcomes(participation: Participation) -> Iterator[tuple[Any, Masks]]:
    alike = isinstance(participation, UniformSubset | Cyclic)
    for probability, mask in participation.outcomes():
        yield Fraction(1, participation.n_outcomes) if alike else probability, mask
