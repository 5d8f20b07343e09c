"""Formulas as MathML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.decay import DecayClaim
from fltheory.claims.statement import Statement
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.report.html.mathml import mathml, related_latex, symbol, typeset, typeset_assertion

x, eta_c = sp.symbols("x eta_c", positive=True)


def text_of(pieces) -> str:
    return "".join("".join(ElementTree.fromstring(piece).itertext()) for piece in pieces)


def test_a_sum_is_broken_before_its_signs() -> None:
    bound = Assertion("E||x||", r"\mathbb E\|x\|", Relation.AT_MOST, x**2 + 3 * x - 1)
    pieces = typeset_assertion(bound)
    assert [text_of([piece]) for piece in pieces] == [
        "\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL E}‖x‖",
        "≤x2",
        "+3x",
        "\N{MINUS SIGN}1",
    ]
    assert all(piece.startswith('<math displaystyle="true"') for piece in pieces)


@pytest.mark.parametrize(
    ("condition", "sign"),
    [
        (sp.Le(x, 2), "≤"),
        (sp.Lt(x, 2), "<"),
        (sp.Ge(x, 2), "≥"),
        (sp.Gt(x, 2), ">"),
        (sp.Eq(x, 2), "="),
        (sp.Ne(x, 2), "≠"),
    ],
)
def test_relations_keep_their_direction(condition, sign: str) -> None:
    assert text_of(typeset(condition)) == f"x{sign}2"


def test_an_order_names_its_function() -> None:
    order = Assertion("x", "x", Relation.OF_ORDER, 1 / sp.sqrt(eta_c), x)
    assert text_of(typeset_assertion(order)) == "x=O(1ηc)"
    assert "<msqrt>" in "".join(typeset_assertion(order))


def test_brackets_grow_around_fractions_only() -> None:
    flat, tall = (typeset(e)[0] for e in (eta_c * (x + 1), eta_c * (1 / x + 1)))
    assert 'stretchy="false"' in flat
    assert 'stretchy="true"' in tall


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\unknowncommand x",
        r"\frac{1}",
        r"\left( x",
        r"\style{position:fixed}{x}",
    ],
)
def test_what_cannot_be_typeset_safely_is_text(latex: str) -> None:
    assert mathml(latex, "a < b & <script>") == "<code>a &lt; b &amp; &lt;script&gt;</code>"


def test_names_are_escaped() -> None:
    shown = symbol(sp.Symbol("<img src=x>"))
    assert "<img" not in shown


@pytest.mark.parametrize(
    "statement", theorems.registered(), ids=lambda item: f"{item.id}-{item.reading}"
)
def test_every_registered_formula_is_typeset(statement: Statement) -> None:
    theorem = getattr(statement, "theorem", statement)
    claimed = theorem.order if isinstance(theorem, DecayClaim) else theorem.bound
    expressions = [claimed, *theorem.definitions.values()]
    expressions += [item.condition for item in theorem.hypotheses]
    pieces = [piece for expression in expressions for piece in typeset(expression)]
    pieces += [symbol(name) for name in theorem.meanings]
    latex = getattr(theorem.quantity, "latex", "")
    pieces += [mathml(latex, "")] if latex else []
    assert all(ElementTree.fromstring(piece).tag == "math" for piece in pieces)


def test_summands_in_an_order_that_nobody_told_begin_with_a_positive_one() -> None:
    a, b, x = sp.symbols("a b x", positive=True)
    right = 7 - b * x + a**2
    found = related_latex(Assertion("y", "", Relation.AT_MOST, right))
    assert [" ".join(one.split()) for one in found] == [r"{} \leq a^{2}", "{} + 7", "{} - b x"]
