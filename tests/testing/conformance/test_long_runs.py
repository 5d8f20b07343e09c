"""Long runs: another algorithm's, and a fixed point that is left."""

from __future__ import annotations

from typing import Any

import pytest

from fltheory.testing import check_algorithm, run_of


@pytest.mark.usefixtures("undiagnosed")
def test_another_algorithms_models_are_seen() -> None:
    def plain(*arguments: Any, **keywords: Any) -> Any:
        return run_of("fedavg")(*arguments, **keywords, weighting="uniform")

    assert not check_algorithm(plain, "fedvarp", laws=["long-run"], raises=False).conforms


@pytest.mark.usefixtures("undiagnosed")
def test_a_fixed_point_that_is_left_is_seen_by_its_law_alone() -> None:
    # Runs with everybody have 150 rounds, the others 400.
    def leaves(*arguments: Any, **keywords: Any) -> Any:
        models = run_of("mifa")(*arguments, **keywords)
        if len(models) == 151:
            models[150] += 1e-3
        return models

    report = check_algorithm(leaves, "mifa", laws=["limit-full", "long-run"], raises=False)
    assert [finding.law for finding in report.failures] == ["limit-full"]
