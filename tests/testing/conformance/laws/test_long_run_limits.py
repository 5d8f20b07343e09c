"""Long-run averages: options that are fixed, luck, and limits that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.report import Outcome

RANDOM = ("limit-uniform", "limit-uneven", "limit-markov")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mifa", {"start": "wait"}),
        ("mifa", {"start": "zero"}),
        ("scaffold", {"option": 1}),
        ("scaffold", {"option": 2}),
        ("fedavg", {"weighting": "uniform"}),
        ("fedavg", {"weighting": "n_samples"}),
        ("fedprox", {"proximal": 0.5, "weighting": "uniform"}),
    ],
)
def test_an_option_may_be_fixed(name: str, options: dict[str, Any]) -> None:
    assert check_algorithm(run_of(name), name, laws=RANDOM, **options).conforms


def test_bad_luck_on_a_trace_is_no_fault() -> None:
    # FedVARP comes to rest, so that what is left of x0 is all that a run differs in: on this
    # trace ten times what standard errors of 200 other traces say.
    assert check_algorithm(run_of("fedvarp"), "fedvarp", seed=134, laws=["limit-uniform"]).conforms


@pytest.mark.parametrize("law", RANDOM)
def test_another_algorithms_limit_is_seen(law: str) -> None:
    def plain(*arguments: Any, **keywords: Any) -> Any:
        return run_of("fedavg")(*arguments, **keywords, weighting="uniform")

    report = check_algorithm(plain, "fedvarp", laws=[law], raises=False)
    assert [finding.outcome for finding in report.findings] == [Outcome.FAILED]
