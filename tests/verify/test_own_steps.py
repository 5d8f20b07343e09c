"""Theorems at their own steps: truths by plain loops, measures, reasons."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg, LocalSgd, ProxSkip, Safari, Scaffold, WeightedFedAvg
from fltheory.claims import along_run
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.participation import Bernoulli, UniformSubset, WithReplacement
from fltheory.problems import QuadraticProblem, nonconvex
from fltheory.verify.comparison import OwnBound, OwnSteps, at_own_steps

HESSIAN = np.diag([1.0, 0.05])
OPTIMA = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, -1.0]])
MEAN = OPTIMA.mean(axis=0)
START = np.array([2.0, 1.5])
K, R = 3, 6
L, MU = 1.0, 0.05


def setting(participation=None, **changes) -> Setting:
    problem = QuadraticProblem(HESSIAN, OPTIMA, **changes)
    return Setting(FedAvg(0.05, K), problem, participation or UniformSubset(4, 4), R, START)


@cache
def everybody() -> OwnSteps:
    return at_own_steps(setting(), points=2)


def of(found: OwnSteps, identifier: str, reading: str = "printed") -> OwnBound:
    return next(
        one
        for one in found.bounds
        for statement in one.statements
        if (statement.id, statement.reading) == (identifier, reading)
    )


def excess(x: np.ndarray) -> float:
    return float((x - MEAN) @ HESSIAN @ (x - MEAN)) / 2


def test_many_bounds_stand_side_by_side_and_each_is_above_its_truth() -> None:
    found = everybody()
    assert len({one.statements[0].id for one in found.bounds}) >= 6
    for one in found.bounds:
        assert one.verdict.outcome.name == "HOLDS"
        assert (one.bound >= one.truth).all()
        assert (one.provable >= one.truth).all()
    ends = [one.looseness[-1] for one in found.bounds]
    assert ends == sorted(ends)


def test_each_theorem_has_its_own_algorithm_and_the_largest_steps_that_it_allows() -> None:
    """Li: 2/(mu (8 kappa + t)); Khaled: 1/(4LH); ProxSkip: 1/L; SCAFFOLD: K eta = 1/(81 L)."""
    found = everybody()
    li = of(found, "fedavg-li/1").run.algorithm
    assert isinstance(li, LocalSgd)
    assert li.step_sizes.at(1) == pytest.approx(2 / (MU * 8 * L / MU))
    assert of(found, "local-gd/1").run.algorithm.algorithm.step_sizes.at(1) == pytest.approx(
        1 / (4 * L * K)
    )
    proxskip = of(found, "proxskip/6").run
    assert isinstance(proxskip.algorithm, ProxSkip)
    assert (proxskip.algorithm.client_lr, proxskip.algorithm.communication) == (
        pytest.approx(1 / L),
        1 / K,
    )
    assert proxskip.rounds == R * K
    scaffold = of(found, "scaffold/convex").run.algorithm
    assert isinstance(scaffold, Scaffold)
    assert scaffold.client_lr * K == pytest.approx(1 / 81)
    warm = of(found, "scaffold/nonconvex").run
    assert warm.algorithm.scaffold.client_lr * K == pytest.approx(1 / 24)
    assert isinstance(of(found, "fedau/2-option-1", "derived").run.algorithm, WeightedFedAvg)
    assert isinstance(of(found, "sa-fl/4", "repaired").run.algorithm, Safari)


def test_li_by_a_plain_loop() -> None:
    """Everybody has one Hessian, so the mean is gradient descent at falling steps."""
    one = of(everybody(), "fedavg-li/1")
    x, losses = START, []
    for t in range(R * K):
        x = x - 2 / (MU * (8 * L / MU + t)) * HESSIAN @ (x - MEAN)
        if (t + 1) % K == 0:
            losses.append(excess(x))
    np.testing.assert_allclose(one.truth, [losses[int(r) - 1] for r in one.rounds], rtol=1e-9)
    assert one.brought_by == ""


def test_local_gradient_descent_by_a_plain_loop() -> None:
    """The average of the means before each step; averages do not move the mean of one Hessian."""
    one = of(everybody(), "local-gd/1")
    x, models = START, []
    for _ in range(R * K):
        models.append(x)
        x = x - 1 / (4 * L * K) * HESSIAN @ (x - MEAN)
    wanted = [excess(np.mean(models[: int(r) * K], axis=0)) for r in one.rounds]
    np.testing.assert_allclose(one.truth, wanted, rtol=1e-9)
    sigma = ((OPTIMA - MEAN) @ HESSIAN**2 * (OPTIMA - MEAN)).sum() / 4
    bound = [
        2 * ((START - MEAN) ** 2).sum() * (4 * L * K) / (r * K) + 24 * sigma * L / (4 * L) ** 2
        for r in one.rounds
    ]
    np.testing.assert_allclose(one.bound, bound, rtol=1e-9)


def test_safari_by_a_plain_loop() -> None:
    """Half of the rounds are the server's, eta_s L mu/(L + mu) = eta_c K mu/4, eta_c = 1/(16LK).

    Both kinds of round contract along each eigenvector, so that E||x_R - x*||^2 is a product.
    """
    one = of(everybody(), "sa-fl/5", "repaired")
    client_lr = 1 / (16 * L * K)
    server_lr = client_lr * K * (L + MU) / (4 * L)
    curvatures = np.diag(HESSIAN)
    kept = ((1 - client_lr * curvatures) ** (2 * K) + (1 - server_lr * curvatures) ** 2) / 2
    wanted = [(curvatures * kept**r * (START - MEAN) ** 2).sum() / 2 for r in one.rounds]
    np.testing.assert_allclose(one.truth, wanted, rtol=1e-9)
    assert one.brought_by == "times L/2"


def test_scaffold_by_a_plain_loop() -> None:
    """Unequal Hessians, everybody, option II, controls of zero."""
    hessians = np.array([np.diag(row) for row in ([1.0, 0.1], [0.2, 1.0], [1.0, 0.5], [0.3, 0.4])])
    problem = QuadraticProblem(hessians, OPTIMA)
    run = Setting(FedAvg(0.05, K), problem, UniformSubset(4, 4), R, START)
    found = at_own_steps(run, theorems.registered("scaffold/convex"), points=2)
    x, controls, lr, losses = START, np.zeros((4, 2)), 1 / (81 * K), []
    for _ in range(R):
        away = x - problem.x_star
        losses.append(away @ problem.mean_hessian @ away / 2)
        models = np.tile(x, (4, 1))
        for _ in range(K):
            slopes = np.einsum("kab,kb->ka", hessians, models - OPTIMA)
            models = models - lr * (slopes - controls + controls.mean(axis=0))
        controls = controls - controls.mean(axis=0) + (x - models) / (K * lr)
        x = models.mean(axis=0)
    wanted = [np.mean(losses[: int(r)]) for r in found.bounds[0].rounds]
    np.testing.assert_allclose(found.bounds[0].truth, wanted, rtol=1e-9)


def test_squared_gradients_and_lyapunov_functions_are_brought_to_either_measure() -> None:
    chosen = theorems.registered("scaffold/nonconvex", "proxskip/6", "sa-fl/5", "fedavg-li/1")
    loss = at_own_steps(setting(), chosen, points=1)
    distance = at_own_steps(setting(), chosen, measure="distance", points=1)
    for identifier, reading, factor in (
        ("scaffold/nonconvex", "printed", (1 / MU**2) / (1 / (2 * MU))),
        ("proxskip/6", "printed", 1 / (L / 2)),
        ("sa-fl/5", "repaired", 1 / (L / 2)),
        ("fedavg-li/1", "printed", 2 / MU),
    ):
        here, there = (of(found, identifier, reading) for found in (loss, distance))
        np.testing.assert_allclose(there.bound / here.bound, factor)
        assert (there.bound >= there.truth).all()
    # Of M clients, Psi_T counts M distances.
    one = of(distance, "proxskip/6")
    assert one.bound[0] == pytest.approx(one.verdict.bound / 4)


def test_what_does_not_apply_says_why() -> None:
    silent = {answer.statement.name: answer.reason for answer in everybody().silent}
    assert silent["fedavg-li/2 (printed)"].startswith("drawn by p, with replacement")
    assert "prescribes no step sizes" in silent["ca-fed/2 (printed)"]
    asked = theorems.registered("fedavg-li/1", "proxskip/6")
    partial = at_own_steps(setting(UniformSubset(4, 2)), asked, points=1)
    why = {answer.statement.name: answer.reason for answer in partial.silent}
    assert why["fedavg-li/1 (printed)"].startswith(
        "participation must include every client in every round"
    )
    assert "participation must include every client in every round" in why["proxskip/6 (printed)"]
    noisy = at_own_steps(setting(sigma=1.0), theorems.registered("local-gd/1"), points=1)
    assert not noisy.bounds
    assert all(answer.reason.startswith("exact gradients") for answer in noisy.silent)
    orders = at_own_steps(setting(), theorems.registered("fedar/1"), points=1)
    assert "an order" in orders.silent[0].reason


def test_nothing_is_followed_for_a_theorem_that_does_not_speak_of_the_setting(monkeypatch) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    setting = Setting(FedAvg(0.1, 2), problem, UniformSubset(2, 1), 9, [4.0])
    statement = theorems.get("fedavg-li/1")
    monkeypatch.setattr(along_run, "truth", None)
    with pytest.raises(ValueError, match="participation must include every client in every round"):
        statement.compared(statement.own_run.make(setting), Sampling(2, 0, 0.1))


def test_drawn_with_replacement() -> None:
    drawn = WithReplacement((0.25,) * 4, 2)
    method = LocalSgd(of(everybody(), "fedavg-li/1").run.algorithm.step_sizes, K, (0.25,) * 4)
    given = setting()
    method = replace(method, sampled="average")
    run = Setting(method, given.problem, drawn, R, START)
    found = at_own_steps(run, theorems.registered("fedavg-li/2", "fedavg-li/1"), points=1)
    assert {one.statements[0].id for one in found.bounds} == {"fedavg-li/2"}


def test_clients_that_come_and_go_are_fedau_s() -> None:
    found = at_own_steps(
        setting(Bernoulli([0.9] * 4)), theorems.registered("fedau/2-option-1"), points=1
    )
    run = of(found, "fedau/2-option-1", "derived").run
    np.testing.assert_allclose(run.algorithm.aggregation_weights, 1 / (4 * 0.9))


def test_a_flat_problem_has_no_measure() -> None:
    flat = nonconvex(4, 2, L=1.0, sigma_G=0.1)
    with pytest.raises(ValueError, match="problem must be strongly convex"):
        at_own_steps(Setting(FedAvg(0.1, 1), flat, UniformSubset(4, 4), 1, START))


def test_the_setting_s_own_run_is_bounded_beside_them() -> None:
    """FedAvg with one Hessian for all: K steps of gradient descent a round."""
    given = everybody().given
    curvatures = np.diag(HESSIAN)
    left = [(1 - 0.05 * curvatures) ** (K * r) * (START - MEAN) for r in given.rounds]
    wanted = [(curvatures * one**2).sum() / 2 for one in left]
    np.testing.assert_allclose(given.truth, wanted, rtol=1e-9)
    assert (given.provable >= given.truth).all()
    assert given.provable[-1] < math.inf
