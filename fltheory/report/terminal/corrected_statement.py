"""A complete corrected statement as text, with its changes marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.printed_form import (
    evaluated,
    form_text,
    printed_form,
    printed_text,
)
from fltheory.report.terminal.explanation import meanings_in_use
from fltheory.theorems import Hypothesis
from fltheory.theorems.correction import Correction, definition_part, left_part, parts_of

OTHER_PARTS = "other parts that the proof needs"
_WORDS = {Relation.OF_ORDER: "is of the order of", Relation.GOES_WITH: "goes with"}


def corrected_text(correction: Correction) -> str:
    """Return the corrected statement as text; each change has its number."""
    return "\n".join(_text(correction))


def _text(correction: Correction) -> Iterator[str]:
    statement = correction.corrected
    basis = statement.basis
    yield f"{statement.id}, corrected"
    yield f"{statement.title}. Source: {statement.source}. Kind: {statement.kind}."
    yield ""
    if basis.hypotheses:
        yield "If"
        yield from (f"  {_condition_text(correction, h)}" for h in basis.hypotheses)
        yield "then"
    for assertion in statement.assertions:
        yield from _assertion_text(correction, assertion)
    yield from _symbols(correction)
    yield ""
    yield "What changes:"
    for change in correction.changes:
        fault = f"[{correction.label(change)}] {change.kind.capitalize()}"
        yield f"  {fault}, fixed by: {change.about}."
        if change.why:
            yield f"      {change.why}"
    for hypothesis in correction.left_out:
        yield f"  Hypothesis left out: {hypothesis.name}, {printed_text(hypothesis.condition)}."
    if note := further_note(correction):
        yield ""
        yield f"{_note_heading(correction)}: {note}"


def _symbols(correction: Correction) -> Iterator[str]:
    for symbol, term in correction.corrected.basis.definitions.items():
        marks = correction.marks(definition_part(symbol, term))
        yield f"with {symbol} = {printed_text(term)}{f'   [{marks}]' if marks else ''}"
    for symbol, meaning in meanings_in_use(correction.corrected, as_stated=True):
        yield f"  {symbol}: {meaning}"


def further_note(correction: Correction) -> str:
    """Return the reading's note, or "" for a repair, because its note only lists the changes."""
    return "" if correction.corrected.repair is not None else correction.corrected.note


def _note_heading(correction: Correction) -> str:
    return f"Note ([*] marks {OTHER_PARTS})" if has_other_parts(correction) else "Note"


def has_other_parts(correction: Correction) -> bool:
    """Return whether any part is marked with a star, as not introduced by a known change."""
    return any("*" in correction.marks(part) for part in parts_of(correction.corrected))


def _condition_text(correction: Correction, hypothesis: Hypothesis) -> str:
    marks = correction.marks(hypothesis.condition)
    text = hypothesis.stated or f"{hypothesis.name}: {printed_text(hypothesis.condition)}"
    return f"{text}   [{marks}]" if marks else text


def _assertion_text(correction: Correction, assertion: Assertion) -> Iterator[str]:
    words = _WORDS.get(assertion.relation, assertion.relation.value)
    where = "" if assertion.variable is None else f", in {assertion.variable},"
    marks = correction.marks(left_part(assertion))
    yield f"  {assertion.left}{f' [{marks}]' if marks else ''}{where} {words}"
    for index, (term, written) in enumerate(written_summands(assertion)):
        marks = correction.marks(term)
        size = printed_text(term) if written is None else form_text(written)
        if index:
            size = f"- {size.removeprefix('-')}" if size.startswith("-") else f"+ {size}"
        yield f"    {size}{f'   [{marks}]' if marks else ''}"
    for hypothesis in assertion.hypotheses:
        yield f"    if {_condition_text(correction, hypothesis)}"


def _summands(assertion: Assertion) -> Sequence[sp.Expr]:
    if assertion.variable is not None:
        return (assertion.right,)
    return tuple(assertion.right.as_ordered_terms())


def written_summands(assertion: Assertion) -> Sequence[tuple[sp.Expr, sp.Expr | None]]:
    """Return each summand and its printed form, in the paper's order if that is known."""
    terms = _summands(assertion)
    form = printed_form(assertion.right)
    written: list[Any] = (
        [] if form is None else list(form.args if isinstance(form, sp.Add) else [form])
    )
    known = [evaluated(part) for part in written]
    if assertion.variable is None and Counter(known) == Counter(terms):
        return list(zip(known, written, strict=True))
    return [(term, None) for term in terms]
