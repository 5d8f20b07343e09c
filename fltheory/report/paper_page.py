"""A page for each paper with its theorems as printed and as derived, made from the registry.

It also says which numbered statements (theorems, lemmas, corollaries and remarks) of the papers'
texts are registered. A numbered statement is covered by registered statements whose source names
it. For all others, the reason why they are not registered is given here and on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import takewhile

import sympy as sp

from fltheory.claims.statement import Statement
from fltheory.decimals import how_many
from fltheory.grammar.assertion import Assertion
from fltheory.grammar.printed_form import printed_latex
from fltheory.report.html.mathml import related_latex
from fltheory.theorems import Hypothesis, registered
from fltheory.verify.baseline import Baseline


@dataclass(frozen=True, eq=False)
class Text:
    """A paper's text, and its numbered statements.

    Attributes
    ----------
    name : str
        The prefix of its statements' sources.
    numbered : tuple of str
        ``"Theorem 1"`` and so on, in the order of the kinds.
    reasons : mapping
        Reasons why a numbered statement is not registered by itself.
    """

    name: str
    numbered: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def covering(self, label: str, statements: Sequence[Statement]) -> tuple[str, ...]:
        """Return, in order, the ids of the statements whose source names a numbered statement.

        Examples
        --------
        >>> from fltheory.theorems import registered
        >>> TEXTS[0].covering("Remark 5", registered("sa-fl"))[:2]
        ('sa-fl/remark-5-fedavg', 'sa-fl/remark-5-sgd')
        """
        named = re.compile(rf"(?:, | and ){re.escape(label)}(?![\w.]\d|\d)")
        found = (
            s.id for s in statements if s.source.startswith(self.name) and named.search(s.source)
        )
        return tuple(dict.fromkeys(found))


def _numbers(kind: str, last: int) -> tuple[str, ...]:
    return tuple(f"{kind} {number}" for number in range(1, last + 1))


_SAME = "the same claim as in the ICML version, {}"
TEXTS = (
    Text(
        "SA-FL (ICML 2024)",
        (
            *_numbers("Theorem", 5),
            *_numbers("Corollary", 2),
            *_numbers("Lemma", 2),
            *_numbers("Remark", 6),
        ),
        {
            "Remark 1": "on what data servers have; nothing in it can be computed",
            "Remark 3": "Theorem 4 in words; that gradients vanish is Corollary 1",
            "Remark 4": "Theorem 5 in words; that distances vanish is Corollary 2",
        },
    ),
    Text(
        "SA-FL (earlier anonymous version)",
        (*_numbers("Theorem", 4), *_numbers("Corollary", 1)),
        {f"Theorem {n}": _SAME.format(f"`pac/{n}`") for n in (1, 2, 3)},
    ),
    Text(
        "CA-Fed (arXiv 2301.04632, later version)",
        (*_numbers("Theorem", 3), *_numbers("Lemma", 3)),
    ),
    Text(
        "FedAU (ICLR 2024; arXiv 2306.03401; from the author's slides)",
        (*_numbers("Theorem", 3), "Corollary 4", "Lemma B.3.3"),
    ),
    Text(
        "FedAR (arXiv 2407.19103)",
        (*_numbers("Theorem", 2), *_numbers("Remark", 3)),
        {"Remark 3": "named in the text, but in an appendix that we do not have"},
    ),
    Text(
        "Wang et al. (NeurIPS 2020)",
        (*_numbers("Theorem", 3), "Lemma 1"),
        {
            "Theorem 3": "Theorem 1's bound with means over rounds in it, for steps that change",
            "Lemma 1": "on FedAvg with unequal numbers of local steps, no algorithm here",
        },
    ),
    Text(
        "Xiang et al. (NeurIPS 2024)",
        ("Theorem 1", "Corollary 1", *_numbers("Lemma", 4)),
        {"Lemma 1": "on products of random matrices, cited from others"},
    ),
)


def texts_of(statements: Sequence[Statement]) -> tuple[Text, ...]:
    """Return the texts that some statements are from, which for papers of the atlas are none."""
    return tuple(
        text for text in TEXTS if any(one.source.startswith(text.name) for one in statements)
    )


_READINGS: Mapping[str, str] = {
    "printed": "As printed",
    "derived": "As derived",
    "repaired": "Repaired",
    "tight": "With the least constants",
}
_INTRODUCTION = (
    "Each statement as it is checked, in every reading: hypotheses, claim, and the outcome on its",
    "regimes, the named settings to check it on: an outcome's scope is that one setting. The",
    "formulas are made from the very data that is evaluated. See also",
    "[what a verdict means](../verdicts.md), [what was found](../findings.md)",
    "and [the glossary](../glossary.md).",
)
_SUBJECTS = {"lemmas": "Lemmas that SA-FL cites", "pac": "SA-FL on PAC learnability"}
_OUTER_COMMA = re.compile(r", (?![^(]*\))")  # not a prefix in parentheses


def papers(statements: Sequence[Statement]) -> Mapping[str, tuple[Statement, ...]]:
    """Return the statements of each paper, by the prefix of their ids, in order."""
    found: dict[str, list[Statement]] = {}
    for statement in statements:
        found.setdefault(statement.id.split("/")[0], []).append(statement)
    return {name: tuple(members) for name, members in found.items()}


def paper_page(statements: Sequence[Statement], recorded: Baseline | None = None) -> str:
    """Return a paper's page in Markdown, with its formulas as MathML.

    Parameters
    ----------
    statements : sequence of Statement
        A paper's statements, in all readings.
    recorded : mapping, optional
        Verdicts to show, from `fltheory.verify.baseline.read_baseline`.

    Examples
    --------
    >>> from fltheory import theorems
    >>> page = paper_page([theorems.get("sa-fl/5")])
    >>> page.splitlines()[0]
    '# SA-FL (ICML 2024)'
    """
    return "\n".join(_page(statements, recorded or {})) + "\n"


def paper_name(statements: Sequence[Statement]) -> str:
    """Return the paper's name, the common prefix of its statements' sources.

    Statements of several papers on one page are named by their subject.
    """
    prefix = statements[0].id.split("/")[0]
    if prefix in _SUBJECTS:
        return _SUBJECTS[prefix]
    parts = [_OUTER_COMMA.split(statement.source)[:-1] for statement in statements]
    common = takewhile(lambda same: len(set(same)) == 1, zip(*parts, strict=False))
    return ", ".join(same[0] for same in common) or prefix


def _page(statements: Sequence[Statement], recorded: Baseline) -> Iterator[str]:
    yield f"# {paper_name(statements)}"
    yield ""
    yield from _INTRODUCTION
    yield ""
    yield from _coverage(statements)
    for identifier in dict.fromkeys(statement.id for statement in statements):
        readings = [statement for statement in statements if statement.id == identifier]
        yield f"## {identifier}"
        yield ""
        first = readings[0]
        yield f"{first.title}. Source: {first.source}. Kind: {first.kind}."
        yield ""
        for statement in readings:
            heading = _READINGS.get(statement.reading, statement.reading)
            yield f"### {heading} {{#{_anchor(statement)}}}"
            yield ""
            yield from _statement(statement)
            yield from _verdicts(statement, recorded)


def _coverage(statements: Sequence[Statement]) -> Iterator[str]:
    """Yield a table of a text's numbered statements, with reasons for those not checked."""
    everything = registered()
    for text in texts_of(statements):
        yield f"Numbered statements of {text.name}:"
        yield ""
        yield "| in the text | checked as |"
        yield "|---|---|"
        for label in text.numbered:
            ids = ", ".join(f"`{name}`" for name in text.covering(label, everything))
            yield f"| {label} | {ids or f'not a statement of its own: {text.reasons[label]}'} |"
        yield ""


def _plain(text: str) -> str:
    """Return a text with all markup escaped."""
    return escape(text, quote=False).replace("*", r"\*").replace("_", r"\_")


def _anchor(statement: Statement) -> str:
    return f"{statement.id}-{statement.reading}".replace("/", "-")


def _statement(statement: Statement) -> Iterator[str]:
    if statement.note:
        yield _plain(statement.note)
        yield ""
    if statement.basis is not statement:
        yield f"Under the hypotheses of {statement.basis.id} ({statement.basis.reading}),"
        yield ""
        for assertion in statement.assertions:
            yield _formula(_latex(assertion))
            yield ""
            yield from _conditions(assertion.hypotheses, "- if ")
        return
    yield "If"
    yield ""
    yield from _conditions(statement.basis.hypotheses, "- ")
    yield "then"
    yield ""
    for assertion in statement.assertions:
        yield _formula(_latex(assertion))
        yield ""
    yield from _symbols(statement)


def _conditions(hypotheses: Sequence[Hypothesis], bullet: str) -> Iterator[str]:
    for hypothesis in hypotheses:
        yield f"{bullet}{hypothesis.name} ({hypothesis.source}):"
        yield ""
        yield f"    {_formula(printed_latex(hypothesis.condition))}"
        yield ""


def _latex(assertion: Assertion) -> str:
    """Return left side, relation and right side in LaTeX."""
    left = assertion.left_latex or rf"\text{{{assertion.left.translate(_SET_ASIDE)}}}"
    variable = assertion.variable
    where = () if variable is None else (rf"\text{{ in }} {sp.latex(variable)}",)
    return " ".join([left, *related_latex(assertion), *where])


# In LaTeX text, these characters would end the text or be markup, so they are replaced before
# conversion.
_SET_ASIDE = str.maketrans({character: chr(0xE000 + i) for i, character in enumerate("{}<>&")})
_TAKEN_BACK = {aside: chr(code) for code, aside in _SET_ASIDE.items()}


def _symbols(statement: Statement) -> Iterator[str]:
    basis = statement.basis
    rows = [
        (symbol, _formula(printed_latex(expression), display="inline"))
        for symbol, expression in basis.definitions.items()
    ]
    for item in basis.round_symbols:
        rows.append((item.symbol, escape(item.meaning)))
    used = _used(statement)
    rows += [
        (symbol, escape(meaning))
        for symbol, meaning in basis.meanings.items()
        if symbol in used and symbol not in basis.definitions
    ]
    yield "<details><summary>Symbols</summary><table>"
    for symbol, meaning in rows:
        yield f"<tr><td>{_formula(sp.latex(symbol), display='inline')}</td><td>{meaning}</td></tr>"
    yield "</table></details>"
    yield ""


def _used(statement: Statement) -> set[sp.Basic]:
    """Return the symbols of a statement's formulas."""
    basis = statement.basis
    formulas = [*(a.right for a in statement.assertions), *(h.condition for h in basis.hypotheses)]
    formulas += basis.definitions.values()
    return set().union(*(formula.free_symbols for formula in formulas))


def _verdicts(statement: Statement, recorded: Baseline) -> Iterator[str]:
    by_outcome: dict[str, list[str]] = {}
    for regime in statement.regimes:
        record = recorded.get((statement.id, statement.reading, regime))
        if record is not None:
            by_outcome.setdefault(record.outcome, []).append(regime)
    for outcome, regimes in sorted(by_outcome.items()):
        count = how_many(len(regimes), "regime")
        yield f"- **{outcome}** on {count}: {'; '.join(regimes)}"
    if by_outcome:
        yield ""
    for fault in statement.refutations:
        natural = f" Natural witness: {fault.natural_witness}." if fault.natural_witness else ""
        text = f"{fault.why} Fixed by {fault.fixed_by}.{natural}"
        yield f"- *{fault.weight.label.capitalize()}.* {_plain(text)}"
    if statement.refutations:
        yield ""


def _formula(latex: str, display: str = "block") -> str:
    """Return a formula as MathML, on one line."""
    from latex2mathml.converter import convert

    mathml = convert(latex, display=display).replace("\n", " ")
    for aside, character in _TAKEN_BACK.items():
        mathml = mathml.replace(aside, escape(character))
    return f'<span class="formula">{mathml}</span>' if display == "block" else mathml
