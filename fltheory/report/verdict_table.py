"""The table of verdicts for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fltheory.verify import Cell, Outcome, Verdict

_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.REFUTED: "bold red",
    Outcome.INAPPLICABLE: "dim",
    Outcome.UNDECIDED: "yellow",
}


def verdict_table(cells: Sequence[Cell]) -> Table:
    """Lay out one row a cell; a section ends with each statement."""
    table = Table(title="Verdicts", title_justify="left", expand=False)
    for heading in ("theorem", "reading", "regime", "verdict", "evidence"):
        table.add_column(heading, no_wrap=True)
    table.add_column("truth/bound", justify="right", no_wrap=True)
    table.add_column("what failed", overflow="fold")
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        last = following is None or following.key[:2] != cell.key[:2]
        table.add_row(*_row(cell), end_section=last)
    return table


def _row(cell: Cell) -> list[Text]:
    verdict = cell.verdict
    return [
        Text(verdict.theorem),
        Text(verdict.reading),
        Text(cell.regime),
        Text(verdict.outcome.name, style=_STYLES[verdict.outcome]),
        Text(verdict.evidence.grade.name.lower()),
        Text(ratio_text(verdict)),
        Text(remark(verdict)),
    ]


def remark(verdict: Verdict) -> str:
    """Return the failed hypotheses, or what an order shows, or both sides where refuted."""
    if verdict.failed:
        return "; ".join(check.failure for check in verdict.failed)
    if verdict.outcome is Outcome.REFUTED and not verdict.is_rate:
        fractions = f": {verdict.detail}" if verdict.detail else ""
        sides = f"truth {verdict.truth:.4g} {verdict.contrary} bound {verdict.bound:.4g}"
        return f"{sides}{fractions}"
    return verdict.detail


def ratio_text(verdict: Verdict) -> str:
    """Return truth/bound, or both slopes of a claimed order, as short text."""
    if verdict.is_rate:
        return f"slope {verdict.truth:+.2f}/{verdict.bound:+.2f}"
    if math.isinf(verdict.bound) or math.isnan(verdict.ratio):
        return "no bound"
    return f"{verdict.ratio:.3g}"


def summary(cells: Sequence[Cell]) -> str:
    """Return how often each verdict was given, in a line."""
    counts = dict.fromkeys(Outcome, 0)
    for cell in cells:
        counts[cell.verdict.outcome] += 1
    parts = (f"{count} {outcome.name}" for outcome, count in counts.items() if count)
    return f"{len(cells)} cells: {', '.join(parts)}"
