"""Files written in one go."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory.report.whole_file import write_whole


def test_it_is_there_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    write_whole(path, "one")
    write_whole(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


def test_a_failure_leaves_the_one_before(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "file.json"
    write_whole(path, "one")

    def interrupted(self, *arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "two")
    assert path.read_text() == "one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]
