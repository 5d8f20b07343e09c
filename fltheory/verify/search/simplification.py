"""How every search makes a refutation simple: place by place, as long as it remains one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Found = TypeVar("Found")
Place = TypeVar("Place")


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
