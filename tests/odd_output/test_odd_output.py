"""Output that is narrow, ASCII, full, closed or read by nobody: a line, a status, whole files.

Every command runs with what installing the wheel brings, and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.odd_output.runner import Answer, faults, not_run, too_long

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are the kernel's")
@pytest.mark.parametrize(
    ("options", "least"), [(["--part"], 4), pytest.param([], 16, marks=pytest.mark.soundness)]
)
def test_commands_end_in_a_line_and_leave_whole_files_or_none(
    options: list[str], least: int
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.odd_output.runner", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(ran.stdout.split()[0]) >= least, ran.stdout


@pytest.mark.parametrize(
    ("words", "out", "err", "status"),
    [
        ("theorems", "sys.stdout = None", "fltheory: the output must be open, got a closed one", 2),
        (
            "--version",
            "sys.stdout.close(); sys.stdout = open('/dev/full', 'w')",
            "No space left",
            2,
        ),
        ("nothing", "sys.stderr = None", "", 2),
        ("nothing", "sys.stderr.close()", "", 2),
        ("nothing", "sys.stderr = open('/dev/full', 'w', buffering=1)", "", 2),
        ("--version", "sys.stderr = None", "", 0),
    ],
)
def test_python_itself_has_nothing_to_add_when_it_ends(
    words: str, out: str, err: str, status: int
) -> None:
    program = f"import sys; {out}; sys.argv[1:] = [{words!r}]; from fltheory import cli; cli.main()"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == status
    assert err in ran.stderr
    assert ran.stderr.count("\n") == bool(err)


FINE = Answer(0, b"short\n", "", {"out/a": b"whole"})
CUT = Answer(141, b"", "", {})
STOPPED = Answer(2, b"", "fltheory: the disk is full\n", {})


@pytest.mark.parametrize(
    ("place", "changed", "wrong"),
    [
        (0, {}, []),
        (0, {"status": 2}, ["narrow: status 2"]),
        (0, {"out": b"word " * 9}, ["narrow: 'word "]),
        (0, {"out": b"| REFU~ |"}, ["narrow: '| REFU"]),
        (0, {"out": b"\x1b[1mbold"}, ["narrow: a dumb terminal"]),
        (1, {"status": 1}, ["unheard: status 1"]),
        (1, {"err": "Traceback"}, ["unheard: status 141, 'Traceback'"]),
        (1, {"files": {"out/a": b"wh"}}, ["unheard: out/a differs"]),
        (2, {"status": 0}, ["full: status 0"]),
        (2, {"err": "a\nb\n"}, ["full: status 2"]),
        (2, {"files": {"out/a": b"wh"}}, ["full: ['out/a'] was left"]),
    ],
)
def test_what_is_wrong_is_seen(place: int, changed: dict[str, object], wrong: list[str]) -> None:
    answers = [FINE, CUT, STOPPED]
    answers[place] = replace(answers[place], **changed)
    found = list(faults(*answers))
    assert len(found) == len(wrong)
    assert all(one.startswith(what) for one, what in zip(found, wrong, strict=True))


def test_a_command_that_does_not_run_is_seen() -> None:
    missing = "ModuleNotFoundError: no dependency of the wheel brings pytest"
    answers = {
        "conformance --help": Answer(0, b"Usage", "", {}),
        "train experiment.toml": Answer(2, b"", "needs 'fltheory[torch]'", {}),
        "advise log.csv": Answer(1, b"", missing, {}),
    }
    assert [one.split(":")[0] for one in not_run(answers)] == ["advise log.csv"]
    # What should be refused, and ran.
    assert list(not_run({"train experiment.toml": FINE}))


def test_a_long_word_or_a_command_may_be_longer_than_the_terminal() -> None:
    command = "fltheory certify a_folder/of_a_long_name.json --load mine.py"
    assert too_long(f"{'x' * 50}\n  {'y' * 50}\n{command}\nshort\n") == []
    assert too_long("some words that together are longer than forty\n") != []
