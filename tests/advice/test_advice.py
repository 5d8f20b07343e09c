"""Advice against long simulations in plain NumPy, and against what is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest

from fltheory.advice import Advice, Bias, advise
from fltheory.advice.rounds import LogRounds, along_the_process
from fltheory.algorithms import CAFed
from fltheory.algorithms.table import ALGORITHMS
from fltheory.logs import AvailabilityLog
from fltheory.weights import Training
from tests.advice import plain_rounds

SHARES = np.array([0.95, 0.8, 0.7, 0.5, 0.4, 0.2, 0.1, 0.0])
SIZES = np.array([4.0, 1, 2, 3, 1, 2, 2, 1])


@pytest.fixture(scope="module")
def log() -> AvailabilityLog:
    return AvailabilityLog.from_masks(np.random.default_rng(2).random((300, 8)) < SHARES)


@pytest.fixture(scope="module")
def found(log: AvailabilityLog) -> Advice:
    return advise(log, SIZES, training=Training(noise=0.0), within=0.3)


def plain(found: Advice) -> dict[str, Callable[..., Iterator[np.ndarray]]]:
    pi = found.population.chains.availability
    alpha = SIZES[:-1] / SIZES[:-1].sum()
    everybody = np.full(pi.size, 1 / pi.size)
    return {
        "fedavg": plain_rounds.fedavg,
        "fedau": plain_rounds.fedau(int(found.named("fedau").options["cutoff"])),
        "fedar": plain_rounds.fedar,
        "mifa": plain_rounds.mifa,
        "fedvarp": plain_rounds.fedvarp,
        "scaffold": plain_rounds.scaffold,
        "fedavg-is": plain_rounds.inverse(everybody, pi),
        "unbiased": plain_rounds.inverse(alpha, pi),
        "adafed": plain_rounds.adafed(alpha, pi),
        "f3ast": plain_rounds.f3ast(alpha, 4),
        "safari": plain_rounds.safari(SIZES / SIZES.sum()),
    }


NAMES = ("fedavg", "fedau", "fedar", "mifa", "fedvarp", "scaffold", "fedavg-is", "unbiased")


@pytest.mark.parametrize("name", [*NAMES, "adafed", "f3ast", "safari"])
def test_biases_are_those_of_a_long_simulation(found: Advice, name: str) -> None:
    # With orthogonal optima of length one the distance is the root mean square over all optima.
    chains = found.population.chains
    advice = found.named(name)
    replicas, rounds = (10, 4000) if name == "f3ast" else (40, 4000)
    masks = plain_rounds.chains(chains.availability, chains.correlation, replicas, seed=7)
    mean, error = plain_rounds.mean_model(
        plain(found)[name], masks, np.eye(8)[:7], advice.step, rounds, rounds // 2
    )
    bias = float(np.linalg.norm(mean - SIZES / SIZES.sum()))
    largest = max(other.process.unrelated for other in found.algorithms)
    allowed = 4 * math.hypot(error, advice.process.error) + 0.01 * largest
    assert advice.process.unrelated == pytest.approx(bias, abs=allowed)
    # A bias of nothing would not pass.
    assert bias > allowed


def test_ca_fed_is_that_of_plain_numpy(found: Advice) -> None:
    # Its least losses so far go on falling, so that rounds and start are those of the advice.
    step, draws, rounds = 1 / 64, 60, 1024
    population = found.population
    algorithm = CAFed(population.group_facts["target_weights"], step, 1)
    drawn = along_the_process(algorithm, population, step, 0, draws)
    assert drawn is not None
    targets = SIZES / SIZES.sum()

    def losses(x: np.ndarray) -> np.ndarray:
        return ((x**2).sum(axis=1, keepdims=True) - 2 * x[:, :7] + 1) / 2

    chains = population.chains
    run = plain_rounds.ca_fed(SIZES[:-1] / SIZES[:-1].sum(), losses, start=targets)
    masks = plain_rounds.chains(chains.availability, chains.correlation, draws, seed=7)
    late = islice(run(masks, np.eye(8)[:7], step), rounds // 2, rounds)
    plain = sum(late) / (rounds // 2)
    # Groups are in the order of availability.
    ours = np.zeros_like(plain)
    ours[:, population.ever[population.shown]] = drawn.weights[:, :7]
    gap = np.abs(ours.mean(axis=0) - plain.mean(axis=0))[:7]
    error = np.sqrt((ours.var(axis=0) + plain.var(axis=0))[:7] / (draws - 1))
    assert (gap < 4 * error + 1e-9).all()
    # An algorithm without bias would be seen.
    assert (np.abs(ours.mean(axis=0) - targets)[:7] > 4 * error).any()


def test_clients_never_there_are_what_no_weights_mend(found: Advice) -> None:
    assert found.population.never.tolist() == [7]
    lost = SIZES[7] / SIZES.sum()
    # All others are weighted up by 1/(1 - lost), and the absent client may be opposite to all.
    assert found.exclusion.at_worst == pytest.approx(lost / (1 - lost))
    for advice in found.algorithms:
        if not advice.needs.server_data:
            assert advice.process.at_worst > 0.99 * found.exclusion.at_worst - advice.process.error


def test_everybody_always_there_has_no_bias() -> None:
    found = advise(AvailabilityLog.from_masks(np.ones((30, 3))))
    for advice in found.algorithms:
        if advice.closed_form:
            assert advice.process.at_worst == pytest.approx(0, abs=1e-12)
            assert advice.log.unrelated == pytest.approx(0, abs=1e-3)
    assert found.exclusion.at_worst == pytest.approx(0, abs=1e-12)


def test_advice_needs_no_more_than_something_as_good(found: Advice) -> None:
    able = [a for a in found.algorithms if not a.needs.server_data]
    least = min(a.error for a in able)
    assert found.best.error <= 1.05 * least
    assert not found.best.needs.server_data
    assert not found.fallback.needs.vectors
    assert not found.fallback.needs.facts


def test_a_part_of_a_log_does_not_count_as_the_log(found: Advice) -> None:
    fedavg = replace(found.named("fedavg"), log=Bias(9.0, 9.0))
    assert fedavg.error >= 9
    assert replace(fedavg, whole=False).error < 2
    assert replace(fedavg, whole=False).usual_error < 2


def test_needs_are_read_off_the_algorithms(found: Advice) -> None:
    assert {advice.name: str(advice.needs) for advice in found.algorithms} == {
        "fedavg": "nothing",
        "fedau": "4 numbers a client",
        "fedar": "1 vector a client, 2 numbers a client",
        "mifa": "1 vector a client",
        "fedvarp": "1 vector a client",
        "scaffold": "1 vector a client",
        "fedavg-is": "known availability",
        "unbiased": "known availability",
        "adafed": "known availability",
        "f3ast": "1 number a client",
        "safari": "server data",
        "ca-fed": "9 numbers a client",
    }


def test_a_document_has_every_algorithm(found: Advice) -> None:
    document = found.document()
    assert [entry["name"] for entry in document["algorithms"]] == [
        advice.name for advice in found.algorithms
    ]
    assert document["never_there"] == ["client 7"]
    assert document["use"] == found.best.name


@pytest.mark.parametrize(
    ("masks", "sizes", "said"),
    [
        (np.zeros((5, 2)), None, "somebody there"),
        (np.ones((1, 2)), None, "at least 2 rounds"),
        (np.ones((5, 2)), [1.0], "sizes must have shape"),
        (np.ones((5, 2)), [1.0, 0.0], "sizes must be positive, got 0 for 'client 1'"),
    ],
)
def test_what_gives_no_advice_is_refused(
    masks: np.ndarray, sizes: list[float] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        advise(AvailabilityLog.from_masks(masks), sizes)


def test_an_error_has_what_is_left_of_the_start(found: Advice) -> None:
    mifa = found.named("mifa")
    alone = replace(mifa, process=Bias(0.0, 0.0), log=Bias(0.0, 0.0), sway=0.0, noise=0.0)
    assert alone.error == alone.usual_error == mifa.left > 0
    # After 300 rounds of s, (1 - s)^t over the last quarter; MIFA's starts late, by its absences.
    fedavg = found.named("fedavg")
    rounds = np.arange(226, 301)
    expected = math.sqrt(((1 - fedavg.step) ** (2 * rounds)).mean())
    assert fedavg.left == pytest.approx(expected, rel=0.1)


def test_no_step_beside_the_best_is_better(found: Advice, log: AvailabilityLog) -> None:
    for name in ("fedavg", "mifa"):
        advice = found.named(name)
        errors = {}
        for step in (advice.step / 2, advice.step, advice.step * 2):
            algorithm = ALGORITHMS[name].among(
                {
                    "client_lr": step,
                    "assist_lr": step,
                    "local_steps": 1,
                    **found.population.group_facts,
                },
                **advice.options,
            )
            errors[step] = LogRounds(algorithm, found.population, 0).late_error
        assert min(errors, key=errors.__getitem__) == advice.step


def test_a_larger_condition_is_tried_with_the_same_steps(found: Advice) -> None:
    steeper = found.steeper
    assert steeper is not None
    assert steeper.population.training.condition == 10
    assert [a.step for a in steeper.algorithms] == [a.step for a in found.algorithms]
    # Targets are in proportion to importance and curvature, which FedAvg's weights are not.
    curvatures = steeper.population.curvatures
    assert curvatures.min() < 0.5 < curvatures.max() <= 1
    targets = SIZES * curvatures / (SIZES @ curvatures)
    assert steeper.population.distances.targets == pytest.approx(targets)
    again = steeper.named("mifa")
    assert again.process.unrelated != pytest.approx(found.named("mifa").process.unrelated)


def test_what_grouping_costs_is_known_where_limits_are(found: Advice) -> None:
    # Eight coins in four pairs alike, and four coins in their place: mean weights given that
    # somebody is there, of FedAvg and of AdaFed, are summed over who may be there.
    assert found.grouping_error is None
    half = np.random.default_rng(3).random((40, 4)) < [0.1, 0.4, 0.6, 0.8]
    alike = AvailabilityLog.from_masks(np.repeat(half, 2, axis=1))
    found = advise(alike, most_groups=4)
    assert found.population.shown.size == 4

    def at_worst(pi: np.ndarray, each: np.ndarray) -> float:
        there = np.array(list(product((0.0, 1.0), repeat=pi.size)))[1:]
        chances = np.where(there == 1, pi, 1 - pi).prod(axis=1)
        weights = chances @ (there * each / (there @ each)[:, None])
        off = weights / weights.sum() * pi.size
        # Equal targets: the sum of distances from the median, over the number.
        return float(np.abs(off - np.median(off)).mean())

    shares = half.mean(axis=0)
    pairs = np.repeat(shares, 2)
    fedavg, adafed = at_worst(pairs, np.ones(8)), at_worst(pairs, 1 / pairs)
    assert found.named("fedavg").process.at_worst == pytest.approx(fedavg)
    assert found.named("adafed").process.at_worst == pytest.approx(adafed)
    off = (at_worst(shares, np.ones(4)) - fedavg, at_worst(shares, 1 / shares) - adafed)
    assert found.grouping_error == pytest.approx(max(map(abs, off)) / fedavg)
