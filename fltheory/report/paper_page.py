"""A page for each paper: its theorems as printed and as derived, made from the registry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import takewhile
from typing import TypeAlias

import sympy as sp

from fltheory.theorems import DecayClaim, LearningClaim, PointClaim, RateClaim, Statement, Theorem
from fltheory.verify.baseline import Baseline

_READINGS: Mapping[str, str] = {
    "printed": "As printed",
    "derived": "As derived",
    "repaired": "Repaired",
    "tight": "With the least constants",
}
_INTRODUCTION = (
    "Each statement as it is checked, in every reading: hypotheses, claim, and the outcome on its",
    "regimes, the named settings to check it on. The formulas are made from the very data that is",
    "evaluated. See also [what a verdict means](../verdicts.md), [what was found](../findings.md)",
    "and [the glossary](../glossary.md).",
)
_SUBJECTS = {"lemmas": "Lemmas that SA-FL cites", "pac": "SA-FL on PAC learnability"}
_OUTER_COMMA = re.compile(r", (?![^(]*\))")  # not one in parentheses
_DIRECTIONS = {"<=": r"\leq", "<": "<", ">=": r"\geq", ">": ">"}
_Inequality: TypeAlias = Theorem | PointClaim | LearningClaim | DecayClaim


def papers(statements: Sequence[Statement]) -> Mapping[str, tuple[Statement, ...]]:
    """Return the statements of each paper, by the beginning of their ids, in order."""
    found: dict[str, list[Statement]] = {}
    for statement in statements:
        found.setdefault(statement.id.split("/")[0], []).append(statement)
    return {name: tuple(members) for name, members in found.items()}


def paper_page(statements: Sequence[Statement], recorded: Baseline | None = None) -> str:
    """Return a paper's page in Markdown, with its formulas as MathML.

    Parameters
    ----------
    statements : sequence of Statement
        A paper's, in all readings.
    recorded : mapping, optional
        Verdicts to show, from `fltheory.verify.read_baseline`.

    Examples
    --------
    >>> from fltheory import theorems
    >>> page = paper_page([theorems.get("sa-fl/5")])
    >>> page.splitlines()[0]
    '# SA-FL (ICML 2024)'
    """
    return "\n".join(_page(statements, recorded or {})) + "\n"


def paper_name(statements: Sequence[Statement]) -> str:
    """Return the paper's name: what all of its statements' sources begin with.

    Statements of several papers on one page go by their subject.
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
    for identifier in dict.fromkeys(statement.id for statement in statements):
        readings = [statement for statement in statements if statement.id == identifier]
        yield f"## {identifier}"
        yield ""
        yield f"{readings[0].title}. Source: {readings[0].source}."
        yield ""
        for statement in readings:
            heading = _READINGS.get(statement.reading, statement.reading)
            yield f"### {heading} {{#{_anchor(statement)}}}"
            yield ""
            yield from _statement(statement)
            yield from _verdicts(statement, recorded)


def _anchor(statement: Statement) -> str:
    return f"{statement.id}-{statement.reading}".replace("/", "-")


def _statement(statement: Statement) -> Iterator[str]:
    if statement.note:
        yield escape(statement.note, quote=False).replace("*", r"\*").replace("_", r"\_")
        yield ""
    if isinstance(statement, RateClaim):
        yield from _rate(statement)
        return
    yield "If"
    yield ""
    for hypothesis in statement.hypotheses:
        yield f"- {hypothesis.name} ({hypothesis.source}):"
        yield ""
        yield f"    {_formula(sp.latex(hypothesis.condition))}"
        yield ""
    yield "then"
    yield ""
    yield _formula(_claim(statement))
    yield ""
    yield from _symbols(statement)


def _rate(claim: RateClaim) -> Iterator[str]:
    theorem = claim.theorem
    yield f"Under the hypotheses of {theorem.id} ({theorem.reading}),"
    yield ""
    for axis in claim.axes:
        variable = sp.latex(axis.variable)
        order = rf"{_quantity(theorem)} = O\left({sp.latex(axis.order)}\right)"
        yield _formula(rf"{order} \text{{ in }} {variable}")
        yield ""
        for hypothesis in axis.hypotheses:
            yield f"- if {hypothesis.name} ({hypothesis.source}):"
            yield ""
            yield f"    {_formula(sp.latex(hypothesis.condition))}"
            yield ""


def _claim(statement: _Inequality) -> str:
    """Return quantity, direction and bound in LaTeX."""
    quantity = _quantity(statement)
    if isinstance(statement, DecayClaim):
        order, variable = sp.latex(statement.order), sp.latex(statement.variable)
        return rf"{quantity} = O\left({order}\right) \text{{ in }} {variable}"
    direction = statement.direction if isinstance(statement, LearningClaim) else "<="
    return rf"{quantity} {_DIRECTIONS[direction]} {sp.latex(statement.bound)}"


# Inside text these would end it, or be markup: the converter sees other characters instead.
_SET_ASIDE = str.maketrans({character: chr(0xE000 + i) for i, character in enumerate("{}<>&")})
_TAKEN_BACK = {aside: chr(code) for code, aside in _SET_ASIDE.items()}


def _quantity(statement: _Inequality) -> str:
    quantity = statement.quantity
    latex = getattr(quantity, "latex", "")
    return latex or rf"\text{{{quantity.text.translate(_SET_ASIDE)}}}"


def _symbols(statement: _Inequality) -> Iterator[str]:
    rows = [
        (symbol, _formula(sp.latex(expression), display="inline"))
        for symbol, expression in statement.definitions.items()
    ]
    for item in statement.round_symbols if isinstance(statement, Theorem) else ():
        rows.append((item.symbol, escape(item.meaning)))
    used = _used(statement)
    rows += [
        (symbol, escape(meaning))
        for symbol, meaning in statement.meanings.items()
        if symbol in used and symbol not in statement.definitions
    ]
    yield "<details><summary>Symbols</summary><table>"
    for symbol, meaning in rows:
        yield f"<tr><td>{_formula(sp.latex(symbol), display='inline')}</td><td>{meaning}</td></tr>"
    yield "</table></details>"
    yield ""


def _used(statement: _Inequality) -> set[sp.Basic]:
    """Return the symbols of a statement's formulas."""
    claim = statement.order if isinstance(statement, DecayClaim) else statement.bound
    formulas = [claim, *(h.condition for h in statement.hypotheses)]
    formulas += statement.definitions.values()
    return set().union(*(formula.free_symbols for formula in formulas))


def _verdicts(statement: Statement, recorded: Baseline) -> Iterator[str]:
    by_outcome: dict[str, list[str]] = {}
    for regime in statement.regimes:
        record = recorded.get((statement.id, statement.reading, regime))
        if record is not None:
            by_outcome.setdefault(record.outcome, []).append(regime)
    for outcome, regimes in sorted(by_outcome.items()):
        count = f"{len(regimes)} regime{'s' if len(regimes) > 1 else ''}"
        yield f"- **{outcome}** on {count}: {'; '.join(regimes)}"
    if by_outcome:
        yield ""


def _formula(latex: str, display: str = "block") -> str:
    """Return a formula as MathML, on one line."""
    from latex2mathml.converter import convert

    mathml = convert(latex, display=display).replace("\n", " ")
    for aside, character in _TAKEN_BACK.items():
        mathml = mathml.replace(aside, escape(character))
    return f'<span class="formula">{mathml}</span>' if display == "block" else mathml
