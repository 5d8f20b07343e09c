"""Every claim, relation and hypothesis of the registry is the same in every medium.

The media are read back: the terminal's text, the page in Markdown and the report in HTML each say
which sides a statement has, and how they compare. What they should say is taken from the fields
that a statement was written with, not from what the media are made of.
"""

from __future__ import annotations

import re

import pytest
import sympy as sp
from markupsafe import Markup

from fltheory import theorems
from fltheory.claims.at_point import LearningClaim
from fltheory.claims.decay import DecayClaim
from fltheory.claims.statement import Statement
from fltheory.grammar.printed_form import printed_latex, printed_lines
from fltheory.report.html.mathml import mathml, typeset
from fltheory.report.html.report_view import ReadingView
from fltheory.report.paper_page import paper_page
from fltheory.report.terminal.explanation import explanation
from fltheory.theorems import DirectionClaim, RateClaim

STATEMENTS = theorems.registered()
IN_MATHML = {"<=": "≤", "<": "<", ">=": "≥", ">": ">", "= O": "=O", "goes with": "goeswith"}
TAGS = re.compile(r"<annotation.*?</annotation>|</?[a-z][^>]*>", re.DOTALL)


def written(statement: Statement) -> list[tuple[str, sp.Expr]]:
    """Return relation and right side of everything that a statement says."""
    if isinstance(statement, RateClaim):
        sign = "goes with" if isinstance(statement, DirectionClaim) else "= O"
        return [(sign, axis.order) for axis in statement.axes]
    if isinstance(statement, DecayClaim):
        return [("= O", statement.order)]
    sign = str(statement.relation) if isinstance(statement, LearningClaim) else "<="
    return [(sign, statement.bound)]


def conditions(statement: Statement) -> list[tuple[str, sp.Basic]]:
    if isinstance(statement, RateClaim):
        own = [hypothesis for axis in statement.axes for hypothesis in axis.hypotheses]
        return [(item.name, item.condition) for item in (*statement.theorem.hypotheses, *own)]
    return [(item.name, item.condition) for item in statement.hypotheses]


def plain(html: str) -> str:
    """Return the text between tags without spaces, entities resolved."""
    return re.sub(r"[\s\u2061\u2062\u2063]", "", Markup(TAGS.sub("", html)).unescape())


def typed(expression: sp.Basic) -> str:
    return plain("".join(typeset(expression)))


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.id}, {s.reading}")
def test_the_terminal_shows_both_sides(statement: Statement) -> None:
    text = explanation(statement)
    beginning = text.partition("\nHypotheses\n")[0]
    for sign, right in written(statement):
        if sign in ("= O", "goes with"):
            shown = f" {sign}({right})" if sign == "= O" else f" {sign} {right}"
            assert shown in beginning
        else:
            lines = "\n".join(f"    {line}" for line in printed_lines(right))
            assert f" {sign}\n{lines}\n" in f"{beginning}\n"
    for name, _ in conditions(statement):
        assert name in text


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.id}, {s.reading}")
def test_the_report_shows_both_sides(statement: Statement) -> None:
    reading = ReadingView(statement, ())
    claims = [plain("".join(line.pieces)) for line in reading.claims]
    for claim, (sign, right) in zip(claims, written(statement), strict=True):
        brackets = f"({typed(right)})" if sign == "= O" else typed(right)
        assert claim.endswith(f"{IN_MATHML[sign]}{brackets}")
    shown = [(line.name, plain("".join(line.pieces))) for line in reading.hypotheses]
    assert shown == [(name, typed(condition)) for name, condition in conditions(statement)]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.id}, {s.reading}")
def test_the_page_shows_both_sides(statement: Statement) -> None:
    page = plain(paper_page([statement]))
    for sign, right in written(statement):
        latex = printed_latex(right)
        wanted = mathml(rf"\left({latex}\right)" if sign == "= O" else latex, str(right))
        assert f"{IN_MATHML[sign]}{plain(wanted)}" in page
    for name, _ in conditions(statement):
        assert plain(name) in page or isinstance(statement, RateClaim)
