"""A corrected statement in full, as text and as LaTeX ready to paste, its changes marked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.printed_form import (
    evaluated,
    form_text,
    printed_form,
    printed_latex,
    printed_text,
)
from fltheory.report.html.mathml import SIGNS_IN_LATEX
from fltheory.report.terminal.explanation import meanings_in_use
from fltheory.theorems import Hypothesis
from fltheory.theorems.correction import Correction, left_part

_WORDS = {Relation.OF_ORDER: "is of the order of", Relation.GOES_WITH: "goes with"}
_PREAMBLE = (
    r"% in the preamble: \usepackage{amsmath,amsthm,xcolor} \newtheorem*{corrected}{Corrected}",
    r"\providecommand{\changed}[2]{{\color{blue}#2}^{[#1]}}",
)


def corrected_text(correction: Correction) -> str:
    """Return the corrected statement as text, each change with its number."""
    return "\n".join(_text(correction))


def corrected_latex(correction: Correction) -> str:
    """Return the corrected statement as LaTeX, to be pasted into a paper."""
    return "\n".join(_latex(correction))


def _text(correction: Correction) -> Iterator[str]:
    statement = correction.corrected
    basis = statement.basis
    yield f"{statement.id}, corrected ({statement.source}; {statement.kind}): {statement.title}"
    yield ""
    if basis.hypotheses:
        yield "If"
        yield from (f"  {_condition_text(correction, h)}" for h in basis.hypotheses)
        yield "then"
    for assertion in statement.assertions:
        yield from _assertion_text(correction, assertion)
    yield from (
        f"with {symbol} = {printed_text(term)}" for symbol, term in basis.definitions.items()
    )
    for symbol, meaning in meanings_in_use(statement):
        yield f"  {symbol}: {meaning}"
    yield ""
    yield "What changes"
    for change in correction.changes:
        yield f"  [{correction.label(change)}] {change.kind}: {change.about}"
        if change.why:
            yield f"      {change.why}"
    for hypothesis in correction.left_out:
        yield f"  left out: {hypothesis.name}, {printed_text(hypothesis.condition)}"
    if note := _further_note(correction):
        yield ""
        yield f"Note ([*] marks other parts that the proof needs): {note}"


def _further_note(correction: Correction) -> str:
    """Return what the reading's note adds; that of a repair lists the changes themselves."""
    return "" if correction.corrected.repair is not None else correction.corrected.note


def _condition_text(correction: Correction, hypothesis: Hypothesis) -> str:
    marks = correction.marks(hypothesis.condition)
    text = f"{hypothesis.name}: {printed_text(hypothesis.condition)}"
    return f"{text}   [{marks}]" if marks else text


def _assertion_text(correction: Correction, assertion: Assertion) -> Iterator[str]:
    words = _WORDS.get(assertion.relation, assertion.relation.value)
    where = "" if assertion.variable is None else f", in {assertion.variable},"
    marks = correction.marks(left_part(assertion))
    yield f"  {assertion.left}{f' [{marks}]' if marks else ''}{where} {words}"
    for index, (term, written) in enumerate(_written_summands(assertion)):
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


def _written_summands(assertion: Assertion) -> Sequence[tuple[sp.Expr, sp.Expr | None]]:
    """Return each summand and its printed form, in the order of the paper where that is known."""
    terms = _summands(assertion)
    form = printed_form(assertion.right)
    written: list[Any] = (
        [] if form is None else list(form.args if isinstance(form, sp.Add) else [form])
    )
    known = [evaluated(part) for part in written]
    if assertion.variable is None and Counter(known) == Counter(terms):
        return list(zip(known, written, strict=True))
    return [(term, None) for term in terms]


def _typeset_summands(assertion: Assertion) -> Iterator[tuple[sp.Expr, str]]:
    for term, written in _written_summands(assertion):
        yield term, printed_latex(term) if written is None else sp.latex(written, order="none")


def _latex(correction: Correction) -> Iterator[str]:
    statement = correction.corrected
    basis = statement.basis
    yield from _PREAMBLE
    yield rf"\begin{{corrected}}[{_in_text(f'{statement.source}; {statement.kind}')}]"
    if basis.hypotheses:
        yield "If"
        yield r"\begin{itemize}"
        for hypothesis in basis.hypotheses:
            yield rf"  \item {_in_text(hypothesis.name)}: ${_condition(correction, hypothesis)}$,"
        yield r"\end{itemize}"
        yield "then"
    for assertion in statement.assertions:
        yield r"\begin{multline*}"
        yield f"  {' '.join(_sides(correction, assertion))}"
        yield r"\end{multline*}"
        for hypothesis in assertion.hypotheses:
            yield f"if {_in_text(hypothesis.name)}: ${_condition(correction, hypothesis)}$."
    symbols = [
        *(f"${sp.latex(s)} = {printed_latex(term)}$" for s, term in basis.definitions.items()),
        *(f"${sp.latex(s)}$: {_in_text(meaning)}" for s, meaning in meanings_in_use(statement)),
    ]
    yield f"Here {'; '.join(symbols)}."
    yield r"\end{corrected}"
    yield r"\noindent What changes:"
    yield r"\begin{enumerate}"
    for change in correction.changes:
        why = f" {_in_text(change.why)}" if change.why else ""
        label = f"[{correction.label(change)}]"
        yield rf"  \item[{{{label}}}] {change.kind}: {_in_text(change.about)}.{why}"
    for hypothesis in correction.left_out:
        left_out = f"{_in_text(hypothesis.name)}, ${printed_latex(hypothesis.condition)}$"
        yield rf"  \item[] left out: {left_out}."
    if note := _further_note(correction):
        yield rf"  \item[{{[*]}}] other parts that the proof needs: {_in_text(note)}"
    yield r"\end{enumerate}"


def _condition(correction: Correction, hypothesis: Hypothesis) -> str:
    return _marked(correction, hypothesis.condition, printed_latex(hypothesis.condition))


def _marked(correction: Correction, part: sp.Basic, latex: str) -> str:
    marks = correction.marks(part)
    return rf"\changed{{{marks}}}{{{latex}}}" if marks else latex


def _sides(correction: Correction, assertion: Assertion) -> Iterator[str]:
    left = assertion.left_latex or rf"\text{{{_in_text(assertion.left)}}}"
    yield _marked(correction, left_part(assertion), left)
    yield SIGNS_IN_LATEX[assertion.relation]
    broken = ""
    for index, (term, latex) in enumerate(_typeset_summands(assertion)):
        size = latex.removeprefix("- ") if index else latex
        sign = "+ " if size == latex else "- "
        broken += f" \\\\\n  {sign}" if index else ""
        broken += _marked(correction, term, size)
    is_order = assertion.relation is Relation.OF_ORDER
    yield rf"\left({broken}\right)" if is_order else broken
    if assertion.variable is not None:
        yield rf"\quad\text{{in }} {sp.latex(assertion.variable)}"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "|": r"\textbar{}",
    "<=": r"$\leq$",
    ">=": r"$\geq$",
    "<": r"$<$",
    ">": r"$>$",
    **{sign: f"\\{sign}" for sign in "_{}$&%#"},
}
_SIGNS = re.compile("|".join(map(re.escape, sorted(_SPECIAL, key=len, reverse=True))))


def plain_text(latex: str) -> str:
    r"""Return the text that LaTeX shows: what `corrected_latex` made of it is taken back.

    Examples
    --------
    >>> print(plain_text(r"q\_1 $\leq$ 1/K\textasciicircum{}2"))
    q_1 <= 1/K^2
    """
    signs = {escaped: sign for sign, escaped in _SPECIAL.items()}
    escapes = re.compile("|".join(map(re.escape, sorted(signs, key=len, reverse=True))))
    return escapes.sub(lambda escaped: signs[escaped.group()], latex)


def _in_text(text: str) -> str:
    r"""Return a text that LaTeX shows as it is, and may break: formulas in it are characters.

    Examples
    --------
    >>> print(_in_text("q_1 <= 1/K"))
    q\_1 $\leq$ 1/K
    """
    return _SIGNS.sub(lambda sign: _SPECIAL[sign.group()], text)
