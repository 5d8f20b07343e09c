"""``fltheory cutoff``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fltheory.commands.shared.options import READ, FigureFile, RoundLength
from fltheory.commands.shared.terminal.console import table_console
from fltheory.commands.shared.written_files import check_figures, draw, tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.validation import FloatArray

# A negative number is no option: what is no probability is said to be none.
CONTEXT = {"ignore_unknown_options": True}


def command(
    p: Annotated[
        list[str],
        READ,
        typer.Argument(
            help="Participation probabilities, one a client; or a log of who was there."
        ),
    ],
    rounds: Annotated[int, typer.Option(help="Rounds of a run, the T of the paper.")] = 1000,
    round_length: RoundLength = None,
    out: FigureFile = None,
) -> None:
    """Find the cut-off K that makes FedAU's weights best, beside the paper's choices."""
    from fltheory.fedau import BestCutoff, best_cutoff
    from fltheory.report.terminal.deployments.cutoff_report import (
        client_cutoff_table,
        cutoff_table,
        write_cutoffs,
    )

    check_figures(out=out)
    clients, chances = _population(p, round_length)
    there = chances[chances != 0] if clients else chances
    with shown_progress("trying cut-offs") as advance:
        found = best_cutoff(there, rounds, progress=advance)
        # Clients that are there equally often have one cut-off.
        different = set(there.tolist()) if clients else set[float]()
        each: dict[float, BestCutoff] = {}
        for one in sorted(different):
            advance(len(each), len(different), f"p = {one:g}")
            each[one] = best_cutoff(one, rounds)
        draw(partial(write_cutoffs, there, rounds, found, progress=advance), out, advance)
    table_console().print(cutoff_table(found))
    if clients:
        table_console().print(client_cutoff_table(clients, chances, each, found.best.cutoff))
        print("p: the share of the log's rounds; rounds are taken to be independent")
        if never := len(clients) - there.size:
            print(f"never there: {never} of {len(clients)} clients, which no cut-off brings in")
    tell_written(out)


def _population(
    words: Sequence[str], round_length: float | None
) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of a log's clients, none for bare numbers, and their probabilities."""
    import numpy as np

    if len(words) == 1 and not _is_number(words[0]):
        from fltheory.logs import read_log

        log = read_log(Path(words[0]), round_length=round_length)
        return log.clients, log.marginals
    if round_length is not None:
        raise ValueError(f"round-length must go with a log, got {round_length:g} with numbers")
    for word in words:
        if not _is_number(word):
            raise ValueError(f"p must be numbers, or one log of who was there, got {word!r}")
    return (), np.array([float(word) for word in words])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
