from __future__ import annotations

import pytest

from fltheory.testing import conformance_laws, run_of
from fltheory.testing.conformance.report import ConformanceError
from fltheory.testing.conformance.suite import LawCheck, laws_of
from tests.testing.conformance.wrong_runs import run_with_slip

LATE = {"late-appearance": "written for the test below"}


@conformance_laws("fedvarp", expected=None, seed=4)
def test_each_law_is_a_test(law: LawCheck) -> None:
    if law.law in ("by-hand", "weights"):
        law(run_of("fedvarp"))


def test_every_law_is_there_and_a_failure_is_expected_strictly() -> None:
    mark = conformance_laws("fedvarp", expected=LATE).mark
    parameters = {one.id: one for one in mark.args[1]}
    assert list(parameters) == [law.name for law in laws_of("fedvarp")]
    (xfail,) = parameters["late-appearance"].marks
    assert xfail.kwargs == {"reason": LATE["late-appearance"], "strict": True}
    assert not parameters["by-hand"].marks


def test_a_failure_is_an_assertion_error_with_the_finding() -> None:
    law = LawCheck("fedvarp", "by-hand", hyper={"server_lr": 1.0})
    with pytest.raises(ConformanceError, match="the memory's mean is left out"):
        law(run_with_slip("fedvarp", "the memory's mean is left out"))


def test_an_unknown_law_is_refused() -> None:
    with pytest.raises(ValueError, match="laws of fedvarp must be among"):
        conformance_laws("fedvarp", expected={"no-such": "why"})


def test_what_is_asked_for_wrongly_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="expected must be a mapping"):
        conformance_laws("fedvarp", expected=["by-hand"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="options of fedvarp must be among"):
        conformance_laws("fedvarp", cutoff=3)


def test_a_law_that_does_not_apply_is_skipped() -> None:
    law = LawCheck("f3ast", "limit-full", hyper={"size": 1})
    with pytest.raises(pytest.skip.Exception, match="limit-full does not apply"):
        law(run_of("f3ast"))
