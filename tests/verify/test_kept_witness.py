"""Witnesses kept as settings: checked again on what is registered now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import escape

from fltheory import theorems
from fltheory.engines.setting_file import Refutes, write_setting
from fltheory.report.html.html_report import html_report, kept_in
from fltheory.report.terminal.refutation_text import kept_witness_text
from fltheory.verify.check import read_kept_witness
from tests.report.report_cases import case
from tests.theorems import own

pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")
# A step of 3/2 turns ||x|| into ||x||/2, where the claim is a tenth: 1/32 against 1e-5 at R = 5.
SETTING = own.FAMILY.setting(step=1.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_setting(tmp_path / "found.toml", SETTING, Refutes("own/false"))
    write_setting(tmp_path / "other.toml", SETTING)
    (tmp_path / "notes.toml").write_text("refutes = 3")
    return tmp_path


def test_it_is_refuted_again_with_both_sides_and_hypotheses(folder: Path) -> None:
    theorems.load(own.STATEMENTS)
    witness = read_kept_witness(folder / "found.toml")
    assert witness.refutes
    assert witness.verdict.truth == pytest.approx(0.25**5)
    assert witness.verdict.bound == pytest.approx(0.01**5)
    text = kept_witness_text(witness)
    assert text.startswith("own/false (printed): REFUTED (float64 evidence)\n")
    assert "truth 0.000976562, bound 1e-10, truth/bound 9.766e+06" in text
    assert "hypothesis 'small steps', eta < 2: met" in text


def test_a_mended_theorem_is_refuted_no_more(folder: Path) -> None:
    theorems.load([replace(own.TRUE, id="own/false")])
    witness = read_kept_witness(folder / "found.toml")
    assert not witness.refutes
    assert kept_witness_text(witness).startswith(
        "own/false (printed): HOLDS (float64 evidence): no longer refuted by this setting\n"
    )
    with pytest.raises(
        ValueError, match=r"found.toml no longer refutes own/false \(printed\): HOLDS"
    ):
        kept_in(folder, theorems.registered("own"))


def test_what_is_no_witness_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"must have a table \[refutes\]"):
        read_kept_witness(folder / "other.toml")
    with pytest.raises(ValueError, match="got 'own/false'"):
        read_kept_witness(folder / "found.toml")


def test_the_report_shows_it_with_its_grade(folder: Path) -> None:
    theorems.load(own.STATEMENTS)
    (view,) = kept_in(folder, theorems.registered("own/false"))
    assert kept_in(folder, theorems.registered("own/true")) == ()
    page = html_report([own.FALSE], [], (), case()[3], [view])
    assert "Witness kept as a setting" in page
    kept = page.partition("Witness kept as a setting")[2].partition("</section>")[0]
    assert [check.name for check in view.checks]
    assert all(check.name in kept and str(escape(check.sides)) in kept for check in view.checks)
    assert not any("truth" in line or "hypothesis" in line for line in view.lines)
    assert "with float64 evidence; no certificate" in page
    assert 'href="data:application/toml;base64,' in page
    assert "Certified witness" not in page
