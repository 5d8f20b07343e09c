"""One verdict as one pytest test: the check itself, its report, and the reasons for failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from fltheory.claims.statement import Statement
    from fltheory.verify.baseline import Baseline
    from fltheory.verify.runs import Cell, CellKey, Record

Properties = Sequence[tuple[str, object]]

_COLUMNS = ("theorem", "reading", "regime", "verdict", "evidence", "truth/bound", "why")


def each_cell(*beginnings: str) -> pytest.MarkDecorator:
    """Return a mark that runs a test for each statement in each of its regimes.

    The test takes two arguments, ``statement`` and ``regime`` (its name).

    Parameters
    ----------
    *beginnings : str
        Ids, or the parts of ids before a slash. If none are given, every registered statement is
        used. Load your own theorems first with `fltheory.theorems.load`.

    Raises
    ------
    ValueError
        If no registered id matches; the message lists similar ones.

    Examples
    --------
    >>> from fltheory.testing import each_cell
    >>> @each_cell("sa-fl/5", "ca-fed")
    ... def test_verdict_and_ratio_are_as_recorded(statement, regime, as_recorded):
    ...     as_recorded(statement, regime)
    """
    import pytest  # the commands, including conformance, do not need pytest

    from fltheory import theorems
    from fltheory.verify.runs import shared_settings_together

    cells = shared_settings_together(
        [
            (statement, regime)
            for statement in theorems.registered(*beginnings)
            for regime in statement.regimes
        ]
    )
    ids = [f"{statement.id}-{statement.reading}-{regime}" for statement, regime in cells]
    return pytest.mark.parametrize(("statement", "regime"), cells, ids=ids)


def checked(statement: Statement, regime: str) -> Cell:
    """Check a statement in one of its regimes.

    The error probability of one table covers all sampled intervals of all registered statements.
    Each cell gets an equal share, however many cells run.
    """
    from fltheory import theorems
    from fltheory.evidence.truths import Sampling
    from fltheory.verify import check
    from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY, cell_of

    n_cells = sum(len(one.regimes) for one in theorems.registered())
    found = statement.regimes[regime]
    verdict = check(
        statement,
        found.setting,
        replicas=found.effort * Sampling.replicas,
        error_probability=FAMILY_ERROR_PROBABILITY / n_cells,
    )
    return cell_of(statement, regime, verdict)


def rows_of(beginning: str, recorded: Baseline) -> Baseline:
    """Return the records whose ids are ``beginning`` or start with it and a slash.

    Examples
    --------
    >>> from fltheory.verify.runs import Record
    >>> recorded = {("my/1", "printed", "usual"): Record("HOLDS", 0.5)}
    >>> rows_of("my", recorded) == recorded, rows_of("m", recorded)
    (True, {})
    """
    return {key: row for key, row in recorded.items() if f"{key[0]}/".startswith(f"{beginning}/")}


def failure(cell: Cell, recorded: Baseline | None) -> str | None:
    """Return why a cell fails, or None; if there are records, it must agree with its record.

    Without records, the statement must not be refuted or undecided.
    """
    from fltheory.verify import Outcome
    from fltheory.verify.baseline import departure

    if recorded is not None:
        return departure(cell, recorded)
    if cell.verdict.outcome in (Outcome.REFUTED, Outcome.UNDECIDED):
        return f"{cell.name}: {cell.verdict.outcome.name}"
    return None


def explanation(cell: Cell) -> str:
    """Return both sides and every hypothesis, for a report of a failure."""
    verdict = cell.verdict
    state = {True: "met", False: "NOT met", None: "undecided"}
    lines = [
        f"  {verdict.outcome.name} ({verdict.evidence.grade.name.lower()} evidence): "
        f"truth {verdict.truth:.6g}, claimed {verdict.relation} {verdict.bound:.6g}",
        *(
            f"  {state[check.holds]}: {check.name}: {check.sides}    [{check.condition}]"
            for check in verdict.hypotheses
        ),
        *(f"  why: {fault.why}" for fault in cell.faults),
    ]
    return "\n".join(lines)


def properties(cell: Cell) -> Properties:
    """Return a cell's report properties, which are passed between processes and to JUnit files."""
    from fltheory.report.terminal.verdict_table import remark

    kept = cell.record
    values = (*cell.key, kept.outcome, kept.evidence, f"{kept.ratio:.9g}", remark(cell.verdict))
    return [(f"fltheory {name}", value) for name, value in zip(_COLUMNS, values, strict=True)]


def reported(found: Properties) -> Iterator[Mapping[str, str]]:
    """Yield the cells among a report's properties, each as a mapping by column."""
    row: dict[str, str] = {}
    for name, value in found:
        column = name.removeprefix("fltheory ")
        if column == name or column not in _COLUMNS:
            continue
        row[column] = str(value)
        if column == _COLUMNS[-1]:
            yield row
            row = {}


def records(found: Properties) -> Iterator[tuple[CellKey, Record]]:
    """Yield the baseline records of the cells among a report's properties."""
    from fltheory.verify.runs import Record

    for row in reported(found):
        key = row["theorem"], row["reading"], row["regime"]
        yield key, Record(row["verdict"], float(row["truth/bound"]), row["evidence"])


def lines(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield one line per cell, in columns."""
    names = [f"{row['theorem']} ({row['reading']}): {row['regime']}" for row in rows]
    width = max(map(len, names))
    for name, row in zip(names, rows, strict=True):
        ratio = f"{float(row['truth/bound']):.3g}"
        line = f"{name:{width}}  {row['verdict']:12}  {ratio:>9}  {row['why']}"
        yield line.rstrip()


def expected_outcome(name: str) -> str:
    """Return a marker's verdict name, after checking that it exists.

    Raises
    ------
    ValueError
        If there is no verdict of that name.
    """
    from fltheory.verify import Outcome

    if name not in Outcome.__members__:
        known = ", ".join(Outcome.__members__)
        raise ValueError(f"fltheory_expects must be given one of {known}, got {name!r}")
    return name
