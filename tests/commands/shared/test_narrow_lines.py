"""Lines broken at spaces on a narrow terminal."""

from __future__ import annotations

import io

import pytest

from fltheory.commands.shared.exit_status import NarrowLines, narrowed


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("  one two three four five six", ["  one two three four", "  five six"]),
        ("a" * 30, ["a" * 30]),
        ("well-known un-broken half-word", ["well-known un-broken", "half-word"]),
        ("\x1b[1mbold\x1b[0m of a table's own line", ["\x1b[1mbold\x1b[0m of a table's own line"]),
        ("fltheory map sa-fl/5 --x q --y rounds", ["fltheory map sa-fl/5 --x q --y rounds"]),
        ("", [""]),
    ],
)
def test_lines_of_twenty(text: str, lines: list[str]) -> None:
    assert narrowed(text, 20).split("\n") == lines


def test_a_stream_breaks_whole_lines_and_keeps_what_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    below = io.StringIO()
    stream = NarrowLines(below)
    print("one two three", "four five six", file=stream)
    print("begun", end="", file=stream)
    assert below.getvalue() == "one two three four\nfive six\n"
    stream.flush()
    assert below.getvalue().endswith("\nbegun")
    assert not stream.isatty()
