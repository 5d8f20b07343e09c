"""What every search does: try settings until its budget is spent, and make a refutation simple."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from fltheory import validation

Found = TypeVar("Found")
Place = TypeVar("Place")


class Search(ABC, Generic[Found]):
    """A search that keeps count and the best.

    Parameters
    ----------
    budget : int
        Settings to try.
    seed : int

    Attributes
    ----------
    tried, applicable : int
        Settings so far; those that met every hypothesis.
    best_ratio : float
        Largest truth/bound where all hypotheses held; -inf if they never did.
    """

    def __init__(self, budget: int, seed: int) -> None:
        self._budget = validation.whole_number("budget", budget, at_least=1)
        self._seed = validation.seed_number("seed", seed)
        self._rng = np.random.default_rng(self._seed)
        self.tried = self.applicable = 0
        self.best_ratio = -math.inf

    @property
    @abstractmethod
    def best(self) -> Found | None:
        """Where truth/bound is largest; None if the statement applied nowhere."""

    @abstractmethod
    def try_more(self) -> None:
        """Try a setting, or several."""

    def attempts(self) -> Iterator[int]:
        """Try settings until the budget is spent; yield how many so far."""
        while self.tried < self._budget:
            self.try_more()
            yield self.tried

    @abstractmethod
    def refutation(self, *, simple: bool) -> Found | None:
        """Return a refutation, made simple or as it was found, if there is one."""


def simplified(
    found: Found,
    places: Callable[[Found], Sequence[Place]],
    simpler: Callable[[Found, Place], Iterable[Found | None]],
    remains: Callable[[Found, Found], bool],
    most: float = float("inf"),
) -> Found:
    """Return what was found with every number at the simplest value at which it remains one.

    Parameters
    ----------
    found : Found
    places : callable
        Gives its numbers' places.
    simpler : callable
        Called with what was found and a place; gives the same with simpler values there, the
        simplest first, and None where there is no such setting. None of them is as it was.
    remains : callable
        Called with one of these and what was found before: whether it may stand in its place.
    most : float
        How many are looked at; the place that this number ends in is still done.

    Examples
    --------
    >>> def smaller(pair, place):
    ...     for value in range(pair[place]):
    ...         yield (value, pair[1]) if place == 0 else (pair[0], value)
    >>> simplified((3, 4), lambda pair: (0, 1), smaller, lambda option, before: sum(option) > 5)
    (2, 4)
    """
    tried, settled = 0, False
    while not settled:
        settled = True
        for place in places(found):
            for option in simpler(found, place):
                tried += 1
                if option is not None and remains(option, found):
                    found, settled = option, False
                    break
            if tried >= most:
                return found
    return found
