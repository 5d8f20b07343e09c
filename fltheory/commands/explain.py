"""``fltheory explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.console import can_be_shown
from fltheory.commands.shared.options import Reading, TheoremId
from fltheory.commands.shared.preparation import in_readings, the_id
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement


def command(
    theorem: TheoremId,
    reading: Reading = None,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Show the corrected statement, as text and LaTeX.")
    ] = False,
    proof: Annotated[
        bool,
        typer.Option("--proof", help="Check the recorded last steps of its proof, and its units."),
    ] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Check every regime again instead of citing the record.")
    ] = False,
) -> None:
    """Show a theorem's statement, hypotheses, source and readings, and where it applies."""
    theorem = the_id(theorem)
    if corrected and proof:
        raise ValueError("proof must be left out with --corrected: ask for one at a time")
    if now and (corrected or proof):
        raise ValueError("now must be left out with --corrected and --proof, which show no regime")
    if corrected:
        if reading is not None:
            raise ValueError(f"reading must be left out with --corrected, got {reading!r}")
        _show_correction(theorem)
        return
    if proof:
        show_proof(theorem, reading)
        return
    from fltheory.report.terminal.explanation import explanation, where_it_applies
    from fltheory.verify.baseline import recorded_outcomes

    for statement in in_readings(theorem, reading):
        recorded = None if now else recorded_outcomes(statement)
        print(explanation(statement, can_be_shown))
        shown = (
            where_it_applies(_computed_now(statement))
            if recorded is None
            else where_it_applies(recorded, "as recorded; --now checks again")
        )
        print(f"\n{shown}\n")


def show_proof(theorem: str, reading: str | None) -> None:
    """Show which recorded steps of its proof follow, and which units do not fit."""
    from fltheory.report.terminal.explanation import derivation_text

    statements = in_readings(theorem, reading)
    if not reading and all(statement.derivation is None for statement in statements):
        print(
            f"no steps of a proof of {theorem} are recorded; with --reading, only its units are "
            "checked"
        )
    for statement in statements:
        if reading or statement.derivation is not None:
            with shown_progress("checking steps") as advance:
                text = derivation_text(statement, progress=advance)
            print(f"{text}\n")


def _computed_now(statement: Statement) -> dict[str, str]:
    from fltheory.verify import check_regimes

    with shown_progress() as advance:
        cells = check_regimes([statement], progress=advance)
    return {cell.regime: cell.verdict.outcome.name for cell in cells}


def _show_correction(theorem: str) -> None:
    from fltheory.report.latex import corrected_latex
    from fltheory.report.terminal.corrected_statement import corrected_text
    from fltheory.theorems.correction import correction

    found = correction(theorem)
    print(f"{corrected_text(found)}\n\nIn LaTeX\n\n{corrected_latex(found)}")
