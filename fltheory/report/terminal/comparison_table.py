"""Statements side by side on one setting, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from fltheory.report.terminal.verdict_table import OUTCOME_STYLES, remark
from fltheory.verify.side_by_side import Answer, SideBySide


def comparison_table(found: SideBySide) -> Table:
    """Lay out one row a statement that speaks of the setting, the tightest bound first."""
    table = Table(title="Side by side", title_justify="left", expand=False)
    for heading in ("theorem", "reading", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("truth", "bound", "bound/truth"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("what it bounds, what failed", overflow="fold")
    for answer in found.answers:
        table.add_row(*_row(answer))
    return table


def _row(answer: Answer) -> list[Text]:
    statement, verdict = answer.statement, answer.verdict
    assert verdict is not None
    left = statement.assertions[0].left
    failed = f"; {remark(verdict)}" if verdict.failed else ""
    return [
        Text(statement.id),
        Text(statement.reading),
        Text(verdict.outcome.name, style=OUTCOME_STYLES[verdict.outcome]),
        Text(f"{verdict.truth:.4g}"),
        Text(f"{verdict.bound:.4g}"),
        Text("" if math.isnan(answer.looseness) else f"{answer.looseness:.3g}"),
        Text(f"{left}{failed}"),
    ]


def comparison_notes(found: SideBySide) -> Iterator[str]:
    """Yield what can be proved for every client loss, and why other statements are silent."""
    if not found.answers:
        yield f"no statement speaks of this setting, of {len(found.silent)} asked; why not:"
    if found.provable is not None:
        yield (
            f"provable for every client loss of this L, mu and heterogeneity at x*: "
            f"E||x_R - x*||^2 <= {found.provable:.4g}"
        )
    else:
        yield f"no bound is provable here for every client loss: {found.why_not_provable}"
    reasons: dict[str, list[str]] = {}
    for answer in found.silent:
        # What was got instead is the setting's, which the reader has.
        reason = answer.reason.split(", got ")[0]
        reasons.setdefault(reason, []).append(answer.statement.name)
    for reason, names in reasons.items():
        yield f"silent: {', '.join(names)}: {reason}"
