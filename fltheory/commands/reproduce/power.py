"""``fltheory reproduce power``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.kept_cells import kept_in, tell_kept
from fltheory.commands.shared.options import (
    DaskAddress,
    FurtherPage,
    ResultsFile,
    Seed,
    StoreFile,
    TheoremIds,
)
from fltheory.commands.shared.resumption import resumed
from fltheory.commands.shared.written_files import check_places, tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement
    from fltheory.theorems import Theorem


def command(
    theorems: TheoremIds = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Settings to try in each search: 10000 about SAFARI, else 500."),
    ] = None,
    seed: Seed = 0,
    every: Annotated[int, typer.Option(help="Take one mutant of so many.")] = 1,
    out: ResultsFile = Path("out/power.json"),
    page: FurtherPage = None,
    store: StoreFile = None,
    dask: DaskAddress = None,
) -> None:
    """Measure the search's power: plant faults in theorems, count those it finds."""
    from fltheory import theorems as registry
    from fltheory.files.whole_file import write_whole
    from fltheory.reproduce.power import (
        JUDGED,
        Plan,
        judge_all,
        judge_into,
        keys,
        power_page,
        power_summary,
        usual_budget,
    )

    check_places(out=out, page=page, store=store)
    statements = registry.registered(*theorems or ())
    mutated = _mutated(statements, theorems)
    plan = Plan(usual_budget(mutated) if budget is None else budget, seed, every)
    with kept_in(store, dask) as kept:
        with shown_progress("making mutants"):
            chosen = keys(mutated, plan)
        if kept is None:
            results = resumed(
                judge_all,
                chosen,
                plan,
                out,
                read=JUDGED.read,
                write=JUDGED.write,
                what="judged mutants",
            )
        else:
            JUDGED.read(out, plan)  # what is no such file is refused before the work
            with shown_progress() as advance:
                results = judge_into(kept, chosen, plan, progress=advance)
            others = [one for one in JUDGED.read(out, plan) if one.key not in chosen]
            JUDGED.write(out, [*others, *results], plan)
        print(power_summary(results))
        for result in results:
            if result.is_false and not result.is_found:
                print(f"  missed: {result.theorem}: {result.about} (by {result.refuted_by})")
        tell_kept(kept)
    tell_written(out)
    if page is not None:
        write_whole(page, power_page(results, plan))
        tell_written(page)


def _mutated(statements: Sequence[Statement], names: Sequence[str] | None) -> list[Theorem]:
    """Return which of the statements mutants are made of."""
    from fltheory.reproduce.power import mutated_theorems, named_theorems

    chosen = {statement.id for statement in statements}
    usual = [theorem for theorem in mutated_theorems() if theorem.id in chosen]
    mutated = usual or list(named_theorems(statements))
    if not mutated:
        raise ValueError(f"theorems must name an inequality along a run, got {names}")
    return mutated
