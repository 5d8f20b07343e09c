"""Flower's own strategies along a trace, against FedAvg and FedProx in closed form."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra flower: docs/how-to/flower.md")

from exact_quadratics import averaged, clients, trace
from flwr.server import strategy as former
from flwr.serverapp import strategy

from fltheory.flower import run_of
from fltheory.flower.strategy_runs import Absence

NO_WAITING = {"min_available_nodes": 0, "min_train_nodes": 0, "min_evaluate_nodes": 0}
NO_WAITING_FORMERLY = {
    "min_available_clients": 0,
    "min_fit_clients": 0,
    "min_evaluate_clients": 0,
}
SIZES = (5, 1, 9, 3)
X0 = np.array([1.0, -2.0, 0.5])
WHO = trace(12, 4)
STEPS = {"client_lr": 0.1, "local_steps": 3, "server_lr": 1.0}


def fedavg(**_: Any) -> strategy.FedAvg:
    return strategy.FedAvg(**NO_WAITING)


def former_fedavg(**_: Any) -> former.FedAvg:
    return former.FedAvg(**NO_WAITING_FORMERLY)


@pytest.mark.parametrize("absent", ["away", "error", "silent"])
@pytest.mark.parametrize("make", [fedavg, former_fedavg])
def test_fedavg_is_the_mean_of_those_present(make: Any, absent: Absence) -> None:
    them = clients(SIZES)
    models = run_of(make, absent=absent)(X0, them, WHO, **STEPS)
    np.testing.assert_allclose(
        models, averaged(them, WHO, X0, 0.1, [3] * 4, SIZES), rtol=0, atol=1e-13
    )


def test_clients_may_count_alike() -> None:
    def uniform(**_: Any) -> strategy.FedAvg:
        return strategy.FedAvg(weighted_by_key="uniform", **NO_WAITING)

    them = clients((0, 1, 9, 3))
    models = run_of(uniform)(X0, them, WHO, **STEPS)
    np.testing.assert_allclose(
        models, averaged(them, WHO, X0, 0.1, [3] * 4, [1.0] * 4), rtol=0, atol=1e-13
    )


def test_each_client_may_take_steps_of_its_own() -> None:
    them, steps = clients(SIZES), (1, 4, 2, 3)
    models = run_of(fedavg)(X0, them, WHO, **{**STEPS, "local_steps": steps})
    np.testing.assert_allclose(
        models, averaged(them, WHO, X0, 0.1, steps, SIZES), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda proximal, **_: strategy.FedProx(proximal_mu=proximal, **NO_WAITING),
        lambda proximal, **_: former.FedProx(proximal_mu=proximal, **NO_WAITING_FORMERLY),
    ],
)
def test_clients_heed_the_proximal_term(make: Any) -> None:
    them = clients(SIZES)
    models = run_of(make)(X0, them, WHO, proximal=0.7, **STEPS)
    expected = averaged(them, WHO, X0, 0.1, [3] * 4, SIZES, mu=0.7)
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-13)


def test_a_strategy_is_told_what_it_is_made_with() -> None:
    told: dict[str, Any] = {}

    def make(**given: Any) -> strategy.FedAvg:
        told.update(given)
        return fedavg()

    run_of(make)(X0, clients(SIZES), WHO, weighting="uniform", **STEPS)
    assert told.pop("x0").tolist() == X0.tolist()
    assert told == {**STEPS, "n_clients": 4, "weighting": "uniform"}


def test_runs_repeat_and_leave_pythons_generator_alone() -> None:
    random.seed(3)
    before = random.getstate()
    first = run_of(fedavg)(X0, clients(SIZES), WHO, **STEPS)
    assert random.getstate() == before
    random.seed(4)
    np.testing.assert_array_equal(run_of(fedavg)(X0, clients(SIZES), WHO, **STEPS), first)


def test_a_strategy_that_waits_for_nodes_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flwr.serverapp.strategy.strategy_utils.sleep", lambda seconds: None)
    with pytest.raises(RuntimeError, match="waits for more nodes than the 0 of this round"):
        run_of(lambda **_: strategy.FedAvg())(X0, clients(SIZES), WHO, **STEPS)
    with pytest.raises(RuntimeError, match="waits for 2 nodes, but the round has 0"):
        run_of(lambda **_: former.FedAvg())(X0, clients(SIZES), WHO, **STEPS)


def test_absent_must_be_a_kind_of_absence() -> None:
    with pytest.raises(
        ValueError, match="absent must be one of 'away', 'error', 'silent', got 'gone'"
    ):
        run_of(fedavg, absent="gone")(X0, clients(SIZES), WHO, **STEPS)  # type: ignore[arg-type]


def test_errors_of_clients_come_through() -> None:
    class Broken:
        n_samples = 1

        def loss(self, x: Any) -> float:
            return 0.0

        def gradient(self, x: Any) -> Any:
            raise ZeroDivisionError("of its own")

    with pytest.raises(ZeroDivisionError, match="of its own"):
        run_of(fedavg)(X0, [Broken()] * 4, WHO, **STEPS)
