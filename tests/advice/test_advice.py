"""Advice against long simulations in plain NumPy, and against what is known beforehand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from fltheory.advice import Advice, Bias, advise
from fltheory.advice.algorithm_advice import FollowedAlgorithm
from fltheory.advice.kept_advice import Kept
from fltheory.advice.population import ClientPopulation
from fltheory.advice.rounds import LogRounds
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


ALPHA = SIZES[:-1] / SIZES[:-1].sum()
EMPHASIS = ALPHA / ALPHA.mean()
# These count clients alike, so that each client's loss is multiplied by its target.
ALIKE = ("fedar", "mifa", "fedvarp", "scaffold")


def plain(found: Advice) -> dict[str, Callable[..., Iterator[np.ndarray]]]:
    pi = found.population.chains.availability
    cutoff = int(found.named("fedau").options["cutoff"])
    return {
        "fedavg": plain_rounds.weighted_fedavg(ALPHA),
        "fedau": plain_rounds.fedau(cutoff, EMPHASIS),
        "fedar": plain_rounds.fedar,
        "mifa": plain_rounds.mifa,
        "fedvarp": plain_rounds.fedvarp,
        "scaffold": plain_rounds.scaffold,
        "fedavg-is": plain_rounds.inverse(ALPHA, pi),
        "unbiased": plain_rounds.inverse(ALPHA, pi),
        "adafed": plain_rounds.adafed(ALPHA, pi),
        "f3ast": plain_rounds.f3ast(ALPHA, 4),
    }


def step_of(found: Advice, name: str) -> np.ndarray | float:
    step = found.named(name).step
    return step * EMPHASIS[:, None] if name in ALIKE else step


@pytest.mark.parametrize("name", [*ALIKE, "fedau", "fedavg-is", "unbiased", "adafed"])
def test_biases_by_formula_are_those_of_a_long_simulation(found: Advice, name: str) -> None:
    # With orthogonal optima of length one the distance is the root mean square over all optima.
    chains = found.population.chains
    process = found.named(name).process
    assert process is not None
    masks = plain_rounds.chains(chains.availability, chains.correlation, 40, seed=7)
    mean, error = plain_rounds.mean_model(
        plain(found)[name], masks, np.eye(8)[:7], step_of(found, name), 4000, 2000
    )
    bias = float(np.linalg.norm(mean - SIZES / SIZES.sum()))
    allowed = 4 * error + 0.004
    assert process.unrelated == pytest.approx(bias, abs=allowed)
    # A bias of nothing would not pass.
    assert bias > allowed


def along(found: Advice, run: Callable[..., Iterator[np.ndarray]], step: object) -> np.ndarray:
    """Return the mean model late in runs from each quarter, as weights of all clients' optima."""
    log, ever = found.population.log, found.population.ever
    begins = np.arange(4) * log.n_rounds // 4
    masks = np.stack([np.roll(log.present()[:, ever], -begin, axis=0) for begin in begins], axis=1)
    models = np.array(list(run(iter(masks), np.eye(log.n_clients)[ever], step)))
    # Without what is left of the start.
    settled = models / models.sum(axis=-1, keepdims=True)
    return settled[3 * log.n_rounds // 4 :].mean(axis=(0, 1))


@pytest.mark.parametrize("name", [*ALIKE, "fedavg", "fedau", "fedavg-is", "adafed", "f3ast"])
def test_weights_along_the_log_are_those_of_plain_numpy(found: Advice, name: str) -> None:
    population = found.population
    mean = along(found, plain(found)[name], step_of(found, name))
    # Groups are in the order of availability, and those never there are the last.
    weights = np.append(mean[population.ever[population.shown]], mean[population.never])
    # F3AST begins with ties, which the clients' order breaks: another one here.
    allowed = 1e-3 if name == "f3ast" else 1e-4
    assert found.named(name).weights == pytest.approx(weights, abs=allowed)


def test_ca_fed_along_the_log_is_that_of_plain_numpy(found: Advice) -> None:
    population, step = replace(found.population, weighted=False), 1 / 64

    def losses(x: np.ndarray) -> np.ndarray:
        start = 1 - x.sum(axis=1, keepdims=True)
        return ((x**2).sum(axis=1, keepdims=True) - 2 * x[:, :7] + 1 + start**2) / 2

    run = LogRounds(CAFed(population.group_facts["target_weights"], step, 1), population, 0)
    followed = run.on_the_log()
    assert followed is not None
    mean = along(found, plain_rounds.ca_fed(ALPHA, losses), step)
    ours = np.zeros(7)
    ours[population.ever[population.shown]] = followed.weights[:7]
    assert ours == pytest.approx(mean[:7], abs=1e-3)


def test_known_availability_is_known_with_the_error_of_the_log() -> None:
    """The variance of a share of T coins is p (1 - p) / T: by so much weights p / p_hat are off."""
    shares, rounds = np.linspace(0.1, 0.9, 16), 600
    log = AvailabilityLog.from_masks(np.random.default_rng(8).random((rounds, 16)) < shares)
    found = advise(log, training=Training(noise=0.0)).named("fedavg-is")
    expected = math.sqrt(float(((1 - shares) / shares / rounds).sum())) / 16
    assert found.log.unrelated == pytest.approx(expected, rel=0.3)
    assert found.log.low < found.log.at_worst < found.log.high
    assert found.process == Bias(*[pytest.approx(0, abs=1e-9)] * 4)


def test_where_availability_drifts_the_end_of_the_log_counts() -> None:
    """Rates of decay from 0 to 6: FedAvg-IS along the last quarter, in plain NumPy."""
    rounds = 400
    chances = 0.6 * np.exp(-np.linspace(0, 6, 16) * np.arange(rounds)[:, None] / rounds)
    log = AvailabilityLog.from_masks(np.random.default_rng(0).random((rounds, 16)) < chances)
    advice = advise(log, training=Training(noise=0.0))
    assert advice.population.drifts
    found = advice.named("fedavg-is")
    rows = log.present()[:, None]
    run = plain_rounds.inverse(np.full(16, 1 / 16), log.marginals)
    models = np.array([x[0] for x in run(iter(rows), np.eye(16), found.step)])[300:]
    weights = (models / models.sum(axis=1, keepdims=True)).mean(axis=0)
    assert np.abs(weights - np.median(weights)).sum() > 0.1
    assert found.log.low <= np.abs(weights - np.median(weights)).sum() <= found.log.high
    assert advice.best.error < found.error


def test_fedavg_weighted_by_data_has_no_bias_where_everybody_is_online() -> None:
    found = advise(AvailabilityLog.from_masks(np.ones((40, 3))), [1000, 10, 10])
    assert found.best.name == "fedavg"
    assert found.best.log.at_worst == pytest.approx(0, abs=1e-9)


def test_rotating_groups_have_the_bias_of_their_turns() -> None:
    """Four groups in turn, of 1, 2, 3 and 4 clients, five rounds each: all turns count alike."""
    group = np.repeat(np.arange(4), [1, 2, 3, 4])
    masks = np.arange(400)[:, None] // 5 % 4 == group
    found = advise(AvailabilityLog.from_masks(masks), training=Training(noise=0.0)).named("fedavg")
    weights = 1 / 4 / np.bincount(group)[group]
    assert found.log.unrelated == pytest.approx(np.linalg.norm(weights - 0.1), rel=0.02)
    assert found.log.at_worst == pytest.approx(np.abs(weights - 1 / 12).sum(), rel=0.02)
    # Round r of a turn, once settled: what is left of earlier turns of a group is a series.
    k, ago, r = 1 - found.step, np.arange(4), np.arange(1, 6)[:, None]
    turns = (1 - k**5) * k ** (r + 5 * ((ago - 1) % 4)) / (1 - k**20)
    turns[:, :1] += 1 - k**r
    assert turns.sum(axis=1) == pytest.approx(1)
    each = np.array([turns[:, (now - np.arange(4)) % 4] for now in range(4)])
    off = each[..., group] / np.bincount(group)[group] - 0.1
    missed = math.hypot(found.log.unrelated, found.sway)
    assert missed == pytest.approx(math.sqrt((off**2).sum(axis=-1).mean()), rel=1e-3)
    # The worst optima: -1 of the last group and of one of those before it, which have least weight.
    away = off @ np.where(np.arange(10) < 5, 1, -1)
    worst = math.hypot(found.log.at_worst, found.sway_at_worst)
    assert worst == pytest.approx(math.sqrt((away**2).mean()), rel=1e-3)
    assert found.sway_at_worst > 0.1 * found.log.at_worst


def test_what_was_stopped_is_resumed(log: AvailabilityLog, found: Advice, tmp_path: Path) -> None:
    store, done = tmp_path / "kept.json", list[str]()

    def stop(count: float, _: float, what: str) -> None:
        done.append(what)
        if count == 5:
            raise KeyboardInterrupt

    options = {"training": Training(noise=0.0), "within": 0.3, "store": store}
    with pytest.raises(KeyboardInterrupt):
        advise(log, SIZES, progress=stop, **options)
    first = len(done)
    again = advise(log, SIZES, progress=lambda _, __, what: done.append(what), **options)
    assert again.document() == found.document()
    assert not {what.split(":")[0] for what in done[1:first]} & {
        what.split(":")[0] for what in done[first + 1 : first + 8]
    }
    # Another log's results are no use.
    assert json.loads(store.read_text())["of"]
    other = advise(AvailabilityLog.from_masks(log.present()[:50]), SIZES, store=store)
    assert other.population.log.n_rounds == 50


def test_an_answer_that_was_kept_is_for_the_same_question(found: Advice, tmp_path: Path) -> None:
    asked, store = found.population, tmp_path / "kept.json"

    def done_anew(population: ClientPopulation, seed: int = 0) -> bool:
        done = list[str]()
        task = FollowedAlgorithm("fedavg", {}, population, 0.3, seed, step=0.1)
        kept = Kept(store, population, 0.3, seed)
        kept.followed([task], lambda _, __, what: done.append(what))
        return bool(done)

    assert done_anew(asked)
    assert not done_anew(asked)
    others = (
        {"drifts": True},
        {"period": 24.0},
        {"weighted": False},
        {"importance": np.full(8, 1 / 8)},
    )
    for other in others:
        assert done_anew(replace(asked, **other)), other
    assert done_anew(asked, seed=1)


def test_clients_never_there_are_what_no_weights_mend(found: Advice) -> None:
    assert found.population.never.tolist() == [7]
    lost = SIZES[7] / SIZES.sum()
    # All others are weighted up by 1/(1 - lost), and the absent client may be opposite to all.
    assert found.exclusion.at_worst == pytest.approx(lost / (1 - lost))
    for advice in found.algorithms:
        if not advice.needs.server_data:
            assert advice.log.at_worst > 0.99 * found.exclusion.at_worst


def test_everybody_always_there_has_no_bias() -> None:
    found = advise(AvailabilityLog.from_masks(np.ones((30, 3))))
    for advice in found.algorithms:
        if advice.process is not None:
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


def test_a_long_log_is_followed_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fltheory.advice.population._MOST_ROUNDS", 200)
    masks = np.arange(1000)[:, None] % [2, 3, 1000] == 0
    found = advise(AvailabilityLog.from_masks(masks))
    assert found.population.recorded.shape == (200, 3)
    assert found.population.recorded.mean(axis=0) == pytest.approx([0.0025, 1 / 3, 1 / 2], abs=0.02)
    assert found.named("fedavg").errors.size == 200


def test_needs_are_read_off_the_algorithms(found: Advice) -> None:
    assert {advice.name: str(advice.needs) for advice in found.algorithms} == {
        "fedavg": "nothing",
        "fedau": "4 numbers per client",
        "fedar": "1 vector per client, 2 numbers per client",
        "mifa": "1 vector per client",
        "fedvarp": "1 vector per client",
        "scaffold": "1 vector per client",
        "fedavg-is": "known availability",
        "unbiased": "known availability",
        "adafed": "known availability",
        "f3ast": "1 number per client",
        "safari": "server data",
        "ca-fed": "9 numbers per client",
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
        (np.zeros((5, 2)), None, "client online"),
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
    alone = replace(mifa, log=Bias(0, 0, 0, 0), sway=0.0, sway_at_worst=0.0, noise=0.0)
    assert alone.error == alone.usual_error == mifa.left > 0
    # After 300 rounds of s, (1 - s)^t over the last quarter; MIFA's starts late, by its absences.
    fedavg = found.named("fedavg")
    rounds = np.arange(226, 301)
    expected = math.sqrt(((1 - fedavg.step) ** (2 * rounds)).mean())
    assert fedavg.left == pytest.approx(expected, rel=0.1)


def test_no_step_beside_the_best_is_better(found: Advice, log: AvailabilityLog) -> None:
    for name in ("fedau", "mifa"):
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
    for again in steeper.algorithms:
        assert again.step == found.named(again.name).step
    # Targets are in proportion to importance and curvature, which FedAvg's weights are not.
    curvatures = steeper.population.curvatures
    assert curvatures.min() < 0.5 < curvatures.max() <= 1
    targets = SIZES * curvatures / (SIZES @ curvatures)
    assert steeper.population.distances.targets == pytest.approx(targets)
    best = found.best.name
    assert steeper.named(best).log.unrelated != pytest.approx(found.named(best).log.unrelated)


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
