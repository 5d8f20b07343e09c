"""``fltheory weights``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fltheory.commands.shared.exit_status import as_bad_input
from fltheory.commands.shared.options import (
    CONDITION_MEANS,
    DISSIMILARITY_MEANS,
    NOISE_MEANS,
    READ,
    WRITTEN,
    RoundLength,
    SizesFile,
)
from fltheory.commands.shared.terminal.console import table_console
from fltheory.commands.shared.written_files import check_figures, check_places, draw, tell_written
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.weights.client_weights import ClientWeights
    from fltheory.weights.deployment import Training

Method = Literal["auto", "newton", "cvxpy"]


def command(
    file: Annotated[
        Path,
        READ,
        typer.Argument(
            help="A log of who was there; or, if it ends in .toml, a problem: a, b, ..."
        ),
    ],
    sizes: SizesFile = None,
    method: Annotated[Method, typer.Option(help="How the minimum is found.")] = "auto",
    rounds: Annotated[int, typer.Option(help="Rounds of a run, with a log.")] = 1000,
    local_steps: Annotated[int, typer.Option(help="Local steps of a round, with a log.")] = 1,
    noise: Annotated[float, typer.Option(help=NOISE_MEANS)] = 1.0,
    dissimilarity: Annotated[float, typer.Option(help=DISSIMILARITY_MEANS)] = 0.5,
    condition: Annotated[float, typer.Option(help=CONDITION_MEANS)] = 1.0,
    round_length: RoundLength = None,
    out: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="Where to write the weights: .csv; or, as .png or .svg, their figure."),
    ] = None,
    figure: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="Write a figure to this file: weights and trade-off."),
    ] = None,
) -> None:
    """Find the aggregation weights that minimise CA-Fed's bound on the error."""
    from fltheory.report.terminal.deployments.weights_report import (
        weights_summary,
        weights_table,
        write_trade_off,
        write_weights,
    )
    from fltheory.weights.client_weights import for_clients, of_problem
    from fltheory.weights.deployment import Training
    from fltheory.weights.problem_file import read_trade_off

    check_places(".csv", ".png", ".svg", out=out)
    check_figures(figure=figure)
    training = Training(rounds, local_steps, noise, dissimilarity, condition)
    with shown_progress(f"reading {file}") as advance, as_bad_input(ArithmeticError):
        # What is no file is refused alike, whatever it would have been.
        if file.suffix == ".toml" or not file.is_file():
            if sizes is not None:
                raise ValueError(f"sizes must go with a log, got the problem {str(file)!r}")
            if round_length is not None:
                raise ValueError(f"round-length must go with a log, got the problem {str(file)!r}")
            given = None
            found = of_problem(read_trade_off(file), method)
        else:
            from fltheory.logs import read_log
            from fltheory.weights.sizes_file import read_sizes

            log = read_log(file, round_length=round_length)
            given = None if sizes is None else read_sizes(sizes, log.clients)
            found = for_clients(log.clients, log.marginals, given, training=training, method=method)
        drawn = out if out is not None and out.suffix != ".csv" else None
        draw(partial(write_weights, found.problem, found.solution), drawn, advance)
        draw(partial(write_trade_off, found.problem, found.solution), figure, advance)
    if file.suffix != ".toml":
        _tell_assumptions(found, training, None if given is None else float(given.sum()))
    table_console().print(weights_table(found))
    print(weights_summary(found.solution))
    if out is not None and drawn is None:
        from fltheory.files.whole_file import write_whole

        write_whole(out, found.as_csv())
    tell_written(out)
    tell_written(figure)


def _tell_assumptions(found: ClientWeights, training: Training, total_size: float | None) -> None:
    """Say what the problem was made of: targets, availability, and the bound's constants."""
    if total_size is None:
        print("targets: equal, as no --sizes are given")
    else:
        print(f"targets: sizes divided by their sum, {total_size:g}")
    if found.never_there:
        named = ", ".join(found.never_there[:3]) + (", ..." if len(found.never_there) > 3 else "")
        print(
            f"never there: {len(found.never_there)} of {len(found.clients)} clients ({named}) with "
            f"{found.lost_target:.3g} of the target, which no weights bring in; below, the others"
        )
    problem = found.problem
    print(
        "availability: the share of the log's rounds; clients are taken to be independent (M = 1)\n"
        f"assumed, in units of L and ||w_0 - w*||: {training.rounds} rounds of "
        f"{training.local_steps} local steps of {training.step:.4g}/L, the longest of Lemma 2; "
        f"noise {training.noise:g}, dissimilarity {training.dissimilarity:g}, condition "
        f"{training.condition:g}\n"
        f"so a_k = {training.noise**2 * training.rounds * training.step**2:.6g} pi_k, "
        f"b = {problem.b:.6g}, bias = {problem.bias:.6g}\n"
        "where a_k is what the noise of a client's gradients adds to the bound, b what the start\n"
        "and the step sizes add, and bias what a unit of divergence chi2(alpha || p), of the\n"
        "importance p from the target alpha, costs"
    )
