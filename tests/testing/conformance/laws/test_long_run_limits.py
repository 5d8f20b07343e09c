"""Long-run averages: options that are fixed, luck, and limits that are wrong."""

from __future__ import annotations

import re
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


def _nearly(name: str) -> Any:
    """Return an implementation that is ours but for more than rounding."""
    return lambda *given, **named: (1 + 1e-8) * run_of(name)(*given, **named)


def test_bad_luck_on_a_trace_is_no_fault() -> None:
    # FedVARP comes to rest, so that what is left of x0 is all that a run differs in: on this
    # trace ten times what standard errors of 200 other traces say.
    run = _nearly("fedvarp")
    assert check_algorithm(run, "fedvarp", seed=134, laws=["limit-uniform"]).conforms


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("law", RANDOM)
def test_another_algorithms_limit_is_seen(law: str) -> None:
    def plain(*arguments: Any, **keywords: Any) -> Any:
        return run_of("fedavg")(*arguments, **keywords, weighting="uniform")

    report = check_algorithm(plain, "fedvarp", laws=[law], raises=False)
    assert [finding.outcome for finding in report.findings] == [Outcome.FAILED]


@pytest.mark.usefixtures("undiagnosed")
def test_a_fixed_point_that_is_left_is_seen_by_its_law_alone() -> None:
    # Runs with everybody have 150 rounds, all others 400.
    def leaves(*arguments: Any, **keywords: Any) -> Any:
        models = run_of("mifa")(*arguments, **keywords)
        if len(models) == 151:
            models[150] += 1e-3
        return models

    laws = ["limit-full", *RANDOM]
    report = check_algorithm(leaves, "mifa", laws=laws, raises=False)
    assert [finding.law for finding in report.failures] == ["limit-full"]


@pytest.mark.usefixtures("undiagnosed")
def test_the_message_says_the_standard_error_and_what_luck_does() -> None:
    def plain(*arguments: Any, cutoff: float, **keywords: Any) -> Any:
        return run_of("fedavg")(*arguments, **keywords, weighting="uniform")

    report = check_algorithm(plain, "fedau", laws=["limit-uneven"], raises=False)
    said = r"beside 200 runs of ours, with 8 standard errors of [\d.e-]+ allowed, and how far ours"
    assert re.search(said, report.failures[0].text)


def test_heavy_tails_are_no_fault() -> None:
    # On this trace CA-Fed's average is 8.2 standard errors away.
    assert check_algorithm(_nearly("ca-fed"), "ca-fed", seed=14, laws=["limit-uneven"]).conforms
