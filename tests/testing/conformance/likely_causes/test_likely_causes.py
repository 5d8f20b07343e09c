from __future__ import annotations

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.cases import case_maker
from fltheory.testing.conformance.cases.case_maker import CaseMaker
from fltheory.testing.conformance.laws.table import LAWS
from fltheory.testing.conformance.likely_causes.diagnosis import ALIKE
from fltheory.testing.conformance.report import ConformanceReport
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.drawn import a_tenth
from tests.testing.conformance.wrong_runs import run_with_slip

ROUNDING = "model rounded"


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_pseudo_code_without_a_slip_is_the_package_s_algorithm(name: str) -> None:
    make = CaseMaker(SPECIFICATIONS[name], {}, np.random.default_rng(5))
    for kind in (case_maker.bursty, case_maker.with_empty, case_maker.long_absence):
        case = make.case(kind, n=4, dim=2, rounds=20)
        ours = run_of(name)(case.x0, case.clients, case.trace, **case.keywords)
        np.testing.assert_allclose(
            SPECIFICATIONS[name].paper.models(case), ours, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_every_slip_shows_on_the_cases_that_are_to_tell_them(name: str) -> None:
    """What changes nothing is no slip, and would never be found."""
    paper = SPECIFICATIONS[name].paper
    make = CaseMaker(SPECIFICATIONS[name], {}, np.random.default_rng(7))
    cases = [trial.case for trial in LAWS["usual-slips"].trials(make)]
    hidden = [
        slip
        for slip in paper.slips
        if not any(
            not np.allclose(paper.models(case, slip), paper.models(case), rtol=1e-7)
            for case in cases
        )
    ]
    assert not hidden


def _named(report: ConformanceReport) -> list[str]:
    return [cause.removeprefix(ALIKE) for cause in report.failures[0].causes]


def test_what_no_slip_explains_on_all_cases_has_no_cause() -> None:
    """One slip in the first rounds and another later: each would explain some traces."""
    halved, whole = run_with_slip("fedavg", "client_lr halved"), run_with_slip("fedavg", "")

    def run(x0: np.ndarray, clients: object, trace: np.ndarray, **given: object) -> np.ndarray:
        return (halved if trace.all() else whole)(x0, clients, trace, **given)

    report = check_algorithm(run, "fedavg", raises=False, stop_at_first=True)
    assert report.failures[0].law == "by-hand"
    assert not report.failures[0].causes


@pytest.mark.parametrize("name", a_tenth(SPECIFICATIONS, of=3))
def test_slips_are_caught_and_named(name: str) -> None:
    sentences = SPECIFICATIONS[name].paper.sentences
    missed = {}
    for slip in list(SPECIFICATIONS[name].paper.slips)[::12]:
        report = check_algorithm(run_with_slip(name, slip), name, raises=False, stop_at_first=True)
        if report.conforms or sentences[slip] not in _named(report):
            missed[slip] = report.text
    assert not missed


FEDAVG = SPECIFICATIONS["fedavg"].paper


@pytest.mark.parametrize(
    "slip", a_tenth(sorted(FEDAVG.sentences.keys() - FEDAVG.slips.keys() - {ROUNDING}), of=4)
)
def test_every_general_slip_is_caught_and_named(slip: str) -> None:
    report = check_algorithm(
        run_with_slip("fedavg", slip), "fedavg", raises=False, stop_at_first=True
    )
    assert not report.conforms
    assert FEDAVG.sentences[slip] in _named(report), report.text
