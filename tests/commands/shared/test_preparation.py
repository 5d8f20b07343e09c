"""What comes before a command: theorems from a file of one's own, and the bar meanwhile."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from fltheory.commands.shared import preparation
from tests.theorems import own

FILE = str(Path(own.__file__))
Run = Callable[..., tuple[int, str, str]]


pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")


def test_a_loaded_theorem_is_verified_and_explained(fltheory_command: Run) -> None:
    status, out, _ = fltheory_command("--load", FILE, "verify", "own")
    assert status == 0
    assert "2 cells: 2 HOLDS" in out
    status, out, _ = fltheory_command("--load", FILE, "explain", "own/false")
    assert status == 0
    assert "own/false, printed reading" in out


def test_its_family_is_searched_and_there_is_no_certificate(
    fltheory_command: Run, tmp_path: Path
) -> None:
    path = tmp_path / "witness.json"
    arguments = ("falsify", "own/false", "--budget", "100", "--out", str(path))
    status, out, _ = fltheory_command("--load", FILE, *arguments)
    assert status == 0
    assert "own/false (printed): REFUTED; 100 settings tried" in out
    assert "the value of D_0 must be a formula in numbers of a setting" in out
    assert not path.exists()


def test_its_family_is_mapped_unless_a_regime_is_named(fltheory_command: Run) -> None:
    status, out, _ = fltheory_command("--load", FILE, "map", "own/false")
    assert status == 0
    assert "rounds \\ step" in out
    status, _, err = fltheory_command("--load", FILE, "map", "own/false", "--regime", "other")
    assert (status, err) == (2, "fltheory: regime must be one of usual, got 'other'\n")


def test_without_the_file_the_theorem_is_unknown(fltheory_command: Run) -> None:
    status, _, err = fltheory_command("verify", "own/true")
    assert status == 2
    assert "id must be a registered theorem" in err


def test_a_missing_file_is_one_line(fltheory_command: Run) -> None:
    status, _, err = fltheory_command("--load", "none.py", "theorems")
    assert (status, err) == (2, "fltheory: file of theorems must exist, got 'none.py'\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n1 / 0\n", "{path}, line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "{path}, line 2: SystemExit: 3"),
        ("x = 1\ndef f(:\n", "{path}, line 2: SyntaxError: invalid syntax"),
        ("raise BaseException('x')\n", "{path}, line 1: BaseException: x"),
        ("raise GeneratorExit\n", "{path}, line 1: GeneratorExit: no message"),
        (
            "def f():\n    return f()\nf()\n",
            "{path}, line 2: RecursionError: maximum recursion depth exceeded",
        ),
        ("import none_such\n", "{path}, line 1: ModuleNotFoundError: No module named 'none_such'"),
        ("x = 1\n", "STATEMENTS of {path} must be a tuple of statements, got none"),
        ("STATEMENTS = []\n", "STATEMENTS of {path} must be a tuple of statements, got []"),
        ("STATEMENTS = (1,)\n", "STATEMENTS of {path} must be a tuple of statements, got 1 in it"),
        (
            "import sys\nfrom fltheory import theorems as t\nfrom dataclasses import replace\n"
            "s = replace(t.get('sa-fl/5'), id='own/x')\nobject.__setattr__(s, 'id', 7)\n"
            "STATEMENTS = (s,)\n",
            "id and reading of statements of {path} must be strings, got 7 ('printed')",
        ),
        (
            "from fltheory.theorems import get\nSTATEMENTS = (get('sa-fl/5'),)\n",
            "{path}: id must be one that no other theorem has, got 'sa-fl/5' (printed) again",
        ),
    ],
    ids=[
        *("raises", "exits", "syntax", "base", "generator", "recursion", "import"),
        *("nothing", "a list", "no statement", "no text", "taken"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    fltheory_command: Run, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    status, _, err = fltheory_command("--load", str(path), "theorems")
    assert (status, err) == (2, f"fltheory: {said.format(path=path)}\n")


def test_an_interrupt_while_a_file_is_loaded_is_an_interrupt(
    fltheory_command: Run, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise KeyboardInterrupt\n")
    status, out, err = fltheory_command("--load", str(path), "theorems")
    assert (status, out, err) == (130, "", "fltheory: interrupted, nothing was written\n")


def test_what_a_file_prints_is_not_the_answer(fltheory_command: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("print('hello')\nSTATEMENTS = ()\n")
    status, out, err = fltheory_command("--load", str(path), "theorems", "fedau")
    assert (status, "hello" in out, err) == (0, False, "hello\n")


def test_an_empty_id_is_refused_where_it_is_made(fltheory_command: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from dataclasses import replace\nfrom fltheory.theorems import get\n"
        "STATEMENTS = (replace(get('sa-fl/5'), id=''),)\n"
    )
    status, out, err = fltheory_command("--load", str(path), "theorems")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{path}, line 3: ValueError: id of the theorem" in err


def test_a_file_that_clears_the_registry_takes_nothing_away(
    fltheory_command: Run, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from fltheory.theorems import registry\nregistry._BY_NAME.clear()\n"
        + Path(own.__file__).read_text("utf-8").replace("from __future__ import annotations", "")
    )
    status, out, err = fltheory_command("--load", str(path), "theorems")
    assert status == 0, err
    assert "sa-fl/5" in out
    assert "own/true" in out


def test_a_folder_is_no_file_of_theorems(fltheory_command: Run, tmp_path: Path) -> None:
    status, _, err = fltheory_command("--load", str(tmp_path), "theorems")
    assert status == 2
    assert err == f"fltheory: file of theorems must exist, got {str(tmp_path)!r}, a folder\n"


def test_a_file_in_place_of_an_id_says_how_to_load_it(fltheory_command: Run) -> None:
    status, _, err = fltheory_command("verify", "mine.py")
    assert status == 2
    assert "got 'mine.py': load the statements of a file with fltheory --load mine.py" in err


def test_a_symbol_without_a_value_is_named(fltheory_command: Run, tmp_path: Path) -> None:
    text = Path(own.__file__).read_text("utf-8").replace(", number=lambda run: run.rounds", "")
    path = tmp_path / "forgotten.py"
    path.write_text(text)
    status, _, err = fltheory_command("--load", str(path), "verify", "own/true")
    assert status == 2
    assert "symbols must each have a number in every setting, got none for R;" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("terminal", "words", "shown"),
    [(True, [], True), (True, ["--help"], False), (False, [], False)],
)
def test_on_a_terminal_what_takes_long_is_loaded_behind_a_bar(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, words: list[str], shown: bool
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(preparation, "import_module", loaded.append)
    monkeypatch.setattr("sys.argv", ["fltheory", *words])
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    preparation.prepare(Mock(invoked_subcommand="verify"))
    assert bool(loaded) == shown


def test_what_follows_can_be_pasted_as_it_stands(fltheory_command: Run, tmp_path: Path) -> None:
    """A command that the loaded file is needed for names it; one of another run is forgotten."""
    place = tmp_path / "a witness.toml"
    falsify = ("falsify", "own/false", "--budget", "100", "--out", place)
    _, out, _ = fltheory_command("--load", FILE, *falsify)
    words = shlex.split(out.splitlines()[-1].removeprefix("check it again: "))
    assert words == ["fltheory", "certify", str(place), "--load", FILE]
    status, out, _ = fltheory_command(*words[1:])
    assert (status, "own/false (printed): REFUTED" in out) == (0, True)
    fltheory_command("theorems", "sa-fl/5")
    assert preparation.next_command("certify", "x.json") == "fltheory certify x.json"


def test_constants_that_leave_no_bound_are_named(fltheory_command: Run, tmp_path: Path) -> None:
    text = Path(FILE).read_text()
    old = "number=lambda run: float("
    assert text.count(old) == 1
    path = tmp_path / "own.py"
    path.write_text(text.replace(old, 'number=lambda run: float("inf") * float('))
    _, out, _ = fltheory_command("--load", path, "verify", "own/true")
    told = " ".join(out.split())
    assert "own/true / printed / usual has no bound: its symbols give D_0 = inf (" in told
    assert f"{path}, line " in told
