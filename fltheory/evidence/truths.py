"""Exact or sampled trajectories of settings, with an error bar on every number.

The confidence intervals for a mean hold at every sample size, however rare large values are.

The width of a Student's t interval is proportional to the sample's spread, so it is zero if a rare
event that dominates the mean has not been seen. The intervals here use only the range of the
variable. For independent V_1, ..., V_n >= 0 of mean m and a share ``b`` in (0, 1) fixed beforehand,
``prod_i (1 - b + b V_i / m)`` is nonnegative with mean one, so it exceeds 1/delta with probability
at most delta (Markov), and it decreases in m. Hence every m at which it exceeds 1/delta is
rejected, together with all smaller values of m. With ``y_i = V_i / m - 1 >= -1``,

``log(1 + b y) >= b y - psi(b) y^2,  psi(b) = -log(1 - b) - b``

(Fan, Grama and Liu, Exponential inequalities for martingales with applications, EJP 20, 2015,
Lemma 4.1), so the sum depends on the sample only through its mean and variance, as a quadratic in
1/m. Such bets follow Waudby-Smith and Ramdas, Estimating means of bounded random variables by
betting, JRSS B 86, 2024.

An upper end requires a ceiling on V and comes from the lower end for ``ceiling - V``. If V can
exceed the ceiling, this is still an upper end for the expectation of ``min(V, ceiling)``. The
reason is that the quadratic ``b y - psi(b) y^2`` grows with y up to ``b / (2 psi(b)) > 0``, so
draws beyond the ceiling, whose y is below -1, make the sum smaller than draws at the ceiling would,
and reject less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.content import cached_by_content
from fltheory.engines import Setting, exact, monte_carlo, paths
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.guard import guarded, rounds_now
from fltheory.engines.observables import Observable
from fltheory.engines.sampled.ceilings import Range, ranges
from fltheory.engines.setting import in_float64
from fltheory.engines.trajectory import FIELDS, RoundArrays, Trajectory
from fltheory.evidence.verdict import Evidence, Grade
from fltheory.validation import FloatArray

# Shares are fixed before anything is drawn. They range from one that suits a sample that hardly
# varies to one that suits a spread of a thousand times the mean. The error probability is split
# among the shares. The first share gets half of it, because that share alone determines the width
# of the interval if all draws agree.
_SHARES = np.concatenate([[0.98], 0.75 * 2.0 ** -np.arange(0, 12)])
_PENALTIES = -np.log1p(-_SHARES) - _SHARES
_BUDGETS = np.concatenate([[0.5], np.full(12, 0.5 / 12)])


def least_mean(
    mean: FloatArray, standard_error: FloatArray, count: int, error_probability: float
) -> FloatArray:
    """Return a lower confidence bound on the expectation of a nonnegative variable.

    Nothing else is assumed, neither a largest value nor a variance. Even if all draws are equal,
    the bound is below the mean by a share of about ``log(1/error_probability)/count``.

    Parameters
    ----------
    mean, standard_error : array
        Sample means and standard errors of independent draws.
    count : int
        Number of draws, at least 2.
    error_probability : float
        Bound on the probability that the expectation is below the returned number.

    Examples
    --------
    >>> least_mean(np.array([1.0]), np.array([0.0]), 1000, 1e-6).round(3)
    array([0.985])
    """
    levels = -np.log(_BUDGETS * error_probability) / count
    share, penalty, level = (
        values.reshape(-1, *(1,) * mean.ndim) for values in (_SHARES, _PENALTIES, levels)
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # The variance has divisor n and not n - 1, because it is the mean of (V_i - mean)^2.
        square = (count - 1) * (standard_error / mean) ** 2
        # In t = mean/m - 1: share t - penalty (square (1 + t)^2 + t^2) >= level.
        slope = share - 2 * penalty * square
        constant = level + penalty * square
        root = slope**2 - 4 * penalty * (1 + square) * constant
        t = np.where((slope > 0) & (root >= 0), 2 * constant / (slope + np.sqrt(root)), np.inf)
        least = mean / (1 + t.min(axis=0))
    return np.where((mean > 0) & np.isfinite(least), least, 0.0)


def mean_within(
    mean: FloatArray,
    standard_error: FloatArray,
    count: int,
    *,
    floor: FloatArray,
    ceiling: FloatArray,
    error_probability: float,
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of confidence intervals for the expectations of variables of known range.

    Parameters
    ----------
    mean, standard_error, count
        As in `least_mean`.
    floor, ceiling : array
        The variable is never below ``floor``. The upper end does not cover parts above ``ceiling``.
        If one of them is unknown, it is infinite, and so is that end of the interval.
    error_probability : float
        Bound on the probability that an interval misses the expectation, split equally between both
        ends.

    Examples
    --------
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> ends = mean_within(zero, zero, 1000, floor=zero, ceiling=one, error_probability=1e-6)
    >>> [end.round(3).tolist() for end in ends]
    [[0.0], [0.016]]
    """
    half = error_probability / 2
    with np.errstate(invalid="ignore"):
        above, below = np.maximum(mean - floor, 0.0), np.maximum(ceiling - mean, 0.0)
    lower = floor + least_mean(above, standard_error, count, half)
    upper = ceiling - least_mean(below, standard_error, count, half)
    # If a mean is outside its range, that end of the range must be wrong and is treated as unknown.
    lower = np.where(np.isfinite(floor) & (mean >= floor), lower, -np.inf)
    return lower, np.where(np.isfinite(ceiling) & (mean <= ceiling), upper, np.inf)


# Approximate cost of a path, in runs: benchmarks/rao_blackwell.py.
_REPLICAS_PER_PATH = 4


@dataclass(frozen=True)
class Sampling:
    """How to sample if no exact engine applies.

    Attributes
    ----------
    replicas, seed : int
    error_probability : float
        The probability that at least one interval of one check is wrong.

    Raises
    ------
    ValueError
        If there are fewer than 2 replicas, the seed is negative, or ``error_probability`` is not a
        probability.

    Examples
    --------
    >>> Sampling(replicas=500)
    Sampling(replicas=500, seed=0, error_probability=1e-09)
    """

    replicas: int = 2000
    seed: int = 0
    error_probability: float = 1e-9

    def __post_init__(self) -> None:
        validation.whole_number("replicas", self.replicas, at_least=2)
        validation.seed_number("seed", self.seed)
        validation.real_number(
            "error_probability",
            self.error_probability,
            "a probability between 0 and 1",
            lambda chance: 0 < chance < 1,
        )


@dataclass(frozen=True, eq=False)
class Truth:
    """A trajectory and an interval around each of its numbers.

    Attributes
    ----------
    trajectory : Trajectory
    grade : Grade
    sampling : Sampling or None
        None if the trajectory is computed.
    ranges : mapping of str to Range, optional
        Range of each sampled quantity, with which intervals are valid at every sample size. Without
        ranges, intervals are Student's t intervals, which miss rare events. These are for figures
        and for runs on real data, whose range is unknown.
    """

    trajectory: Trajectory
    grade: Grade
    sampling: Sampling | None
    ranges: Mapping[str, Range] | None = None

    @property
    def left_open(self) -> float:
        """The width of an interval if all draws agree, as a share of the range."""
        nothing = np.zeros(1)
        return float(self._around(nothing, nothing, nothing, nothing + 1)[1][0])

    def interval(self, field: str) -> tuple[FloatArray, FloatArray]:
        """Return both ends of one field's intervals at every round."""
        values = self.trajectory[field]
        if self.ranges is not None:
            return self._within(self.ranges[field], field)
        error = self.error(field)
        with np.errstate(invalid="ignore"):
            return values - error, values + error

    def error(self, field: str) -> FloatArray:
        """Return the larger distance of an interval's ends from a field's value at every round."""
        from scipy.special import stdtrit

        values = self.trajectory[field]
        if self.trajectory.rounding_error is not None:
            return self.trajectory.rounding_error[field]
        if self.ranges is not None:
            lower, upper = self._within(self.ranges[field], field)
            with np.errstate(invalid="ignore"):
                return np.asarray(np.fmax(values - lower, upper - values))
        assert self.sampling is not None
        assert self.trajectory.standard_error is not None
        tail = self.sampling.error_probability / (2 * self._n_intervals)
        quantile = -float(stdtrit(self.sampling.replicas - 1, tail))
        return quantile * self.trajectory.standard_error[field]

    @property
    def _n_intervals(self) -> int:
        return (self.trajectory.rounds + 1) * (len(FIELDS) + len(self.trajectory.observed))

    def _within(self, limits: Range, field: str) -> tuple[FloatArray, FloatArray]:
        assert self.trajectory.standard_error is not None
        errors = self.trajectory.standard_error[field]
        lower, upper = self._around(self.trajectory[field], errors, limits.floor, limits.ceiling)
        return lower, upper + limits.beyond

    def _around(
        self, mean: FloatArray, errors: FloatArray, floor: FloatArray, ceiling: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        assert self.sampling is not None
        each = self.sampling.error_probability / self._n_intervals
        return mean_within(
            mean,
            errors,
            self.sampling.replicas,
            floor=floor,
            ceiling=ceiling,
            error_probability=each,
        )

    def evidence(
        self, error: float, scope: str = "", ends: tuple[float, float] | None = None
    ) -> Evidence:
        """Return the evidence for a quantity that is within ``error`` or between two ends."""
        if self.sampling is None:
            return Evidence(self.grade, error, scope=scope)
        chance, replicas = self.sampling.error_probability, self.sampling.replicas
        return Evidence(self.grade, error, chance, replicas, scope, ends)


@checks_kinds
def truth(
    setting: Setting, observe: Sequence[Observable] = (), sampling: Sampling | None = None
) -> Truth:
    """Run an exact engine if one applies, or else average over participation, or else sample.

    If the path of participants is known beforehand, that path is followed. If rounds are affine
    once participation is known, exact moments given participation are averaged over all paths,
    which is exact, or over drawn paths. Without noise, the moments given participation are the run
    itself, so runs are drawn. The most recent truths are cached, because readings of a theorem and
    mutants share them.

    Parameters
    ----------
    setting : Setting
    observe : sequence of Observable, optional
        Further quantities, on a quadratic problem.
    sampling : Sampling, optional
        How to sample, if that is necessary.

    Returns
    -------
    Truth
        A trajectory, and an interval around each of its numbers.

    Examples
    --------
    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.participation import Bernoulli
    >>> from fltheory.problems import QuadraticProblem
    >>> problem = QuadraticProblem([[1.0]], [[0.0]])
    >>> truth(Setting(FedAvg(0.5, 1), problem, Bernoulli([0.5]), 2, [1.0])).grade.name
    'FLOAT64'
    """
    return _truth(setting, tuple(observe), sampling or Sampling())


@cached_by_content(32, as_long_as=rounds_now)
def _truth(setting: Setting, observe: tuple[Observable, ...], sampling: Sampling) -> Truth:
    # A round that draws random numbers itself has no map, and it is random even given its
    # participants.
    if guarded(setting).draws_from:
        return over_runs(setting, observe, sampling)
    computed = _computed(setting, observe)
    if computed is not None:
        return Truth(computed, Grade.FLOAT64, None)
    drawn = None if observe else _given_participation(setting, sampling)
    return drawn or over_runs(setting, observe, sampling)


def over_runs(setting: Setting, observe: Sequence[Observable], sampling: Sampling) -> Truth:
    """Sample whole runs, with random participation and noise."""
    run = monte_carlo(setting, replicas=sampling.replicas, seed=sampling.seed, observe=observe)
    return _sampled(run, setting, observe, sampling, given_path=False)


def over_drawn_paths(setting: Setting, sampling: Sampling) -> Truth:
    """Average exact moments given participation over drawn paths.

    Raises
    ------
    NotAffineError
        If a round is not affine even given participation.
    """
    run = paths(setting, draws=sampling.replicas, seed=sampling.seed)
    return _sampled(run, setting, (), sampling, given_path=True)


def _sampled(
    run: Trajectory,
    setting: Setting,
    observe: Sequence[Observable],
    sampling: Sampling,
    *,
    given_path: bool,
) -> Truth:
    """Return a sampled truth with the known range of each quantity."""
    found = Truth(run, Grade.STATISTICAL, sampling)
    limits = ranges(in_float64(setting), observe, left_open=found.left_open, given_path=given_path)
    return replace(found, ranges=limits)


@cached_by_content(32, as_long_as=rounds_now)
def _computed(setting: Setting, observe: tuple[Observable, ...]) -> Trajectory | None:
    """Compute moments, conditional on histories if rounds count, or None if no engine applies.

    If both apply and the first has no useful bound on its rounding, the second is used.
    """
    try:
        trajectory = exact(setting, observe=observe)
    except NotAffineError:
        trajectory = None
    if observe or (trajectory is not None and not _has_no_bound(trajectory)):
        return trajectory
    try:
        followed = paths(setting)
    except NotAffineError:
        return trajectory
    # Runs followed one by one may be arbitrary functions, so their rounding has no bound.
    return trajectory if followed.rounding_error is None else followed


def _has_no_bound(trajectory: Trajectory) -> bool:
    assert trajectory.rounding_error is not None
    error = trajectory.rounding_error.squared_distance[-1]
    return trajectory.diverged_at is None and not error <= trajectory.squared_distance[-1]


def _given_participation(setting: Setting, sampling: Sampling) -> Truth | None:
    """Average over drawn paths of participants, or return None if that is useless or impossible."""
    if setting.problem.sigma == 0:
        return None
    drawn = replace(sampling, replicas=max(2, sampling.replicas // _REPLICAS_PER_PATH))
    try:
        return over_drawn_paths(setting, drawn)
    except NotAffineError:
        return None


def beginning(truth: Truth, rounds: int) -> Truth:
    """Return the truth of a run's first rounds."""
    limits = truth.ranges
    if limits is not None:
        limits = {name: each.cut(rounds) for name, each in limits.items()}
    return replace(truth, trajectory=shorter(truth.trajectory, rounds), ranges=limits)


def shorter(run: Trajectory, rounds: int) -> Trajectory:
    """Return rounds 0 to ``rounds`` of a trajectory."""
    return Trajectory.of(
        _cut(run, rounds),
        standard_error=None if run.standard_error is None else _cut(run.standard_error, rounds),
        rounding_error=None if run.rounding_error is None else _cut(run.rounding_error, rounds),
        replicas=run.replicas,
        diverged_at=run.diverged_at,
    )


def _cut(arrays: RoundArrays, rounds: int) -> dict[str, FloatArray]:
    return {name: arrays[name][: rounds + 1] for name in (*FIELDS, *arrays.observed)}


def exact_beginning(setting: Setting) -> Trajectory | None:
    """Return the longest initial part of a run whose histories can be followed, or None.

    It has a few rounds, or all rounds if nothing is random.
    """
    found: Trajectory | None = None
    followed, too_many = 0, setting.rounds + 1
    while followed + 1 < too_many:
        # Double the rounds as long as that works, and then bisect.
        more = 2 * followed + 1 if too_many > setting.rounds else (followed + too_many) // 2
        rounds = min(more, setting.rounds)
        try:
            found = paths(replace(setting, rounds=rounds))
            followed = rounds
        except NotAffineError:
            too_many = rounds
    return found
