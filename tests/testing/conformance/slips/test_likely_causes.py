from __future__ import annotations

import numpy as np
import pytest

from fltheory.testing import check_algorithm
from fltheory.testing.conformance import case_maker
from fltheory.testing.conformance.case_maker import CaseMaker
from fltheory.testing.conformance.diagnosis import ALIKE
from fltheory.testing.conformance.laws import LAWS
from fltheory.testing.conformance.own_runs import Slip
from fltheory.testing.conformance.report import ConformanceReport
from fltheory.testing.conformance.slips.single import ONE_BY_ONE
from fltheory.testing.conformance.slips.table import played, slips_of
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.drawn import a_tenth
from tests.testing.conformance.wrong_runs import run_with_slip

SEEN_ELSEWHERE = ("rounded to single precision", "first ten")


def test_trying_clients_one_by_one_leaves_those_whom_the_algorithm_keeps() -> None:
    make = CaseMaker(SPECIFICATIONS["ca-fed"], {}, np.random.default_rng(5))
    one_by_one = Slip("", names=ONE_BY_ONE)
    for kind in (case_maker.bursty, case_maker.with_empty, case_maker.long_absence):
        case = make.case(kind, n=6, dim=1, rounds=20)
        expected = played("ca-fed", case)
        assert played("ca-fed", case, one_by_one) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", a_tenth(SPECIFICATIONS, of=6))
def test_every_slip_shows_on_the_cases_that_are_to_tell_them(name: str) -> None:
    """What changes nothing is no slip, and would never be found."""
    make = CaseMaker(SPECIFICATIONS[name], {}, np.random.default_rng(7))
    cases = [trial.case for trial in LAWS["usual-slips"].trials(make)]
    cases += [make.case(n=14, dim=1, rounds=2)]
    hidden = [
        slip.says
        for slip in slips_of(name)
        if not any(
            not np.allclose(played(name, case, slip), played(name, case), rtol=1e-7)
            for case in cases
        )
    ]
    assert not [says for says in hidden if not any(words in says for words in SEEN_ELSEWHERE)]


def _named(report: ConformanceReport) -> list[str]:
    return [cause.removeprefix(ALIKE) for cause in report.failures[0].causes]


def test_what_no_slip_explains_on_all_cases_has_no_cause() -> None:
    """One slip in the first rounds and another later: each would explain some traces."""
    halved, whole = run_with_slip("fedavg", "client_lr is halved"), run_with_slip("fedavg", "")

    def run(x0: np.ndarray, clients: object, trace: np.ndarray, **given: object) -> np.ndarray:
        return (halved if trace.all() else whole)(x0, clients, trace, **given)

    report = check_algorithm(run, "fedavg", raises=False, stop_at_first=True)
    assert report.failures[0].law == "by-hand"
    assert not report.failures[0].causes


@pytest.mark.parametrize("name", a_tenth(SPECIFICATIONS, of=4))
def test_slips_are_caught_and_named(name: str) -> None:
    missed = {}
    for slip in slips_of(name)[::16]:
        report = check_algorithm(run_with_slip(name, slip), name, raises=False, stop_at_first=True)
        if report.conforms or slip.says not in _named(report):
            missed[slip.says] = report.text
    assert not missed
