"""``fltheory advise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.exit_status import as_bad_input
from fltheory.commands.shared.kept_cells import resumable
from fltheory.commands.shared.options import (
    CONDITION_MEANS,
    DISSIMILARITY_MEANS,
    NOISE_MEANS,
    READ,
    UPDATED,
    WRITTEN,
    Columns,
    FigureFile,
    LogFile,
    RoundLength,
    Seed,
    SizesFile,
    written,
)
from fltheory.commands.shared.preparation import deployment, next_command
from fltheory.commands.shared.written_files import draw, tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.advice import Advice
    from fltheory.advice.measured_clients import MeasuredClients
    from fltheory.logs import AvailabilityLog
    from fltheory.validation import FloatArray
    from fltheory.worst_case.correlated.log_proof import LogProof


def command(
    log: LogFile,
    sizes: SizesFile = None,
    round_length: RoundLength = None,
    local_steps: Annotated[int, typer.Option(help="Local steps per round.")] = 1,
    model: Annotated[
        Path | None,
        READ,
        typer.Option(
            help="CSV client,point,...: gradients, for measuring noise and heterogeneity."
        ),
    ] = None,
    noise: Annotated[float | None, typer.Option(help=f"{NOISE_MEANS}; default 1.")] = None,
    dissimilarity: Annotated[
        float | None, typer.Option(help=f"{DISSIMILARITY_MEANS}; default 0.5.")
    ] = None,
    condition: Annotated[float | None, typer.Option(help=f"{CONDITION_MEANS}; default 1.")] = None,
    within: Annotated[
        float,
        typer.Option(
            help="Distance at which to stop counting rounds, relative to the initial one."
        ),
    ] = 0.1,
    groups: Annotated[
        int, typer.Option(help="Group clients into at most this many groups; more take longer.")
    ] = 200,
    seed: Seed = 0,
    json: Annotated[
        Path | None, WRITTEN, typer.Option(help="Write the advice as JSON to this file.")
    ] = None,
    figure: FigureFile = None,
    prove: Annotated[
        Path | None,
        written(".json"),
        typer.Option(help="Write the certificate of the bound for every loss to this file."),
    ] = None,
    store: Annotated[
        Path | None,
        UPDATED,
        typer.Option(help="Where to keep each algorithm's results; rerun to resume."),
    ] = None,
    columns: Columns = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Also train on the bundled digits along the log; needs torch."
        ),
    ] = False,
) -> None:
    """Recommend an algorithm for a log of who was online, with each one's error."""
    from dataclasses import replace
    from functools import partial
    from json import dumps

    from fltheory.advice import advise
    from fltheory.advice.on_digits import train_on_digits
    from fltheory.files.whole_file import write_whole
    from fltheory.logs import describe
    from fltheory.report.figures.advice_figure import advice_figure
    from fltheory.report.terminal.advice_report import (
        advice_table,
        assumptions,
        cautions,
        check_table,
        next_steps,
        sentences,
        unfollowed,
    )
    from fltheory.weights import Training

    if check:
        with as_bad_input(ImportError):
            import fltheory.hardware.training  # noqa: F401
    said = {"noise": noise, "dissimilarity": dissimilarity, "condition": condition}
    by_hand: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    training = replace(Training(local_steps=local_steps), **by_hand)
    kept = "nothing is kept: give --store FILE" if store is None else f"finished work is in {store}"
    with resumable(lambda: kept), shown_progress(f"reading {log}") as advance:
        record, given = deployment(log, sizes, round_length, columns)
        measured = None
        if model is not None:
            measured = _measured(model, record, given, condition)
            training = replace(training, **measured.in_training(by_hand))
        advance(0, 0, "describing the log")
        described = describe(record, seed=seed)
        for line in cautions(described):
            print(line, flush=True)
        found = advise(
            record,
            given,
            training=training,
            measured=measured,
            description=described,
            within=within,
            most_groups=groups,
            seed=seed,
            progress=advance,
            store=store,
        )
        advance(0, 0, "proving a bound for every loss")
        proved, said_of_it = _proved(found)
        draw(partial(advice_figure, found), figure, advance)
    print("\n".join([*unfollowed(found), *sentences(found), said_of_it]))
    table_console().print(advice_table(found))
    rest_on = assumptions(found, None if given is None else float(given.sum()))
    print("\n".join([rest_on, *next_steps(found)]))
    if json is not None:
        first = [*cautions(described), *unfollowed(found)]
        document = {
            "cautions": first,
            "sentences": [*sentences(found), said_of_it],
            "proved": proved and proved.document(),
            **found.document(),
        }
        write_whole(json, dumps(document, indent=1, ensure_ascii=False) + "\n")
    for path in (json, figure):
        tell_written(path)
    if prove is not None:
        _write(proved, prove)
    if check:
        with shown_progress() as advance:
            trained = train_on_digits(found, progress=advance)
        table_console().print(check_table(trained))


def _proved(advice: Advice) -> tuple[LogProof | None, str]:
    """Return the proof for every loss and a sentence on it; or None, and why."""
    from fltheory.worst_case.correlated.log_proof import log_proof

    population = advice.population
    # Clients with equal curvatures in every direction do not form a class, so the steeper clients
    # of the advice are used.
    steeper = (advice.steeper or advice).population.training.condition
    condition = population.training.condition if population.training.condition > 1 else steeper
    try:
        found = log_proof(population.log, population.importance, population.training, condition)
    except (ValueError, ArithmeticError) as error:
        return None, f"Not proved for every loss: {error}."
    if condition == population.training.condition:
        return found, found.sentence
    return found, (
        f"{found.sentence} The table assumes condition number 1, so a single curvature; the proof "
        f"covers L/mu up to {condition:g}."
    )


def _write(proved: LogProof | None, file: Path) -> None:
    if proved is None:
        print(f"nothing written to {file}: nothing was proved")
        return
    proved.certificate.write(file)
    tell_written(file)
    print(f"check it again: {next_command('certify', file)}")


def _measured(
    file: Path, log: AvailabilityLog, sizes: FloatArray | None, condition: float | None
) -> MeasuredClients:
    """Return the clients as measured in a file of gradients, weighted by their sizes."""
    import numpy as np

    from fltheory.advice import measure_clients, read_gradients

    gradients = read_gradients(file, log.clients)
    places = [log.clients.index(client) for client in gradients.clients]
    importance = np.ones(len(places)) if sizes is None else sizes[places]
    try:
        return measure_clients(gradients, importance, n_clients=log.n_clients, condition=condition)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
