"""Obtain a setting's trajectory with an error bar on every number: exact, or sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from scipy.special import stdtrit

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.engines import (
    NotAffineError,
    Observable,
    Setting,
    Trajectory,
    along_path,
    exact,
    monte_carlo,
)
from fltheory.engines.trajectory import FIELDS
from fltheory.participation.base import Participation
from fltheory.participation.known_path import known_path
from fltheory.problems.base import Problem
from fltheory.validation import FloatArray
from fltheory.verify.verdict import Evidence, Grade


@dataclass(frozen=True)
class Sampling:
    """How to sample where no exact engine applies.

    Attributes
    ----------
    replicas, seed : int
    error_probability : float
        Allowed for all intervals of one check together.

    Raises
    ------
    ValueError
        For fewer than 2 replicas, a negative seed, or what is no probability.
    """

    replicas: int = 2000
    seed: int = 0
    error_probability: float = 1e-9

    def __post_init__(self) -> None:
        validation.whole_number("replicas", self.replicas, at_least=2)
        validation.whole_number("seed", self.seed, at_least=0)
        validation.real_number(
            "error_probability",
            self.error_probability,
            "a probability between 0 and 1",
            lambda chance: 0 < chance < 1,
        )


@dataclass(frozen=True, eq=False)
class Truth:
    """A trajectory and the half-width of an interval around each of its numbers."""

    trajectory: Trajectory
    grade: Grade
    sampling: Sampling | None

    def error(self, field: str) -> FloatArray:
        """Return the half-widths of one field's intervals at every round."""
        if self.trajectory.rounding_error is not None:
            return self.trajectory.rounding_error[field]
        assert self.sampling is not None
        assert self.trajectory.standard_error is not None
        n_intervals = (self.trajectory.rounds + 1) * (len(FIELDS) + len(self.trajectory.observed))
        tail = self.sampling.error_probability / (2 * n_intervals)
        quantile = -float(stdtrit(self.sampling.replicas - 1, tail))
        return quantile * self.trajectory.standard_error[field]

    def evidence(self, error: float, scope: str = "") -> Evidence:
        """Return the evidence for a quantity known to within ``error``."""
        if self.sampling is None:
            return Evidence(self.grade, error, scope=scope)
        return Evidence(
            self.grade, error, self.sampling.error_probability, self.sampling.replicas, scope
        )


def truth_of(setting: Setting, observe: Sequence[Observable], sampling: Sampling) -> Truth:
    """Run the exact engine where it applies, else sample.

    The last truths are kept, as readings of a theorem, and mutants, share them.
    """
    return _truth_of(setting, tuple(observe), sampling)


_Arguments: TypeAlias = tuple[Algorithm | Schedule, Problem, Participation, int, FloatArray]


def _computed(arguments: _Arguments, observe: tuple[Observable, ...]) -> Trajectory:
    """Compute the moments, along the path where it is known and rounds count.

    Where both engines do, and the first has no bound on its rounding, the second is taken.
    """
    try:
        trajectory = exact(*arguments, observe=observe)
    except NotAffineError:
        if observe:
            raise
        return along_path(*arguments)
    known = not observe and known_path(arguments[2], 1) is not None
    return along_path(*arguments) if known and _has_no_bound(trajectory) else trajectory


def _has_no_bound(trajectory: Trajectory) -> bool:
    assert trajectory.rounding_error is not None
    error = trajectory.rounding_error.squared_distance[-1]
    return trajectory.diverged_at is None and not error <= trajectory.squared_distance[-1]


@lru_cache(maxsize=32)
def _truth_of(setting: Setting, observe: tuple[Observable, ...], sampling: Sampling) -> Truth:
    arguments = (
        setting.algorithm,
        setting.problem,
        setting.participation,
        setting.rounds,
        setting.x0,
    )
    try:
        return Truth(_computed(arguments, observe), Grade.EXACT, None)
    except NotAffineError:
        sampled = monte_carlo(
            *arguments, replicas=sampling.replicas, seed=sampling.seed, observe=observe
        )
        return Truth(sampled, Grade.STATISTICAL, sampling)
