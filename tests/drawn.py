"""Choose the cases for ``make test`` among those that all run in ``make soundness``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import product
from typing import Any, TypeVar

import pytest

from tests.part import part

T = TypeVar("T")


def a_tenth(cases: Iterable[T], *, name: Callable[[T], str] = str, of: int = 10) -> list[Any]:
    """Return parameters of a test, all but one in ten of them marked ``soundness``.

    The choice depends on a hash of the names, so that a new case changes it little.
    """
    cases = list(cases)
    kept = {name(case) for case in part(cases, name=name, of=of)}
    marks = {True: (), False: (pytest.mark.soundness,)}
    return [pytest.param(case, marks=marks[name(case) in kept]) for case in cases]


def in_turn(*axes: Collection[Any], of: int = 3) -> list[Any]:
    """Return all combinations as parameters of a test, all but one in three marked ``soundness``.

    Each value is kept with some values of every other axis, as in a Latin square.
    """
    kept = (sum(places) % of == 0 for places in product(*(range(len(axis)) for axis in axes)))
    return [
        pytest.param(*values, marks=() if keep else (pytest.mark.soundness,))
        for values, keep in zip(product(*axes), kept, strict=True)
    ]
