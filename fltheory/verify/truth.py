"""Obtain a setting's trajectory with an error bar on every number: exact, or sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy.special import stdtrit

from fltheory import validation
from fltheory.algorithms.contract import in_round
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
from fltheory.validation import FloatArray
from fltheory.verify.verdict import Evidence, Grade

# A path takes longer than a replica and tells more: its moments are exact.
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
    averaged over all of participation, which is exact, or over what is drawn of it. The last
    truths are kept, as readings of a theorem, and mutants, share them.
    """
    return _truth_of(setting, tuple(observe), sampling)


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
        return Truth(exact(*arguments, observe=observe), Grade.EXACT, None)
    except NotAffineError:
        if not observe and len(in_round(setting.algorithm, 1).branches) == 1:
            try:
                return _given_participation(setting, sampling)
            except NotAffineError:
                pass
        sampled = monte_carlo(
            *arguments, replicas=sampling.replicas, seed=sampling.seed, observe=observe
        )
        return Truth(sampled, Grade.STATISTICAL, sampling)


def _given_participation(setting: Setting, sampling: Sampling) -> Truth:
    """Average over every path of participants if they are few, else over some that are drawn.

    Raises
    ------
    NotAffineError
        If a round is not affine even then.
    """
    arguments = (
        setting.algorithm,
        setting.problem,
        setting.participation,
        setting.rounds,
        setting.x0,
    )
    if all_paths(setting.participation, setting.rounds) is not None:
        return Truth(conditional(*arguments), Grade.EXACT, None)
    drawn = replace(sampling, replicas=max(2, sampling.replicas // _REPLICAS_PER_PATH))
    trajectory = conditional(*arguments, paths=drawn.replicas, seed=drawn.seed)
    return Truth(trajectory, Grade.STATISTICAL, drawn)
