"""The interface of a participation process, and sets of clients enumerated as masks (N,)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fltheory.exact_or_float import number
from fltheory.validation import FloatArray

Masks = NDArray[np.bool_]


class Participation(Protocol):
    """A random process of participant sets.

    ``marginals`` (N,) and ``pair_inclusions`` (N, N) are the exact probabilities that a client, and
    that a pair of clients, takes part in a round. The diagonal of the latter holds the marginals.
    If rounds are not independent, these probabilities and the outcomes refer to the stationary
    distribution and do not describe the dependence between rounds.

    Examples
    --------
    Every process has these attributes:

    >>> import fltheory as fl
    >>> process: Participation = fl.participation.UniformSubset(3, 2)
    >>> process.marginals.round(3).tolist(), process.n_outcomes
    ([0.667, 0.667, 0.667], 3)
    """

    @property
    def independent(self) -> bool:
        """Whether the participants of all rounds are independent and identically distributed."""
        ...

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
        """The number of participants if it never varies, otherwise None."""
        ...

    @property
    def n_outcomes(self) -> int:
        """Number of participant sets with positive probability."""
        ...

    def outcomes(self) -> Iterator[tuple[float, Masks]]:
        """Yield every participant set of positive probability, as (probability, mask (N,))."""
        ...

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Yield one Boolean array (replicas, N) per round, True where a client takes part."""
        ...


def mean_size(participation: Participation) -> Any:
    """Return the expected number of participants of a round."""
    size = participation.fixed_size
    return number(participation.marginals.sum()) if size is None else size


_MOST_DIGITS = 30


def counted(number: int) -> str:
    """Return an integer as text, or its order of magnitude if it has very many digits."""
    digits = number.bit_length() * math.log10(2)
    return str(number) if digits < _MOST_DIGITS else f"about 10^{digits:.0f}"


def of_size(size: int, among: Masks) -> Iterator[Masks]:
    """Yield every set of ``size`` clients from the mask ``among``."""
    for members in combinations(np.flatnonzero(among).tolist(), size):
        mask = np.zeros(among.size, dtype=bool)
        mask[list(members)] = True
        yield mask


def between(least: Masks, varying: Masks) -> Iterator[Masks]:
    """Yield ``least`` joined with every subset of ``varying``, from none to all."""
    places = np.flatnonzero(varying)
    for chosen in product([False, True], repeat=places.size):
        mask = least.copy()
        mask[places] = chosen
        yield mask
