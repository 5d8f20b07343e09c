"""What the page of findings has to be worked out: searches and verdicts, as cells of a store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fltheory.claims.statement import Statement
from fltheory.evidence.truths import Sampling
from fltheory.report.files.verdict_file import cell_document, read_cell
from fltheory.sweep.cell import Cell, Files, Found, Row, Task, digest, own_files, row_of
from fltheory.sweep.checks import found_of
from fltheory.sweep.kept import made_of
from fltheory.theorems import get
from fltheory.verify import falsify
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, check_regime
from fltheory.verify.runs import Cell as Checked
from fltheory.verify.safari.extremal_instances import about_safari, is_about_safari
from fltheory.verify.safari.natural_witness import (
    BUDGET,
    NATURAL,
    NaturalWitness,
    natural_witnesses,
)
from fltheory.verify.search.falsification import Falsification
from fltheory.verify.search.survival import Survival, survival

SURVIVAL, NATURAL_WITNESS, SEARCH, VERDICT = "survival", "natural witness", "search", "verdict"
"""Kinds of cells: how a repair fares, each fault by itself, a search, and one on one regime."""

_SHARE_AROUND_REGIMES = 100
_REFUTED, _NOT_REFUTED = "REFUTED", "NOT REFUTED"


@dataclass(frozen=True)
class Work(Task):
    """One kind of work about one statement: a search is one cell, verdicts are one a regime."""

    kind: str
    budget: int

    def rows(self) -> list[Row]:
        """Search, or check the regimes that are asked for."""
        begun = time.perf_counter()
        statement = get(self.cells[0].statement, self.cells[0].reading)
        if self.kind == VERDICT:
            statement.check_quantities()
            return [_verdict_row(cell, statement) for cell in self.cells]
        found = _SEARCHES[self.kind](statement, self.budget)
        return [row_of(self.cells[0], found, time.perf_counter() - begun)]


def work_on(refuted: Sequence[str], rest: Sequence[str], budget: int, verdicts: bool) -> list[Work]:
    """Return what the page needs.

    Parameters
    ----------
    refuted, rest : sequence of str
        Ids of statements with a certificate, and of the others.
    budget : int
        Settings that a search may try.
    verdicts : bool
        Whether regimes of the rest are to be checked as well.
    """
    files = own_files()
    searches = [
        *((SURVIVAL, identifier, "repaired") for identifier in refuted),
        *((NATURAL_WITNESS, identifier, "printed") for identifier in refuted),
        *((SEARCH, identifier, "printed") for identifier in rest),
    ]
    works = []
    for kind, identifier, reading in searches:
        cell = Cell(identifier, reading, {"budget": budget}, 0, 0, digest(files), kind)
        works.append(Work((cell,), files, kind, budget))
    checked = [get(identifier) for identifier in rest if verdicts and get(identifier).regimes]
    return [*works, *(Work(_verdict_cells(one, files), files, VERDICT, budget) for one in checked)]


class Results:
    """What was worked out, by kind and statement."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.kind, row.statement): row for row in rows if row.kind != VERDICT}
        self._verdicts = [row for row in rows if row.kind == VERDICT]

    def lines(self, kind: str, identifier: str) -> list[str]:
        """Return what a search has to say."""
        return made_of(self._rows[kind, identifier], lambda row: list(json.loads(row.result)))

    def verdicts(self, identifier: str) -> list[Checked]:
        """Return a statement's verdicts, in the order of its regimes."""
        of_statement = (row for row in self._verdicts if row.statement == identifier)
        checked = (
            made_of(row, lambda row: read_cell(json.loads(row.result))) for row in of_statement
        )
        cells = {cell.regime: cell for cell in checked}
        return [cells[regime] for regime in get(identifier).regimes]


def _verdict_cells(statement: Statement, files: Files) -> tuple[Cell, ...]:
    sampling, of_files = Sampling(), digest(files)
    # A regime's share of the allowed error is the smaller, the more of them there are.
    return tuple(
        Cell(
            statement.id,
            statement.reading,
            {"regime": regime, "regimes": len(statement.regimes)},
            sampling.seed,
            sampling.replicas,
            of_files,
            VERDICT,
        )
        for regime in statement.regimes
    )


def _verdict_row(cell: Cell, statement: Statement) -> Row:
    begun = time.perf_counter()
    chance = FAMILY_ERROR_PROBABILITY / len(statement.regimes)
    sampling = Sampling(cell.replicas, cell.seed, chance)
    checked = check_regime(statement, cell.setting["regime"], sampling)
    found = found_of(checked.verdict, json.dumps(cell_document(checked)))
    return row_of(cell, found, time.perf_counter() - begun)


def _survived(statement: Statement, budget: int) -> Found:
    survived = survival(statement, budget)
    fate = _NOT_REFUTED if survived.search.witness is None else _REFUTED
    return _said(fate, _repair_lines(survived))


def _natural(statement: Statement, budget: int) -> Found:
    found = natural_witnesses(about_safari(statement), min(budget, BUDGET))
    fate = _REFUTED if any(one.witness for one in found) else _NOT_REFUTED
    return _said(fate, _natural_lines(found))


def _searched(statement: Statement, budget: int) -> Found:
    """Search a statement; what is about SAFARI harder than others, around their regimes."""
    name = f"{statement.id} ({statement.reading})"
    if statement.why_not_searched:
        return _said("NOT SEARCHED", [f"{name}: not searched, as {statement.why_not_searched}"])
    if is_about_safari(statement):
        found = falsify(statement, budget)
        line = f"{found.theorem} ({found.reading}): {found.effort}"
        return _said(_REFUTED if found.witness else _NOT_REFUTED, [line])
    found = falsify(statement, max(1, budget // _SHARE_AROUND_REGIMES))
    fate = "refuted" if found.witness else "no refutation found"
    line = f"{name}: {fate} around its regimes, {_rough_effort(found)}"
    return _said(_REFUTED if found.witness else _NOT_REFUTED, [line])


_SEARCHES: Mapping[str, Callable[[Statement, int], Found]] = {
    SURVIVAL: _survived,
    NATURAL_WITNESS: _natural,
    SEARCH: _searched,
}


def _said(outcome: str, lines: Iterator[str] | Sequence[str]) -> Found:
    """Return an outcome with the lines of the page that it has."""
    lines = list(lines)
    return Found(outcome, detail=lines[0] if lines else "", result=json.dumps(lines))


def _natural_lines(found: Sequence[NaturalWitness]) -> Iterator[str]:
    """Yield what a search for settings that a referee believes found, fault by fault."""
    if not found:
        return
    yield f"Each fault by itself, the others mended, over {found[0].tried} settings of {NATURAL}:"
    yield ""
    for one in found:
        yield f"- {one.fault.about}, {one.fault.source}: {one.outcome}"
    yield ""


def _rough_effort(found: Falsification) -> str:
    """Return the effort in round numbers: the page is the same on machines that round otherwise."""
    applicable = float(f"{found.settings_applicable:.0e}")
    tried = (
        f"{found.settings_tried} settings tried, about {applicable:.0f} of them "
        f"{found.applicable_means}"
    )
    if found.best is None:
        return tried
    return f"{tried}, largest {found.ratio_means} about {found.best_ratio:.1g}"


def _repair_lines(survived: Survival) -> Iterator[str]:
    found = survived.search
    fate = "survives the search, which is not a proof" if found.witness is None else "is refuted"
    yield f"**How it fares.** The corrected statement {fate}: {_rough_effort(found)}."
    yield "Of its changes:"
    yield ""
    for mend, without in survived.without:
        needed = "refuted without it" if without.witness else "not refuted without it"
        yield f"- {mend.about}, {mend.source}: {needed}"
