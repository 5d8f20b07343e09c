"""``fltheory repair``."""

from __future__ import annotations

from typing import Annotated

import typer

from fltheory.commands.options import SearchBudget, TheoremId
from fltheory.progress import shown_progress


def command(
    theorem: TheoremId,
    budget: SearchBudget = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the searches.")] = 0,
) -> None:
    """Search for a refutation of a repaired statement, whole and with each mend left out."""
    from fltheory import theorems as registry
    from fltheory.report.terminal.survival_text import survival_text
    from fltheory.verify.search.survival import survival

    if "repaired" not in registry.readings(theorem):
        known = dict.fromkeys(s.id for s in registry.registered() if s.reading == "repaired")
        raise ValueError(f"theorem must have a repair ({', '.join(known)}), got {theorem!r}")
    statement = registry.get(theorem, "repaired")
    with shown_progress() as advance:
        found = survival(statement, budget, seed, progress=advance)
    print(survival_text(found))
