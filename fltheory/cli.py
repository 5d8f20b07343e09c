"""The command line: list, explain, derive, verify, falsify theorems; weights; experiments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from typer.exceptions import TyperException

from fltheory.progress import shown_progress as _progress

if TYPE_CHECKING:
    from fltheory.engines import Setting
    from fltheory.theorems import Family, Statement
    from fltheory.verify import Cell
    from fltheory.verify.baseline import Baseline

_BAD_INPUT = 2
_INTERRUPTED = 130
_WIDTH_OF_FILES = 180
_WITNESSES = Path("verification/witnesses")
_WEIGHT_WITNESSES = Path("verification/weight_witnesses")
_USUAL_REGIME = "biased minority excluded"

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Is the convergence theorem true as printed, where does it apply, how loose is it?",
)


def main() -> None:
    """Run the command line; bad input is one line and exit status 2."""
    command = typer.main.get_command(app)
    try:
        status = command(prog_name="fltheory", standalone_mode=False)
    except (ValueError, TyperException) as error:
        message = error.format_message() if isinstance(error, TyperException) else str(error)
        if message:
            print(f"fltheory: {message}", file=sys.stderr)
        sys.exit(_BAD_INPUT)
    except _Interrupted as interrupted:
        print(f"fltheory: interrupted, {interrupted}", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    if status == _INTERRUPTED:
        print("fltheory: interrupted, nothing was written", file=sys.stderr)
    sys.exit(status)


experiments_app = typer.Typer(no_args_is_help=True, help="Run a paper's experiment again.")
app.add_typer(experiments_app, name="experiment")

pac_app = typer.Typer(no_args_is_help=True, help="PAC learnability, exactly.")
app.add_typer(pac_app, name="pac")


class _Interrupted(Exception):  # noqa: N818
    """An interrupt of a command that keeps what it has done; says where."""


@app.callback()
def _prepare(
    load: Annotated[
        list[Path] | None,
        typer.Option(help="A Python file with theorems of your own, in its STATEMENTS."),
    ] = None,
) -> None:
    # On a terminal, what takes a second or several says so.
    if sys.stderr.isatty() and "--help" not in sys.argv:
        with _progress("loading"):
            import_module("fltheory.report")
    if load:
        from fltheory import theorems as registry

        for path in load:
            registry.load(path)


@app.command()
def theorems() -> None:
    """List the registered theorems."""
    from rich.table import Table

    from fltheory import theorems as registry

    table = Table()
    for heading in ("theorem", "readings", "regimes", "title", "source"):
        table.add_column(heading, overflow="fold")
    for identifier in registry.ids():
        statement = registry.get(identifier)
        table.add_row(
            identifier,
            ", ".join(registry.readings(identifier)),
            str(len(statement.regimes)),
            statement.title,
            statement.source,
        )
    _console().print(table)


@app.command()
def explain(
    theorem: Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")],
    reading: Annotated[str | None, typer.Option(help="One reading; all by default.")] = None,
) -> None:
    """Show a theorem's statement, hypotheses, source and readings, and where it applies."""
    from fltheory import theorems as registry
    from fltheory.report import explanation, where_it_applies
    from fltheory.verify import check_regimes

    readings = (reading,) if reading else registry.readings(theorem)
    statements = [registry.get(theorem, name) for name in readings]
    with _progress() as advance:
        cells = check_regimes(statements, progress=advance)
    for statement in statements:
        of_statement = [cell for cell in cells if cell.verdict.reading == statement.reading]
        print(f"{explanation(statement)}\n\n{where_it_applies(of_statement)}\n")


@app.command()
def derive(
    theorem: Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")],
    reading: Annotated[
        str | None, typer.Option(help="One reading; all with a recorded proof by default.")
    ] = None,
) -> None:
    """Check the last steps of a theorem's proof symbolically, and the units of its formulas."""
    from fltheory import theorems as registry
    from fltheory.report import derivation_text

    readings = (reading,) if reading else registry.readings(theorem)
    statements = [registry.get(theorem, name) for name in readings]
    for statement in statements:
        if reading or statement.derivation is not None:
            with _progress("checking steps") as advance:
                text = derivation_text(statement, progress=advance)
            print(f"{text}\n")


@app.command()
def verify(
    theorems: Annotated[
        list[str] | None, typer.Argument(help="Ids, or beginnings of ids; all by default.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the verdicts as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the verdicts as CSV.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report: one HTML page.")] = None,
    witnesses: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of certificates to report; those of verification/ by default."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Compare with the verdicts recorded in this file.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(help="Sample size where sampled: 2000, or 20 runs with --on.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed where sampled.")] = 0,
    on: Annotated[
        Path | None,
        typer.Option(help="Check on the runs of an experiment (TOML), constants measured."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="With --on: folder of the data set's files.")
    ] = None,
) -> None:
    """Check theorems over their regimes; exit status 1 if a recorded verdict changed."""
    if on is not None:
        if json or csv or html or baseline:
            raise ValueError("json, csv, html and baseline must be left out with --on")
        _verify_on(on, theorems or ["sa-fl/5"], 20 if replicas is None else replicas, seed, data)
        return
    replicas = 2000 if replicas is None else replicas
    from fltheory.report import MadeBy, VerdictOutputs, certificates_in, summary, verdict_table
    from fltheory.verify import check_regimes, read_baseline

    outputs = VerdictOutputs(json, csv, html)
    statements = _selected(theorems or [])
    recorded = read_baseline(_existing(baseline)) if baseline else {}
    folders = witnesses or [f for f in (_WITNESSES, _WEIGHT_WITNESSES) if f.is_dir()]
    with _progress("reading certificates") as advance:
        certificates = [c for f in folders if html for c in certificates_in(f, statements)]
        cells = check_regimes(statements, replicas=replicas, seed=seed, progress=advance)
        made_by = MadeBy(seed, replicas)
        outputs.write(statements, cells, certificates, made_by, progress=advance)
    console = _console()
    console.print(verdict_table(cells))
    console.print(summary(cells))
    for path in outputs.files.values():
        console.print(f"written to {path}")
    if baseline and _report_changes(console, cells, recorded):
        raise typer.Exit(1)


def _verify_on(
    file: Path, theorems: Sequence[str], replicas: int, seed: int, data: Path | None
) -> None:
    from fltheory.report import hardware_text
    from fltheory.verify.on_hardware import check_experiment

    statements = _selected(theorems)
    try:
        from fltheory.hardware.training import read_experiment

        experiment = read_experiment(file)
        with _progress() as advance:
            for cell in check_experiment(
                statements, experiment, replicas=replicas, seed=seed, folder=data, progress=advance
            ):
                print(f"{hardware_text(cell)}\n")
    except ImportError as error:
        raise ValueError(str(error)) from error


@app.command()
def falsify(
    theorem: Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")],
    reading: Annotated[str, typer.Option(help="Which reading to refute.")] = "printed",
    budget: Annotated[
        int | None,
        typer.Option(help="Settings to try: 10000 about SAFARI, 500 in a family, else 1000."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the certificate to this file.")] = None,
) -> None:
    """Search for a setting that refutes a theorem, and certify it in exact arithmetic."""
    from fltheory import theorems as registry
    from fltheory.report import falsification_text, rate_falsification_text, writable
    from fltheory.theorems import RateClaim, Theorem
    from fltheory.verify import Witness, certificate, rate_falsification, write_certificate
    from fltheory.verify import falsify as search

    statement = registry.get(theorem, reading)
    if isinstance(statement, RateClaim):
        if out is not None:
            raise ValueError(f"out must be left out for {theorem}, an order has no certificate")
        effort = rate_falsification.DEFAULT_BUDGET if budget is None else budget
        with _progress() as advance:
            worst = rate_falsification.falsify_rate(statement, effort, seed, progress=advance)
        print(rate_falsification_text(worst))
        return
    if out is not None:
        writable("out", out)
    with _progress() as advance:
        found = search(statement, budget, seed, progress=advance)
    print(falsification_text(found))
    if not (isinstance(statement, Theorem) and isinstance(found.witness, Witness)):
        if out is not None:
            reason = "nothing was found" if found.witness is None else "it is not in fractions"
            print(f"nothing written to {out}: {reason}")
        return
    with _progress("replaying the witness in fractions"):
        document = certificate(statement, found.witness)
    print("certified: replayed in fractions, every hypothesis holds and the bound is broken")
    if out is not None:
        write_certificate(out, document)
        print(f"written to {out}")


@app.command()
def certify(
    file: Annotated[Path, typer.Argument(help="A certificate, as written by falsify.")],
) -> None:
    """Check a certificate of refutation in exact arithmetic, by code of its own."""
    from fltheory.report import certified_text, weight_certified_text
    from fltheory.verify import read_certificate
    from fltheory.verify.weight_certificate import read_weight_certificate

    with _progress(f"checking {file} in exact arithmetic"):
        of_weights = read_weight_certificate(file)
        certified = None if of_weights is not None else read_certificate(file)
    if of_weights is not None:
        print(weight_certified_text(of_weights))
    elif certified is not None:
        print(certified_text(certified))


@app.command("map")
def map_command(
    theorem: Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")],
    x: Annotated[
        str | None,
        typer.Option(help="Parameter along the x axis, say problem.sigma; q or a family's first."),
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="Parameter along the y axis: rounds, or a family's second.")
    ] = None,
    reading: Annotated[str, typer.Option(help="Which reading to map.")] = "printed",
    regime: Annotated[
        str | None,
        typer.Option(help="Regime whose other parameters stay; a family's defaults if it has one."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figure: .png or .svg.")] = None,
) -> None:
    """Show over two parameters where a theorem applies, holds, is refuted, and how loose."""
    from fltheory import theorems as registry
    from fltheory.report import region_heading, region_table, write_region
    from fltheory.verify import default_axis, map_region

    _check_figure(out)
    statement = registry.get(theorem, reading)
    start = _starting_point(statement, regime)
    first, second = _axes_of(start)
    axes = default_axis(start, x or first), default_axis(start, y or second)
    with _progress() as advance:
        region = map_region(statement, start, *axes, progress=advance)
        if out is not None:
            advance(0, 0, f"drawing {out}")
            write_region(region, out)
    print(region_heading(region))
    _console().print(region_table(region))
    if out is not None:
        print(f"written to {out}")


def _starting_point(statement: Statement, regime: str | None) -> Setting | Family:
    """Return what a map varies: a regime's setting, or the statement's family."""
    from fltheory.engines import Setting
    from fltheory.theorems import PointClaim, Theorem

    if regime is None and isinstance(statement, Theorem | PointClaim) and statement.family:
        return statement.family
    name = _USUAL_REGIME if regime is None else regime
    if name not in statement.regimes:
        known = ", ".join(statement.regimes)
        raise ValueError(f"regime must be one of {known}, got {name!r}")
    setting = statement.regimes[name].setting
    if not isinstance(setting, Setting):
        raise ValueError(
            f"theorem must be about runs of an algorithm to be mapped, got {statement.id}"
        )
    return setting


def _axes_of(start: Setting | Family) -> tuple[str, str]:
    from fltheory.theorems import Family

    if not isinstance(start, Family):
        return "q", "rounds"
    first, *rest = start.defaults
    return first, rest[0] if rest else first


@app.command()
def repair(
    theorem: Annotated[str, typer.Argument(help="Id of a theorem, say sa-fl/5.")],
    budget: Annotated[int, typer.Option(help="Settings to try in each search.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the searches.")] = 0,
) -> None:
    """Search for a refutation of a repaired statement, whole and with each mend left out."""
    from fltheory import theorems as registry
    from fltheory.report import survival_text
    from fltheory.verify import survival

    statement = registry.get(theorem, "repaired")
    with _progress() as advance:
        found = survival(statement, budget, seed, progress=advance)
    print(survival_text(found))


@app.command()
def power(
    theorems: Annotated[
        list[str] | None, typer.Argument(help="Ids, or beginnings of ids; all by default.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Settings that a search may try.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the search that is measured.")] = 0,
    every: Annotated[int, typer.Option(help="Take one mutant of so many.")] = 1,
    out: Annotated[
        Path, typer.Option(help="Keep results in this file; resume from it if it exists.")
    ] = Path("out/power.json"),
    page: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """Measure the search's power: plant faults in theorems, count those it finds."""
    from fltheory.report import (
        power_page,
        power_summary,
        read_judged,
        write_judged,
        write_whole,
    )
    from fltheory.verify import Plan, judge_all
    from fltheory.verify.power import keys, mutated_theorems

    _check_pages(out, page)
    selected = {statement.id for statement in _selected(theorems or [])}
    plan = Plan(budget, seed, every)
    mutated = [theorem for theorem in mutated_theorems() if theorem.id in selected]
    if not mutated:
        known = ", ".join(theorem.id for theorem in mutated_theorems())
        raise ValueError(f"theorems must name some that are mutated ({known}), got {theorems}")
    with _progress("making mutants"):
        chosen = keys(mutated, plan)
    kept = read_judged(out, plan)
    done = [result.key for result in kept]
    try:
        with _progress() as advance:
            for result in judge_all(chosen, plan, done=done, progress=advance):
                kept.append(result)
                write_judged(out, kept, plan)
    except KeyboardInterrupt as interrupt:
        message = f"{len(kept)} judged mutants are in {out}, the same command resumes"
        raise _Interrupted(message) from interrupt
    results = [result for result in kept if result.key in chosen]
    print(power_summary(results))
    for result in results:
        if result.is_false and not result.is_found:
            print(f"  missed: {result.theorem}: {result.about} (by {result.refuted_by})")
    print(f"written to {out}")
    if page is not None:
        write_whole(page, power_page(results, plan))
        print(f"written to {page}")


@app.command()
def findings(
    witnesses: Annotated[Path, typer.Argument(help="Folder of certificates.")] = _WITNESSES,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/findings.md"),
    budget: Annotated[int, typer.Option(help="Settings to try in each search.")] = 10_000,
    check: Annotated[bool, typer.Option(help="Write nothing; exit 1 if it differs.")] = False,
) -> None:
    """Make the page of findings: certificates are checked, repairs and the rest searched."""
    from fltheory.report import findings as page_of
    from fltheory.report import writable, write_whole

    writable("out", out)
    paths = sorted(witnesses.glob("*.json"))
    if not paths:
        raise ValueError(f"witnesses must be a folder with certificates, got {str(witnesses)!r}")
    with _progress() as advance:
        page = page_of(paths, witnesses, budget, progress=advance)
    if not check:
        write_whole(out, page)
        print(f"written to {out}")
    elif not out.is_file() or out.read_text(encoding="utf-8") != page:
        print(f"{out} is not what the certificates say: run fltheory findings")
        raise typer.Exit(1)


@app.command()
def weights(
    file: Annotated[Path, typer.Argument(help="TOML: availability, a, b, bias, ...")],
    out: Annotated[Path | None, typer.Option(help="Write the figure: .png or .svg.")] = None,
) -> None:
    """Find the aggregation weights that minimise CA-Fed's bound on the error."""
    from fltheory.report import weights_summary, weights_table, write_weights
    from fltheory.weights import read_trade_off, solve

    _check_figure(out)
    problem = read_trade_off(file)
    with _progress(f"solving for {problem.n_clients} clients") as advance:
        try:
            found = solve(problem)
        except ArithmeticError as error:
            raise ValueError(str(error)) from error
        if out is not None:
            advance(0, 0, f"drawing {out}")
            write_weights(problem, found, out)
    _console().print(weights_table(problem, found))
    print(weights_summary(found))
    if out is not None:
        print(f"written to {out}")


@app.command()
def cutoff(
    p: Annotated[list[float], typer.Argument(help="Participation probabilities, one a client.")],
    rounds: Annotated[int, typer.Option(help="Rounds T.")] = 1000,
    out: Annotated[Path | None, typer.Option(help="Write the figure: .png or .svg.")] = None,
) -> None:
    """Find the cut-off K that makes FedAU's weights best, beside the paper's choices."""
    from fltheory.fedau import best_cutoff
    from fltheory.report import cutoff_table, write_cutoffs

    _check_figure(out)
    with _progress("trying cut-offs") as advance:
        found = best_cutoff(p, rounds, progress=advance)
        if out is not None:
            advance(0, 0, f"drawing {out}")
            write_cutoffs(p, rounds, found, out, progress=advance)
    _console().print(cutoff_table(found))
    if out is not None:
        print(f"written to {out}")


@app.command()
def train(
    files: Annotated[list[Path], typer.Argument(help="Experiments: TOML files.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data set's files; bundled digits need none.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Keep checkpoints and results in this folder; resume from it.")
    ] = Path("out/train"),
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change what the tables share, say training.rounds=10."),
    ] = None,
    checkpoint_every: Annotated[int, typer.Option(help="Rounds between checkpoints.")] = 25,
    page: Annotated[Path | None, typer.Option(help="Write the tables to this file.")] = None,
) -> None:
    """Train the models of a paper's table, and print it beside the paper's figures."""
    from fltheory import validation
    from fltheory.report import training_page, training_summary, training_table, write_whole

    _check_pages(None, page)
    try:
        from fltheory.hardware.training import measure, read_experiment

        validation.whole_number("checkpoint_every", checkpoint_every, at_least=1)
        experiments = [read_experiment(file, changes or []) for file in files]
        with _progress() as advance:
            measured = measure(
                experiments,
                out,
                folder=data,
                device=device,
                checkpoint_every=checkpoint_every,
                progress=advance,
                notice=lambda line: print(f"fltheory: {line}", file=sys.stderr),
            )
    except ImportError as error:
        raise ValueError(str(error)) from error
    except KeyboardInterrupt as interrupt:
        raise _Interrupted(f"checkpoints are in {out}, the same command resumes") from interrupt
    for results in measured:
        _console().print(training_table(results))
        print(training_summary(results))
    print(f"runs are in {out}")
    if page is not None:
        options = "".join(f" --set {change}" for change in changes or [])
        command = f"fltheory train {' '.join(map(str, files))}{options} --page {page}"
        write_whole(page, training_page(measured, command))
        print(f"written to {page}")


@app.command()
def bias(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/bias.md"),
    figure: Annotated[
        Path | None, typer.Option(help="Write the figure, .svg or .png, beside the page.")
    ] = Path("docs/bias.svg"),
    check: Annotated[bool, typer.Option(help="Write nothing; exit 1 if it differs.")] = False,
) -> None:
    """Make the table of every algorithm's limit under uneven participation."""
    from fltheory.experiments.participation_bias import Effort, bias_table
    from fltheory.report import bias_page, write_bias_figure, write_whole

    _check_pages(out, None)
    _check_figure(figure, "figure")
    effort = Effort()
    with _progress() as advance:
        cells = list(bias_table(effort, progress=advance))
    page = bias_page(cells, effort, None if figure is None else figure.name)
    if check:
        if not out.is_file() or out.read_text(encoding="utf-8") != page:
            print(f"{out} is not what the algorithms give: run fltheory bias")
            raise typer.Exit(1)
        return
    if figure is not None:
        write_bias_figure(cells, figure)
    write_whole(out, page)
    print(f"written to {out}")


@app.command()
def drift(
    out: Annotated[Path | None, typer.Option(help="Write the figure: .png or .svg.")] = None,
) -> None:
    """Show how tight the local drift lemma's 5 and 30 are: the least constants, over K and eta."""
    from fltheory.report import drift_summary, drift_table, write_drift_map

    _console().print(drift_table())
    print(drift_summary())
    if out is not None:
        write_drift_map(out)
        print(f"written to {out}")


@experiments_app.command("ca-fed")
def experiment_ca_fed(
    seeds: Annotated[int, typer.Option(help="Data sets to run it on.")] = 10,
    rounds: Annotated[int, typer.Option(help="Communication rounds of a run.")] = 150,
    start_spread: Annotated[
        float, typer.Option(help="Start within so much / sqrt(dim): 1 as torch, 0 at zero.")
    ] = 1.0,
    momentum: Annotated[
        float, typer.Option(help="Of clients and server: 0 in the paper, 0.9 in its code.")
    ] = 0.0,
    out: Annotated[
        Path, typer.Option(help="Keep results in this file; resume from it if it exists.")
    ] = Path("out/ca-fed.json"),
    page: Annotated[Path | None, typer.Option(help="Write the page to this file.")] = None,
) -> None:
    """CA-Fed's Table I on synthetic data, beside the paper's figures."""
    from fltheory import experiments
    from fltheory.report import (
        experiment_page,
        experiment_summary,
        experiment_tables,
        read_measured,
        write_measured,
        write_whole,
    )

    _check_pages(out, page)
    plan = experiments.Plan(rounds, start_spread=start_spread, momentum=momentum)
    chosen = experiments.keys(seeds)
    kept = read_measured(out, plan)
    done = [result.key for result in kept]
    try:
        with _progress() as advance:
            for result in experiments.measure_all(chosen, plan, done=done, progress=advance):
                kept.append(result)
                write_measured(out, kept, plan)
    except KeyboardInterrupt as interrupt:
        message = f"{len(kept)} measured rows are in {out}, the same command resumes"
        raise _Interrupted(message) from interrupt
    results = [result for result in kept if result.key in chosen]
    for table in experiment_tables(results):
        _console().print(table)
    print(experiment_summary(results, plan))
    print(f"written to {out}")
    if page is not None:
        command = (
            f"fltheory experiment ca-fed --seeds {seeds} --rounds {rounds} "
            f"--start-spread {start_spread:g} --momentum {momentum:g} --out {out} --page {page}"
        )
        write_whole(page, experiment_page(results, plan, command))
        print(f"written to {page}")


@experiments_app.command("shapley")
def experiment_shapley(
    page: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/fedar-shapley.md"),
    figure: Annotated[
        Path, typer.Option(help="The figure to write, .svg or .png, beside the page.")
    ] = Path("docs/fedar-shapley.svg"),
    check: Annotated[bool, typer.Option(help="Write nothing; exit 1 if it differs.")] = False,
) -> None:
    """FedAR's motivating experiment: Shapley values of stale updates, exact on quadratics."""
    from fltheory.report import (
        measured_scenarios,
        shapley_page,
        write_shapley_figure,
        write_whole,
    )

    _check_pages(None, page)
    _check_figure(figure, "figure")
    with _progress() as advance:
        found = measured_scenarios(progress=advance)
    text = shapley_page(found, figure.name)
    if check:
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            print(f"{page} is not what the experiment gives: run fltheory experiment shapley")
            raise typer.Exit(1)
        return
    write_shapley_figure(found, figure)
    write_whole(page, text)
    print(f"written to {page} and {figure}")


@pac_app.command("impossible")
def pac_impossible(
    M: Annotated[int, typer.Argument(help="Clients.")],
    n: Annotated[int, typer.Argument(help="Samples of each client.")],
    m: Annotated[int, typer.Argument(help="Clients who take part.")],
) -> None:
    """Show how surely every learner fails if clients stay away: SA-FL's Theorem 1."""
    from fltheory.report import impossibility_table

    _console().print(impossibility_table(M, n, m))


@pac_app.command("figures")
def pac_figures(
    folder: Annotated[Path, typer.Option(help="Write the figures here.")] = Path("out"),
    suffix: Annotated[str, typer.Option(help=".png or .svg")] = ".svg",
    replicas: Annotated[int, typer.Option(help="Sample size where sampled.")] = 400,
    seed: Annotated[int, typer.Option(help="Seed where sampled.")] = 0,
) -> None:
    """Draw error against samples, with and without a server's data; compare with it alone."""
    from fltheory.report import comparison_table, comparisons, write_learnability_figures

    with _progress() as advance:
        rows = comparisons(replicas=replicas, seed=seed, progress=advance)
    _console().print(comparison_table(rows))
    for path in write_learnability_figures(folder, suffix, rows):
        print(f"written to {path}")


def _report_changes(console: Console, cells: Sequence[Cell], recorded: Baseline) -> bool:
    from fltheory.verify import departure, verdict_changed

    for cell in cells:
        message = departure(cell, recorded)
        if message:
            console.print(
                message, style="bold red" if verdict_changed(cell, recorded) else "yellow"
            )
    changed = any(verdict_changed(cell, recorded) for cell in cells)
    if not changed:
        console.print("no verdict differs from the recorded ones")
    return changed


def _selected(names: Sequence[str]) -> list[Statement]:
    """Return the statements whose id is one of ``names`` or begins with it and a slash."""
    from fltheory import theorems as registry

    if not names:
        return list(registry.registered())
    chosen = []
    for name in names:
        matching = [s for s in registry.registered() if s.id == name or s.id.startswith(f"{name}/")]
        if not matching:
            registry.readings(name)
        chosen += [statement for statement in matching if statement not in chosen]
    return chosen


def _check_figure(out: Path | None, name: str = "out") -> None:
    """Raise ValueError if a figure cannot be written there, before the work for it."""
    from fltheory.report import writable

    if out is not None:
        writable(name, out, ".png", ".svg")


def _check_pages(out: Path | None, page: Path | None) -> None:
    """Raise ValueError if results or page cannot be written there, before the work for them."""
    from fltheory.report import writable

    for name, path in (("out", out), ("page", page)):
        if path is not None:
            writable(name, path)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"baseline must be an existing file, got {str(path)!r}")
    return path


def _console() -> Console:
    """Return a console that does not squeeze tables when the output is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDTH_OF_FILES)
