"""docs/scripts/shapley.py: the page and its figure are written and checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.scripts import shapley


def test_the_page_is_written_and_checked(
    fltheory_command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = shapley.measured_scenarios()
    monkeypatch.setattr(shapley, "measured_scenarios", lambda **options: found)
    page, figure = tmp_path / "a.md", tmp_path / "a.svg"
    options = ("shapley.py", "--out", page, "--figure", figure)
    status, printed, _ = fltheory_command(*options, "--check")
    assert status == 1
    run = "run python docs/scripts/shapley.py"
    assert printed == f"{page} is not what the experiment gives: {run}\n"
    assert not list(tmp_path.iterdir())
    assert fltheory_command(*options) == (0, f"written to {figure}\nwritten to {page}\n", "")
    assert fltheory_command(*options, "--check") == (0, "", "")
    assert figure.read_text().startswith("<?xml")
