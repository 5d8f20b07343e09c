"""Work done for each round of an algorithm, once for rounds that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
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


def runs_of_rounds(
    algorithm: Algorithm | Schedule, make: Callable[[Algorithm, bool], T], rounds: int
) -> Iterator[tuple[T, int]]:
    """Return an iterator over runs of like rounds: what ``make`` returns, and how many they are.

    Without a schedule there is one run, made at once. ``make`` is told whether to check on
    numbers what it reads: in rounds 1, 2, 4, 8 and so on. Each round is read on forms, which
    refuse what is not affine. The check guards against a fault of forms themselves, which no step
    size brings about.
    """
    if isinstance(algorithm, Schedule):
        return _scheduled(algorithm, make, rounds)
    return iter([(make(algorithm, True), rounds)])


def _scheduled(
    schedule: Schedule, make: Callable[[Algorithm, bool], T], rounds: int
) -> Iterator[tuple[T, int]]:
    begun, now = 1, schedule.at(1)
    for index in range(2, rounds + 2):
        after = schedule.at(index) if index <= rounds else None
        if after != now:
            yield make(now, begun & (begun - 1) == 0), index - begun
            if after is not None:
                begun, now = index, after
