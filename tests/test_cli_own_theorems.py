"""The command line on theorems from a file of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fltheory.cli import main
from tests.theorems import own

FILE = str(Path(own.__file__))
Run = Callable[..., tuple[int, str, str]]


pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command with a file loaded: status, output, errors."""

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fltheory", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return command


def test_a_loaded_theorem_is_verified_and_explained(run: Run) -> None:
    status, out, _ = run("--load", FILE, "verify", "own")
    assert status == 0
    assert "2 cells: 2 HOLDS" in out
    status, out, _ = run("--load", FILE, "explain", "own/false")
    assert status == 0
    assert "own/false, printed reading" in out


def test_its_family_is_searched_and_there_is_no_certificate(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "witness.json"
    arguments = ("falsify", "own/false", "--budget", "100", "--out", str(path))
    status, out, _ = run("--load", FILE, *arguments)
    assert status == 0
    assert "own/false (printed): REFUTED; 100 settings tried" in out
    assert "it is not in fractions" in out
    assert not path.exists()


def test_its_family_is_mapped_unless_a_regime_is_named(run: Run) -> None:
    status, out, _ = run("--load", FILE, "map", "own/false")
    assert status == 0
    assert "rounds \\ step" in out
    status, _, err = run("--load", FILE, "map", "own/false", "--regime", "other")
    assert (status, err) == (2, "fltheory: regime must be one of usual, got 'other'\n")


def test_without_the_file_the_theorem_is_unknown(run: Run) -> None:
    status, _, err = run("verify", "own/true")
    assert status == 2
    assert "id must be a registered theorem" in err


def test_a_missing_file_is_one_line(run: Run) -> None:
    status, _, err = run("--load", "none.py", "theorems")
    assert (status, err) == (2, "fltheory: file of theorems must exist, got 'none.py'\n")


def test_a_file_in_place_of_an_id_says_how_to_load_it(run: Run) -> None:
    status, _, err = run("verify", "mine.py")
    assert status == 2
    assert "got 'mine.py': fltheory --load mine.py registers a file's" in err


def test_a_symbol_without_a_value_is_named(run: Run, tmp_path: Path) -> None:
    text = Path(own.__file__).read_text("utf-8").replace("        R: setting.rounds,\n", "")
    path = tmp_path / "forgotten.py"
    path.write_text(text)
    status, _, err = run("--load", str(path), "verify", "own/true")
    assert status == 2
    assert "constants must have a value for every symbol, got none for R;" in err
    assert err.count("\n") == 1
