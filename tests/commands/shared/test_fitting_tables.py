"""Tables where they are too wide."""

from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from rich.table import Table

from fltheory.commands.shared.console import TableConsole

CELLS = ("sa-fl/theorem-5", "REFUTED", "the step size is larger than the bound allows", "1.5")


def shown(table: Table, width: int, *, terminal: bool = True) -> list[str]:
    out = io.StringIO()
    TableConsole(file=out, width=width, force_terminal=terminal, color_system=None).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def made(*rows: tuple[str, ...], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("statement", no_wrap=True)
    table.add_column("outcome", overflow="fold")
    table.add_column("why", overflow="fold")
    table.add_column("ratio", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


@pytest.mark.parametrize("width", range(20, 120))
def test_every_word_is_whole_at_any_width(width: int) -> None:
    lines = shown(made(CELLS, CELLS, title="Verdicts"), width)
    words = Counter(word for line in lines for word in re.findall(r"[^\s│┃]+", line))
    for word, count in Counter(" ".join(CELLS).split()).items():
        assert words[word] == 2 * count, word
    assert not any("…" in line for line in lines)
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


def test_blocks_are_names_and_values() -> None:
    lines = shown(made(CELLS, ("sa-fl/4", "HOLDS", "", "0.5"), title="Two"), 40)
    assert lines == [
        "Two",
        "",
        "statement: sa-fl/theorem-5",
        "outcome: REFUTED",
        "why: the step size is larger than the",
        "bound allows",
        "ratio: 1.5",
        "",
        "statement: sa-fl/4",
        "outcome: HOLDS",
        "ratio: 0.5",
    ]


def test_markup_of_cells_is_markup_and_escaped_cells_are_not() -> None:
    lines = shown(made(("[bold]a[/bold]", r"\[b]", "w" * 50, "1")), 30)
    assert lines == ["statement: a", "outcome: [b]", "why:", "w" * 50, "ratio: 1"]


def test_columns_that_are_not_wrapped_are_not_cut() -> None:
    table = Table()
    for name in ("one", "two", "three"):
        table.add_column(name, no_wrap=True)
    table.add_row("1.00, 1.01", "2.00, 2.02", "3.00, 3.03")
    assert shown(table, 30) == ["one: 1.00, 1.01", "two: 2.00, 2.02", "three: 3.00, 3.03"]


def test_a_table_that_fits_is_left_as_it_is() -> None:
    lines = shown(made(CELLS), 120)
    assert lines[1].split("┃")[3].strip() == "why"
    assert "the step size is larger than the bound allows" in lines[3]


def test_what_is_no_terminal_is_as_wide_as_words_need() -> None:
    lines = shown(made(("s" * 150, "o" * 50, "many words " * 40, "1")), 180, terminal=False)
    assert {len(line) for line in lines} == {len(lines[0])}
    assert len(lines[0]) > 180
    assert "s" * 150 in lines[3]
    assert "o" * 50 in lines[3]


def test_other_things_are_printed_as_they_are() -> None:
    out = io.StringIO()
    TableConsole(file=out, width=20).print("[bold]a[/bold]", "b", markup=False)
    assert out.getvalue() == "[bold]a[/bold] b\n"
