from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fltheory.files.user_file import LOADED_FILE, run_file, said_by


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n\nx / 0\n", "mine.py, line 3: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(2)\n", "mine.py, line 2: SystemExit: 2"),
        ("import os\nos._exit(0)\n", "mine.py, line 2: SystemExit: os._exit(0)"),
        ("x = 1\nx = (\n", "mine.py, line 2: SyntaxError: '(' was never closed"),
        ("\nraise ValueError\n", "mine.py, line 2: ValueError: no message"),
    ],
)
def test_a_fault_is_one_line_with_its_place(tmp_path: Path, source: str, said: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source, encoding="utf-8")
    with pytest.raises(ValueError, match="mine") as caught:
        run_file(path, "file of tests")
    assert str(caught.value) == str(tmp_path / said)


def test_a_file_hides_no_module_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "json.py"
    path.write_text("found = 3\n", encoding="utf-8")
    assert run_file(path, "file of tests").found == 3
    import json

    assert json.loads("3") == 3


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"file of tests must exist, got '.*', a folder"):
        run_file(tmp_path, "file of tests")


def test_an_error_that_cannot_be_told_is_told() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise KeyError("mute")

    assert said_by(MuteError()) == "its message raises KeyError"


def test_a_file_that_raises_is_not_loaded_and_one_before_it_stays(tmp_path: Path) -> None:
    file = tmp_path / "half_done_here.py"
    file.write_text("1 / 0")
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        run_file(file, "file")
    assert f"{LOADED_FILE}half_done_here" not in sys.modules
    file.write_text("VALUE = 1")
    first = run_file(file, "file")
    file.write_text("raise SystemExit")
    with pytest.raises(ValueError, match="SystemExit"):
        run_file(file, "file")
    assert sys.modules.pop(f"{LOADED_FILE}half_done_here") is first


def test_a_process_that_a_file_forks_ends_and_this_one_can(tmp_path: Path) -> None:
    """The child's status is its own; afterwards `os._exit` is what it was."""
    before = os._exit
    file = tmp_path / "forks_here.py"
    file.write_text(
        "import os\nchild = os.fork()\nif not child:\n    os._exit(7)\n"
        "STATUS = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
    )
    assert run_file(file, "file").STATUS == 7
    assert os._exit is before
