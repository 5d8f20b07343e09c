"""Work done for each round of an algorithm, once for rounds that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, repeat
from typing import TypeVar

from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.engines.affine.numbers import FLOAT64, with_parameters
from fltheory.engines.setting import Setting

T = TypeVar("T")


def in_float64(setting: Setting) -> Setting:
    """Return the setting with floats where hyper-parameters of its algorithm are fractions.

    Engines in float64 begin with it: NumPy makes objects of a fraction times an array.
    """
    algorithm = with_parameters(setting.algorithm, FLOAT64)
    return setting if algorithm is setting.algorithm else replace(setting, algorithm=algorithm)


def each_round(
    algorithm: Algorithm | Schedule, make: Callable[[Algorithm, bool], T]
) -> Iterator[T]:
    """Return an iterator over ``make`` of the first round's algorithm, of the second's, ...

    Successive rounds that are alike share one object; without a schedule it is made at once.
    ``make`` is told whether to check on numbers what it reads: in rounds 1, 2, 4, 8 and so on.
    Each round is read on forms, which refuse what is not affine. The check guards against a fault
    of forms themselves, which no step size brings about.
    """
    if isinstance(algorithm, Schedule):
        return _each_scheduled(algorithm, make)
    return repeat(make(algorithm, True))


def _each_scheduled(schedule: Schedule, make: Callable[[Algorithm, bool], T]) -> Iterator[T]:
    before = schedule.at(1)
    made = make(before, True)
    for index in count(1):
        now = schedule.at(index)
        if now != before:
            before, made = now, make(now, index & (index - 1) == 0)
        yield made
