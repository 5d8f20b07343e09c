from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.diagnosis import ALIKE, ELSEWHERE
from fltheory.testing.conformance.report import LawFinding
from tests.drawn import a_tenth
from tests.testing.conformance.wrong_runs import run_with_slip, slip_of


def _first(run: Any, name: str, *laws: str) -> LawFinding:
    report = check_algorithm(run, name, laws=laws or None, raises=False, stop_at_first=True)
    return report.failures[0]


@pytest.mark.parametrize(
    "slip",
    a_tenth(["the correlation is estimated without", "in order of |correlation|"], of=2),
)
def test_orders_that_seldom_matter_are_told_apart(slip: str) -> None:
    """On most cases CA-Fed's order makes no difference: these gave three causes, two of them wrong.

    Both faults change the order alone, so that all others that do fit whatever shows no order.
    """
    finding = _first(run_with_slip("ca-fed", slip), "ca-fed", "usual-slips")
    assert finding.causes == (slip_of("ca-fed", slip).says,)


def test_what_is_the_same_by_algebra_is_named_together() -> None:
    """Surprises over N and the old mean are the mean of the renewed memory."""
    finding = _first(run_with_slip("fedvarp", "divides by all N clients"), "fedvarp")
    assert len(finding.causes) == 2
    assert finding.causes[1].startswith(ALIKE)


def _largest_with_data(
    x0: Any, clients: Any, trace: Any, *, local_steps: Any, server_lr: float, **given: Any
) -> Any:
    """FedNova with the most steps among those who have data, not among all who are present."""
    counts = trace & (np.array([client.n_samples for client in clients]) > 0)
    models = [np.array(x0)]
    for row in counts:
        sizes = np.array([client.n_samples for client in clients]) * row
        if not row.any():
            models.append(models[-1])
            continue
        mean = float(sizes @ np.array(local_steps)) / sizes.sum()
        rate = server_lr * max(np.array(local_steps)[row]) / mean
        options = {"local_steps": local_steps, "server_lr": rate, **given}
        models.append(run_of("fednova")(models[-1], clients, row[None], **options)[-1])
    return np.array(models)


def test_a_slip_that_differs_where_nobody_has_data_is_named_with_that_said() -> None:
    finding = _first(_largest_with_data, "fednova")
    assert finding.causes == (f"tau_eff is the largest number of steps{ELSEWHERE}",)


def test_single_precision_is_told_where_no_slip_is() -> None:
    """The last digits of float32 are no weight, origin or axis, whatever law they break."""

    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        models = run_of("scaffold")(x0.astype(np.float32), clients, trace, **given)
        return models.astype(np.float32)

    laws = ["starts-at-x0", "weights", "translation", "rotation"]
    report = check_algorithm(run, "scaffold", laws=laws, raises=False)
    assert [failure.law for failure in report.failures] == laws
    assert report.hints == ("models agree to single precision only: see rtol=",)
