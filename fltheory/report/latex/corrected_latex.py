"""A corrected statement in full as LaTeX, ready to be pasted into a paper, its changes marked."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.printed_form import printed_latex
from fltheory.report.html.mathml import SIGNS_IN_LATEX
from fltheory.report.latex.sentences import escaped, sentence_latex
from fltheory.report.terminal.corrected_statement import (
    OTHER_PARTS,
    further_note,
    has_other_parts,
    written_summands,
)
from fltheory.report.terminal.explanation import meanings_in_use
from fltheory.theorems import Hypothesis
from fltheory.theorems.correction import Correction, definition_part, left_part

_PREAMBLE = (
    r"% in the preamble: \usepackage{amsmath,amsthm,xcolor} \newtheorem*{corrected}{Corrected}",
    r"\providecommand{\changed}[2]{{\color{blue}#2}^{[#1]}}",
)


def corrected_latex(correction: Correction) -> str:
    """Return the corrected statement as LaTeX, to be pasted into a paper."""
    return "\n".join(_latex(correction))


def _latex(correction: Correction) -> Iterator[str]:
    statement = correction.corrected
    basis = statement.basis
    yield from _PREAMBLE
    yield rf"\begin{{corrected}}[{escaped(f'{statement.source}; {statement.kind}')}]"
    if basis.hypotheses:
        yield "If"
        yield r"\begin{itemize}"
        for hypothesis in basis.hypotheses:
            yield rf"  \item {_named(correction, hypothesis)},"
        yield r"\end{itemize}"
        yield "then"
    for assertion in statement.assertions:
        yield r"\begin{multline*}"
        yield f"  {' '.join(_sides(correction, assertion))}"
        yield r"\end{multline*}"
        for hypothesis in assertion.hypotheses:
            yield f"if {_named(correction, hypothesis)}."
    symbols = [
        *(
            f"${_marked(correction, definition_part(s, term), _defined(s, term))}$"
            for s, term in basis.definitions.items()
        ),
        *(
            f"${sp.latex(s)}$: {sentence_latex(meaning)}"
            for s, meaning in meanings_in_use(statement, as_stated=True)
        ),
    ]
    yield f"Here {'; '.join(symbols)}."
    yield r"\end{corrected}"
    yield r"\noindent What changes:"
    yield r"\begin{enumerate}"
    for change in correction.changes:
        why = f" {sentence_latex(change.why)}" if change.why else ""
        label = f"[{correction.label(change)}]"
        yield rf"  \item[{{{label}}}] {change.kind}: {sentence_latex(change.about)}.{why}"
    for hypothesis in correction.left_out:
        left_out = f"{sentence_latex(hypothesis.name)}, ${printed_latex(hypothesis.condition)}$"
        yield rf"  \item[] left out: {left_out}."
    if note := further_note(correction):
        starred = has_other_parts(correction)
        heading = rf"[{{[*]}}] {OTHER_PARTS}: " if starred else "[] "
        yield rf"  \item{heading}{sentence_latex(note)}"
    yield r"\end{enumerate}"


def _defined(symbol: sp.Symbol, term: sp.Expr) -> str:
    return f"{sp.latex(symbol)} = {printed_latex(term)}"


def _named(correction: Correction, hypothesis: Hypothesis) -> str:
    if hypothesis.stated:
        marks = correction.marks(hypothesis.condition)
        return sentence_latex(hypothesis.stated) + (rf"$\changed{{{marks}}}{{}}$" if marks else "")
    condition = _marked(correction, hypothesis.condition, printed_latex(hypothesis.condition))
    return f"{sentence_latex(hypothesis.name)}: ${condition}$"


def _marked(correction: Correction, part: sp.Basic, latex: str) -> str:
    marks = correction.marks(part)
    return rf"\changed{{{marks}}}{{{latex}}}" if marks else latex


def _sides(correction: Correction, assertion: Assertion) -> Iterator[str]:
    left = assertion.left_latex or rf"\text{{{escaped(assertion.left)}}}"
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


def _typeset_summands(assertion: Assertion) -> Iterator[tuple[sp.Expr, str]]:
    for term, written in written_summands(assertion):
        yield term, printed_latex(term) if written is None else sp.latex(written, order="none")
