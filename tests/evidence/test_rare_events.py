"""Sampled intervals where an event that no run has shown may carry the mean.

Truths are closed forms, or exact enumerations. Every interval here misses with a probability of
1e-9 for all of its check together, by its own statement; there are fewer than a thousand checks in
this file, so that the false-alarm probability of all of it is below 1e-6.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fltheory.algorithms import F3ast, FedAR, FedAU, FedAvg, Mifa
from fltheory.claims.along_run import Theorem
from fltheory.engines import Setting, paths
from fltheory.engines.trajectory import FIELDS
from fltheory.evidence import truths
from fltheory.evidence.truths import Sampling, Truth, over_drawn_paths, over_runs
from fltheory.evidence.verdict import Grade, Outcome
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.participation import Bernoulli, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.verify import check

SEEDS = range(100)
ALONE = QuadraticProblem([[1.0]], [[0.0]])
PAIR = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
# One client, there once in ten rounds: a run in which it never shows up has a chance of 0.9^100,
# and one in which it first does late multiplies x by 1 - omega/2, with omega up to 99.
LATE = Setting(FedAU(0.5, 1), ALONE, Bernoulli([0.1]), 100, [1.0])
# The second client is there in one of 600 runs. x* = 0 is half-way between the two.
ABSENT = Setting(FedAU(0.5, 1), PAIR, Bernoulli([1.0, 1e-4]), 16, [-1.0])


@cache
def squared_distance(setting: Setting) -> np.ndarray:
    """E||x_r - x*||^2 of FedAU without cut-off on a line, one step of lr 1/2, unit curvatures.

    Only the last client's presence is random; the others are always there, and of weight 1. The
    mean length of its intervals is (its last round)/(how often it was there), so that these two
    numbers are a Markov chain, along which the first two moments of x are followed.
    """
    n, rounds = setting.problem.n_clients, setting.rounds
    optima = setting.problem.optima[:, 0]
    p, star = setting.participation.availability[-1], setting.problem.x_star[0]
    x0 = setting.x0[0]
    law = {(0, 0): np.array([1.0, x0, x0 * x0])}
    found = [(x0 - star) ** 2]

    def moved(moments: np.ndarray, weights: np.ndarray) -> np.ndarray:
        slope, shift = 1 - 0.5 * weights.sum() / n, 0.5 * (weights @ optima) / n
        one, x, square = moments
        return np.array(
            [
                one,
                slope * x + shift * one,
                slope**2 * square + 2 * slope * shift * x + shift**2 * one,
            ]
        )

    for r in range(1, rounds + 1):
        after: dict[tuple[int, int], np.ndarray] = {}
        for (count, last), moments in law.items():
            weights = np.ones(n)
            weights[-1] = last / count if count else 1.0
            present, absent = weights, np.where(np.arange(n) == n - 1, 0.0, weights)
            for key, chance, each in (
                ((count + 1, r), p, present),
                ((count, last), 1 - p, absent),
            ):
                after[key] = after.get(key, np.zeros(3)) + chance * moved(moments, each)
        law = after
        one, x, square = np.sum(list(law.values()), axis=0)
        found.append(square - 2 * star * x + star**2 * one)
    return np.array(found)


@cache
def drawn(setting: Setting, seed: int) -> Truth:
    return over_runs(setting, (), Sampling(100, seed))


def misses(truth: Truth, expected: np.ndarray) -> bool:
    lower, upper = truth.interval("squared_distance")
    return bool(((lower > expected) | (upper < expected)).any())


def test_the_oracle_agrees_with_enumeration() -> None:
    for setting in (LATE, ABSENT):
        few = replace(setting, rounds=8)
        found = paths(few).squared_distance
        np.testing.assert_allclose(squared_distance(few), found, rtol=1e-12)


@pytest.mark.parametrize(("setting", "blind"), [(LATE, 80), (ABSENT, 30)])
def test_no_interval_misses_what_few_runs_show(setting: Setting, blind: int) -> None:
    """Of 100 seeds none, where Student's intervals of the same runs miss by the dozen."""
    expected = squared_distance(setting)
    found = [drawn(setting, seed) for seed in SEEDS]
    assert sum(misses(truth, expected) for truth in found) == 0
    assert sum(misses(replace(truth, ranges=None), expected) for truth in found) >= blind
    for truth in found:
        lower, upper = truth.interval("squared_distance")
        assert (upper - lower > 0.01 * truth.trajectory.squared_distance)[1:].all()


@pytest.mark.parametrize("setting", [LATE, ABSENT])
def test_no_verdict_is_wrong(setting: Setting) -> None:
    """A bound at a multiple of the truth; wrong verdicts are HOLDS below it and REFUTED above."""
    truth = squared_distance(setting)[-1]
    for seed in SEEDS:
        for factor in (0.1, 0.9, 1.1, 10.0):
            found = last_distance(factor * truth).compared_with(drawn(setting, seed), setting)
            assert found.outcome is not (Outcome.HOLDS if factor < 1 else Outcome.REFUTED)
            undecided = found.outcome is Outcome.UNDECIDED
            assert found.unseen.startswith("rare events were not seen: ") == undecided


def test_a_check_says_what_was_not_seen() -> None:
    """Runs last: a bound that all of them are below is not said to hold."""
    two = replace(LATE, problem=PAIR, participation=Bernoulli([0.1, 0.1]), rounds=30)
    verdict = check(last_distance(1.0), two, replicas=200)
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.detail.startswith("rare events were not seen: what 200 draws did not show may")
    assert verdict.evidence.error > 1e3


def test_verdicts_are_not_all_undecided() -> None:
    """Where weights are cut off, so that no run gets far, bounds of 1.3 and 0.9 are decided on."""
    setting = replace(ABSENT, algorithm=FedAU(0.5, 1, cutoff=2), rounds=8)
    truth = paths(setting).squared_distance[-1]
    assert 0.95 < truth < 1.05
    runs = over_runs(setting, (), Sampling())
    outcomes = [
        last_distance(bound).compared_with(runs, setting).outcome for bound in (0.9, 0.995, 1.3)
    ]
    assert outcomes == [Outcome.REFUTED, Outcome.UNDECIDED, Outcome.HOLDS]


def test_weights_that_are_rarely_large_leave_a_bound_decided() -> None:
    """Two clients about half of the time, x_0 = 30: no bound on all paths is below 1e34.

    Truth is below 30^2, as a mean weight of 2 takes a fifth of the way in a round.
    """
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]], sigma=0.5)
    setting = Setting(FedAU(0.2, 1), problem, Bernoulli([0.6, 0.5]), 40, [30.0])
    verdict = check(last_distance(1e4), setting)
    assert (verdict.outcome, verdict.evidence.grade) == (Outcome.HOLDS, Grade.STATISTICAL)


def test_one_client_is_followed_on_all_histories() -> None:
    """Its first update leads to the optimum, so that V is the chance that it was never there."""
    found = truths.truth(Setting(FedAU(1.0, 1), ALONE, Bernoulli([0.1]), 100, [1.0]))
    assert found.grade is Grade.FLOAT64
    np.testing.assert_allclose(found.trajectory.squared_distance, 0.9 ** np.arange(101), rtol=1e-9)


# The second client is there in one round of twenty, late at first in most runs: omega is then up to
# 15, and its next step from x goes beyond its optimum by several times the distance.
STEEP = Setting(FedAU(0.5, 1), PAIR, Bernoulli([1.0, 0.05]), 16, [3.0])


def test_intervals_that_leave_rare_paths_out_miss_none() -> None:
    """Of 100 seeds, where Student's miss some: here ceilings are those of typical paths alone."""
    expected = squared_distance(STEEP)
    found = [drawn(STEEP, seed) for seed in SEEDS]
    assert found[0].ranges is not None
    assert found[0].ranges["squared_distance"].beyond[-1] > 0
    assert sum(misses(each, expected) for each in found) == 0
    assert sum(misses(replace(each, ranges=None), expected) for each in found) >= 5


def last_distance(bound: float) -> Theorem:
    return Theorem(
        id="test/last",
        reading="printed",
        title="a number",
        source="none",
        quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "E", "E"),
        bound=sp.Float(bound),
        hypotheses=(),
        regimes={},
    )


def algorithms(n: int) -> dict[str, object]:
    return {
        "FedAU": FedAU(0.3, 2),
        "FedAU, cut off": FedAU(0.3, 2, cutoff=3),
        "FedAR": FedAR(0.2, 2),
        "MIFA": Mifa(0.3, 2, start="wait"),
        "F3AST": F3ast([1 / n] * n, 1, 0.2, 2, smoothing=0.2),
    }


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("p", [1e-4, 3e-3, 0.02, 0.2])
@pytest.mark.parametrize("name", algorithms(2))
def test_rare_clients_against_all_paths(name: str, p: float, noise: float) -> None:
    """Two clients, six rounds: runs and drawn paths, against all 4,096 paths."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [2.0]], sigma=noise)
    setting = Setting(algorithms(2)[name], problem, Bernoulli([p, 0.9]), 6, [3.0])
    agrees_with_all_paths(setting, seed=int(1e4 * p))


@settings(max_examples=25, deadline=None)
@given(
    p=st.lists(st.floats(1e-4, 0.2), min_size=2, max_size=2),
    name=st.sampled_from(list(algorithms(2))),
    nu=st.sampled_from([None, 0.5, 0.9]),
    noise=st.sampled_from([0.0, 1.0]),
    x0=st.floats(-3, 3),
    seed=st.integers(0, 10**6),
)
def test_rare_clients_of_any_kind_against_all_paths(p, name, nu, noise, x0, seed) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=noise)
    who = Bernoulli(p) if nu is None else MarkovOnOff(p, nu)
    agrees_with_all_paths(Setting(algorithms(2)[name], problem, who, 5, [x0]), seed)


def agrees_with_all_paths(setting: Setting, seed: int) -> None:
    every = paths(setting)
    sampling = Sampling(150, seed)
    for found in (over_runs(setting, (), sampling), over_drawn_paths(setting, sampling)):
        for field in FIELDS:
            lower, upper = found.interval(field)
            slack = every.rounding_error[field] + 1e-9 * every[field]
            assert (lower <= every[field] + slack).all()
            assert (upper >= every[field] - slack).all()
            assert np.isfinite(upper).all()


@pytest.mark.parametrize(
    ("algorithm", "sigma", "x0"),
    [
        (FedAU(0.1, 2, cutoff=3), 0.0, 0.5),
        (FedAU(0.1, 2, cutoff=3), 0.0, 3.0),
        (FedAU(0.1, 2, cutoff=3), 2.0, 0.5),
        (F3ast([0.5, 0.5], 1, 0.1, 2, smoothing=0.1), 0.0, 3.0),
    ],
)
def test_intervals_stay_useful_where_clients_are_often_there(algorithm, sigma, x0) -> None:
    """Below, not twice as wide as Student's; above, a few percent of the largest value more."""
    setting = Setting(algorithm, replace(PAIR, sigma=sigma), Bernoulli([0.5, 0.7]), 12, [x0])
    noisy = sigma > 0
    truth = over_drawn_paths(setting, Sampling()) if noisy else over_runs(setting, (), Sampling())
    assert truth.sampling is not None
    assert truth.ranges is not None
    mean, (lower, upper) = truth.trajectory.squared_distance, truth.interval("squared_distance")
    student = replace(truth, ranges=None).error("squared_distance")
    largest = truth.ranges["squared_distance"].ceiling
    share = np.log(1e12) / truth.sampling.replicas
    assert (mean - lower <= 1.8 * student + 1.5 * share * mean).all()
    assert (upper - mean <= 1.8 * student + 1.5 * share * largest).all()


def test_noise_is_averaged_along_a_drawn_path() -> None:
    """One step of size 1 from the optimum is its noise: the mean square is sigma^2, never more."""
    problem = QuadraticProblem([[1.0]], [[0.0]], sigma=2.0)
    drawn = over_drawn_paths(
        Setting(FedAvg(1.0, 1), problem, Bernoulli([1.0]), 1, [0.0]), Sampling(2)
    )
    assert drawn.ranges is not None
    np.testing.assert_allclose(drawn.ranges["squared_distance"].ceiling, [0.0, 4.0], rtol=1e-7)
