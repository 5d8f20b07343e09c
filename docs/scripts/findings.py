"""The page of findings, made from stored certificates and from searches.

Searches and verdicts are pieces of work (`PageWork`) whose results a store can keep.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fltheory.claims.statement import Statement, unit_flags
from fltheory.cli import run_script
from fltheory.commands.shared.kept_cells import kept_in, tell_kept
from fltheory.commands.shared.options import (
    PAGES,
    READ,
    WITNESSES,
    Check,
    DaskAddress,
    PageFile,
    StoreFile,
)
from fltheory.commands.shared.written_files import check_page, tell_written
from fltheory.decimals import fraction_text
from fltheory.derivations.derivation import StepOutcome
from fltheory.derivations.derivation_check import check_derivation
from fltheory.evidence.truths import Sampling
from fltheory.files.whole_file import write_whole
from fltheory.grammar.assertion import Relation
from fltheory.grammar.printed_form import printed_latex
from fltheory.long_work.parallel import as_they_come
from fltheory.long_work.progress import Progress, shown_progress
from fltheory.report.latex import corrected_latex
from fltheory.report.terminal.corrected_statement import corrected_text
from fltheory.report.terminal.verdict_table import what_is_refuted
from fltheory.report.verdict_file import MadeBy, cell_document, read_cell, read_verdicts
from fltheory.sweep.cell import Files, Row, Task, WorkCell, digest, own_files, row_of, rows_of
from fltheory.sweep.kept import KeptWork, made_of
from fltheory.theorems import atlas, get
from fltheory.theorems.correction import correction
from fltheory.theorems.registry import ids, readings
from fltheory.verify import Outcome, falsify, read_certificate
from fltheory.verify.certificates.certificate import Certified
from fltheory.verify.certificates.rocq_refutation import rocq_refutation
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, Cell, Record, check_regime, record_of
from fltheory.verify.safari.instances import about_safari, is_about_safari
from fltheory.verify.safari.natural_witness import (
    BUDGET,
    NATURAL,
    NaturalWitness,
    natural_witnesses,
)
from fltheory.verify.search.falsification import Falsification, Survival, survival
from fltheory.worst_case.proof.rocq_words import NotExportedError

SURVIVAL, NATURAL_WITNESS, SEARCH, VERDICT = "survival", "natural witness", "search", "verdict"
"""Kinds of cells: a repair's survival, each fault by itself, a search, and a regime's verdict."""

_SHARE_AROUND_REGIMES = 100
_REFUTED, _NOT_REFUTED = "REFUTED", "NOT REFUTED"


@dataclass(frozen=True)
class PageWork(Task):
    """One kind of work about one statement: one cell per search, one per verdict on a regime."""

    kind: str
    budget: int

    def rows(self) -> list[Row]:
        """Search, or check the requested regimes."""
        begun = time.perf_counter()
        statement = get(self.cells[0].statement, self.cells[0].reading)
        if self.kind == VERDICT:
            return [_verdict_row(cell, statement) for cell in self.cells]
        found = _SEARCHES[self.kind](statement, self.budget)
        return [row_of(self.cells[0], found, time.perf_counter() - begun)]


def searches_of(certified: Sequence[str], others: Sequence[str], budget: int) -> list[PageWork]:
    """Return the searches that the page needs.

    Parameters
    ----------
    certified, others : sequence of str
        Ids of statements with a certificate, and of statements not refuted so far.
    budget : int
        Number of settings that a search may try.
    """
    files = own_files()
    searches = [
        *((SURVIVAL, identifier, "repaired") for identifier in certified),
        *((NATURAL_WITNESS, identifier, "printed") for identifier in certified),
        *((SEARCH, identifier, "printed") for identifier in others),
    ]
    works = []
    for kind, identifier, reading in searches:
        cell = WorkCell(identifier, reading, {"budget": budget}, 0, 0, digest(files), kind)
        works.append(PageWork((cell,), files, kind, budget))
    return works


def verdicts_of(identifiers: Sequence[str]) -> list[PageWork]:
    """Return the checks of statements in all of their regimes."""
    files = own_files()
    checked = (get(identifier) for identifier in identifiers if get(identifier).regimes)
    return [PageWork(_verdict_cells(one, files), files, VERDICT, 0) for one in checked]


class Results:
    """The results, by kind and statement."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.kind, row.statement): row for row in rows if row.kind != VERDICT}
        self._verdicts = [row for row in rows if row.kind == VERDICT]

    def lines(self, kind: str, identifier: str) -> list[str]:
        """Return the lines of a search's result."""
        return made_of(self._rows[kind, identifier], lambda row: list(json.loads(row.result)))

    def verdicts(self, identifier: str) -> list[Cell]:
        """Return a statement's verdicts in the order of its regimes."""
        of_statement = (row for row in self._verdicts if row.statement == identifier)
        checked = (
            made_of(row, lambda row: read_cell(json.loads(row.result))) for row in of_statement
        )
        cells = {cell.regime: cell for cell in checked}
        return [cells[regime] for regime in get(identifier).regimes]


def _verdict_cells(statement: Statement, files: Files) -> tuple[WorkCell, ...]:
    sampling, of_files = Sampling(), digest(files)
    # The more regimes there are, the smaller is each one's share of the allowed error.
    return tuple(
        WorkCell(
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


def _verdict_row(cell: WorkCell, statement: Statement) -> Row:
    begun = time.perf_counter()
    chance = FAMILY_ERROR_PROBABILITY / len(statement.regimes)
    sampling = Sampling(cell.replicas, cell.seed, chance)
    checked = check_regime(statement, cell.setting["regime"], sampling)
    found = record_of(checked.verdict, json.dumps(cell_document(checked)))
    return row_of(cell, found, time.perf_counter() - begun)


def _survived(statement: Statement, budget: int) -> Record:
    survived = survival(statement, budget, first=True)
    fate = _NOT_REFUTED if survived.search.witness is None else _REFUTED
    return _said(fate, _repair_lines(survived))


def _natural(statement: Statement, budget: int) -> Record:
    found = natural_witnesses(about_safari(statement), min(budget, BUDGET))
    fate = _REFUTED if any(one.witness for one in found) else _NOT_REFUTED
    return _said(fate, _natural_lines(found))


def _searched(statement: Statement, budget: int) -> Record:
    """Search for a refutation, with the full budget only for statements about SAFARI."""
    if statement.why_not_searched:
        return _said("NOT SEARCHED", [f"not searched, because {statement.why_not_searched}"])
    if is_about_safari(statement):
        found = falsify(statement, budget, first=True)
        effort = found.effort
    else:
        found = falsify(statement, max(1, budget // _SHARE_AROUND_REGIMES), first=True)
        effort = _rough_effort(found)
    fate = "refuted" if found.witness else "no refutation found"
    return _said(_REFUTED if found.witness else _NOT_REFUTED, [f"{fate}: {effort}"])


_SEARCHES: Mapping[str, Callable[[Statement, int], Record]] = {
    SURVIVAL: _survived,
    NATURAL_WITNESS: _natural,
    SEARCH: _searched,
}


def _said(outcome: str, lines: Iterator[str] | Sequence[str]) -> Record:
    """Return a record of an outcome with its lines on the page."""
    lines = list(lines)
    return Record(outcome, detail=lines[0] if lines else "", result=json.dumps(lines))


def _natural_lines(found: Sequence[NaturalWitness]) -> Iterator[str]:
    """Yield the results of a search for natural settings, fault by fault."""
    if not found:
        return
    over = f"in {found[0].tried} settings with {NATURAL}"
    yield f"We also searched for a refutation by each fault alone, with the others fixed, {over}:"
    yield ""
    for one in found:
        yield f"- {one.fault.about}, {one.fault.source}: {one.outcome}"
    yield ""


def _rough_effort(found: Falsification) -> str:
    """Return the effort in round numbers, which do not depend on a machine's rounding."""
    applicable = float(f"{found.settings_applicable:.0e}")
    tried = (
        f"{found.settings_tried} settings tried; about {applicable:.0f} of them "
        f"{found.applicable_means}"
    )
    if found.best is None:
        return tried
    return f"{tried}; largest {found.ratio_means} about {found.best_ratio:.1g}"


def _repair_lines(survived: Survival) -> Iterator[str]:
    found = survived.search
    fate = "survives a search, which is not a proof" if found.witness is None else "is refuted"
    yield f"**Is the correction right?** The corrected statement {fate}: {_rough_effort(found)}."
    yield "With one of its changes left out:"
    yield ""
    for mend, without in survived.without:
        needed = "refuted" if without.witness else "not refuted"
        yield f"- without '{mend.about}', {mend.source}: {needed}"


_WORDS: Mapping[Relation, str] = {
    Relation.AT_MOST: "is at most",
    Relation.BELOW: "is below",
    Relation.AT_LEAST: "is at least",
    Relation.ABOVE: "is above",
    Relation.OF_ORDER: "is, as a function of {variable}, of the order of",
    Relation.GOES_WITH: "rises and falls with {variable} as does",
}

_INTRODUCTION = """\
# Findings

This page lists what was checked, statement by statement. For each refuted statement it gives the
claim, a setting that refutes it, the corrected statement, and the step at which the statement and
its proof differ. It judges formulas, as printed in the versions that we had; it does not judge
people. The theorems that everybody cites have [a page of their own](atlas.md). See also [the
glossary](glossary.md) and [what a verdict means](verdicts.md).

Every refutation says how serious the fault is:

- *wording*: false to the letter, but true as it is meant;
- *misprint*: the paper's own argument has it right;
- *missing hypothesis*: true with a further condition;
- *gap*: a step of the argument fails.

Remarks, examples, assumptions and steps of proofs are not counted as refuted theorems. A *natural
witness* is a setting with several clients, many rounds and moderate numbers that refutes the
statement by one fault alone. Where a statement and its proof differ, FAILS marks a step that does
not follow, and DIFFERS marks two expressions that are not equal.

`python docs/scripts/findings.py` writes this page from the certificates in
`verification/witnesses/` and from its own searches; do not edit it. Each certificate was found by
`fltheory falsify`, and `fltheory certify FILE` checks it in exact arithmetic.
"""


def findings(
    paths: Sequence[Path],
    shown_from: Path,
    budget: int,
    *,
    verdicts: Sequence[Cell] | None = None,
    kept: KeptWork | None = None,
    progress: Progress | None = None,
) -> str:
    """Return the page for these certificates, in Markdown.

    Parameters
    ----------
    paths : sequence of Path
        Certificates, which are checked first.
    shown_from : Path
        Folder that file names are shown relative to.
    budget : int
        Number of settings for each search on a repair, or on a statement that neither a certificate
        nor a regime refutes. Searches around regimes use a hundredth of this number.
    verdicts : sequence of Cell, optional
        Verdicts on all regimes, if known; by default they are checked.
    kept : KeptWork, optional
        A store in which searches and verdicts are cells, so that none is computed twice.
    progress : callable, optional
        Called with (parts done, parts, the last one).

    Raises
    ------
    ValueError
        If a certificate fails, the given verdicts do not cover all regimes, or a cell of the store
        could not be computed.
    """
    certified = {path: read_certificate(path) for path in paths}
    refuted = {c.theorem.id: path.relative_to(shown_from) for path, c in certified.items()}
    rest = [identifier for identifier in _of_the_page() if identifier not in refuted]

    def worked_out(works: Sequence[PageWork]) -> Results:
        if kept is not None:
            return Results(kept.rows(works, progress))
        return Results(_worked_out(works, progress))

    if verdicts is None:
        checked = worked_out(verdicts_of(rest))
        cells = {name: checked.verdicts(name) for name in rest}
    else:
        cells = {name: _cells_of(get(name), verdicts) for name in rest}
    # A statement refuted by a regime is refuted: a search could only add another witness.
    searched = [name for name in rest if not any(map(_refutes, cells[name]))]
    # Orders are checked over decades, which takes longest, so they come first.
    searched.sort(key=lambda name: not any(cell.verdict.is_rate for cell in cells[name]))
    found = worked_out(searches_of(list(refuted), searched, budget))
    sections = [
        _section(
            c,
            path.relative_to(shown_from),
            found.lines(NATURAL_WITNESS, c.theorem.id),
            found.lines(SURVIVAL, c.theorem.id),
        )
        for path, c in certified.items()
    ]
    efforts = {name: "\n".join(found.lines(SEARCH, name)) for name in searched}
    counted = _counts(refuted, cells)
    introduction = [_INTRODUCTION, *counted, *_statements(refuted, cells, efforts)]
    of_regimes = ("\n".join(_lines_of_regimes(get(name), cells[name])) for name in rest)
    sections += [f"{section.rstrip()}\n" for section in of_regimes if section]
    return "\n".join([*introduction, *sections])


def _of_the_page() -> list[str]:
    """Return the ids of all statements except those of the atlas, which has its own page."""
    elsewhere = {statement.id for statement in atlas.STATEMENTS}
    return [identifier for identifier in ids() if identifier not in elsewhere]


def _worked_out(works: Sequence[PageWork], progress: Progress | None) -> list[Row]:
    """Compute the rows in as many processes as there are processors."""
    done: list[list[Row]] = []
    for rows in as_they_come(rows_of, works):
        done.append(rows)
        if progress is not None:
            progress(len(done), len(works), f"{rows[0].statement}, its {rows[0].kind}")
    return [row for rows in done for row in rows]


def _cells_of(statement: Statement, verdicts: Sequence[Cell]) -> list[Cell]:
    """Return a statement's own cells, in the order of its regimes."""
    known = {cell.key: cell for cell in verdicts}
    keys = [(statement.id, statement.reading, regime) for regime in statement.regimes]
    missing = [" / ".join(key) for key in keys if key not in known]
    if missing:
        raise ValueError(f"verdicts must be on every regime, got none on {missing[0]}")
    return [known[key] for key in keys]


def _counts(refuted: Mapping[str, Path], cells: Mapping[str, Sequence[Cell]]) -> Iterator[str]:
    """Yield the numbers of refuted results by weight, and the table of their faults."""
    of_regimes = {cell.key[:2] for found in cells.values() for cell in found if _refutes(cell)}
    broken = of_regimes | {(identifier, "printed") for identifier in refuted}
    statements = [get(identifier) for identifier in _of_the_page()]
    yield from (f"- {line}" for line in what_is_refuted(statements, broken, ()))
    if in_rocq := ", ".join(f"`{identifier}`" for identifier in _checked_by_rocq()):
        yield f"- Checked by a proof assistant as well: Rocq has proved {in_rocq} false"
        yield "  ([what exactly, and from which axioms](rocq.md))"
    yield ""
    yield "| statement | what it is | weight | why it is refuted | fixed by |"
    yield "|---|---|---|---|---|"
    for statement in statements:
        for fault in statement.refutations:
            cells_of_row = (
                f"`{statement.id}`",
                statement.kind,
                fault.weight.label,
                fault.why,
                fault.fixed_by,
            )
            yield f"| {' | '.join(text.replace('|', '&#124;') for text in cells_of_row)} |"
    yield ""
    yield "These are our guesses at what the authors would answer:\n"
    yield "| statement | weight | answer |"
    yield "|---|---|---|"
    for statement in statements:
        for fault in statement.refutations:
            yield f"| `{statement.id}` | {fault.weight.label} | {fault.answer} |"
    yield ""


def _checked_by_rocq() -> list[str]:
    """Return the ids of statements with a stored certificate that is exported for Rocq.

    ``make rocq`` checks these files.
    """
    exported = set()
    for path in WITNESSES.parent.glob("*/*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        with suppress(NotExportedError):
            rocq_refutation(document)
            exported.add(document["theorem"])
    return [identifier for identifier in _of_the_page() if identifier in exported]


def _statements(
    refuted: Mapping[str, Path],
    cells: Mapping[str, Sequence[Cell]],
    searched: Mapping[str, str],
) -> Iterator[str]:
    yield "## Every printed statement\n"
    yield "For statements about SAFARI, the search tries random settings. For all others, it starts"
    yield "from their regimes.\n"
    yield "| statement | verdicts on its regimes | search for a refutation |"
    yield "|---|---|---|"
    for identifier in _of_the_page():
        if identifier in refuted:
            found = f"refuted, certified in `{refuted[identifier].as_posix()}`"
        else:
            found = searched.get(identifier, "not searched, because a regime already refutes it")
        verdicts = _verdicts(cells[identifier]) if identifier in cells else ""
        yield f"| `{identifier}` | {verdicts} | {found} |"
    yield ""


def _refutes(cell: Cell) -> bool:
    return cell.verdict.outcome is Outcome.REFUTED


def _verdicts(cells: Sequence[Cell]) -> str:
    """Return a statement's verdicts over its regimes, and name the refuted regimes."""
    count = Counter(cell.verdict.outcome.name for cell in cells)
    refuted = [repr(cell.regime) for cell in cells if _refutes(cell)]
    named = f" ({', '.join(refuted)})" if refuted else ""
    counted = ", ".join(f"{n} {name}" for name, n in sorted(count.items()))
    return f"{counted}{named}"


def _section(
    certified: Certified, path: Path, natural: Sequence[str], repair: Sequence[str]
) -> str:
    return "\n".join(_lines(certified, path, natural, repair)) + "\n"


def _lines(
    certified: Certified, path: Path, natural: Sequence[str], repair: Sequence[str]
) -> Iterator[str]:
    theorem = certified.theorem
    yield from _claim_lines(theorem)
    yield f"**Witness** (`{path.as_posix()}`). Every condition holds, and the bound is at most"
    yield f"`{fraction_text(certified.bound)}`. But the truth is larger:"
    yield f"`{theorem.quantity.text} >= {fraction_text(certified.truth)}`."
    yield ""
    for line in certified.lines:
        yield f"    {line}"
    yield ""
    yield from natural
    yield from _corrected_lines(theorem)
    yield from repair
    yield ""
    yield from _reading_lines(theorem)
    yield from _parting_lines(theorem)


def _corrected_lines(theorem: Statement) -> Iterator[str]:
    """Yield the full text of a refuted statement's replacement."""
    try:
        found = correction(theorem.id)
    except ValueError:
        yield "**Correction.** No registered reading repairs the statement."
        yield ""
        return
    yield f"**The corrected statement** (`fltheory explain {theorem.id} --corrected`):"
    yield ""
    yield from (f"    {line}".rstrip() for line in corrected_text(found).splitlines())
    yield ""
    yield "In LaTeX, ready to paste:"
    yield ""
    yield from ("```latex", corrected_latex(found), "```", "")


def _lines_of_regimes(theorem: Statement, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the section of a statement that regimes refute, or nothing if none does."""
    refuted = [cell for cell in cells if _refutes(cell)]
    if not refuted:
        return
    yield from _claim_lines(theorem)
    # A claimed order uses the symbols of the theorem that it rests on, which explains them.
    for symbol, expression in theorem.basis.definitions.items() if theorem.basis is theorem else ():
        yield f"Here `{symbol}` is `{expression}`."
        yield ""
    broken = _BROKEN[theorem.assertions[0].relation]
    yield f"**Refuted on these regimes** (`fltheory verify {theorem.id}`). Every condition holds,"
    yield f"but {broken}. Each result is computed a second time in `verification/`."
    yield ""
    yield from (_refutation_line(theorem, cell) for cell in refuted)
    yield ""
    yield from _corrected_lines(theorem)
    yield from _reading_lines(theorem)
    if theorem.derivation is not None:
        yield from _parting_lines(theorem)


def _refutation_line(theorem: Statement, cell: Cell) -> str:
    verdict, about = cell.verdict, theorem.regimes[cell.regime].about
    if verdict.is_rate:
        sides = f"slope {verdict.truth:+.2f}, claimed {verdict.bound:+.2f}"
        if verdict.truth <= verdict.bound:  # known to be positive in the limit, but not yet here
            sides = verdict.detail
    elif theorem.assertions[0].relation is Relation.GOES_WITH:
        sides = verdict.detail
    else:
        both = f"{verdict.truth:.4g} {verdict.contrary} {verdict.bound:.4g}"
        sides = ", ".join(filter(None, [both, verdict.detail]))
    return f"- {cell.regime} ({about}): {sides}, {verdict.evidence.grade.name.lower()}"


_BROKEN: Mapping[Relation, str] = {
    **dict.fromkeys((Relation.AT_MOST, Relation.BELOW), "the truth exceeds the bound"),
    **dict.fromkeys((Relation.AT_LEAST, Relation.ABOVE), "the truth falls short of the bound"),
    Relation.OF_ORDER: "the quantity decays more slowly than claimed",
    Relation.GOES_WITH: "the quantity changes in the opposite direction",
}


def _heading_lines(theorem: Statement) -> Iterator[str]:
    yield f"## {theorem.id}, {theorem.reading}"
    yield ""
    yield f"{theorem.title}. Source: {theorem.source}. Kind: {theorem.kind}."
    yield ""
    for fault in theorem.refutations:
        natural = f" Natural witness: {fault.natural_witness}." if fault.natural_witness else ""
        label = fault.weight.label.capitalize()
        yield f"- {label}. {fault.why} Fixed by: {fault.fixed_by}.{natural}"
    if theorem.refutations:
        yield ""


def _claim_lines(theorem: Statement) -> Iterator[str]:
    yield from _heading_lines(theorem)
    for assertion in theorem.assertions:
        words = _WORDS[assertion.relation].format(variable=assertion.variable)
        left = f"${assertion.left_latex}$" if assertion.left_latex else f"`{assertion.left}`"
        yield f"**Claim.** If all conditions hold, {left} {words}"
        yield ""
        yield f"$${printed_latex(assertion.right)}$$"
        yield ""
        conditions = (*theorem.basis.hypotheses, *assertion.hypotheses)
        for hypothesis in conditions:
            yield f"- {hypothesis.name}: ${printed_latex(hypothesis.condition)}$"
        if conditions:
            yield ""


def _reading_lines(theorem: Statement) -> Iterator[str]:
    yield f"**As printed.** {theorem.note}"
    yield ""
    if "derived" not in readings(theorem.id):
        return
    yield f"**The derived reading.** {get(theorem.id, 'derived').note}"
    yield ""


def _parting_lines(theorem: Statement) -> Iterator[str]:
    """Yield the steps from proof to statement that do not follow, and mismatched units."""
    results = check_derivation(theorem.derivation) if theorem.derivation else ()
    parting = [result for result in results if result.outcome is not StepOutcome.FOLLOWS]
    yield f"**Where the statement and its proof differ** (`fltheory explain {theorem.id} --proof`):"
    yield ""
    for result in parting:
        yield f"- {result.outcome.name}, {result.step.label}: {result.step.text}"
    has_units = theorem.basis is theorem and bool(theorem.basis.units)
    for flag in unit_flags(theorem) if has_units else ():
        yield f"- UNITS that do not fit, {flag}"
    yield ""


def command(
    witnesses: Annotated[Path, READ, typer.Argument(help="Folder of certificates.")] = WITNESSES,
    out: PageFile = PAGES / "findings.md",
    budget: Annotated[int, typer.Option(help="Settings to try in each search.")] = 10_000,
    check: Check = False,
    verdicts: Annotated[
        Path | None,
        READ,
        typer.Option(help="Verdicts of fltheory verify --json, so that none is checked again."),
    ] = None,
    store: StoreFile = None,
    dask: DaskAddress = None,
) -> None:
    """Make the page of findings: check certificates, and search for refutations of all else."""
    paths = sorted(witnesses.glob("*.json"))
    if not paths:
        raise ValueError(f"witnesses must be a folder with certificates, got {str(witnesses)!r}")
    known = None if verdicts is None else read_verdicts(verdicts, MadeBy())
    with kept_in(store, dask) as kept:
        with shown_progress() as advance:
            page = findings(paths, witnesses, budget, verdicts=known, kept=kept, progress=advance)
        tell_kept(kept)
    if check:
        check_page(out, page, "the certificates say: run python docs/scripts/findings.py")
        return
    write_whole(out, page)
    tell_written(out)


if __name__ == "__main__":
    run_script(command)
