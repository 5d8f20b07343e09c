"""Where commands print their tables."""

from __future__ import annotations

import sys

from fltheory.commands.console import table_console


def test_a_table_is_not_squeezed_where_there_is_no_terminal(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert table_console().width == 180
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "57")
    assert table_console().width == 57
