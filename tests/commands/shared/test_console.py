"""Where commands print their tables."""

from __future__ import annotations

import io
import sys

from fltheory.commands.shared.console import can_be_shown, table_console


def test_a_table_is_not_squeezed_where_there_is_no_terminal(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert table_console().width == 180
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "57")
    assert table_console().width == 57


def test_a_drawing_must_fit_a_terminal_and_its_letters(monkeypatch) -> None:
    drawing = ["1", "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 60, "2"]
    assert can_be_shown(drawing)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert not can_be_shown(drawing)
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "59")
    assert not can_be_shown(drawing)
    monkeypatch.setenv("COLUMNS", "60")
    assert can_be_shown(drawing)
