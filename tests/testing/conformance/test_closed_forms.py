"""Laws by formula: each has a fault that it alone of them notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.closed_forms import pull, weights
from fltheory.testing.conformance.laws import LAWS
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.testing.conformance.test_case import _case


def _from_round(first: int, where: Callable[[np.ndarray, np.ndarray], bool]) -> Callable[..., Any]:
    """Return SCAFFOLD that moves a bit more, from a round on, in some cases."""

    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        models = run_of("scaffold")(x0, clients, trace, **given)
        if where(x0, trace) and len(models) > first:
            models[first:] += 0.01 * (1 + np.arange(len(models) - first))[:, None]
        return models

    return run


def _once(first: int, where: Callable[[np.ndarray, np.ndarray], bool]) -> Callable[..., Any]:
    """Return SCAFFOLD that is moved once."""

    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        models = run_of("scaffold")(x0, clients, trace, **given)
        if where(x0, trace):
            models[first:] += 0.01
        return models

    return run


FAULTS = {
    "one-client": _from_round(1, lambda x0, trace: trace.shape[1] == 1),
    "alike-curvatures": _from_round(1, lambda x0, trace: bool(x0.any()) and trace.shape[1] > 1),
    # What the memory holds later is right.
    "weights": _once(1, lambda x0, trace: not x0.any()),
    "memory-adds-up": _from_round(9, lambda x0, trace: not x0.any()),
}


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("law", FAULTS)
def test_each_law_has_a_fault_that_it_alone_notices(law: str) -> None:
    report = check_algorithm(FAULTS[law], "scaffold", laws=list(FAULTS), raises=False)
    assert [finding.law for finding in report.failures] == [law]


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_the_package_s_own_keep_them_all(name: str) -> None:
    known = [law for law in FAULTS if LAWS[law].applies(SPECIFICATIONS[name])]
    for seed in range(3):
        assert check_algorithm(run_of(name), name, laws=known, seed=seed).conforms


def test_the_pull_of_two_steps() -> None:
    # Hessian diag(2, 2), lr 1/2 takes all of the way; with mu = 1, y1 = x - h/2 (x - c) = c and
    # y2 = y1 - 1/2 (0 + (c - x)) goes half of it back.
    assert pull(_case(), 1, 2) == pytest.approx(np.eye(2))
    assert pull(_case(options={"proximal": 1.0}), 1, 2) == pytest.approx(0.5 * np.eye(2))


def test_weights_where_everybody_is_present() -> None:
    by_size = _case(options={"weighting": "n_samples"})
    assert weights(SPECIFICATIONS["fedavg"], by_size) == pytest.approx([0, 1 / 3, 2 / 3])
    case = _case(options={}, local_steps=(1, 2, 4))
    # p = (0, 1, 2)/3, tau_eff = (2 + 8)/3, shares p_i tau_eff / tau_i.
    assert weights(SPECIFICATIONS["fednova"], case) == pytest.approx([0, 5 / 9, 5 / 9])
    assert weights(SPECIFICATIONS["scaffold"], case) == pytest.approx([1 / 3] * 3)
    told = _case(options={"target_weights": (0.2, 0.3, 0.5)})
    assert weights(SPECIFICATIONS["adafed"], told) == pytest.approx([0.2, 0.3, 0.5])
