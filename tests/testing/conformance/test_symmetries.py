"""Laws that compare an implementation with itself: each has a fault that it alone notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of

Fault: TypeAlias = Callable[..., Any]


def _to_zero(x: np.ndarray, **_: Any) -> Any:
    return -0.01 * x


def _first_entry(change: np.ndarray, **_: Any) -> Any:
    return 0.01 * change * (np.arange(change.size) == 0)


def _clipped(change: np.ndarray, **_: Any) -> Any:
    return change * (min(1.0, 0.5 / np.linalg.norm(change)) - 1) if change.any() else 0


def _first_client(who: np.ndarray, change: np.ndarray, **_: Any) -> Any:
    return 0.01 * change * who[0]


def _whole_trace(trace: np.ndarray, change: np.ndarray, **_: Any) -> Any:
    return 0.01 * len(trace) * change


def _absent(x: np.ndarray, who: np.ndarray, clients: Any, client_lr: float, **_: Any) -> Any:
    away = [clients[k] for k in np.flatnonzero(~who)]
    return -0.01 * client_lr * sum((client.gradient(x) for client in away), np.zeros_like(x))


FAULTS: dict[str, Fault] = {
    "translation": _to_zero,
    "rotation": _first_entry,
    "scaling": _clipped,
    "permutation": _first_client,
    "future-does-not-matter": _whole_trace,
    "absent-do-not-matter": _absent,
}


def _with(fault: Fault) -> Callable[..., Any]:
    def run(x0: Any, clients: Any, trace: Any, *, client_lr: float, **given: Any) -> Any:
        right, models = run_of("fedavg"), [np.array(x0)]
        for who in trace:
            x = models[-1]
            after = right(x, clients, who[None], client_lr=client_lr, **given)[1]
            told = {"trace": trace, "clients": clients, "client_lr": client_lr}
            models.append(after + fault(x=x, who=who, change=after - x, **told))
        return np.array(models)

    return run


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("law", FAULTS)
def test_each_law_has_a_fault_that_it_alone_notices(law: str) -> None:
    report = check_algorithm(_with(FAULTS[law]), "fedavg", laws=list(FAULTS), raises=False)
    assert [finding.law for finding in report.failures] == [law]


def test_the_right_one_keeps_them_all() -> None:
    assert check_algorithm(_with(lambda **told: 0.0), "fedavg", laws=list(FAULTS)).conforms


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("seed", range(3))
def test_units_of_the_loss_alone_are_seen(seed: int) -> None:
    """Steps of fixed size in the loss's units: the models' units do not show them."""

    def run(x0: Any, clients: Any, trace: Any, *, client_lr: float, **given: Any) -> Any:
        return run_of("fedavg")(x0, clients, trace, client_lr=min(client_lr, 0.04), **given)

    report = check_algorithm(run, "fedavg", laws=["scaling"], seed=seed, raises=False)
    assert [finding.law for finding in report.failures] == ["scaling"]
