"""A statement in words and formulas, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sp

from fltheory.theorems import (
    DecayClaim,
    DirectionClaim,
    LearningClaim,
    PointClaim,
    RateClaim,
    Statement,
    Theorem,
)
from fltheory.verify import Cell, Outcome


def explanation(statement: Statement) -> str:
    """Return what a statement says in one reading: sides, hypotheses, symbols, source."""
    return "\n".join(_lines(statement))


def _lines(statement: Statement) -> Iterator[str]:
    yield f"{statement.id}, {statement.reading} reading"
    yield f"  {statement.title}"
    yield f"  Source: {statement.source}"
    yield ""
    if isinstance(statement, RateClaim):
        yield from _rate_lines(statement)
    elif isinstance(statement, LearningClaim | DecayClaim):
        yield from _learning_lines(statement)
    else:
        yield from _theorem_lines(statement)
    if statement.note:
        yield ""
        yield f"Reading: {statement.note}"


def _rate_lines(claim: RateClaim) -> Iterator[str]:
    yield f"Claim, under the hypotheses of {claim.theorem.id} ({claim.theorem.reading}):"
    for axis in claim.axes:
        if isinstance(claim, DirectionClaim):
            yield f"  in {axis.variable}: {claim.theorem.quantity.text} goes with {axis.order}"
        else:
            yield f"  in {axis.variable}: {claim.theorem.quantity.text} = O({axis.order})"
        for hypothesis in axis.hypotheses:
            yield f"    if {hypothesis.name}: {hypothesis.condition}   [{hypothesis.source}]"
    yield ""
    yield from _theorem_lines(claim.theorem)


def _learning_lines(claim: LearningClaim | DecayClaim) -> Iterator[str]:
    yield "Statement"
    if isinstance(claim, LearningClaim):
        yield f"  {claim.quantity.text} {claim.direction}"
        yield from _indented(claim.bound, 4)
    else:
        yield f"  in {claim.variable}: {claim.quantity.text} = O({claim.order})"
    yield ""
    yield from _hypotheses_and_symbols(claim)


def _theorem_lines(theorem: Theorem | PointClaim) -> Iterator[str]:
    yield "Statement"
    yield f"  {theorem.quantity.text} <="
    yield from _indented(theorem.bound, 4)
    yield ""
    yield from _hypotheses_and_symbols(theorem)


def _hypotheses_and_symbols(
    theorem: Theorem | PointClaim | LearningClaim | DecayClaim,
) -> Iterator[str]:
    yield "Hypotheses"
    for hypothesis in theorem.hypotheses:
        yield f"  {hypothesis.name}   [{hypothesis.source}]"
        yield from _indented(hypothesis.condition, 4)
    yield ""
    yield "Symbols"
    for symbol, expression in theorem.definitions.items():
        yield f"  {symbol} = {expression}"
    for item in theorem.round_symbols if isinstance(theorem, Theorem) else ():
        each = f" in every round {item.rounds.text}" if item.reduction == "every" else ""
        yield f"  {item.symbol}: {item.meaning}{each}"
    for symbol, meaning in theorem.meanings.items():
        yield f"  {symbol}: {meaning}"


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
