"""The report's words, on findings written down here."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fltheory.testing.conformance.case import Case, QuadraticClient
from fltheory.testing.conformance.report import (
    ConformanceError,
    ConformanceReport,
    LawFinding,
    LawOutcome,
    differences,
)


def _report(*findings: LawFinding, notes: tuple[str, ...] = ()) -> ConformanceReport:
    return ConformanceReport("fedavg", findings, 7, 1e-9, 12, 0.25, 1.5, notes)


def _of(law: str, outcome: LawOutcome, **more: object) -> LawFinding:
    return LawFinding(law, f"{law} holds", outcome, **more)  # type: ignore[arg-type]


PASSED, FAILED = _of("a", LawOutcome.PASSED), _of("b", LawOutcome.FAILED, message="one\ntwo")
EXPECTED = _of("c", LawOutcome.EXPECTED, reason="as documented")
UNEXPECTED = _of("d", LawOutcome.UNEXPECTED_PASS, reason="was wrong")
NO_CASE = _of("e", LawOutcome.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("findings", "conforms"),
    [
        ((PASSED,), True),
        ((PASSED, EXPECTED), True),
        ((PASSED, NO_CASE), True),
        ((PASSED, FAILED), False),
        ((PASSED, UNEXPECTED), False),
        ((NO_CASE,), False),
        ((), False),
    ],
)
def test_what_conforms(findings: tuple[LawFinding, ...], conforms: bool) -> None:
    report = _report(*findings)
    assert report.conforms is conforms
    assert json.loads(report.to_json())["conforms"] is conforms


def test_the_first_line_counts_what_there_was() -> None:
    first = _report(PASSED, PASSED, EXPECTED).text.splitlines()[0]
    assert first == (
        "fedavg: conforms: 2 passed, 1 failed as expected (seed 7, 12 runs, 1.5 s, 0.2 s of it in "
        "run)"
    )
    assert _report(NO_CASE).text.startswith("fedavg: nothing is checked: 1 does not apply (seed 7")


def test_failures_are_told_in_full_up_to_three() -> None:
    failures = [
        _of(name, LawOutcome.FAILED, message=f"m-{name}", expected=(1.0,)) for name in "opqrs"
    ]
    lines = _report(*failures, notes=("by the way",)).text.splitlines()
    assert [line for line in lines if line.startswith("FAILED")] == [
        "FAILED: o: o holds",
        "FAILED: p: p holds",
        "FAILED: q: q holds",
    ]
    assert "  m-o" in lines
    assert "no cause is named: no usual mistake reproduces your models on every case" in lines
    assert "also 2 more: r, s" in lines
    assert lines[-1] == "note: by the way"
    three = _report(*failures[:3]).text
    assert "also" not in three


def test_the_likeliest_causes_of_all_failures_come_first_and_once() -> None:
    one = _of("o", LawOutcome.FAILED, causes=("first", "or second"))
    other = _of("p", LawOutcome.FAILED, causes=("first",))
    lines = _report(one, other).text.splitlines()
    assert lines[1:3] == ["likely cause: first", ""]
    assert "  likely cause: or second" in lines


def test_a_declared_failure_has_its_reason() -> None:
    assert "c failed as declared: as documented" in _report(PASSED, EXPECTED).text
    assert "  declared: was wrong" in _report(UNEXPECTED).text


def test_json_names_outcomes() -> None:
    entries = json.loads(_report(PASSED, FAILED).to_json())
    assert [entry["outcome"] for entry in entries["findings"]] == ["PASSED", "FAILED"]
    assert entries["findings"][1]["message"] == "one\ntwo"
    assert (entries["calls"], entries["seed"]) == (12, 7)


def test_the_error_is_the_report() -> None:
    report = _report(FAILED)
    error = ConformanceError(report)
    assert error.report is report
    assert str(error) == report.text


def test_differences_show_both_models_below_the_case() -> None:
    client = QuadraticClient(np.eye(1), np.array([8.0]), 3)
    case = Case((client,), np.array([4.0]), np.ones((1, 1), bool), 0.5, 2)
    lines = differences(case, np.array([7.0]), np.array([6.5]), "after round 1", 1e-8).splitlines()
    assert lines == [
        "N = 1 client, d = 1, 1 round, client_lr=0.5, local_steps=2, server_lr=1",
        "x0 = (4), n_samples = (3,)",
        "client 0: gradient(x) = 1 (x - 8)",
        "round 1: client 0 present",
        "after round 1: expected x = (7)",
        "                 actual x = (6.5)",
        "                 off by 0.5, allowed 1e-08",
    ]
