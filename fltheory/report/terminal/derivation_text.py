"""The last steps of a statement's proof, and its units, for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import sympy as sp

from fltheory.claims.statement import Statement, unit_flags
from fltheory.decimals import how_many
from fltheory.derivations.derivation import (
    Derivation,
    Equal,
    FiniteLimit,
    Implied,
    StepOutcome,
    StepResult,
)
from fltheory.derivations.derivation_check import check_derivation
from fltheory.long_work.progress import Progress

_NAME_OF_DIFFERENCE: Mapping[type, str] = {
    Equal: "left side minus right side",
    Implied: "larger side minus smaller side",
    FiniteLimit: "limit",
}


def derivation_text(statement: Statement, *, progress: Progress | None = None) -> str:
    """Check the recorded steps of a statement's proof and its units; return what came out.

    Parameters
    ----------
    statement : Statement
    progress : callable, optional
        Called with (steps checked, steps, the next step).
    """
    return "\n".join(_lines(statement, progress))


def _lines(statement: Statement, progress: Progress | None) -> Iterator[str]:
    yield f"{statement.id}, {statement.reading} reading"
    yield f"  {statement.title}"
    yield ""
    yield "Steps, each checked separately"
    derivation = statement.derivation
    if derivation is None:
        yield "  none are recorded"
    results = check_derivation(derivation, progress=progress) if derivation else ()
    for result in results:
        yield from _step_lines(result)
    if derivation:
        yield from _background(derivation)
    yield ""
    yield "Units: X for the model space, F for the loss"
    flags = unit_flags(statement) if _has_units(statement) else ()
    clean = "all fit" if _has_units(statement) else "not checked: the statement gives none"
    yield from (f"  {line}" for line in flags or (clean,))
    yield ""
    yield _summary(results, len(flags))


def _step_lines(result: StepResult) -> Iterator[str]:
    yield f"  {result.step.label}: {result.outcome.name}, {result.outcome.value}"
    yield f"    claim: {result.step.text}"
    if result.difference is not None:
        yield f"    {_NAME_OF_DIFFERENCE[type(result.step.claim)]}: {result.difference}"
    if result.point is not None:
        yield f"    at {_in_words(result.point)}"


def _in_words(point: Mapping[sp.Symbol, sp.Rational]) -> str:
    return ", ".join(f"{symbol} = {value}" for symbol, value in point.items())


def _background(derivation: Derivation) -> Iterator[str]:
    yield ""
    yield "Used without a check"
    yield from (f"  {fact}" for fact in derivation.taken)
    if derivation.meanings:
        yield ""
        yield "Symbols of the steps"
        yield from (f"  {symbol}: {text}" for symbol, text in derivation.meanings.items())


def _has_units(statement: Statement) -> bool:
    return bool(statement.basis.units)


def _summary(results: Sequence[StepResult], flagged: int) -> str:
    counts = Counter(result.outcome for result in results)
    found = ", ".join(f"{counts[item]} {item.name}" for item in StepOutcome if counts[item])
    return f"{how_many(len(results), 'step')}{': ' + found if found else ''}; unit flags: {flagged}"
