"""Complete corrected statements as LaTeX, to be pasted into a paper, with changes marked.

Formulas written as plain characters in sentences become LaTeX formulas.

Statements describe changes in plain sentences, such as ``w_B* in place of w* in Gamma``. At each
word, a small parser reads the longest possible formula. This is typeset unless it could be a word
or a plain number. Everything else remains text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import sympy as sp

from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.printed_form import printed_latex
from fltheory.report.html.mathml import SIGNS_IN_LATEX
from fltheory.report.terminal.corrected_statement import (
    OTHER_PARTS,
    further_note,
    has_other_parts,
    written_summands,
)
from fltheory.report.terminal.explanation import meanings_in_use
from fltheory.theorems import Hypothesis
from fltheory.theorems.correction import Correction, definition_part, left_part

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


def escaped(text: str) -> str:
    r"""Return LaTeX that shows a text literally, with line breaks allowed.

    Examples
    --------
    >>> print(escaped("q_1 <= 1/K"))
    q\_1 $\leq$ 1/K
    """
    return _SIGNS.sub(lambda sign: _SPECIAL[sign.group()], text)


def plain_text(latex: str) -> str:
    r"""Return the text that LaTeX shows, undoing `escaped`.

    Examples
    --------
    >>> print(plain_text(r"q\_1 $\leq$ 1/K\textasciicircum{}2"))
    q_1 <= 1/K^2
    """
    signs = {made: sign for sign, made in _SPECIAL.items()}
    escapes = re.compile("|".join(map(re.escape, sorted(signs, key=len, reverse=True))))
    return escapes.sub(lambda made: signs[made.group()], latex)


def sentence_latex(text: str) -> str:
    r"""Return a sentence as LaTeX, with its formulas typeset.

    Examples
    --------
    >>> print(sentence_latex("In (12), q <= 1/sqrt(R) is the clients' share; see Lemma 2."))
    In (12), $q \leq 1/\sqrt{R}$ is the clients' share; see Lemma 2.
    """
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    begun = 0  # start of the words not yet returned
    place = 0
    while place < len(text):
        if place == 0 or text[place - 1] in " (":
            end, latex = _formula_at(text, place)
            if end > place:
                yield f"{escaped(text[begun:place])}${latex}$"
                begun = place = end
                continue
        place += 1
    yield escaped(text[begun:])


def _formula_at(text: str, start: int) -> tuple[int, str]:
    """Return the end and the LaTeX of the longest formula here; the end is the start if none."""
    reader = _Reader(text, start)
    latex = reader.relation()
    end, read = reader.place, text[start : reader.place]
    is_over = re.match(r"$|[\s.,;:)\]?!]|'s\b", text[end:]) is not None
    # Articles, numbers, abbreviations and letters after "Appendix" are not formulas.
    is_word = re.fullmatch(r"[aAIo]|[\d.]+|[A-Z]{2,}", read) is not None
    is_label = re.search(r"\b(Appendix|Section|Assumption|option) $", text[:start]) is not None
    if latex is None or is_word or is_label or not is_over:
        return start, ""
    return end, latex


_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi "
    "psi omega upsilon Gamma Delta Theta Lambda Sigma Phi Psi Omega"
)
_NAMES = {
    **{name: f"\\{name}" for name in _GREEK.split()},
    "eps": r"\epsilon",
    "etabar": r"\bar{\eta}",
    "Rhat": r"\hat{R}",
    "Var": r"\operatorname{Var}",
}
_BEFORE_AN_OPERAND = {
    **{name: f"\\{name}" for name in ["log", "ln", "exp", "min", "max", "sup", "inf"]},
    "sum": r"\sum",
    "grad": r"\nabla",
}
_RELATIONS = {
    "<=": r"\leq",
    ">=": r"\geq",
    "!=": r"\neq",
    "..": r"\dots",
    "<": "<",
    ">": ">",
    "=": "=",
}
_OPENING = r"sqrt\(|floor\(|\|\||\||[(\[{]"
_CLOSING = {"[": "]", "{": "}", "||": "||", "|": "|"}
_IN_LATEX = {
    "{": (r"\{", r"\}"),
    "||": (r"\|", r"\|"),
    "sqrt(": (r"\sqrt{", "}"),
    "floor(": (r"\lfloor ", r" \rfloor"),
}
# Factors written without a space, such as LK or mKR, but not Roman numerals.
_PRODUCT = re.compile(r"(?!I+$)[a-z]?[A-Z]{1,3}")


class _Reader:
    """A parser of formulas at a position in a text; its methods return LaTeX or None.

    If a method returns None, ``place`` has not moved.
    """

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place

    def _take(self, pattern: str) -> str | None:
        found = re.compile(pattern).match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return found[0]

    def _chain(
        self, part: Callable[[], str | None], joint: str, signs: Mapping[str, str]
    ) -> str | None:
        """Read parts with joints between them; a joint that no part follows is not consumed."""
        latex = part()
        while latex is not None:
            before = self.place
            taken = self._take(joint)
            following = None if taken is None else part()
            if taken is None or following is None:
                self.place = before
                break
            sign = signs.get(taken.strip(), taken.strip())
            latex += f"{taken}{following}" if sign in ("/", "") else f" {sign} {following}"
        return latex

    def relation(self) -> str | None:
        """Read sums with relations between them."""
        return self._chain(self._sum, r" *(<=|>=|!=|\.\.(?!\.)|<|>|=) *", _RELATIONS)

    def _sum(self) -> str | None:
        before = self.place
        sign = self._take(r"-(?=[\w(|])") or ""
        latex = self._chain(self._product, r" [+-] |[+-](?=[\w(])", {})
        if latex is None:
            self.place = before
            return None
        return sign + latex

    def _product(self) -> str | None:
        # Adjacent factors, such as 4 q, gamma (1 - eta), 2L, q'Sigma, F(x), E||x||, 1{x > 0}.
        space = r" (?=\([^()]*[a-zA-Z])| (?![aAI]\b(?!\)))(?=[\w|])"
        nothing = r"(?<=[\d)'*])(?=[a-zA-Z])|(?<=[\w*'])(?=[(\[|{])"
        return self._chain(self._power, rf"/| o (?=\w)|{space}|{nothing}", {"o": r"\circ"})

    def _power(self) -> str | None:
        """Read a symbol with any index, stars, primes, hat or exponent."""
        latex = self._atom()
        if latex is None:
            return None
        index, above = self._index(), ""
        while sign := self._take(r"\*(?![\w(])|\*(?='\w)|'(?!s\b)"):
            above += {"*": "*", "'": r"\prime"}[sign]
        if self._take(r"\^(?=$|[\s.,;:)\]])"):
            latex = rf"\hat{{{latex}}}"
        elif self._take(r"\^"):
            above += self._exponent() or ""
        return f"{latex}{index}{f'^{{{above}}}' if above else ''}"

    def _index(self) -> str:
        if self._take(r"_\{"):
            return f"_{{{self._listed('}')}}}"
        name = (self._take(r"_([a-zA-Z]+|\d+)") or "_")[1:]
        if name in ("min", "max"):
            name = f"\\{name}"
        elif len(name) > 2 and name.islower():
            name = rf"\mathrm{{{name}}}"
        return f"_{{{name}}}" if name else ""

    def _exponent(self) -> str | None:
        if self._take(r"\("):
            return self._listed(")")
        number = self._take(r"\d+")
        if number:
            return number
        name = self._name()
        return None if name is None else f"{name}{self._index()}"

    def _atom(self) -> str | None:
        before = self.place
        if number := self._take(r"\d+(\.\d+)?"):
            return number
        if word := self._take(r"\|\|[a-z]{3,}\|\|"):
            return rf"\|\text{{{word.strip('|')}}}\|"
        # "(12)" refers to an equation.
        opening = None if self._take(r"(?=\(\d+\))") is not None else self._take(_OPENING)
        if opening is None:
            return self._name()
        closing = _CLOSING.get(opening, ")")
        inside = self._listed(closing)
        if inside is None:
            self.place = before
            return None
        left, right = _IN_LATEX.get(opening, (opening, closing))
        return f"{left}{inside}{right}"

    def _name(self) -> str | None:
        before = self.place
        letters = self._take(r"[a-zA-Z]+") or ""
        if letters in _BEFORE_AN_OPERAND:
            latex = _BEFORE_AN_OPERAND[letters] + self._index()
            space = self._take(" ") or ""
            operand = self._power()
            if operand is not None:
                return f"{latex}{space or ('' if operand.startswith('(') else ' ')}{operand}"
        elif letters in _NAMES:
            return _NAMES[letters]
        elif len(letters) == 1 or _PRODUCT.fullmatch(letters):
            return letters
        self.place = before
        return None

    def _listed(self, closing: str) -> str | None:
        """Read one or more formulas in brackets and the closing bracket."""
        before = self.place
        latex = self._chain(self.relation, ", ?", {})
        if latex is None or self._take(re.escape(closing)) is None:
            self.place = before
            return None
        return latex.replace(" , ", ", ")


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
    yield rf"\begin{{corrected}}[{escaped(f'{statement.source}. Kind: {statement.kind}')}]"
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
        fixed = f"{change.kind.capitalize()}, fixed by: {sentence_latex(change.about)}."
        yield rf"  \item[{{{label}}}] {fixed}{why}"
    for hypothesis in correction.left_out:
        left_out = f"{sentence_latex(hypothesis.name)}, ${printed_latex(hypothesis.condition)}$"
        yield rf"  \item[] Hypothesis left out: {left_out}."
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
