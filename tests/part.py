"""Choose a part of many cases by a hash of their names, so that a new case changes it little.

It imports only the standard library, for runners that check what else is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


def part(cases: Iterable[T], *, name: Callable[[T], str] = str, of: int) -> list[T]:
    """Return one in ``of`` cases, at least one, in the order of their hashes."""
    ranked = sorted(cases, key=lambda case: crc32(name(case).encode()))
    return ranked[: math.ceil(len(ranked) / of)]
