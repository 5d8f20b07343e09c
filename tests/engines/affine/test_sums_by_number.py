"""Clients that come independently: against enumeration, by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms import (
    AdaFed,
    ClusterFedVarp,
    FedAvg,
    FedAvgIS,
    FedVarp,
    Mifa,
    Safari,
    Scaffold,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact, stationary
from fltheory.engines.affine import probing, random_affine_map
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.participation import AtMost, Bernoulli, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import QuadraticProblem
from tests.engines.affine.test_probing import MeetingBonus, MeetingNoise, PairBonus

FIELDS = ("squared_distance", "squared_gradient", "excess_loss")
PROCESSES = {
    "Bernoulli": Bernoulli(np.linspace(0.2, 0.9, 6)),
    "one is always there": Bernoulli([1.0, 0.3, 0.5, 0.7, 0.2, 0.4]),
    "at most three": AtMost(np.linspace(0.3, 1.0, 6), 3),
    "one never comes": MarkovOnOff([0.0, 0.3, 0.5, 0.9, 0.4, 0.7], 0.0),
    "uniform": UniformSubset(6, 3),
}


class InvitesTheFirst(WeightedFedAvg):
    """Those there and client 0, who is asked whether it is there or not."""

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        return super().round(state, clients, who | (np.arange(who.shape[1]) == 0), branch)


class ShrinksByNumber(WeightedFedAvg):
    """What the server does hangs on how many come, and it does most where nobody does."""

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        after = super().round(state, clients, who, branch)["x"]
        return {"x": after - 0.2 * state["x"] / (1 + who.sum(axis=1, keepdims=True))}


ALGORITHMS = {
    "FedAvg": FedAvg(0.2, 2),
    "FedAvg-IS": FedAvgIS((0.3,) * 6, 0.2, 2),
    "SAFARI": Safari(0.6, 0.2, 0.2, 2),
    "MIFA": Mifa(0.2, 2, start="zero"),
    "FedVARP": FedVarp(0.2, 2),
    "SCAFFOLD I": Scaffold(0.2, 2, option=1),
    "SCAFFOLD II": Scaffold(0.2, 2, server_lr=1.2),
    "shrinks by number": ShrinksByNumber((0.1, 0.2, 0.3, 0.2, 0.1, 0.1), 0.2, 2),
    "invites the first": InvitesTheFirst((0.1, 0.2, 0.3, 0.2, 0.1, 0.1), 0.2, 2),
}


def forms_of_the_law(monkeypatch: pytest.MonkeyPatch):
    """Yield settings under which the law is read off sets, by factors, and by rows."""
    for sets, largest_dense in ((10**6, 40), (0, 40), (0, 0)):
        monkeypatch.setattr(probing, "_ENUMERATION_LIMIT", sets)
        if not sets:
            monkeypatch.setattr(probing, "_by_enumeration", None)
        monkeypatch.setattr(random_affine_map, "LARGEST_DENSE_STATE", largest_dense)
        yield


@pytest.mark.parametrize("who", PROCESSES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_trajectories_and_limits_agree_with_enumeration(
    name: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (ALGORITHMS[name], random_problem(6, 6, 2, sigma=0.7), PROCESSES[who])
    runs, limits = [], []
    for _ in forms_of_the_law(monkeypatch):
        runs.append(exact(Setting(*arguments, 12, [1.0, 2.0])))
        if who != "one never comes":
            limits.append(stationary(Setting(*arguments, 1, [1.0, 2.0])))
    for run in runs[1:]:
        for field in FIELDS:
            np.testing.assert_allclose(run[field], runs[0][field], rtol=1e-11)
    for limit in limits[1:]:
        assert limit.squared_distance == pytest.approx(limits[0].squared_distance, rel=1e-10)
        np.testing.assert_allclose(limit.mean, limits[0].mean, atol=1e-11)


@pytest.mark.parametrize("algorithm", [FedVarp(0.05, 2), Scaffold(0.05, 2)], ids=["VARP", "SCAF"])
@pytest.mark.parametrize("who", [Bernoulli(np.linspace(0.1, 0.9, 15)), UniformSubset(15, 4)])
def test_few_rows_a_client_are_kept_with_many_clients(
    algorithm: Algorithm, who: Participation
) -> None:
    """48 entries of state, of which a client's part in a round touches those of two vectors."""
    from fltheory.engines.affine.state_layout import StateLayout
    from fltheory.engines.moments.moment_recursion import moment_map, participants_of

    problem = random_problem(1, 15, 3)
    law = moment_map(
        algorithm, problem, participants_of(who), StateLayout.of(algorithm, problem)
    ).law
    assert law.rows is not None
    assert law.rows.count <= 3 * 3 * 15
    assert law.slopes.shape[0] == 1


def test_averages_over_few_clients_who_come_alone() -> None:
    """One round of FedAvg on 14 coins: E over the number of comers of (1 - lr s)^2 x^2 by hand.

    All optima 0, so that the model shrinks by 1/2 unless nobody comes: 1/4 + 3/4 2^-14.
    """
    problem = QuadraticProblem([[1.0]], np.zeros((14, 1)))
    run = exact(Setting(FedAvg(0.5, 1), problem, Bernoulli([0.5] * 14), 1, [1.0]))
    assert run.squared_distance[1] == pytest.approx(0.25 + 0.75 * 2.0**-14, rel=1e-13)


def test_a_mean_of_random_size() -> None:
    """Hessian 1, lr 1, x -> mean of the comers' optima +-1: E x^2 = E 1/|S| (14 coins)."""
    optima = np.array([[1.0], [-1.0]] * 7)
    problem = QuadraticProblem([[1.0]], optima)
    run = exact(Setting(FedAvg(1.0, 1), problem, Bernoulli([0.5] * 14), 1, [0.0]))
    expected = sum(
        chance * np.mean(optima[mask]) ** 2
        for chance, mask in Bernoulli([0.5] * 14).outcomes()
        if mask.any()
    )
    assert run.squared_distance[1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "algorithm",
    [
        MeetingBonus(0.1, 1),
        PairBonus(0.1, 1),
        MeetingNoise(0.1, 1),
        AdaFed(np.full(14, 1 / 14), np.linspace(0.2, 0.8, 14), 0.1, 1),
        ClusterFedVarp((0,) * 6 + (1,) * 8, 0.1, 1),
    ],
    ids=["bonus", "one pair", "noise", "AdaFed", "clusters"],
)
def test_what_is_not_a_sum_over_those_present_is_refused(algorithm: Algorithm) -> None:
    """AdaFed divides by a random sum, ClusterFedVARP by the comers of each cluster."""
    optima = np.random.default_rng(0).standard_normal((14, 2))
    problem = QuadraticProblem(np.eye(2), optima - optima.mean(axis=0), sigma=0.5, server_sigma=0.5)
    with pytest.raises(NotAffineError, match=r"round must .*engines\.monte_carlo"):
        exact(Setting(algorithm, problem, Bernoulli(np.linspace(0.2, 0.8, 14)), 2, [0.5, 0.5]))


def test_few_sets_are_enumerated_where_sums_do_not_do() -> None:
    """AdaFed on 8 clients has 256 sets: exact, and the same as round by round over all of them."""
    p = np.linspace(0.2, 0.8, 8)
    problem = QuadraticProblem([[1.0]], np.arange(8.0)[:, None])
    run = exact(Setting(AdaFed(np.full(8, 1 / 8), p, 0.5, 1), problem, Bernoulli(p), 1, [1.0]))
    after = 0.0
    for chance, mask in Bernoulli(p).outcomes():
        weights = mask / p
        x = 1.0 - 0.5 * (weights @ (1.0 - np.arange(8.0)) / max(weights.sum(), 1e-300))
        after += chance * (x - 3.5) ** 2
    assert run.squared_distance[1] == pytest.approx(after, rel=1e-12)
