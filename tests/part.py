"""A part of many cases, told by a hash of their names, so that a new case moves hardly any.

It imports nothing but the standard library, for runners that see what else is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


def part(cases: Iterable[T], *, name: Callable[[T], str] = str, of: int) -> list[T]:
    """Return one in so many cases, at least one, in an order of their own."""
    ranked = sorted(cases, key=lambda case: crc32(name(case).encode()))
    return ranked[: math.ceil(len(ranked) / of)]
