from __future__ import annotations

import pytest

from fltheory.testing import check_algorithm
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.testing.conformance.wrong_runs import run_with_slip

ROUNDING = "model rounded"
SLIPS = {name: [*one.paper.slips] for name, one in SPECIFICATIONS.items()}


@pytest.mark.parametrize("name", SLIPS)
def test_every_slip_of_an_algorithm_is_caught_and_named(name: str) -> None:
    """The slips are those by which causes are found, so this says that none is without effect."""
    sentences = SPECIFICATIONS[name].paper.sentences
    missed = {}
    for slip in SLIPS[name]:
        report = check_algorithm(run_with_slip(name, slip), name, raises=False, stop_at_first=True)
        if report.conforms or sentences[slip] not in report.failures[0].causes:
            missed[slip] = report.text
    assert not missed


def test_every_general_slip_is_caught_and_named() -> None:
    paper = SPECIFICATIONS["fedavg"].paper
    missed = []
    for slip in paper.sentences.keys() - paper.slips.keys() - {ROUNDING}:
        report = check_algorithm(
            run_with_slip("fedavg", slip), "fedavg", raises=False, stop_at_first=True
        )
        if report.conforms or paper.sentences[slip] not in report.failures[0].causes:
            missed.append((slip, report.text))
    assert not missed
