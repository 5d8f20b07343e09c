"""The table of verdicts for a terminal."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from fltheory.argument_kinds import checks_kinds
from fltheory.claims.statement import Statement
from fltheory.grammar.refutation import Weight
from fltheory.verify import Outcome, Verdict
from fltheory.verify.runs import Cell

OUTCOME_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.REFUTED: "bold red",
    Outcome.INAPPLICABLE: "dim",
    Outcome.UNDECIDED: "yellow",
}


def verdict_table(cells: Sequence[Cell]) -> Table:
    """Lay out one row per cell, with one section per statement."""
    # The scope is in the title, because a column would say the same in every row.
    scopes = " or ".join(dict.fromkeys(cell.verdict.scope.value for cell in cells))
    title = f"Verdicts, scope: {scopes}" if cells else "Verdicts"
    table = Table(title=title, title_justify="left", expand=False)
    for heading in ("theorem", "reading", "regime", "verdict", "evidence"):
        table.add_column(heading, no_wrap=True)
    table.add_column("truth/bound", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        last = following is None or following.key[:2] != cell.key[:2]
        table.add_row(*_row(cell), end_section=last)
    return table


def _row(cell: Cell) -> list[Text]:
    verdict = cell.verdict
    return [
        Text(verdict.theorem),
        Text(verdict.reading),
        Text(cell.regime),
        Text(verdict.outcome.name, style=OUTCOME_STYLES[verdict.outcome]),
        Text(verdict.evidence.grade.name.lower()),
        Text(ratio_text(verdict)),
        Text(remark(verdict)),
    ]


def dearest(cells: Sequence[Cell], count: int) -> Table:
    """Lay out the cells that took most processor time, the most expensive first."""
    total = sum(cell.seconds for cell in cells)
    title = f"Processor time: {total:.1f} s for {len(cells)} cells"
    table = Table(title=title, title_justify="left", expand=False)
    for heading in ("seconds", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("evidence", "theorem", "reading", "regime"):
        table.add_column(heading, no_wrap=True)
    for cell in sorted(cells, key=lambda one: -one.seconds)[:count]:
        costs = f"{cell.seconds:.2f}", f"{cell.seconds / total:.1%}"
        table.add_row(*costs, cell.verdict.evidence.grade.name.lower(), *map(Text, cell.key))
    return table


def remark(verdict: Verdict) -> str:
    """Return the failed hypotheses, the details of an order, or, if refuted, both sides."""
    if verdict.failed:
        return "; ".join(check.failure for check in verdict.failed)
    if verdict.outcome is Outcome.REFUTED and not verdict.is_rate:
        fractions = f": {verdict.detail}" if verdict.detail else ""
        sides = f"truth {verdict.truth:.4g} {verdict.contrary} bound {verdict.bound:.4g}"
        return f"{sides}{fractions}"
    return verdict.detail


def ratio_text(verdict: Verdict) -> str:
    """Return truth/bound, or both slopes of a claimed order, as short text."""
    if verdict.is_rate:
        truth = "none" if math.isnan(verdict.truth) else f"{verdict.truth:+.2f}"
        return f"slope {truth}/{verdict.bound:+.2f}"
    if math.isinf(verdict.bound) or math.isnan(verdict.ratio):
        return "no bound"
    return f"{verdict.ratio:.3g}"


@checks_kinds
def summary(cells: Sequence[Cell]) -> str:
    """Return how often each verdict was given, in a line.

    Examples
    --------
    >>> from fltheory import theorems, verify
    >>> summary(verify.check_regimes([theorems.get("pac/1")]))
    '6 cells: 5 HOLDS, 1 INAPPLICABLE'
    """
    counts = dict.fromkeys(Outcome, 0)
    for cell in cells:
        counts[cell.verdict.outcome] += 1
    parts = (f"{count} {outcome.name}" for outcome, count in counts.items() if count)
    return f"{len(cells)} cells: {', '.join(parts)}"


def why_not_exact(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the reasons for float64 evidence, once for each statement and reason."""
    found = {
        f"{cell.verdict.theorem} ({cell.verdict.reading}) is float64, not exact: {why}"
        for cell in cells
        if (why := cell.verdict.evidence.why_not_exact)
    }
    return tuple(sorted(found))


def why_no_bound(statements: Sequence[Statement], cells: Sequence[Cell]) -> Iterator[str]:
    """Yield, for each regime, the constants that leave a statement without a bound."""
    by_name = {(one.id, one.reading): one for one in statements}
    for cell in cells:
        verdict = cell.verdict
        if verdict.outcome is not Outcome.INAPPLICABLE and not math.isfinite(verdict.bound):
            found = by_name[cell.key[:2]].constants_not_finite(cell.regime)
            if found:
                yield f"{cell.name} has no bound: {found}"


def what_is_refuted(
    statements: Sequence[Statement],
    refuted: Collection[tuple[str, str]],
    cells: Sequence[Cell],
    searched: Sequence[int] = (),
) -> tuple[str, ...]:
    """Return the findings on the printed statements, in a line or two.

    For a single statement without a refutation, they say where it holds and how loose it is.
    Several statements are counted by the weight of their heaviest fault, if ``refutations`` records
    one. A paper's results are counted separately from its other sentences, because a refuted remark
    is not a refuted theorem.

    Parameters
    ----------
    statements : sequence of Statement
    refuted : collection of (id, reading)
        The readings that some regime, certificate or search refutes.
    cells : sequence of Cell
    searched : sequence of int
        Numbers of settings tried by unsuccessful searches on the only printed statement.
    """
    printed = [one for one in statements if one.reading == "printed"]
    if len(printed) == 1 and (name := (printed[0].id, "printed")) not in refuted:
        own = [cell for cell in cells if cell.key[:2] == name]
        return (_how_it_fares(own, searched),) if own else ()
    results = [one for one in printed if one.kind.is_result]
    others = [one for one in printed if not one.kind.is_result]
    broken = [one for one in results if (one.id, one.reading) in refuted]
    lines = []
    if results:
        share = f"{len(broken)} of {len(results)} printed theorems, corollaries and lemmas refuted"
        lines.append(f"{share}{_by_weight(broken)}")
    beside = [one for one in others if (one.id, one.reading) in refuted]
    if others:
        kinds = ", ".join(dict.fromkeys(str(one.kind) for one in beside))
        names = f" ({kinds})" if kinds else ""
        lines.append(f"{len(beside)} of {len(others)} other printed sentences{names} refuted")
    return tuple(lines)


def _how_it_fares(cells: Sequence[Cell], searched: Sequence[int]) -> str:
    outcomes = [cell.verdict.outcome for cell in cells]
    held = [c.verdict for c in cells if c.verdict.outcome is Outcome.HOLDS]
    parts = [f"{cells[0].key[0]} holds on {len(held)} of {len(cells)} settings"]
    for outcome, says in (
        (Outcome.INAPPLICABLE, "does not apply to"),
        (Outcome.UNDECIDED, "is undecided on"),
    ):
        if outcome in outcomes:
            parts.append(f"{says} {outcomes.count(outcome)}")
    if searched:
        parts.append(f"{sum(searched)} more were searched, and none refutes it")
    loose = [1 / v.ratio for v in held if not v.is_rate and v.ratio > 0 and 1 / v.ratio > 0]
    if loose:
        least, most = f"{min(loose):.3g}", f"{max(loose):.3g}"
        parts.append(f"{least} times loose" if least == most else f"{least} to {most} times loose")
    return "; ".join(parts)


def _by_weight(statements: Sequence[Statement]) -> str:
    """Return the number of statements per weight, starting with the heaviest."""
    found = [Weight.heaviest(fault.weight for fault in one.refutations) for one in statements]
    parts = [
        f"{found.count(weight)} for a {weight.label}"
        if weight
        else f"{found.count(None)} with no fault on record"
        for weight in (*reversed(Weight), None)
        if weight in found
    ]
    return f": {', '.join(parts)}" if parts else ""


def reasons(statements: Sequence[Statement], cells: Sequence[Cell]) -> Iterator[str]:
    """Yield reasons why each refuted statement is refuted, one line per fault that regimes show."""
    for statement in statements:
        regimes = {
            cell.regime
            for cell in cells
            if cell.verdict.outcome is Outcome.REFUTED
            and cell.key[:2] == (statement.id, statement.reading)
        }
        for fault in statement.refutations:
            if regimes.intersection(fault.regimes):
                name = f"{statement.id} ({statement.reading}, {statement.kind})"
                yield f"{name}: {fault.why} A {fault.weight.label}, fixed by {fault.fixed_by}."
