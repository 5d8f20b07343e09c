"""Statements side by side on one setting, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from fltheory.report.terminal.verdict_table import OUTCOME_STYLES, remark
from fltheory.verify.comparison import MEASURED, Answer, OwnSteps, SideBySide, by_reason


def comparison_table(found: SideBySide) -> Table:
    """Lay out one row per statement about the setting, with the tightest bound first."""
    table = Table(title="Side by side", title_justify="left", expand=False)
    for heading in ("theorem", "reading", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("truth", "bound", "bound/truth"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("bounded quantity, failed hypothesis", overflow="fold")
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
    """Yield notes on the bound provable for every client loss and on other theorems."""
    if not found.answers:
        count = len(found.silent)
        nobody = f"none of the {count} statements is" if count > 1 else "the statement is not"
        yield f"{nobody} about this setting; reasons:"
    if found.provable is not None:
        yield (
            f"provable for every client loss of this L, mu and heterogeneity at x*: "
            f"E||x_R - x*||^2 <= {found.provable:.4g}"
        )
    else:
        yield f"no bound is provable here for every client loss: {found.why_not_provable}"
    yield from _silent(found)


def _silent(found: SideBySide | OwnSteps) -> Iterator[str]:
    for reason, names in by_reason(found.silent).items():
        yield f"does not apply: {', '.join(names)}: {reason}"


def own_steps_table(found: OwnSteps) -> Table:
    """Lay out one row per theorem that applies at its own steps, with the tightest bound first."""
    measured = MEASURED[found.measure]
    title = f"Each theorem at its own step sizes: {measured} after the last round"
    table = Table(title=title, title_justify="left", expand=False)
    for heading in ("theorem", "reading", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("truth", "bound", "bound/truth", "provable/truth"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("of", overflow="fold")
    for one in found.bounds:
        readings = ", ".join(statement.reading for statement in one.statements)
        left = one.statements[0].assertions[0].left
        brought = f", the bound {one.brought_by}" if one.brought_by else ""
        table.add_row(
            one.statements[0].id,
            readings,
            Text(one.verdict.outcome.name, style=OUTCOME_STYLES[one.verdict.outcome]),
            f"{one.truth[-1]:.4g}",
            f"{one.bound[-1]:.4g}",
            f"{one.looseness[-1]:.3g}",
            _known(one.provable_looseness[-1]),
            Text(f"{left}{brought}"),
        )
    return table


def _known(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else ""


def own_steps_notes(found: OwnSteps) -> Iterator[str]:
    """Yield the bound proved for the setting's own run, and why other theorems do not apply."""
    given = found.given
    if given.why_not_provable:
        yield f"no bound is provable for the setting's own algorithm: {given.why_not_provable}"
    else:
        yield (
            "the setting's own algorithm at its own steps: truth "
            f"{given.truth[-1]:.4g}, provable for every client loss {given.provable[-1]:.4g}, "
            f"{given.provable_looseness[-1]:.3g} times as much"
        )
    yield from _silent(found)
