"""fltheory verify: table, files, recorded verdicts, certificates, interrupts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import fltheory.verify
from fltheory import theorems
from fltheory.engines.affine.numbers import InexactRoundError
from fltheory.evidence import enclosed_check
from fltheory.long_work import parallel
from fltheory.report.html import html_report
from fltheory.theorems import registry
from fltheory.verify import MapAxis, check, runs
from tests.fewer_regimes import with_regimes


@pytest.fixture
def two_quick_cells(monkeypatch) -> None:
    """Verify two quick regimes, whatever is asked for."""
    quick = theorems.get("sa-fl/5", "derived")
    regimes = {name: quick.regimes[name] for name in ("i.i.d.", "biased minority excluded")}
    monkeypatch.setattr(registry, "registered", lambda *names: (with_regimes(quick, regimes),))


def test_verify_writes_the_table_and_the_file(fltheory_command, two_quick_cells, tmp_path) -> None:
    path = tmp_path / "verify.json"
    status, out, _ = fltheory_command("verify", "--json", str(path))
    assert status == 0
    assert "2 cells: 1 HOLDS, 1 INAPPLICABLE" in out
    cells = json.loads(path.read_text())["cells"]
    assert [cell["outcome"] for cell in cells] == ["HOLDS", "INAPPLICABLE"]


def test_the_dearest_cells_are_told(fltheory_command, two_quick_cells, monkeypatch) -> None:
    """A clock that takes 3 s for the first cell, and 1 s for the second."""
    monkeypatch.setattr(runs, "process_time", iter([0.0, 3.0, 3.0, 4.0]).__next__)
    monkeypatch.setattr(parallel, "processors", lambda: 1)
    status, out, _ = fltheory_command("verify", "--durations", "2")
    assert status == 0
    assert "Processor time: 4.0 s for 2 cells" in out
    rows = [line.split("│")[1:-1] for line in out.splitlines() if "%" in line]
    assert [[part.strip() for part in row] for row in rows] == [
        ["3.00", "75.0%", "exact", "sa-fl/5", "derived", "i.i.d."],
        ["1.00", "25.0%", "exact", "sa-fl/5", "derived", "biased minority excluded"],
    ]
    monkeypatch.setattr(runs, "process_time", iter([0.0, 1.0, 1.0, 4.0]).__next__)
    _, out, _ = fltheory_command("verify", "--durations", "1")
    assert [line.split("│")[1].strip() for line in out.splitlines() if "%" in line] == ["3.00"]


@pytest.mark.parametrize(
    ("outcome", "share", "status", "message"),
    [
        ("HOLDS", 1, 0, "no verdict differs"),
        ("REFUTED", 1, 1, "the verdict changed from REFUTED to HOLDS"),
        # A bound that has changed is as much a change as a verdict.
        ("HOLDS", 1.01, 1, "the ratio drifted from"),
    ],
)
def test_exit_status_tells_what_departs_from_its_record(
    fltheory_command, two_quick_cells, tmp_path: Path, outcome: str, share, status: int, message
) -> None:
    quick = theorems.get("sa-fl/5", "derived")
    ratio = share * check(quick, quick.regimes["i.i.d."].setting).ratio
    path = tmp_path / "baseline.csv"
    path.write_text(
        f"theorem,reading,regime,outcome,ratio\nsa-fl/5,derived,i.i.d.,{outcome},{ratio!r}\n"
    )
    found, out, _ = fltheory_command("verify", "--baseline", str(path))
    assert found == status
    assert message in out
    assert "biased minority excluded: not recorded" in out


def test_a_record_is_made_and_renewed_when_asked(
    fltheory_command, two_quick_cells, tmp_path: Path
) -> None:
    path = tmp_path / "deep" / "baseline.csv"
    status, _, err = fltheory_command("verify", "--baseline", path)
    assert (status, "--record creates it" in err) == (2, True)
    path.parent.mkdir()
    path.write_text(
        "theorem,reading,regime,outcome,ratio\n"
        "sa-fl/5,derived,i.i.d.,REFUTED,0\nmine/1,printed,usual,HOLDS,0.5\n"
    )
    status, out, _ = fltheory_command("verify", "--baseline", path, "--record")
    assert (status, f"recorded in {path}" in out) == (0, True)
    rows = path.read_text().splitlines()
    assert rows[0] == "theorem,reading,regime,outcome,ratio,evidence"
    assert [row.rsplit(",", 2)[0] for row in rows[1:]] == [
        "mine/1,printed,usual,HOLDS",
        "sa-fl/5,derived,biased minority excluded,INAPPLICABLE",
        "sa-fl/5,derived,i.i.d.,HOLDS",
    ]
    assert "no verdict differs" in fltheory_command("verify", "--baseline", path)[1]


def test_a_table_of_verdicts_is_a_record_too(
    fltheory_command, two_quick_cells, tmp_path: Path
) -> None:
    path = tmp_path / "verdicts.csv"
    assert fltheory_command("verify", "--csv", path)[0] == 0
    status, out, _ = fltheory_command("verify", "--baseline", path)
    assert status == 0
    assert "no verdict differs" in out
    assert "not recorded" not in out
    path.write_text(path.read_text().replace(",HOLDS,", ",REFUTED,"))
    assert fltheory_command("verify", "--baseline", path)[0] == 1


@pytest.mark.parametrize(
    ("what", "status"), [("refuted", 1), ("undecided", 0), ("changed", None), ("false", None)]
)
def test_what_ends_with_status_1_can_be_chosen(
    fltheory_command, monkeypatch, what: str, status: int | None
) -> None:
    printed = theorems.get("ca-fed/appendix-d")
    regimes = {"noisy gradients": printed.regimes["noisy gradients"]}
    monkeypatch.setattr(registry, "registered", lambda *names: (with_regimes(printed, regimes),))
    found, out, err = fltheory_command("verify", "--fail-on", what)
    if status is None:
        assert found == 2
        assert err.count("\n") == 1
        assert (
            "baseline must be given, without --record" if what == "changed" else "'false'"
        ) in err
    else:
        assert (found, "1 REFUTED" in out) == (status, True)


def test_recording_needs_a_file(fltheory_command) -> None:
    status, _, err = fltheory_command("verify", "sa-fl/5", "--record")
    assert (status, "baseline must name the file to record" in err) == (2, True)


def test_an_interrupted_run_leaves_the_older_file(
    fltheory_command, monkeypatch, tmp_path: Path
) -> None:
    path = tmp_path / "verify.json"
    path.write_text("older")

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fltheory.verify, "check_regimes", interrupted)
    status, _, err = fltheory_command("verify", "--json", str(path))
    assert status == 130
    assert "interrupted" in err
    assert path.read_text() == "older"


def test_verify_writes_the_report_and_the_table(
    fltheory_command, two_quick_cells, tmp_path: Path
) -> None:
    page, table = tmp_path / "report.html", tmp_path / "verdicts.csv"
    status, out, err = fltheory_command("verify", "--html", str(page), "--csv", str(table))
    assert (status, err) == (0, "")
    assert page.read_text().startswith("<!doctype html>")
    assert "biased minority excluded" in page.read_text()
    assert table.read_text().count("\n") == 3
    assert f"written to {page}" in out.replace("\n", "")


def test_certificates_are_those_of_the_folder_given(
    fltheory_command, monkeypatch, certificate_file: Path, tmp_path: Path
) -> None:
    """The printed Theorem 5, over one regime on which it does not apply."""
    printed = theorems.get("sa-fl/5")
    regimes = {"i.i.d.": printed.regimes["i.i.d."]}
    monkeypatch.setattr(registry, "registered", lambda *names: (with_regimes(printed, regimes),))
    page, options = tmp_path / "report.html", ("--witnesses", str(certificate_file.parent))
    assert fltheory_command("verify", "--html", str(page), *options)[0] == 0
    assert (
        "1 of 1 printed theorems, corollaries and lemmas refuted: 1 for a misprint."
        in page.read_text()
    )
    monkeypatch.chdir(tmp_path)
    assert fltheory_command("verify", "--html", str(page))[0] == 0
    assert "<h1>sa-fl/5 holds on 0 of 1 settings; does not apply to 1.</h1>" in page.read_text()


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_report_on_a_theorem_of_ones_own_has_search_map_and_proof(
    fltheory_command, monkeypatch, tmp_path: Path
) -> None:
    """The template's theorem holds where it applies; SGD on F itself, so that it is provable."""
    monkeypatch.chdir(tmp_path)
    assert fltheory_command("new", "theorem", "mine.py")[0] == 0
    own = ("--load", "mine.py")
    assert fltheory_command(*own, "prove", "my/1", "--out", "proof.json")[0] == 0
    whole = html_report.default_axis
    monkeypatch.setattr(
        html_report,
        "default_axis",
        lambda start, name: MapAxis(name, whole(start, name).values[:2]),
    )
    options = ("--html", "report.html", "--search", "20", "--map", "--certificate", "proof.json")
    status, out, _ = fltheory_command(*own, "verify", "my/1", *options)
    assert status == 0
    assert "my/1 holds on 3 of 4 settings; does not apply to 1; 2.86 to " in out
    page = Path("report.html").read_text()
    (head,) = re.findall("<h1>(.*)</h1>", page)
    assert "; 20 more were searched, and none refutes it; 2.86 to " in head
    beside = page.partition('id="beside"')[2].partition('id="overview"')[0]
    assert "no refutation found; 20 settings tried" in beside
    assert "data:image/svg+xml;base64," in beside
    assert "for all clients that are 1-smooth and 1/10 = 0.1-strongly convex" in beside
    for wrong, says in (
        ("none.json", "must be a file that exists"),
        ("mine.py", "must be one that"),
    ):
        status, _, err = fltheory_command(*own, "verify", "my/1", *options[:-1], wrong)
        assert (status, f"certificate {says}" in err) == (2, True)
    Path("proof.json").write_text(Path("proof.json").read_text().replace("1/8", "1/4"))
    # Before any other work, as a search and a map may take long.
    monkeypatch.setattr(fltheory.verify, "check_regimes", None)
    status, _, err = fltheory_command(*own, "verify", "my/1", *options)
    assert status == 2
    assert err.startswith("fltheory: proof in proof.json fails: ")


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_search_that_refutes_is_in_the_headline(fltheory_command, monkeypatch, tmp_path) -> None:
    """Halving the template's bound leaves its regimes, and a search finds it broken."""
    monkeypatch.chdir(tmp_path)
    assert fltheory_command("new", "theorem", "mine.py")[0] == 0
    text = Path("mine.py").read_text()
    assert "bound=RATE**R * D_0**2" in text
    Path("mine.py").write_text(text.replace("bound=RATE**R * D_0**2", "bound=RATE**R * D_0**2 / 2"))
    options = ("--html", "report.html", "--search", "100")
    assert fltheory_command("--load", "mine.py", "verify", "my/1", *options)[0] == 0
    (head,) = re.findall("<h1>(.*)</h1>", Path("report.html").read_text())
    assert head.startswith("1 of 1 printed theorems, corollaries and lemmas refuted")


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_float_among_a_theorems_numbers_is_named_by_its_line(
    fltheory_command, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fltheory_command("new", "theorem", "mine.py")[0] == 0
    text = Path("mine.py").read_text()
    own = 'number="sqrt(squared_distance)"'
    assert own in text
    rounded = "number=lambda s: 0.5 * np.linalg.norm(2 * (s.x0 - s.problem.x_star))"
    Path("mine.py").write_text(text.replace(own, rounded))
    line = 1 + text[: text.index(own)].count("\n")
    status, out, _ = fltheory_command("--load", "mine.py", "verify", "my/1")
    assert status == 0
    assert f"a symbol's value is a float (mine.py, line {line}): avoid float()" in out


def test_verify_shows_rational_verdicts_and_writes_them(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    status, out, _ = fltheory_command("verify", "pac/1", "pac/1-sum", "--json", str(path))
    assert status == 0
    assert "rational" in out
    assert "1 against 1/4" in out
    cells = json.loads(path.read_text())["cells"]
    of_theorem = [cell for cell in cells if cell["theorem"] == "pac/1"]
    assert {cell["evidence"]["grade"] for cell in of_theorem} == {"rational"}
    assert {cell["relation"] for cell in of_theorem} == {">"}
    assert {cell["outcome"] for cell in of_theorem} == {"HOLDS", "INAPPLICABLE"}


def test_an_option_without_its_partner_is_refused(fltheory_command, tmp_path) -> None:
    status, _, err = fltheory_command("verify", "lemmas", "--data", str(tmp_path))
    assert (status, err) == (
        2,
        f"fltheory: data must be left out without --on, got {str(tmp_path)!r}\n",
    )
    status, _, err = fltheory_command("verify", "lemmas", "--witnesses", str(tmp_path))
    assert (status, err) == (
        2,
        "fltheory: witnesses must be left out without --html, which reports it\n",
    )


def test_a_file_beside_the_package_is_the_users() -> None:
    """Its path begins as the package's does, as that of a file in a checkout may."""
    beside = f"{Path(fltheory.__file__).parent}_mine.py"
    raising = compile("def number():\n    raise error", beside, "exec")
    names: dict[str, Any] = {"error": InexactRoundError("a float")}
    exec(raising, names)
    with pytest.raises(InexactRoundError) as caught:
        names["number"]()
    assert "(fltheory_mine.py, line 2)" in enclosed_check._float_among_constants(caught.value)
