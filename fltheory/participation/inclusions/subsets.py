"""Enumerations of sets of clients, as masks (N,)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from fltheory.participation.base import Masks

_MOST_DIGITS = 30


def counted(number: int) -> str:
    """Return a whole number, or about how large it is where it has very many digits."""
    digits = number.bit_length() * math.log10(2)
    return str(number) if digits < _MOST_DIGITS else f"about 10^{digits:.0f}"


def of_size(size: int, among: Masks) -> Iterator[Masks]:
    """Yield every set of ``size`` clients out of those ``among`` whom they may be."""
    for members in combinations(np.flatnonzero(among).tolist(), size):
        mask = np.zeros(among.size, dtype=bool)
        mask[list(members)] = True
        yield mask


def between(least: Masks, varying: Masks) -> Iterator[Masks]:
    """Yield ``least`` with every part of those ``varying``, from none to all of them."""
    places = np.flatnonzero(varying)
    for chosen in product([False, True], repeat=places.size):
        mask = least.copy()
        mask[places] = chosen
        yield mask
