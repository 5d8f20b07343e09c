"""The power of the search: the share of false mutants that it finds, and the page about it.

A mutant counts as false once anything refutes it: the search itself, a regime of the theorem, or a
second search with another seed. A mutant that nothing refutes may still be false, so the share
refers to mutants known to be false.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import typer

from fltheory import validation
from fltheory.claims.statement import Statement
from fltheory.cli import run_script
from fltheory.commands.shared.kept_cells import ResultFile, kept_in, tell_kept
from fltheory.commands.shared.options import (
    DaskAddress,
    FurtherPage,
    Load,
    ResultsFile,
    Seed,
    StoreFile,
    TheoremIds,
)
from fltheory.commands.shared.preparation import load_statements
from fltheory.commands.shared.written_files import tell_written
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome
from fltheory.files.whole_file import write_whole
from fltheory.long_work.progress import Progress, shown_progress
from fltheory.problems import QuadraticProblem
from fltheory.sweep.cell import Files, Row, Task, WorkCell, digest, own_files, row_of
from fltheory.sweep.kept import KeptWork, made_of
from fltheory.theorems import Theorem, registered
from fltheory.verify.check import check
from fltheory.verify.runs import Record
from fltheory.verify.safari.instances import about_safari, is_about_safari
from fltheory.verify.search.falsification import DEFAULT_BUDGET_IN_FAMILY, falsify
from fltheory.verify.search.mutants import Mutant, registered_mutants

if TYPE_CHECKING:
    from fltheory.claims.statement import Statement
    from fltheory.theorems import Theorem


_INTRODUCTION = """\
# The power of the search

Made by `python docs/scripts/power.py`; do not edit. A search that refutes nothing says something
only if it is known to refute what is false. So we plant faults in the derived reading of every
theorem, one at a time: each constant is divided by 2, 10 and 100; each sign, exponent and reduction
over rounds is changed; and each hypothesis is dropped. A mutant is known to be false once anything
refutes it: the search, a regime of the theorem, or a second search with another seed. The exact
engine confirms each refutation. A mutant that nothing refutes may be true, so the shares count only
mutants that are known to be false."""

BY_SEARCH = "search"
BY_OTHER_SEED = "search with another seed"

MUTANT = "mutant"
"""The kind of a cell that judges one."""

Key: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True)
class PowerPlan:
    """Which mutants to judge, and with what effort.

    Attributes
    ----------
    budget : int
        Settings that a search may try.
    seed : int
        The seed of the measured search; the second search uses the next seed.
    every : int
        One in ``every`` mutants is judged.

    Raises
    ------
    ValueError
        If ``budget`` or ``every`` is below 1, or ``seed`` is negative.
    """

    budget: int = 10_000
    seed: int = 0
    every: int = 1

    def __post_init__(self) -> None:
        validation.whole_number("budget", self.budget, at_least=1)
        validation.seed_number("seed", self.seed)
        validation.whole_number("every", self.every, at_least=1)


@dataclass(frozen=True)
class Judged:
    """The fate of a mutant.

    Attributes
    ----------
    theorem, reading : str
        The theorem and reading that it is a mutant of.
    index : int
        Its index among the reading's mutants.
    about : str
        The change.
    refuted_by : str
        The first check that refuted it; empty if none did.
    settings_tried : int
        Settings tried by the measured search until the mutant was refuted or the budget spent.
    """

    theorem: str
    reading: str
    index: int
    about: str
    refuted_by: str
    settings_tried: int

    @property
    def key(self) -> Key:
        """Its theorem, reading and index."""
        return self.theorem, self.reading, self.index

    @property
    def is_found(self) -> bool:
        """Whether the measured search refuted it."""
        return self.refuted_by == BY_SEARCH

    @property
    def is_false(self) -> bool:
        """Whether anything refuted it."""
        return bool(self.refuted_by)


def mutated_theorems() -> tuple[Theorem, ...]:
    """Return the registered readings of which mutants are made.

    They are the readings backed by a proof, of statements whose settings the search can draw.
    """
    return tuple(
        about_safari(statement)
        for statement in registered()
        if statement.reading == "derived" and is_about_safari(statement)
    )


def named_theorems(statements: Iterable[Statement]) -> tuple[Theorem, ...]:
    """Return those of some statements of which mutants can be made.

    They are inequalities along a run, which any search can try to refute.
    """
    return tuple(cast("Theorem", one) for one in statements if one.bound_on_run is not None)


def keys(theorems: Sequence[Theorem], plan: PowerPlan) -> tuple[Key, ...]:
    """Return the keys of a plan's mutants: theorem, reading and index."""
    names = [(theorem.id, theorem.reading) for theorem in theorems]
    every = [(*name, index) for name in names for index, _ in enumerate(registered_mutants(*name))]
    return tuple(every[:: plan.every])


def judged(key: Key, plan: PowerPlan) -> Judged:
    """Judge one mutant of a registered theorem."""
    identifier, reading, index = key
    mutant = registered_mutants(identifier, reading)[index]
    found = falsify(mutant.theorem, plan.budget, plan.seed, first=True)
    if found.witness is not None:
        refuted_by = BY_SEARCH
    else:
        refuted_by = _regime_that_refutes(mutant)
        if not refuted_by:
            again = falsify(mutant.theorem, plan.budget, plan.seed + 1, first=True)
            refuted_by = "" if again.witness is None else BY_OTHER_SEED
    return Judged(identifier, reading, index, mutant.about, refuted_by, found.settings_tried)


@dataclass(frozen=True)
class _Judging(Task):
    """A mutant to be judged, as a cell of a store."""

    key: Key
    plan: PowerPlan

    def rows(self) -> list[Row]:
        begun = time.perf_counter()
        result = judged(self.key, self.plan)
        missed = "MISSED" if result.is_false else "NOT REFUTED"
        found = Record(
            "FOUND" if result.is_found else missed,
            why=result.refuted_by,
            detail=f"{result.settings_tried} settings tried",
            result=json.dumps(asdict(result)),
        )
        return [row_of(self.cells[0], found, time.perf_counter() - begun)]


def judge_into(
    kept: KeptWork, chosen: Sequence[Key], plan: PowerPlan, *, progress: Progress | None = None
) -> list[Judged]:
    """Judge mutants as cells of a store, and return them in order.

    Raises
    ------
    ValueError
        If one could not be judged; the others are kept.
    """
    tasks = [_judging(key, plan, own_files()) for key in chosen]
    return [made_of(row, _read_judged) for row in kept.rows(tasks, progress)]


def _read_judged(row: Row) -> Judged:
    return Judged(**json.loads(row.result))


def _judging(key: Key, plan: PowerPlan, files: Files) -> _Judging:
    identifier, reading, index = key
    change = registered_mutants(identifier, reading)[index].about
    # The plan's choice of mutants does not matter for a single one.
    about = {"mutant": index, "change": change, "budget": plan.budget}
    cell = WorkCell(identifier, reading, about, plan.seed, 0, digest(files), MUTANT)
    return _Judging((cell,), files, key, plan)


def usual_budget(theorems: Iterable[Theorem]) -> int:
    """Return a search's default number of settings: more if hundreds are tried at once."""
    return 10_000 if all(map(is_about_safari, theorems)) else DEFAULT_BUDGET_IN_FAMILY


def _regime_that_refutes(mutant: Mutant) -> str:
    """Return the first regime with exact truth that refutes a mutant of its theorem."""
    for name, regime in mutant.theorem.regimes.items():
        setting = regime.setting
        if not isinstance(setting.problem, QuadraticProblem):
            continue
        # If floats show with certainty that it holds or does not apply, it need not be enclosed.
        quick = mutant.theorem.compared(setting, Sampling()).outcome
        if quick in (Outcome.HOLDS, Outcome.INAPPLICABLE):
            continue
        if check(mutant.theorem, setting).outcome is Outcome.REFUTED:
            return f"regime {name!r}"
    return ""


def power_page(results: Sequence[Judged], plan: PowerPlan) -> str:
    """Return the measurement in Markdown: shares by theorem, and the false mutants missed."""
    return "\n".join(_lines(results, plan)) + "\n"


def power_summary(results: Sequence[Judged]) -> str:
    """Return one line on how many false mutants were found."""
    found, false = (sum(r.is_found for r in results), sum(r.is_false for r in results))
    share = f" ({found / false:.1%})" if false else ""
    return f"{len(results)} mutants, {false} of them known to be false, {found} found{share}"


def _lines(results: Sequence[Judged], plan: PowerPlan) -> Iterator[str]:
    yield _INTRODUCTION
    yield ""
    share = "All mutants" if plan.every == 1 else f"One mutant of {plan.every}"
    yield f"{share}; budget {plan.budget} settings per search, seed {plan.seed}: {_bold(results)}."
    yield ""
    yield "| theorem | mutants | known to be false | found | share |"
    yield "|---|---|---|---|---|"
    for name in sorted({result.theorem for result in results}):
        yield _row(name, [result for result in results if result.theorem == name])
    yield ""
    yield "## False mutants that the search missed"
    yield ""
    missed = [result for result in results if result.is_false and not result.is_found]
    for result in sorted(missed, key=lambda r: (r.theorem, r.reading, r.index)):
        yield f"- {result.theorem}: `{result.about}` (refuted by {result.refuted_by})"
    if not missed:
        yield "None."


def _bold(results: Sequence[Judged]) -> str:
    return f"**{power_summary(results)}**"


def _row(name: str, results: Sequence[Judged]) -> str:
    found, false = (sum(r.is_found for r in results), sum(r.is_false for r in results))
    share = f"{found / false:.1%}" if false else "none false"
    return f"| {name} | {len(results)} | {false} | {found} | {share} |"


JUDGED = ResultFile(
    "judged", "mutants", "power", lambda entry: PowerPlan(**entry), lambda entry: Judged(**entry)
)
"""The file that a long measurement goes on from."""


def command(
    theorems: TheoremIds = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Settings to try in each search: 10000 about SAFARI, else 500."),
    ] = None,
    seed: Seed = 0,
    every: Annotated[int, typer.Option(help="Take one mutant in this many.")] = 1,
    out: ResultsFile = Path("out/power.json"),
    page: FurtherPage = None,
    store: StoreFile = None,
    dask: DaskAddress = None,
    load: Load = None,
) -> None:
    """Measure the search's power: plant faults in theorems, count those it finds."""
    load_statements(load)
    statements = registered(*theorems or ())
    mutated = _mutated(statements, theorems)
    plan = PowerPlan(usual_budget(mutated) if budget is None else budget, seed, every)
    with kept_in(store, dask) as kept:
        with shown_progress("making mutants"):
            chosen = keys(mutated, plan)
        if kept is None:
            results = JUDGED.resumed(
                judged, chosen, plan, out, begins="searching", about=lambda result: result.about
            )
        else:
            JUDGED.read(out, plan)  # other kinds of files are rejected before the work starts
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
    """Return the statements of which mutants are made."""
    chosen = {statement.id for statement in statements}
    usual = [theorem for theorem in mutated_theorems() if theorem.id in chosen]
    mutated = usual or list(named_theorems(statements))
    if not mutated:
        raise ValueError(f"theorems must name an inequality along a run, got {names}")
    return mutated


if __name__ == "__main__":
    run_script(command)
