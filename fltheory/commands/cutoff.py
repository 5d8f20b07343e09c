"""``fltheory cutoff``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import READ, Columns, FigureFile, RoundLength
from fltheory.commands.shared.preparation import deployment
from fltheory.commands.shared.written_files import draw, tell_written
from fltheory.long_work.progress import shown_progress

# A negative number is not an option, but an invalid probability, and is reported as such.
CONTEXT = {"ignore_unknown_options": True}


def command(
    p: Annotated[
        list[str],
        READ,
        typer.Argument(help="A log of who was online; or participation probabilities."),
    ],
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Number of rounds (the paper's T). Default: all rounds of the log, or 1000 "
            "without a log."
        ),
    ] = None,
    round_length: RoundLength = None,
    columns: Columns = None,
    figure: FigureFile = None,
) -> None:
    """Find the best cut-off K for FedAU's weights; compare it with the paper's choices."""
    from fltheory.fedau import best_cutoff
    from fltheory.report.terminal.cutoff_report import cutoff_figure, cutoff_table

    if len(p) == 1 and not _is_number(p[0]):
        _of_log(Path(p[0]), rounds, round_length, columns, figure)
        return
    if round_length is not None or columns is not None:
        raise ValueError("round-length and columns must be given only with a log, got numbers")
    for word in p:
        if not _is_number(word):
            raise ValueError(f"p must be numbers, or one log of who was online, got {word!r}")
    chances, rounds = [float(word) for word in p], 1000 if rounds is None else rounds
    with shown_progress("trying cut-offs") as advance:
        found = best_cutoff(chances, rounds, progress=advance)
        draw(partial(cutoff_figure, chances, rounds, found, progress=advance), figure, advance)
    table_console().print(cutoff_table(found))
    tell_written(figure)


def _of_log(
    file: Path,
    rounds: int | None,
    round_length: float | None,
    columns: str | None,
    figure: Path | None,
) -> None:
    """Show the best cut-offs along a log's own rounds, for all clients and for each client."""
    from fltheory.fedau import best_cutoff
    from fltheory.logs import AvailabilityLog, describe
    from fltheory.report.terminal.cutoff_report import (
        client_cutoff_table,
        cutoff_table,
        log_cutoff_figure,
    )
    from fltheory.report.terminal.log_report import doubts

    with shown_progress(f"reading {file}") as advance:
        log, _ = deployment(file, None, round_length, columns)
        rounds = log.n_rounds if rounds is None else rounds
        advance(0, 0, "trying cut-offs")
        found = best_cutoff(log, rounds)
        each = {}
        for place, name in enumerate(log.clients):
            own = log.who == place
            if own.any():
                advance(place, log.n_clients, name)
                stays = (log.who[own] * 0, log.first[own], log.stop[own])
                each[name] = best_cutoff(AvailabilityLog([name], log.n_rounds, *stays), rounds)
        draw(partial(log_cutoff_figure, log, rounds, found), figure, advance)
    drift = "The best cut-off for later rounds may differ; try the last part of the log alone."
    for caution in doubts(describe(log), drift=drift):
        print(caution)
    best = found.best
    print(
        f"Use K = {best.cutoff:g} in FedAU: along {rounds} of the log's {log.n_rounds} rounds "
        f"its weights have a mean square error of {best.error:.2g}, compared with "
        f"{found.none.error:.2g} without a cut-off."
    )
    table_console().print(cutoff_table(found))
    table_console().print(client_cutoff_table(log, each, found.best.cutoff))
    print(
        "p: share of the log's rounds in which a client was online; best K: for that client alone"
    )
    if never := log.n_clients - len(each):
        print(f"never online: {never} of {log.n_clients} clients, whom no cut-off can help")
    tell_written(figure)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
