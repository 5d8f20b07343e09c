"""``fltheory explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from fltheory.commands.options import TheoremId
from fltheory.commands.selection import in_readings
from fltheory.progress import shown_progress


def command(
    theorem: TheoremId,
    reading: Annotated[str | None, typer.Option(help="One reading; all by default.")] = None,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="What should stand instead, as text and LaTeX.")
    ] = False,
) -> None:
    """Show a theorem's statement, hypotheses, source and readings, and where it applies."""
    if corrected:
        if reading is not None:
            raise ValueError(f"reading must be left out beside --corrected, got {reading!r}")
        _show_correction(theorem)
        return
    from fltheory.report.terminal.explanation import explanation, where_it_applies
    from fltheory.verify import check_regimes

    statements = in_readings(theorem, reading)
    with shown_progress() as advance:
        cells = check_regimes(statements, progress=advance)
    for statement in statements:
        of_statement = [cell for cell in cells if cell.verdict.reading == statement.reading]
        print(f"{explanation(statement)}\n\n{where_it_applies(of_statement)}\n")


def _show_correction(theorem: str) -> None:
    from fltheory.report.terminal.corrected_statement import corrected_latex, corrected_text
    from fltheory.theorems.correction import correction

    found = correction(theorem)
    print(f"{corrected_text(found)}\n\nIn LaTeX\n\n{corrected_latex(found)}")
