"""Obtain a setting's trajectory with an error bar on every number: exact, or sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy.special import stdtrit

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Schedule, in_round
from fltheory.engines import (
    NotAffineError,
    Observable,
    Setting,
    Trajectory,
    conditional,
    exact,
    monte_carlo,
)
from fltheory.engines.participant_paths import all_paths
from fltheory.engines.trajectory import FIELDS
from fltheory.participation.base import Participation
from fltheory.problems.base import Problem
from fltheory.validation import FloatArray
from fltheory.verify.verdict import Evidence, Grade

# About what a path costs, in runs: benchmarks/rao_blackwell.py.
_REPLICAS_PER_PATH = 4


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
    """Run the exact engine where it applies, else average over participation, else sample.

    Where rounds are affine once it is known who takes part, exact moments given that are
    averaged over all of participation, which is exact, or over what is drawn of it. Without
    noise a run's moments given participation are the run itself, and runs are drawn. The last
    truths are kept, as readings of a theorem, and mutants, share them.
    """
    return _truth_of(setting, tuple(observe), sampling)


@lru_cache(maxsize=32)
def _truth_of(setting: Setting, observe: tuple[Observable, ...], sampling: Sampling) -> Truth:
    arguments = _arguments(setting)
    try:
        return Truth(exact(*arguments, observe=observe), Grade.EXACT, None)
    except NotAffineError:
        given = None if observe else _given_participation(setting, sampling)
    if given is not None:
        return given
    sampled = monte_carlo(
        *arguments, replicas=sampling.replicas, seed=sampling.seed, observe=observe
    )
    return Truth(sampled, Grade.STATISTICAL, sampling)


def _arguments(
    setting: Setting,
) -> tuple[Algorithm | Schedule, Problem, Participation, int, FloatArray]:
    return (
        setting.algorithm,
        setting.problem,
        setting.participation,
        setting.rounds,
        setting.x0,
    )


def _given_participation(setting: Setting, sampling: Sampling) -> Truth | None:
    """Average over every path of participants if they are few, else over some that are drawn.

    None where a round is not affine even then, or drawing paths has no advantage.
    """
    if len(in_round(setting.algorithm, 1).branches) > 1:
        return None
    every = all_paths(setting.participation, setting.rounds) is not None
    if not every and setting.problem.sigma == 0:
        return None
    try:
        if every:
            return Truth(conditional(*_arguments(setting)), Grade.EXACT, None)
        drawn = replace(sampling, replicas=max(2, sampling.replicas // _REPLICAS_PER_PATH))
        run = conditional(*_arguments(setting), paths=drawn.replicas, seed=drawn.seed)
        return Truth(run, Grade.STATISTICAL, drawn)
    except NotAffineError:
        return None
