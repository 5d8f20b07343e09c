"""Objects of every public class that returns arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from fltheory import (
    algorithms,
    engines,
    learnability,
    logs,
    participation,
    problems,
    theorems,
    weights,
    worst_case,
)
from fltheory.advice import advise
from fltheory.advice.gradients_file import ClientGradients
from fltheory.advice.on_digits import Trained
from fltheory.advice.rounds import LogRounds
from fltheory.claims.curves import BoundCurve, CurveSample
from fltheory.engines import Setting
from fltheory.engines.fedau_weights.dependent_weight_error import weight_error_under
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.engines.observables import ParticipantExcessLoss
from fltheory.evidence.enclosed_values import Intervals
from fltheory.learnability.empirical_minimiser import (
    NoiselessLaw,
    sample_erm,
    sample_server_assisted,
    worst_minimiser,
)
from fltheory.learnability.populations import as_population
from fltheory.logs.played_log import PlayedLog
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.participation import MarkovOnOff
from fltheory.participation.inclusions.like_clients import LikeClients
from fltheory.problems import QuadraticProblem
from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem
from fltheory.problems.skewed import SkewedProblem
from fltheory.problems.weighted_objective import WeightedObjective
from fltheory.testing.conformance.case import QuadraticClient
from fltheory.theorems.cited_lemmas import LocalRun
from fltheory.theorems.fedar import FedARPath
from fltheory.theorems.fedau.setting import FedAUSetting
from fltheory.verify.check import check
from fltheory.verify.comparison import GivenRun, OwnBound
from fltheory.verify.region_map import MapAxis, RegionMap
from fltheory.verify.safari.instances import InstanceBatch, assess
from fltheory.worst_case.audits.witness import worst_clients
from fltheory.worst_case.correlated.program import DifferenceForm, OnOffProgram
from fltheory.worst_case.memory import LyapunovProgram, MemoryRound
from fltheory.worst_case.rounds.one_round import AveragingRound
from fltheory.worst_case.rounds.program import Program
from fltheory.worst_case.rounds.slack import slack_of
from fltheory.worst_case.semidefinite import optimum
from tests.verify.witnesses import GROUPS

NOISY = QuadraticProblem(
    [[[2.0, 0.5], [0.5, 1.0]], np.eye(2)], [[1.0, -2.0], [3.0, 0.25]], sigma=0.5
)
QUIET = QuadraticProblem(np.eye(2), NOISY.optima, target_weights=[0.25, 0.75])
CHAINS = MarkovOnOff([0.5, 0.8], 0.5)
UNIFORM = as_population(learnability.Source.uniform(0, 1, "1/2"))


def examples() -> Iterator[object]:
    """Yield an object of every public class that returns arrays."""
    yield from _problems()
    yield from _participation()
    yield from _algorithms_and_weights()
    yield from _runs()
    yield from _learnability()
    yield from _theorems()
    yield from _verdicts()
    yield from _worst_case()


def _problems() -> Iterator[object]:
    data = np.array([[[0.0], [1.0], [2.0]], [[1.0], [3.0], [-1.0]]])
    labels = np.array([[0, 1, 1], [1, 0, 0]])
    multinomial = problems.MultinomialProblem(data, labels, n_classes=2, ridge=0.1)
    yield from (NOISY, QUIET, multinomial, problems.LogisticProblem(data, labels, ridge=0.1))
    yield multinomial.client_sums(np.zeros((1, multinomial.dim)))
    yield WeightedObjective(NOISY, [0.25, 0.75])
    yield problems.Ball([0.0, 1.0], 2.0)
    yield problems.nonconvex(3, 2, L=2.0, sigma_G=1.0, x_star=[1.0, -1.0])
    yield PiecewiseQuadraticProblem([[[1.0]]], [[0.0]], L=1.0, mu=0.0)
    yield problems.LogCoshProblem([[0.5], [-0.5]], curvature=1.0, width=2.0, x_star=[1.0])
    yield SkewedProblem([[0.5], [-0.5]], curvature=1.0, skew=0.5, width=1.0)


def _participation() -> Iterator[object]:
    processes = [
        participation.Bernoulli([0.5, 0.8]),
        participation.UniformSubset(2, 1),
        participation.VaryingBernoulli([[0.5, 1.0], [0.25, 0.5]]),
        participation.WithReplacement([0.5, 0.5], 2),
        participation.AtMost([0.5, 0.8], 1),
        participation.WaitingSubset([0.5, 0.8], 1),
        participation.Cyclic([2, 3], [0, 1]),
        participation.Trace([[True, False], [False, True]]),
        participation.Trace([[True, False], [False, True]], start=0),
        CHAINS,
        MarkovOnOff([0.5, 0.8], [0.5, 0.2], start=[True, False]),
        CHAINS.as_chain(),
    ]
    for process in processes:
        yield process
        if hasattr(process, "states"):
            yield process.states()
    log = logs.AvailabilityLog.from_masks([[1, 0], [1, 1]])
    yield from (log, logs.describe(log), PlayedLog(log))
    gradients = (tuple(np.ones((2, 3)) for _ in range(2)),) * 3
    yield ClientGradients(("a", "b", "c"), ("first", "last"), gradients, np.eye(2, 3))
    advice = advise(logs.AvailabilityLog.from_masks([[1, 0], [0, 1], [1, 1], [0, 0]] * 3))
    fedavg = algorithms.FedAvg(0.1, 1)
    yield from (advice, advice.population.distances)
    yield LogRounds(fedavg, advice.population, 0).on_the_log()
    yield Trained(advice.algorithms[0], np.ones(3), np.ones(3))


def _algorithms_and_weights() -> Iterator[object]:
    half = [0.5, 0.5]
    yield algorithms.CAFed(half, 0.1, 1, availability=half, correlation=half, known_minima=half)
    yield algorithms.F3ast(half, 1, 0.1, 1, availability=half)
    yield algorithms.Unbiased(half, half, 0.1, 1)
    yield algorithms.AdaFed(half, 0.5, 0.1, 1)
    trade_off = weights.for_setting(NOISY, CHAINS, [0.1] * 5, local_steps=1, x0=[1.0, 1.0])
    yield from (trade_off, weights.optimal(trade_off), weights.optimal(trade_off, method="cvxpy"))
    yield weights.for_clients(("ann", "bob"), half)
    yield weights.optimal([0.9, 0.1], a=1.0, b=0.9, objective="convergence")
    yield weights.optimal([0.9, 0.1], half, a=1.0, b=0.9, bias=1.0, objective="total variation")


def _runs() -> Iterator[object]:
    run, whole, x0 = algorithms.FedAvg(0.1, 2), participation.UniformSubset(2, 1), [1.0, 1.0]
    excess = ParticipantExcessLoss()
    setting = Setting(run, NOISY, whole, 3, x0)
    yield setting
    yield excess.form(NOISY, whole)
    yield engines.exact(setting, observe=[excess])
    yield engines.exact(setting, arithmetic="enclosed")
    yield engines.exact(setting, arithmetic="rational")
    yield engines.monte_carlo(setting, 8, 0, observe=[excess])
    yield engines.paths(Setting(run, QUIET, whole, 2, x0))
    yield engines.exact(Setting(run, NOISY, CHAINS, 3, x0))
    yield engines.paths(Setting(run, NOISY, participation.Cyclic([2, 1], [0, 0]), 3, x0))
    for lr in (0.1, 3.0):
        yield engines.stationary(Setting(algorithms.FedAvg(lr, 2), NOISY, whole, 1, x0))
    yield from run.update_bounds(2, 1).values()
    yield participation.Bernoulli([0.5, 0.25]).inclusions(np.ones(3))
    yield LikeClients.of(np.array([0.5, 0.25, 0.5]))
    yield Intervals.around(np.zeros(2), np.ones(2))
    yield weight_error(0.5, 2, 5)
    yield weight_error_under(CHAINS, math.inf, 5)
    yield QuadraticClient(np.eye(2), np.ones(2))


def _learnability() -> Iterator[object]:
    rng = np.random.default_rng(0)
    points = rng.random((2, 3))
    yield UNIFORM
    yield NoiselessLaw(UNIFORM, [(UNIFORM, 5)])
    yield sample_erm(UNIFORM, UNIFORM, 5, 4, rng)
    yield sample_server_assisted(UNIFORM, UNIFORM, 3, 3, 4, rng)
    yield worst_minimiser(UNIFORM, points, np.where(points > 0.5, 1, -1))


def _theorems() -> Iterator[object]:
    views: dict[str, Callable[[Setting], object]] = {
        "ca-fed/2": ProjectedAveraging,
        "fedar/average-inactivity": FedARPath,
        "fedau/1": FedAUSetting,
        "lemmas/bounded-drift": LocalRun,
    }
    for statement in theorems.registered():
        if isinstance(statement, theorems.Theorem | theorems.PointClaim | theorems.RateClaim):
            for regime in statement.regimes.values() if statement.id in views else ():
                yield views[statement.id](regime.setting)


def _verdicts() -> Iterator[object]:
    theorem, batch, ones = theorems.get("sa-fl/5"), InstanceBatch([GROUPS]), np.ones(2)
    assert isinstance(theorem, theorems.Theorem)
    verdict = check(theorem, GROUPS.setting())
    yield from (batch, assess(theorem, batch), verdict)
    axes = MapAxis("q", (0.5,)), MapAxis("rounds", (2.0,))
    yield RegionMap("sa-fl/5", "printed", *axes, ((verdict,),))
    yield CurveSample(ones, ones, 2, 0.1)
    yield BoundCurve("t", "x", "y", ones, ones, truth=ones, truth_error=ones, parts={"a": ones})
    yield OwnBound((theorem,), GROUPS.setting(), verdict, ones, ones, ones, ones, "", "")
    yield GivenRun(ones, ones, ones, "")


def _worst_case() -> Iterator[object]:
    clients = worst_case.ClientClass(1, "0.1")
    bound = worst_case.best_bound(
        algorithms.FedAvg(0.1, 2), participation.UniformSubset(2, 1), clients, rate="0.99"
    )
    slack = slack_of(bound.round, clients)
    yield slack
    solution = Program(slack, slack.bases(1.0, 1.0, 1.0)).least_residual(0.1, 1.0, 0.0)
    assert solution is not None
    yield from (solution, solution.multipliers, worst_clients(bound))
    saga = participation.UniformSubset(2, 1)
    played = MemoryRound.of(algorithms.FedVarp(0.25, 1), saga)
    memory = LyapunovProgram(played, clients)
    coordinate = memory.forms.coordinates()[0]
    found = memory.solution(0.99)
    assert found is not None
    yield from (memory, memory.forms, coordinate, coordinate.now, found)
    bursts = AveragingRound.of(
        algorithms.WeightedFedAvg((0.5, 0.5), 0.1, 1), participation.MarkovOnOff([0.5, 0.5], 0.5)
    )
    ends = OnOffProgram(bursts, 0.1, 0.1).solve({"floor": 1.0, "start": 1e-6, "once": 1e-6})
    assert ends is not None
    yield from (ends, DifferenceForm(np.eye(2), (np.eye(2),)))
    zero = np.zeros((0, 1)), np.zeros(0)
    least = optimum(
        np.ones(1), equal=zero, nonnegative=zero, blocks=[(np.eye(1)[None], -np.eye(1))]
    )
    assert least is not None
    yield least
