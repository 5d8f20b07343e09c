"""A statement in words and formulas, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sp

from fltheory.theorems import Statement
from fltheory.verify import Outcome
from fltheory.verify.runs import Cell


def explanation(statement: Statement) -> str:
    """Return what a statement says in one reading: sides, hypotheses, symbols, source."""
    return "\n".join(_lines(statement))


def _lines(statement: Statement) -> Iterator[str]:
    yield f"{statement.id}, {statement.reading} reading of a {statement.kind}"
    yield f"  {statement.title}"
    yield f"  Source: {statement.source}"
    yield ""
    basis = statement.basis
    rests_on_another = basis is not statement
    if rests_on_another:
        yield f"Claim, under the hypotheses of {basis.id} ({basis.reading}):"
        yield from _assertions(statement)
        yield ""
    yield "Statement"
    yield from _assertions(basis)
    yield ""
    yield "Hypotheses"
    for hypothesis in basis.hypotheses:
        yield f"  {hypothesis.name}   [{hypothesis.source}]"
        yield from _indented(hypothesis.condition, 4)
    yield ""
    yield "Symbols"
    for symbol, expression in basis.definitions.items():
        yield f"  {symbol} = {expression}"
    for item in basis.round_symbols:
        each = f" in every round {item.rounds.text}" if item.reduction == "every" else ""
        yield f"  {item.symbol}: {item.meaning}{each}"
    for symbol, meaning in basis.meanings.items():
        yield f"  {symbol}: {meaning}"
    if statement.note:
        yield ""
        yield f"Reading: {statement.note}"
    for fault in statement.refutations:
        shown = "; ".join((*fault.regimes, *fault.certificates))
        yield ""
        yield f"Refuted (see {shown}): {fault.why}"
        yield f"  {fault.weight}"
        yield f"  mended by {fault.mended_by}"


def _assertions(statement: Statement) -> Iterator[str]:
    for assertion in statement.assertions:
        if assertion.variable is None:
            yield f"  {assertion.left} {assertion.relation}"
            yield from _indented(assertion.right, 4)
        else:
            yield f"  {assertion.text}"
        for hypothesis in assertion.hypotheses:
            yield f"    if {hypothesis.name}: {hypothesis.condition}   [{hypothesis.source}]"


def _indented(expression: sp.Basic, spaces: int) -> Iterator[str]:
    pretty = sp.pretty(expression, use_unicode=True, wrap_line=False)
    for line in pretty.splitlines():
        yield " " * spaces + line.rstrip()


def where_it_applies(cells: Sequence[Cell]) -> str:
    """Return the regimes by verdict, in a few lines."""
    lines = ["Where it applies (computed now, over its regimes)"]
    for outcome in Outcome:
        regimes = [cell.regime for cell in cells if cell.verdict.outcome is outcome]
        if regimes:
            lines.append(f"  {outcome.name}: {'; '.join(regimes)}")
    return "\n".join(lines)
