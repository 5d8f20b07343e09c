"""Printed bounds on runs beside what is proved: closed forms, truths, and checked proofs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fltheory import theorems
from fltheory.algorithms import Harmonic
from fltheory.worst_case.audits.run_audit import RUN_AUDITS, audit_run, times_best_provable


@pytest.mark.parametrize(
    "name",
    [
        "fedau/1",
        "fedau/2-option-1",
        "fedavg-li/3",
        "fedawe/1",
        "local-gd/1",
        "sa-fl-submission/corollary-1",
        "sa-fl/corollary-1-speedup",
        "sa-fl/corollary-2",
        "scaffold/convex",
        "scaffold/strongly-convex",
    ],
)
def test_what_is_proved_is_between_the_truth_and_the_printed_bound(name: str) -> None:
    """The truth is an engine's, and a proof is believed by its checker alone."""
    found = audit_run(name)
    assert found.verdict.outcome.name == "HOLDS"
    assert found.proved.proofs
    for proof in found.proved.proofs:
        proof.verify()
    assert found.truth < found.proved.value < found.paper


def test_a_function_that_sees_gradients_proves_more_of_the_mean_model() -> None:
    plain, found = audit_run("ca-fed/2"), audit_run("ca-fed/2", rich=True)
    (proof,) = found.proved.proofs
    proof.verify()
    assert plain.truth < found.proved.value < 0.9 * plain.proved.value
    with pytest.raises(ValueError, match="rich must be left out for local-gd/1"):
        audit_run("local-gd/1", rich=True)


def test_falling_steps_of_everybody_are_gradient_descent() -> None:
    """By hand: ``L/2 prod (1 - eta_t mu)^2`` with eta_t mu = 2/(gamma + t), a telescoping product.

    Rates are a thousandth of 1 - rate from the least, which has no finite residual as a rule.

    L = 1, gamma = 8 kappa = 32 and t = 1 .. 9, so that it is ``(31 32 / (40 41))^2 / 2``.
    """
    exact = (31 * 32 / (40 * 41)) ** 2 / 2
    assert exact <= audit_run("fedavg-li/1").proved.value < 1.002 * exact


@pytest.mark.parametrize("name", ["fedawe/1", "fedawe/corollary-1"])
def test_fedawe_with_everybody_is_gradient_descent_with_noise(name: str) -> None:
    """``(F_0/(g T) + g L sigma^2/(2 m))/(1 - g L/2)``, g = eta_l eta_g: the descent lemma, summed.

    F_0 = 2 at L = 1, sigma = 1/2 and m = 2.
    """
    found = audit_run(name)
    method, rounds = found.setting.algorithm, found.setting.rounds
    step = method.client_lr * method.server_lr
    exact = (2 / (step * rounds) + step / 16) / (1 - step / 2)
    assert found.proved.value == pytest.approx(exact, rel=1e-5)
    assert times_best_provable(name, "derived") == pytest.approx(found.paper / exact, rel=1e-5)
    assert times_best_provable(name, "printed") is None


def test_fedawe_with_absent_clients_is_not_audited() -> None:
    setting = theorems.get("fedawe/1", "derived").regimes["everybody every second round"].setting
    with pytest.raises(ValueError, match="setting must be FedAWE with full participation"):
        audit_run("fedawe/1", setting)


def test_equal_clients_have_the_bound_of_gradient_descent_on_the_mean_model() -> None:
    """At the step 1/L one has ``||x+||^2 <= ||x||^2 - 1/L (F - F*)`` and better, and no floor."""
    setting = theorems.get("local-gd/1", "derived").regimes["equal clients"].setting
    method = setting.algorithm
    single = replace(method.algorithm, local_steps=1, first_average=1)
    alone = replace(setting, algorithm=replace(method, algorithm=single))
    step, start = single.step_sizes.at(1), 1.0
    found = audit_run("local-gd/1", alone)
    assert found.proved.value <= start / (2 * step * (1 - step / 2) * setting.rounds)
    assert not math.isnan(found.paper)


def test_steps_that_fall_have_no_one_inequality() -> None:
    setting = theorems.get("local-gd/1", "derived").regimes["one local step"].setting
    falling = replace(setting.algorithm.algorithm, step_sizes=Harmonic(1.0))
    changed = replace(setting, algorithm=replace(setting.algorithm, algorithm=falling))
    with pytest.raises(ValueError, match="step_sizes must be Constant for one inequality"):
        audit_run("local-gd/1", changed)


def test_audits_are_of_registered_theorems_that_are_not_one_round_iterated() -> None:
    assert all(theorems.registered(name) for name in RUN_AUDITS)
    with pytest.raises(ValueError, match="theorem must be one of"):
        audit_run("sa-fl/5")
