"""Work done for each round of an algorithm, once for rounds that are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.content import content
from fltheory.engines.affine.numbers import FLOAT64, as_float, entries, with_parameters
from fltheory.engines.setting import Setting
from fltheory.exact_or_float import is_exact
from fltheory.problems.quadratic_problem import QuadraticProblem

T = TypeVar("T")


def in_float64(setting: Setting) -> Setting:
    """Return the setting with floats where its numbers are fractions or balls.

    Engines in float64 begin with it: NumPy makes objects of a fraction times an array.
    """
    algorithm = with_parameters(setting.algorithm, FLOAT64)
    problem = setting.problem
    if isinstance(problem, QuadraticProblem) and is_exact(problem.optima):
        weights = problem.target_weights
        floats = QuadraticProblem(
            entries(FLOAT64, problem.hessians),
            entries(FLOAT64, problem.optima),
            sigma=as_float(problem.sigma),
            server_sigma=as_float(problem.server_sigma),
            target_weights=None if weights is None else entries(FLOAT64, weights),
        )
        who = with_parameters(setting.participation, FLOAT64)
        return Setting(algorithm, floats, who, setting.rounds, entries(FLOAT64, setting.x0))
    return setting if algorithm is setting.algorithm else replace(setting, algorithm=algorithm)


def runs_of_rounds(
    algorithm: Algorithm | Schedule, make: Callable[[Algorithm], T], rounds: int
) -> Iterator[tuple[T, int]]:
    """Return an iterator over runs of like rounds: what ``make`` returns, and how many they are.

    Without a schedule there is one run, made at once.
    """
    if isinstance(algorithm, Schedule):
        return _scheduled(algorithm, make, rounds)
    return iter([(make(algorithm), rounds)])


def _scheduled(
    schedule: Schedule, make: Callable[[Algorithm], T], rounds: int
) -> Iterator[tuple[T, int]]:
    begun, now = 1, schedule.at(1)
    held = content(now)
    for index in range(2, rounds + 2):
        after = schedule.at(index) if index <= rounds else None
        # By what they hold: a class may call objects equal that are not.
        if after is None or content(after) != held:
            yield make(now), index - begun
            if after is not None:
                begun, now, held = index, after, content(after)
