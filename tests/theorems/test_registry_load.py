"""Theorems from a file of one's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.theorems.registry import ids, loaded_files
from tests.theorems import own

FILE = Path(own.__file__)


pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")


def test_a_file_registers_its_statements() -> None:
    loaded = theorems.load(FILE)
    assert [statement.id for statement in loaded] == ["own/true", "own/false"]
    assert theorems.get("own/true") is loaded[0]
    assert ids()[-2:] == ("own/true", "own/false")


def test_what_was_loaded_from_files_is_known_with_its_text() -> None:
    theorems.load(FILE)
    files = loaded_files()
    assert files[FILE.stem] == FILE.read_text(encoding="utf-8")
    files.clear()
    assert FILE.stem in loaded_files()


def test_a_later_statement_takes_the_place_of_an_earlier_one_of_your_own() -> None:
    theorems.load(FILE)
    other = replace(own.TRUE, title="another")
    theorems.load([other])
    assert theorems.get("own/true") is other


def test_an_id_is_not_given_twice() -> None:
    with pytest.raises(ValueError, match=r"id must be one that no other theorem has.*own/true"):
        theorems.load([own.FALSE, own.TRUE, replace(own.TRUE, title="another")])
    assert "own/false" not in ids()


def test_a_paper_theorem_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match=r"got 'sa-fl/5' \(printed\) again"):
        theorems.load([replace(own.TRUE, id="sa-fl/5")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"STATEMENTS of .* must be a tuple .*, got none"),
        ("STATEMENTS = (1,)", r"STATEMENTS of .* must be a tuple .*, got 1 in it"),
        ("STATEMENTS = []", r"STATEMENTS of .* must be a tuple .*, got \[\]"),
    ],
)
def test_files_without_statements_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        theorems.load(path)


def test_missing_and_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"file of theorems must exist, got"):
        theorems.load(tmp_path / "none.py")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match=r"file of theorems must be a Python file \(.py\), got"):
        theorems.load(tmp_path / "notes.txt")


def test_a_syntax_error_has_its_line_from_any_folder(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "mine.py").write_text("x = 1\ny = (\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"mine.py, line 2: SyntaxError"):
        theorems.load(Path("mine.py"))
