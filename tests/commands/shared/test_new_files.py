"""Files to start from: they run as they are written, under the name that they are given."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.evidence.verdict import Grade
from fltheory.verify import Outcome, check, falsify

LINTER = (sys.executable, "-m", "ruff")


@pytest.fixture(params=["theorem", "algorithm"])
def written(request, fltheory_command, tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "own_name.py"
    status, out, _ = fltheory_command("new", request.param, path)
    assert status == 0
    assert f"written to {path}" in out
    return path


def test_it_has_the_name_that_it_is_given_and_good_form(written: Path) -> None:
    text = written.read_text()
    assert "own_name.py" in text
    assert "my_theorem" not in text
    assert "my_algorithm" not in text
    for command in (("format", "--check"), ("check", "--select", "B,E,F,I,UP")):
        options = ("--isolated", "--line-length", "100", written.name)
        subprocess.run([*LINTER, *command, *options], check=True, cwd=written.parent)


def test_an_older_file_stays(written: Path, fltheory_command) -> None:
    written.write_text("mine")
    status, _, err = fltheory_command("new", "theorem", written)
    assert (status, "must be a new one" in err) == (2, True)
    assert written.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a-b.py", "named like a Python module"),
        ("a.txt", "must end in .py"),
        (".", "got the folder"),
    ],
)
def test_a_bad_name_is_one_line(fltheory_command, tmp_path, name: str, message: str) -> None:
    status, _, err = fltheory_command("new", "theorem", tmp_path / name)
    assert (status, message in err, err.count("\n")) == (2, True, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_the_theorem_holds_where_it_says_and_the_search_sees_a_slip(
    fltheory_command, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    fltheory_command("new", "theorem", path)
    (theorem,) = theorems.load(path)
    verdicts = {name: check(theorem, one.setting) for name, one in theorem.regimes.items()}
    assert {verdict.evidence.grade for verdict in verdicts.values()} == {Grade.EXACT}
    found = {name: verdict.outcome for name, verdict in verdicts.items()}
    assert found.pop("too long a step") is Outcome.INAPPLICABLE
    assert set(found.values()) == {Outcome.HOLDS}
    # On clients of one curvature the bound is tight; at 1/L it is zero, and the truth rounding.
    found = falsify(theorem, 20)
    assert found.witness is None
    assert found.best_ratio <= 1 + 1e-6
    path.write_text(path.read_text().replace("/ (N * mu)", "/ (4 * N * mu)"))
    (slip,) = theorems.load(path)
    assert falsify(slip, 20).witness is not None
    # Its symbols are numbers of a setting, so that a refutation of it is certified.
    kept = tmp_path / "kept.json"
    _, out, _ = fltheory_command("falsify", "my/1", "--budget", "20", "--out", kept)
    assert "certified" in out
    assert kept.is_file()


@pytest.mark.parametrize(
    ("written", "grade", "why"),
    [
        ("sp.sqrt(((setting.x0 - setting.problem.x_star) ** 2).sum())", "exact", ""),
        ("np.sqrt(((setting.x0 - setting.problem.x_star) ** 2).sum())", "exact", ""),
        ("sp.sqrt(9)", "exact", ""),
        (
            "float(np.linalg.norm(setting.x0 - setting.problem.x_star))",
            "float64",
            "my/1 (printed) is float64, not exact: the constant D_0 of my/1 was rounded",
        ),
        (
            "setting.x0.astype(float)[0] - setting.problem.x_star.astype(float)[0]",
            "float64",
            "NumPy's norm and sqrt keep exact numbers exact",
        ),
    ],
)
@pytest.mark.usefixtures("own_theorems_forgotten")
def test_evidence_is_exact_unless_something_rounds_and_then_says_what(
    fltheory_command, tmp_path: Path, written: str, grade: str, why: str
) -> None:
    path = tmp_path / "mine.py"
    fltheory_command("new", "theorem", path)
    old = 'number="sqrt(squared_distance)"'
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, f"number=lambda setting: {written}"))
    report = tmp_path / "report.html"
    _, out, _ = fltheory_command("--load", path, "verify", "my", "--html", report)
    assert len(re.findall(rf"(HOLDS|INAPPLICABLE) +│ {grade} ", out)) == 4
    assert why in " ".join(out.split())
    assert ("not exact: the constant D_0" in report.read_text()) is (grade == "float64")


def test_the_setting_is_the_one_of_its_page_and_is_compared(
    fltheory_command, tmp_path: Path
) -> None:
    path = tmp_path / "with a-dash.toml"
    status, out, _ = fltheory_command("new", "setting", path)
    assert (status, out.splitlines()[-1]) == (0, f"next: fltheory compare '{path}'")
    assert "compare with a-dash.toml " in path.read_text()
    page = Path("docs/how-to/settings.md").read_text()
    (shown,) = re.findall(r'```toml title="my_setting.toml"\n(.*?)```', page, re.DOTALL)
    assert tomllib.loads(path.read_text()) == tomllib.loads(shown)
    status, out, _ = fltheory_command("compare", path, "sa-fl/5")
    assert status == 0
    assert re.search(r"sa-fl/5 +│ derived +│ HOLDS", out)
    status, _, err = fltheory_command("new", "setting", tmp_path / "setting.py")
    assert (status, "must end in .toml" in err) == (2, True)


def test_the_algorithm_runs_and_passes_its_own_tests(
    fltheory_command, capsys, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    fltheory_command("new", "algorithm", path)
    capsys.readouterr()
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.startswith("MyAlgorithm(client_lr=0.1")
    tests = [one for name, one in runpy.run_path(str(path)).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
