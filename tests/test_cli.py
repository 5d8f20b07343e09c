"""The command line, as a user calls it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import pytest

import fltheory.experiments
import fltheory.verify
import fltheory.weights
from fltheory import cli, theorems
from fltheory.verify import Judged, MapAxis, certificate, write_certificate
from fltheory.verify.weight_certificate import weight_certificate
from tests.verify.witnesses import ONE_ROUND


def run(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["fltheory", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def fltheory_command(monkeypatch, capsys):
    return lambda *arguments: run(monkeypatch, capsys, *arguments)


@pytest.fixture
def two_quick_cells(monkeypatch) -> None:
    """Verify two quick regimes, whatever is asked for."""
    quick = theorems.get("sa-fl/5", "derived")
    regimes = {name: quick.regimes[name] for name in ("i.i.d.", "biased minority excluded")}
    monkeypatch.setattr(cli, "_selected", lambda names: [replace(quick, regimes=regimes)])


def test_theorems_lists_all(fltheory_command) -> None:
    status, out, _ = fltheory_command("theorems")
    assert status == 0
    assert all(
        name in out
        for name in ("sa-fl/4", "sa-fl/5", "sa-fl-submission/4", "corollary-1", "corollary-2")
    )


def test_explain_shows_statement_and_where_it_applies(fltheory_command) -> None:
    status, out, _ = fltheory_command("explain", "sa-fl/corollary-2", "--reading", "derived")
    assert status == 0
    assert "large enough step" in out
    assert "HOLDS: i.i.d.; unbiased sampling" in out


def test_derive_shows_steps_and_units(fltheory_command) -> None:
    status, out, err = fltheory_command("derive", "sa-fl/5", "--reading", "derived")
    assert (status, err) == (0, "")
    assert "16 steps: 16 FOLLOWS; unit flags: 0" in out
    assert "printed reading" not in out


def test_derive_shows_all_readings_by_default(fltheory_command) -> None:
    status, out, _ = fltheory_command("derive", "sa-fl/corollary-1")
    assert status == 0
    assert out.index("printed reading") < out.index("derived reading")


def test_verify_writes_the_table_and_the_file(fltheory_command, two_quick_cells, tmp_path) -> None:
    path = tmp_path / "verify.json"
    status, out, _ = fltheory_command("verify", "--json", str(path))
    assert status == 0
    assert "2 cells: 1 HOLDS, 1 INAPPLICABLE" in out
    cells = json.loads(path.read_text())["cells"]
    assert [cell["outcome"] for cell in cells] == ["HOLDS", "INAPPLICABLE"]


@pytest.mark.parametrize(("outcome", "status"), [("HOLDS", 0), ("REFUTED", 1)])
def test_exit_status_tells_a_changed_verdict(
    fltheory_command, two_quick_cells, tmp_path: Path, outcome: str, status: int
) -> None:
    path = tmp_path / "baseline.csv"
    path.write_text(f"theorem,reading,regime,outcome,ratio\nsa-fl/5,derived,i.i.d.,{outcome},0\n")
    found, out, _ = fltheory_command("verify", "--baseline", str(path))
    assert found == status
    assert ("the verdict changed from REFUTED to HOLDS" in out) == bool(status)
    assert "biased minority excluded: not recorded" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "sa-fl/55"), "sa-fl/5"),
        (("explain", "sa-fl/55"), "sa-fl/5"),
        (("explain", "sa-fl/5", "--reading", "mine"), "printed, derived"),
        (("derive", "sa-fl/55"), "sa-fl/5"),
        (("derive", "sa-fl/5", "--reading", "mine"), "printed, derived"),
        (("verify", "--baseline", "nowhere.csv"), "baseline must be an existing file"),
        (("verify", "--replicas", "1"), "replicas must be a whole number of at least 2, got 1"),
        (("verify", "--seed", "-1"), "seed must be a whole number of at least 0, got -1"),
        (("verify", "--replicas", "many"), "'--replicas': Input should be a valid integer"),
        (("experiment", "ca-fed", "--rounds", "1"), "rounds must be a whole number of at least 2"),
        (("experiment", "ca-fed", "--seeds", "0"), "seeds must be a whole number of at least 1"),
        (("experiment", "sa-fl"), "sa-fl"),
        (("verify", "--unknown"), "--unknown"),
        (("prove",), "prove"),
    ],
)
def test_bad_input_is_one_line_and_status_two(fltheory_command, arguments, message) -> None:
    status, _, err = fltheory_command(*arguments)
    assert status == 2
    assert err.startswith("fltheory: ")
    assert err.count("\n") == 1
    assert message in err


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


@pytest.fixture
def certificate_file(tmp_path: Path) -> Path:
    path = tmp_path / "witnesses" / "one.json"
    write_certificate(path, certificate(theorems.get("sa-fl/5"), ONE_ROUND))
    return path


def test_certify_checks_certificates_of_weights_too(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    document = weight_certificate(Fraction(1, 2), 3, 1)
    path.write_text(json.dumps(document))
    status, out, _ = fltheory_command("certify", str(path))
    assert status == 0
    assert "fedau/3-step (printed): REFUTED, checked in fractions" in out
    assert "E[(p omega_t - 1)^2] = 1/4" in out
    path.write_text(json.dumps({**document, "t": 2}))
    status, _, err = fltheory_command("certify", str(path))
    assert status == 2
    assert "bound must be" in err or "truth must be" in err


def test_certify_shows_what_is_refuted(fltheory_command, certificate_file: Path) -> None:
    status, out, _ = fltheory_command("certify", str(certificate_file))
    assert status == 0
    assert "sa-fl/5 (printed): REFUTED, checked in fractions" in out
    assert "E||x_R - x*||^2 = 1/10 = 0.1" in out


def test_an_edited_certificate_is_refused_in_one_line(
    fltheory_command, certificate_file: Path
) -> None:
    text = certificate_file.read_text()
    certificate_file.write_text(text.replace('"truth": "1/10"', '"truth": "1/9"'))
    status, out, err = fltheory_command("certify", str(certificate_file))
    assert (status, out) == (2, "")
    assert err == "fltheory: truth: must be 1/10, got 1/9\n"


def test_falsify_states_its_effort(fltheory_command) -> None:
    options = ("--reading", "derived", "--budget", "30")
    status, out, _ = fltheory_command("falsify", "sa-fl/5", *options)
    assert status == 0
    assert "no refutation found; 30 settings tried" in out


def test_falsify_follows_an_order_over_three_decades(fltheory_command) -> None:
    status, out, _ = fltheory_command("falsify", "sa-fl/corollary-2", "--budget", "250")
    assert status == 0
    assert "sa-fl/corollary-2 (printed): BROKEN" in out
    assert "250 settings tried over three decades" in out
    options = ("--reading", "derived", "--budget", "20")
    assert (
        "says nothing on any of them"
        in fltheory_command("falsify", "sa-fl/corollary-2", *options)[1]
    )
    status, _, err = fltheory_command("falsify", "sa-fl/corollary-2", "--out", "x.json")
    assert status == 2
    assert "an order has no certificate" in err


def test_repair_shows_which_mends_are_needed(fltheory_command) -> None:
    status, out, _ = fltheory_command("repair", "sa-fl-submission/4", "--budget", "1000")
    assert status == 0
    assert "sa-fl-submission/4 (repaired) survives the search, which is not a proof" in out
    assert "eta_c <= 1/(2 sqrt(30) LK) for 1/(4 sqrt(30LK)) [(45)]: refuted without it" in out
    assert "the sum over r = 0 .. R-1 for 1 .. R [(51)]: not refuted without it" in out


def test_repair_of_a_claimed_order_is_refused(fltheory_command) -> None:
    status, _, err = fltheory_command("repair", "sa-fl/corollary-1")
    assert status == 2
    assert "reading of sa-fl/corollary-1 must be one of printed, derived" in err


def power_options(path: Path, *more: str) -> tuple[str, ...]:
    return ("power", "sa-fl/5", "--every", "70", "--budget", "250", "--out", str(path), *more)


def test_power_resumes_and_writes_its_page(fltheory_command, tmp_path: Path) -> None:
    path, page = tmp_path / "power.json", tmp_path / "power.md"
    status, out, _ = fltheory_command(*power_options(path, "--page", str(page)))
    assert status == 0
    assert out.startswith("3 mutants, ")
    assert "| sa-fl/5 | 3 |" in page.read_text()
    document = json.loads(path.read_text())
    document["judged"][0]["about"] = "as it was before"
    document["judged"].pop()
    path.write_text(json.dumps(document))
    assert fltheory_command(*power_options(path))[0] == 0
    resumed = json.loads(path.read_text())["judged"]
    assert len(resumed) == 3
    assert resumed[0]["about"] == "as it was before"
    status, _, err = fltheory_command(*power_options(path, "--seed", "5"))
    assert status == 2
    assert "out must be of the same plan" in err


def test_an_interrupted_power_says_what_is_kept(
    fltheory_command, monkeypatch, tmp_path: Path
) -> None:
    def one_then_interrupt(chosen, plan, **options):
        yield Judged(*chosen[0], "sign", "search", 250)
        raise KeyboardInterrupt

    monkeypatch.setattr(fltheory.verify, "judge_all", one_then_interrupt)
    path = tmp_path / "power.json"
    status, _, err = fltheory_command(*power_options(path))
    assert status == 130
    assert err == (
        f"fltheory: interrupted, 1 judged mutants are in {path}, the same command resumes\n"
    )
    assert len(json.loads(path.read_text())["judged"]) == 1


def test_cutoff_shows_the_best_and_the_papers(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "cutoff.svg"
    status, out, _ = fltheory_command("cutoff", "0.1", "0.5", "--rounds", "100", "--out", str(path))
    assert status == 0
    assert "log_c T (Corollary 4)" in out
    assert path.is_file()
    status, _, err = fltheory_command("cutoff", "1.5")
    assert (status, err) == (2, "fltheory: p must be in (0, 1], got 1.5 for client 0\n")


def test_falsify_writes_a_certificate(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    status, out, _ = fltheory_command("falsify", "sa-fl/4", "--out", str(path))
    assert status == 0
    assert "certified: replayed in fractions" in out
    assert fltheory_command("certify", str(path))[0] == 0


def test_findings_are_made_and_checked(
    fltheory_command, certificate_file, monkeypatch, tmp_path: Path
) -> None:
    few = ("sa-fl/4", "sa-fl/5", "sa-fl/corollary-2")
    monkeypatch.setattr(import_module("fltheory.report.findings"), "ids", lambda: few)
    page = tmp_path / "findings.md"
    options = (str(certificate_file.parent), "--out", str(page), "--budget", "250")
    assert fltheory_command("findings", *options)[0] == 0
    assert fltheory_command("findings", *options, "--check")[0] == 0
    text = page.read_text()
    for part in (
        "sa-fl/5, printed",
        "one.json",
        "`E||x_R - x*||^2 = 1/10 = 0.1`",
        "- sa-fl/5: refuted, certified in `one.json`",
        "- sa-fl/4 (printed): 250 settings tried",
        "its regimes: 4 INAPPLICABLE",
        "survives the search, which is not a proof: 250 settings tried",
        "- eta_c <= 1/(8LK) as a further hypothesis, (75): not refuted without it",
    ):
        assert part in text
    page.write_text(text + "more")
    assert fltheory_command("findings", *options, "--check")[0] == 1
    status, _, err = fltheory_command("findings", str(tmp_path / "empty"))
    assert status == 2
    assert "witnesses must be a folder with certificates" in err


def test_map_shows_a_table_and_writes_a_figure(fltheory_command, monkeypatch, tmp_path) -> None:
    """After 300 rounds the derived Theorem 5 applies at q = 0.05, and not at 0.5 or above."""
    few = {"q": MapAxis("q", (0.05, 0.9)), "rounds": MapAxis("rounds", (1.0, 300.0))}
    monkeypatch.setattr(fltheory.verify, "default_axis", lambda setting, name: few[name])
    path = tmp_path / "map.svg"
    status, out, _ = fltheory_command("map", "sa-fl/5", "--reading", "derived", "--out", str(path))
    assert status == 0
    assert "sa-fl/5 (derived): applies on 75.0% of the cells" in out
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--x", "colour"), "parameter must be one of"),
        (("--x", "rounds"), "y must be another parameter than x"),
        (("--regime", "calm"), "regime must be one of i.i.d."),
    ],
)
def test_bad_maps_are_one_line(fltheory_command, options, message) -> None:
    status, _, err = fltheory_command("map", "sa-fl/5", *options)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


WEIGHTS = """
availability = [0.9, 0.5, 0.25]
a = 2.0
b = 1.0
bias = 1e9
"""


def test_weights_shows_them_and_writes_a_figure(fltheory_command, tmp_path: Path) -> None:
    """So heavy a bias gives q in proportion to 1 / pi: (1 / 0.9, 2, 4) / 7.11 and p = 1/3."""
    path, figure = tmp_path / "problem.toml", tmp_path / "weights.svg"
    path.write_text(WEIGHTS)
    status, out, _ = fltheory_command("weights", str(path), "--out", str(figure))
    assert status == 0
    assert [part.strip() for part in out.splitlines()[3].strip("│").split("│")] == [
        "0",
        "0.333333",
        "0.9",
        "0.15625",
        "0.333333",
    ]
    assert "relative KKT residual" in out
    assert figure.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("availability = [0.5, 0.5\n", "file must be TOML, got "),
        (
            "a = 1.0\nb = 1.0\nbias = 1.0\n",
            "availability must be given in the file, got a, b, bias",
        ),
        ("", "availability must be given in the file, got none"),
        (WEIGHTS + "tau = 1.0\n", "tau must be one of availability, a, b, bias, target_weights"),
        (WEIGHTS.replace("0.5", "0.0"), "is infinite, got 0 for client 1"),
        (WEIGHTS.replace("0.5", "nan"), "availability must be finite, got nan"),
        (WEIGHTS.replace("[0.9, 0.5, 0.25]", "'often'"), "availability must be a real array"),
        (WEIGHTS + "target_weights = [0.5, 0.5]\n", "target_weights must have shape (3,)"),
        (WEIGHTS + "total = 0\n", "total must be a finite number above 0, got 0"),
        (WEIGHTS.replace("b = 1.0", "b = 'one'"), "b must be a finite number of at least 0"),
        (WEIGHTS.replace("bias = 1e9", "bias = -1"), "bias must be a finite number of at least 0"),
    ],
)
def test_bad_weights_files_are_one_line(fltheory_command, tmp_path: Path, text, message) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(text)
    status, out, err = fltheory_command("weights", str(path))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_weights_that_are_not_found_are_one_line(fltheory_command, monkeypatch, tmp_path) -> None:
    def stuck(problem: object) -> None:
        raise ArithmeticError("the weights have a KKT residual")

    monkeypatch.setattr(fltheory.weights, "solve", stuck)
    path = tmp_path / "problem.toml"
    path.write_text(WEIGHTS)
    status, _, err = fltheory_command("weights", str(path))
    assert (status, err) == (2, "fltheory: the weights have a KKT residual\n")


def test_a_missing_weights_file_is_one_line(fltheory_command) -> None:
    status, _, err = fltheory_command("weights", "nowhere.toml")
    assert status == 2
    assert err == "fltheory: file must be an existing file, got 'nowhere.toml'\n"


@pytest.fixture
def quick_experiment(monkeypatch) -> None:
    """Measure two methods in a moment, whatever is asked for."""
    monkeypatch.setattr(fltheory.experiments, "keys", lambda seeds: QUICK_KEYS)
    plan = fltheory.experiments.Plan
    small = {"train_size": 10, "test_size": 10, "client_lrs": (0.1,), "server_lrs": (1.0,)}
    monkeypatch.setattr(
        fltheory.experiments, "Plan", lambda rounds, **options: plan(rounds, **options, **small)
    )


QUICK_KEYS = ((0, "Unbiased"), (0, "CA-Fed"))


def test_the_experiment_is_run_and_resumed(
    fltheory_command, quick_experiment, monkeypatch, tmp_path: Path
) -> None:
    out, page = tmp_path / "ca-fed.json", tmp_path / "docs" / "ca-fed.md"
    options = ("experiment", "ca-fed", "--rounds", "4", "--out", str(out), "--page", str(page))
    status, printed, _ = fltheory_command(*options)
    assert status == 0
    assert all(part in printed for part in ("Unbiased", "CA-Fed", "76.22", f"written to {out}"))
    assert "--seeds 10 --rounds 4" in page.read_text()
    assert len(json.loads(out.read_text())["measured"]) == 2
    written = out.stat().st_mtime_ns
    assert fltheory_command(*options)[:2] == (0, printed)
    assert out.stat().st_mtime_ns == written
    status, _, err = fltheory_command(*options[:3], "5", *options[4:])
    assert status == 2
    assert "out must be of the same plan" in err


def test_an_interrupted_experiment_says_what_is_kept(
    fltheory_command, quick_experiment, monkeypatch, tmp_path: Path
) -> None:
    def one_then_interrupt(chosen, plan, **options):
        yield fltheory.experiments.measure(chosen[0], plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(fltheory.experiments, "measure_all", one_then_interrupt)
    path = tmp_path / "out.json"
    status, _, err = fltheory_command("experiment", "ca-fed", "--rounds", "4", "--out", str(path))
    assert status == 130
    assert (
        err == f"fltheory: interrupted, 1 measured rows are in {path}, the same command resumes\n"
    )


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
    monkeypatch.setattr(cli, "_selected", lambda names: [replace(printed, regimes=regimes)])
    page, options = tmp_path / "report.html", ("--witnesses", str(certificate_file.parent))
    assert fltheory_command("verify", "--html", str(page), *options)[0] == 0
    assert "1 of 1 printed statements is refuted." in page.read_text()
    monkeypatch.chdir(tmp_path)
    assert fltheory_command("verify", "--html", str(page))[0] == 0
    assert "None of 1 printed statements is refuted here." in page.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "--html"),
        ("verify", "--csv"),
        ("verify", "--json"),
        ("falsify", "sa-fl/5", "--out"),
        ("map", "sa-fl/5", "--out"),
        ("cutoff", "0.5", "--out"),
        ("power", "--out"),
        ("power", "--page"),
        ("findings", "--out"),
        ("experiment", "ca-fed", "--out"),
        ("experiment", "ca-fed", "--page"),
    ],
    ids=" ".join,
)
def test_a_place_that_cannot_be_written_to_is_named_before_the_work(
    fltheory_command, monkeypatch, tmp_path: Path, arguments
) -> None:
    def begun(*arguments: object, **options: object) -> None:
        raise AssertionError("the work was begun")

    for name in ("check_regimes", "judge_all", "map_region"):
        monkeypatch.setattr(fltheory.verify, name, begun)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    status, out, err = fltheory_command(*arguments, "taken/new.svg")
    assert (status, out) == (2, "")
    option = arguments[-1].removeprefix("--")
    assert err == f"fltheory: {option} must be where a file can be written, got 'taken/new.svg'\n"


@pytest.mark.parametrize("command", [("map", "sa-fl/5"), ("cutoff", "0.5")], ids=" ".join)
def test_figures_have_two_formats(fltheory_command, command) -> None:
    status, _, err = fltheory_command(*command, "--out", "figure.pdf")
    assert (status, err) == (2, "fltheory: out must end in .png or .svg, got 'figure.pdf'\n")
