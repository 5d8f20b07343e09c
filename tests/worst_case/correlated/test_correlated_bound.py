"""Bounds where clients come and go in bursts, against programs and truths from elsewhere."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from fltheory import Setting, exact, stationary
from fltheory.algorithms import FedAvg, Unbiased, WeightedFedAvg
from fltheory.participation import FiniteChain, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.worst_case import ClientClass, best_bound, certificate
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    best_correlated_bound,
    best_step,
)
from fltheory.worst_case.correlated.rich import richer_bound
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.one_round import (
    AvailabilityGroup,
    Averaging,
    AveragingRound,
)
from tests.worst_case.correlated.full_correlated_program import least_floor
from tests.worst_case.correlated.plain_loop import Clients, largest_share

CLIENTS = ClientClass(1, "0.1")


def on_off(
    *sizes: int,
    correlation: str,
    client_lr: str,
    local_steps: int = 1,
    averaging: Averaging = "weights",
    availability: tuple[str, ...] = ("1/2", "3/10"),
) -> AveragingRound:
    """Return a round of on-off clients in groups, weighted by 1/(N pi) or averaged."""
    n = sum(sizes)
    groups = []
    for size, text in zip(sizes, availability, strict=False):
        p = Fraction(text)
        weight = Fraction(1) if averaging == "present" else 1 / (n * p)
        groups.append(AvailabilityGroup(size, p, Fraction(1, n), weight, Fraction(correlation)))
    return AveragingRound(tuple(groups), averaging, local_steps, Fraction(client_lr), Fraction(1))


def by_chain(seed: int, local_steps: int, averaging: Averaging = "weights") -> AveragingRound:
    """Return a round of three clients by a random chain, two of whose four states are one set."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 20, size=(4, 4)) * (rng.random((4, 4)) < 0.8) + 10 * np.eye(4)
    masks = [[True, True, False], [True, True, False], [False, True, True], [False, False, False]]
    chain = FiniteChain(rows / rows.sum(axis=1, keepdims=True), masks)
    shares = tuple(1 / (3 * chain.marginals))
    method = FedAvg if averaging == "present" else partial(WeightedFedAvg, shares)
    return AveragingRound.of(method(0.1, local_steps), chain)  # type: ignore[operator]


# ---------------------------------------------------------------- another program


@pytest.mark.parametrize(
    ("sizes", "correlation", "local_steps", "rate", "averaging"),
    [
        ((2,), "0.9", 1, None, "weights"),
        ((2,), "0.5", 2, "0.98", "present"),
        ((3,), "0.7", 1, "0.99", "weights"),
        ((3,), "0.7", 2, None, "present"),
        ((1, 1), "0.8", 2, None, "weights"),
        ((1, 2), "0.6", 1, "0.99", "weights"),
        ((1, 2), "0.6", 1, None, "present"),
    ],
)
def test_counting_participants_loses_nothing_against_all_sets(
    sizes: tuple[int, ...],
    correlation: str,
    local_steps: int,
    rate: str | None,
    averaging: Averaging,
) -> None:
    played = on_off(
        *sizes,
        correlation=correlation,
        client_lr="0.1",
        local_steps=local_steps,
        averaging=averaging,
    )
    found = best_correlated_bound(played, CLIENTS, rate=rate)
    full = least_floor(played, 0.1, None if rate is None else float(rate))
    assert found.floor == pytest.approx(full, rel=2e-6)


@pytest.mark.parametrize(("n_clients", "local_steps"), [(2, 1), (5, 2)])
def test_without_correlation_it_is_never_worse_than_one_round(
    n_clients: int, local_steps: int
) -> None:
    """The bound of one round has a function that knows nothing of S: one of these."""
    played = on_off(n_clients, correlation="0", client_lr="0.1", local_steps=local_steps)
    one_round = best_bound_of(played, CLIENTS)
    found = best_correlated_bound(played, CLIENTS)
    assert 0.998 * one_round.floor < found.floor < (1 + 1e-6) * one_round.floor
    at_rate = best_bound_of(played, CLIENTS, Fraction("0.99"))
    of_rate = best_correlated_bound(played, CLIENTS, rate="0.99")
    assert of_rate.floor < (1 + 1e-6) * at_rate.floor


# ---------------------------------------------------------------- figures of a prototype


@pytest.mark.parametrize(
    ("correlation", "client_lr", "floor"),
    [
        ("0", "0.1", 0.05051),
        ("0.5", "0.1", 0.1520),
        ("0.9", "0.1", 1.017),
        ("0.99", "0.1", 6.712),
        ("0.9", "0.001", 0.009512),
        ("0.99", "0.0001", 0.009964),
    ],
)
def test_floors_are_those_of_a_program_of_other_authors(
    correlation: str, client_lr: str, floor: float
) -> None:
    """Ten clients at pi = 1/2; computed with another program, from the same mathematics."""
    played = on_off(10, correlation=correlation, client_lr=client_lr)
    assert best_correlated_bound(played, CLIENTS).floor == pytest.approx(floor, rel=6e-4)


@pytest.mark.parametrize(
    ("local_steps", "rate", "averaging"),
    [(1, None, "weights"), (2, "0.999", "weights"), (2, None, "present")],
)
def test_a_chain_of_sets_has_the_full_programs_value(
    local_steps: int, rate: str | None, averaging: Averaging
) -> None:
    played = by_chain(local_steps, local_steps, averaging)
    found = best_correlated_bound(played, CLIENTS, rate=rate)
    full = least_floor(played, 0.1, None if rate is None else float(rate))
    assert found.floor == pytest.approx(full, rel=1e-6)


def test_clients_in_bursts_are_a_chain_of_sets() -> None:
    """Four clients by how many are there, and by all 16 sets of them."""
    method, bursts = WeightedFedAvg([0.5] * 4, 0.1, 1), MarkovOnOff([0.5] * 4, 0.9)
    counted, listed = (
        best_correlated_bound(AveragingRound.of(method, who), CLIENTS).floor
        for who in (bursts, bursts.as_chain())
    )
    assert listed == pytest.approx(counted, rel=1e-6)


@pytest.mark.parametrize(("correlation", "least"), [("0.5", 34.92), ("0.9", 34.94)])
def test_a_bias_is_part_of_the_floor(correlation: str, least: float) -> None:
    """As the step vanishes the floor tends to ``sup |w_B* - w*|^2 = N sum (p_i - 1/N)^2 / mu^2``.

    p_i is the mean share of client i in a round with participants.
    """
    played = on_off(
        2,
        2,
        correlation=correlation,
        client_lr="0.001",
        averaging="present",
        availability=("9/10", "3/10"),
    )
    found = best_correlated_bound(played, CLIENTS).floor
    assert found == pytest.approx(least, rel=6e-4)
    assert found >= 34.916  # the limit: enumeration of 16 sets


def test_the_floor_saturates_where_bursts_outlast_the_models_memory() -> None:
    """By hand, for two clients of curvature mu = 0.1 whose gradients at the optimum are 1 and -1.

    In a burst of one of them the model goes to its optimum, 10 from x*, and stays there while
    nobody is present; only if both are, it is at x*: ``3/4 10^2``.
    """
    played = on_off(2, correlation="0.999999", client_lr="0.1", averaging="present")
    assert 74.99 < best_correlated_bound(played, CLIENTS).floor < 1.1 * 75


# ---------------------------------------------------------------- truths


def _problem(rng: np.random.Generator, n: int, dim: int) -> QuadraticProblem:
    """Return clients with Hessians of their own between 0.1 and 1."""
    hessians = []
    for _ in range(n):
        basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        curved = rng.choice([0.1, 1.0, rng.uniform(0.1, 1)], size=dim)
        hessians.append(basis @ np.diag(curved) @ basis.T)
    return QuadraticProblem(hessians, rng.normal(size=(n, dim)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("averaging", ["weights", "present"])
def test_no_truth_is_above_a_bound(seed: int, averaging: Averaging) -> None:
    """Of random quadratics, in every one of 60 rounds: of the mean, of a rate, of F."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    correlation, step = str(rng.choice(["0.5", "0.9"])), "0.05"
    played = on_off(n, correlation=correlation, client_lr=step, local_steps=K, averaging=averaging)
    bounds: dict[str, Any] = {
        "mean": best_correlated_bound(played, CLIENTS),
        "short": best_correlated_bound(played, CLIENTS, rounds=20, distance=2),
        "rate": best_correlated_bound(played, CLIENTS, rate="0.999"),
    }
    method = (
        FedAvg(float(step), K)
        if averaging == "present"
        else WeightedFedAvg([2 / n] * n, float(step), K)
    )
    for _ in range(3):
        problem = _problem(rng, n, int(rng.integers(1, 4)))
        x0 = problem.x_star + rng.normal(size=problem.dim)
        setting = Setting(method, problem, MarkovOnOff([0.5] * n, float(correlation)), 60, x0)
        run = exact(setting)
        gradients = np.einsum("nij,nj->ni", problem.hessians, problem.x_star - problem.optima)
        h = float(np.mean(np.sum(gradients**2, axis=1)))
        start = float(np.sum((x0 - problem.x_star) ** 2))
        means = np.cumsum(run.squared_distance) / np.arange(1, 62)
        for rounds in range(1, 61):
            for name in ("mean", "short"):
                assert means[rounds - 1] <= _bound(bounds[name], rounds, start, h) * (1 + 1e-9)
            assert run.squared_distance[rounds] <= _bound(bounds["rate"], rounds, start, h)


@pytest.mark.parametrize("averaging", ["weights", "present"])
@pytest.mark.parametrize("measured", ["mean", "rich", "rate", "loss"])
def test_no_piecewise_quadratic_is_above_what_is_proved(
    averaging: Averaging, measured: str
) -> None:
    """Along every path of sets of two clients, from x* and from elsewhere, by a plain loop."""
    rng = np.random.default_rng(5)
    played = on_off(2, correlation="0.7", client_lr="0.3", averaging=averaging)
    asked: dict[str, Any] = {
        "rate": {"rate": "0.99"},
        "loss": {"measure": "loss", "rounds": 6, "distance": 3},
    }
    bound = best_correlated_bound(played, CLIENTS, **asked.get(measured, {}))
    made = certificate(richer_bound(bound) if measured == "rich" else bound, 1e-4)
    made.verify()
    clients = Clients.drawn(rng, 0.1, 40, 2)
    best = clients.minimiser(np.array([0.5, 0.5]))
    start = best + rng.choice([0.0, 1.0, 5.0], size=best.shape)
    which = measured if measured in ("rate", "loss") else "mean"
    largest, compared = largest_share(made.proof.bound, which, clients, start, played, 6)
    assert compared >= 240
    assert 0.01 < largest <= 1


@pytest.mark.parametrize("averaging", ["weights", "present"])
def test_no_limit_is_above_a_chains_floor(averaging: Averaging) -> None:
    """By the engine along the chain: clients of one curvature, gradients in all directions."""
    played = by_chain(6, 1, averaging)
    assert played.chain is not None
    chain = FiniteChain(np.array(played.chain.transition, dtype=float), played.chain.masks)
    floor, largest = best_correlated_bound(played, CLIENTS).floor, 0.0
    weights = [float(own.weight) for own in played.groups]
    method = FedAvg(0.1, 1) if averaging == "present" else WeightedFedAvg(weights, 0.1, 1)
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    for curvature in (0.1, 0.4, 1.0):
        for turn in np.linspace(0, np.pi, 8, endpoint=False):
            gradients = np.array([np.cos(turn), np.sin(turn)]) @ basis
            problem = QuadraticProblem([[curvature]], gradients[:, None] / curvature)
            limit = stationary(Setting(method, problem, chain, 1, problem.x_star))
            largest = max(largest, 3 * float(limit.squared_distance))
    assert largest <= floor < 1.15 * largest


def _bound(bound: CorrelatedBound, rounds: int, start: float, h: float) -> float:
    first = bound.start * start + bound.start_heterogeneity * h
    if bound.rate is None:
        return first / rounds + bound.heterogeneity * h
    power = float(bound.rate) ** rounds
    return power * first + bound.heterogeneity * h * (1 - power) / (1 - float(bound.rate))


@pytest.mark.parametrize(("local_steps", "step"), [(1, 0.1), (2, 0.05)])
def test_noise_is_bounded_too(local_steps: int, step: float) -> None:
    """All clients alike, so that noise is all that there is: its stationary truth."""
    n = 3
    clients = ClientClass(1, "0.1", sigma=1, dissimilarity="0.001")
    played = on_off(n, correlation="0.9", client_lr=str(step), local_steps=local_steps)
    bound = best_correlated_bound(played, clients)
    for curvature in (0.1, 0.5, 1.0):
        problem = QuadraticProblem([[curvature]], [[0.0]] * n, sigma=1.0)
        method = WeightedFedAvg([2 / n] * n, step, local_steps)
        setting = Setting(method, problem, MarkovOnOff([0.5] * n, 0.9), 1, [0.0])
        truth = float(stationary(setting).squared_distance)
        assert truth <= bound.floor
        if curvature == 0.1:
            # Quadratics of curvature mu are nearly the worst.
            assert bound.floor < 1.25 * truth


# ---------------------------------------------------------------- the best step


def test_no_step_of_a_grid_is_better_than_the_best_step() -> None:
    played = on_off(3, correlation="0.9", client_lr="1")
    asked: dict[str, Any] = {"rounds": 500, "distance": 5}
    best = best_step(played, CLIENTS, local_steps=(1, 2), **asked)
    for local_steps in (1, 2):
        for step in ("0.4", "0.2", "0.1", "0.05", "0.02", "0.005"):
            other = on_off(3, correlation="0.9", client_lr=step, local_steps=local_steps)
            try:
                bound = best_correlated_bound(other, CLIENTS, **asked)
            except ArithmeticError:
                continue
            assert best.after(500, 5) <= bound.after(500, 5) * (1 + 1e-3)


def test_no_weights_of_a_grid_are_better_than_the_best_weights() -> None:
    """Two clients of other availability and correlation: the mean one of their sum is kept."""
    bursts = MarkovOnOff([0.9, 0.3], [0.2, 0.9])
    unbiased = [1 / 1.8, 1 / 0.6]
    asked: dict[str, Any] = {"rounds": 200, "start_distance": 10}
    found = best_bound(
        WeightedFedAvg(unbiased, 0.1, 1), bursts, CLIENTS, best_weights=True, **asked
    )
    assert isinstance(found, CorrelatedBound)
    assert float(found.round.total_weight) == pytest.approx(sum(unbiased))
    for share in np.linspace(0.1, 0.9, 9):
        weights = [share * sum(unbiased), (1 - share) * sum(unbiased)]
        other = best_bound(WeightedFedAvg(weights, 0.1, 1), bursts, CLIENTS, **asked)
        assert found.after(200, 10) <= other.after(200, 10) * (1 + 1e-4)  # type: ignore[union-attr]


# ---------------------------------------------------------------- the front door


def test_the_best_bound_of_clients_in_bursts_is_this_one() -> None:
    fedavg = Unbiased(
        target_weights=[0.25] * 4, availability=[0.5] * 4, client_lr=0.1, local_steps=1
    )
    bursts = MarkovOnOff([0.5] * 4, 0.9)
    found = best_bound(fedavg, bursts, CLIENTS)
    assert isinstance(found, CorrelatedBound)
    assert (
        found.floor
        == best_correlated_bound(on_off(4, correlation="0.9", client_lr="0.1"), CLIENTS).floor
    )
    loss = best_bound(fedavg, bursts, CLIENTS, measure="loss", rounds=100, start_distance=3)
    assert isinstance(loss, CorrelatedBound)
    assert loss.after(100, 3) < best_bound(fedavg, bursts, CLIENTS, measure="loss").after(100, 3)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("participation", "clients", "more", "message"),
    [
        (
            MarkovOnOff([0.5, 0.0], 0.5),
            CLIENTS,
            {},
            "with positive probability, got availability 0 for client 1",
        ),
        (MarkovOnOff([0.5, 0.5], 0.5, start=[1, 0]), CLIENTS, {}, "must be stationary"),
        (FiniteChain([[1.0]], [[True, False]]), CLIENTS, {}, "got availability 0 for client 1"),
        (FiniteChain([[1.0]], [[True, True]], start=0), CLIENTS, {}, "must be stationary"),
        (MarkovOnOff([0.5] * 6, 0.5).as_chain(), CLIENTS, {}, "at most 200, got 64 x 6 = 384"),
        (MarkovOnOff([0.5, 0.5], -0.5), CLIENTS, {}, "correlation must be at least 0, got -1/2"),
        (MarkovOnOff([0.5, 0.5], 0.5), ClientClass(1, 0), {}, "mu must be above 0"),
        (MarkovOnOff([0.5, 0.5], 0.5), ClientClass(1, "0.1", "everywhere"), {}, "'optimum'"),
        (MarkovOnOff([0.5, 0.5], 0.5), CLIENTS, {"rounds": 3}, "both be given"),
        (MarkovOnOff([0.5, 0.5], 0.5), CLIENTS, {"rate": 1}, "rate must be below 1"),
        (
            MarkovOnOff([0.5, 0.5], 0.5),
            CLIENTS,
            {"measure": "loss", "rate": "0.9"},
            "must be 'distance' if a rate is given",
        ),
        (
            MarkovOnOff([0.5, 0.5], 0.5),
            CLIENTS,
            {"best_weights": True},
            "must average with weights",
        ),
    ],
)
def test_what_is_not_covered_is_refused_in_a_line(
    participation: Any, clients: ClientClass, more: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        best_bound(FedAvg(0.1, 1), participation, clients, **more)


def test_a_step_without_a_floor_is_told() -> None:
    with pytest.raises(ArithmeticError, match="no finite floor was found at K = 1, client_lr = 3"):
        best_bound(FedAvg(3.0, 1), MarkovOnOff([0.5, 0.5], 0.5), CLIENTS)
    with pytest.raises(
        ArithmeticError, match=r"at a rate of 0.5 .*: try a rate nearer 1, or another"
    ):
        best_bound(FedAvg(0.1, 1), MarkovOnOff([0.5, 0.5], 0.5), CLIENTS, rate="1/2")
    with pytest.raises(ArithmeticError, match="try a smaller step, or correlation further from 1"):
        best_bound(FedAvg(3.0, 1), MarkovOnOff([0.5, 0.5], 0.999), CLIENTS)
