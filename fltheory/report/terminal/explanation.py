"""A statement in words and formulas and the last steps of its proof, for a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

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
from fltheory.grammar.printed_form import printed_lines, printed_text
from fltheory.long_work.progress import Progress
from fltheory.verify import Outcome

Fits: TypeAlias = Callable[[Sequence[str]], bool]


def explanation(statement: Statement, fits: Fits = lambda lines: True) -> str:
    """Return a statement in one reading as text, with sides, hypotheses, symbols and source.

    Parameters
    ----------
    statement : Statement
    fits : callable
        Returns whether a formula drawn over these lines can be shown. If not, it becomes one line
        of text.
    """
    return "\n".join(_lines(statement, fits))


def _lines(statement: Statement, fits: Fits) -> Iterator[str]:
    yield f"{statement.id}, {statement.reading} reading of {statement.kind.with_article}"
    yield f"  {statement.title}"
    yield f"  Source: {statement.source}"
    yield ""
    basis = statement.basis
    rests_on_another = basis is not statement
    if rests_on_another:
        yield f"Claim, under the hypotheses of {basis.id} ({basis.reading}):"
        yield from _assertions(statement, fits)
        yield ""
    yield "Statement"
    yield from _assertions(basis, fits)
    yield ""
    yield "Hypotheses"
    for hypothesis in basis.hypotheses:
        yield f"  {hypothesis.name}   [{hypothesis.source}]"
        yield from _indented(hypothesis.condition, 4, fits)
    yield ""
    yield "Symbols"
    for symbol, expression in basis.definitions.items():
        yield f"  {symbol} = {printed_text(expression)}"
    every = {
        item.symbol: item.rounds.text for item in basis.round_symbols if item.reduction == "every"
    }
    for symbol, meaning in meanings_in_use(statement):
        each = f" in every round {every[symbol]}" if symbol in every else ""
        yield f"  {symbol}: {meaning}{each}"
    if statement.note:
        yield ""
        yield f"Reading: {statement.note}"
    for fault in statement.refutations:
        shown = "; ".join((*fault.regimes, *fault.certificates))
        yield ""
        yield f"Refuted (see {shown}): {fault.why}"
        yield f"  {fault.weight}"
        yield f"  fixed by {fault.fixed_by}"
        if fault.natural_witness:
            yield f"  natural witness: {fault.natural_witness}"


def meanings_in_use(
    statement: Statement, *, as_stated: bool = False
) -> Iterator[tuple[sp.Symbol, str]]:
    """Yield a statement's symbols and their meanings, except symbols that its formulas define.

    A paper's symbols are listed once for all its statements, and most statements use only some.

    Parameters
    ----------
    statement : Statement
    as_stated : bool
        Whether to leave out numbers that only serve to evaluate conditions that the paper states in
        words.
    """
    basis, conditions = statement.basis, statement.conditions
    assertions = (*statement.assertions, *basis.assertions)
    formulas: list[sp.Basic] = [*(a.right for a in assertions), *basis.definitions.values()]
    formulas += (h.condition for h in conditions if not (as_stated and h.stated))
    used = set().union(*(formula.free_symbols for formula in formulas))
    evaluated = set().union(*(h.condition.free_symbols for h in conditions)) - used
    left_out = {str(symbol) for symbol in evaluated} if as_stated else set()
    # Left sides, conditions in words and readings also contain symbols.
    texts = (statement.note, *(h.stated for h in conditions), *(a.left for a in assertions))
    words = _names_in(" ".join(texts)) | {str(symbol) for symbol in used}
    if as_stated:
        # Symbols that occur in a meaning must also be explained.
        for _ in basis.meanings:
            words |= {
                name
                for symbol, meaning in basis.meanings.items()
                if str(symbol) in words - left_out
                for name in _names_in(meaning)
            }
    for item in basis.round_symbols:
        yield item.symbol, item.meaning
    for symbol, meaning in basis.meanings.items():
        if symbol.name in words - left_out and symbol not in basis.definitions:
            yield symbol, meaning


def _names_in(text: str) -> set[str]:
    """Return the names in a text; names with a client's index are also returned without it."""
    names = set(re.findall(r"\w+", text))
    return names | {re.sub(r"_[hijk]$", "", name) for name in names}


def _assertions(statement: Statement, fits: Fits) -> Iterator[str]:
    for assertion in statement.assertions:
        if assertion.variable is None:
            yield f"  {assertion.left} {assertion.relation}"
            yield from _indented(assertion.right, 4, fits)
        else:
            yield f"  {assertion.text}"
        for hypothesis in assertion.hypotheses:
            condition = printed_text(hypothesis.condition)
            yield f"    if {hypothesis.name}: {condition}   [{hypothesis.source}]"


def _indented(expression: sp.Basic, spaces: int, fits: Fits) -> Iterator[str]:
    lines = [" " * spaces + line for line in printed_lines(expression)]
    yield from lines if fits(lines) else [" " * spaces + printed_text(expression)]


def where_it_applies(outcomes: Mapping[str, str], how: str = "computed now") -> str:
    """Return the regimes by verdict, in a few lines.

    Parameters
    ----------
    outcomes : mapping of str to str
        The name of the outcome in each regime.
    how : str
        The origin of the outcomes.
    """
    lines = [f"Where it applies ({how}, over its regimes)"]
    for outcome in Outcome:
        regimes = [regime for regime, found in outcomes.items() if found == outcome.name]
        if regimes:
            lines.append(f"  {outcome.name}: {'; '.join(regimes)}")
    return "\n".join(lines)


_NAME_OF_DIFFERENCE: Mapping[type, str] = {
    Equal: "left side minus right side",
    Implied: "larger side minus smaller side",
    FiniteLimit: "limit",
}


def derivation_text(statement: Statement, *, progress: Progress | None = None) -> str:
    """Check the recorded steps of a statement's proof and its units, and return the results.

    Parameters
    ----------
    statement : Statement
    progress : callable, optional
        Called with (steps checked, steps, the next step).
    """
    return "\n".join(_checked(statement, progress))


def _checked(statement: Statement, progress: Progress | None) -> Iterator[str]:
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
