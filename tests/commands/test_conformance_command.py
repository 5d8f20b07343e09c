"""fltheory conformance: an implementation by module or file, its faults, options and lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fltheory.commands.conformance import value_of

RIGHT = "from fltheory.testing import run_of\n\nrun = run_of('mifa')\n"
WRONG = "def run(x0, clients, trace, **given):\n    return [x0] * len(trace)\n"


@pytest.fixture
def _implementations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "right_mifa.py").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "wrong_mifa.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "broken_mifa.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "ended_mifa.py").write_text("import sys\n\nsys.exit()\n", encoding="utf-8")


pytestmark = pytest.mark.usefixtures("_implementations")
QUICK = ("--law", "by-hand", "--law", "returns-models")


@pytest.mark.parametrize("place", ["right_mifa.py:run", "right_mifa:run"])
def test_a_right_one_conforms(fltheory_command, place: str) -> None:
    status, out, _ = fltheory_command("conformance", place, "mifa", *QUICK)
    assert status == 0
    assert out.startswith("mifa: conforms: 2 passed")


def test_a_wrong_one_fails_and_says_why(fltheory_command) -> None:
    status, out, _ = fltheory_command("conformance", "wrong_mifa.py:run", "mifa", "--first")
    assert status == 1
    assert "the first row must be x0, before any round" in out


def test_json_and_declared_failures(fltheory_command) -> None:
    declared = ("--expect", "returns-models=no first row", "--law", "returns-models")
    place = ("--json", "report.json")
    status, out, _ = fltheory_command("conformance", "wrong_mifa.py:run", "mifa", *declared, *place)
    assert "written to report.json" in out
    report = json.loads(Path("report.json").read_text(encoding="utf-8"))
    assert (status, report["conforms"]) == (0, True)
    (finding,) = report["findings"]
    assert (finding["outcome"], finding["reason"]) == ("EXPECTED", "no first row")


def test_options_fix_what_is_given(fltheory_command) -> None:
    given = ("--set", "start=zero", "--set", "client_lr=0.25", "--law", "full-participation")
    status, _, _ = fltheory_command("conformance", "right_mifa.py:run", "mifa", *given)
    assert status == 0
    status, _, err = fltheory_command(
        "conformance", "right_mifa.py:run", "mifa", "--set", "begin=zero"
    )
    assert status == 2
    assert "options of mifa must be among start, client_lr, local_steps, server_lr" in err


def test_lists(fltheory_command) -> None:
    status, out, _ = fltheory_command("conformance", "--list")
    assert status == 0
    assert "ca-fed" in out
    status, out, _ = fltheory_command("conformance", "--list", "scaffold")
    assert "option: 1 or 2" in out
    assert "memory-adds-up: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("broken_mifa.py:run", "mifa"),
            "broken_mifa.py, line 1: ZeroDivisionError: division by zero",
        ),
        (("ended_mifa.py:run", "mifa"), "ended_mifa.py, line 3: SystemExit: no message"),
        (("missing.py:run", "mifa"), "file of RUN must exist, got 'missing.py'"),
        (("broken_mifa:run", "mifa"), "broken_mifa.py, line 1: ZeroDivisionError"),
        (("right_mifa:walk", "mifa"), "RUN must name a function of right_mifa, got 'walk'"),
        (("no_such_module:run", "mifa"), "no_such_module: ModuleNotFoundError"),
        (
            ("right_mifa", "mifa"),
            "RUN must be module:function or file.py:function, got 'right_mifa'",
        ),
        (("right_mifa:run", "fedsgd"), "name must be one of fedavg, "),
        (("right_mifa:run",), "RUN and ALGORITHM must be given"),
        (("right_mifa:run", "mifa", "--expect", "by-hand"), "--expect must be name=value"),
    ],
)
def test_bad_requests_are_one_line(fltheory_command, arguments, message: str) -> None:
    status, _, err = fltheory_command("conformance", *arguments)
    assert status == 2
    assert err.startswith("fltheory: ")
    assert message in err
    assert err.count("\n") == 1


def test_values_of_options() -> None:
    assert [value_of(text) for text in ("2", "None", "[1, 2]", "wait")] == [2, None, (1, 2), "wait"]
