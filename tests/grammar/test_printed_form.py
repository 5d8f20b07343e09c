"""Formulas in the order in which they are written."""

from __future__ import annotations

import math
import random

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.grammar.printed_form import (
    as_printed,
    printed_form,
    printed_latex,
    printed_lines,
    printed_text,
)

a, b, c, x = sp.symbols("a b c x", positive=True)


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        (lambda: sp.Le(x, 1 / (4 * sp.sqrt(30 * b * a))), r"x \leq \frac{1}{4 \sqrt{30 b a}}"),
        (lambda: 2 * c / (b * a) + x, r"\frac{2 c}{b a} + x"),
        (lambda: 1 - 4 * b * a, "1 - 4 b a"),
        (lambda: c - b - a, "c - b - a"),
        (lambda: (1 - b) * x * (5 * a), r"\left(1 - b\right) x \left(5 a\right)"),
        (lambda: c * b / 2, r"\frac{c b}{2}"),
        (lambda: c - 3 * (b + a), r"c - 3 \left(b + a\right)"),
        (lambda: b + 0 + a * 1, "b + a"),
        (lambda: (b / a) ** 2 - b, r"\left(\frac{b}{a}\right)^{2} - b"),
    ],
)
def test_order_and_shape_are_kept(formula, latex: str) -> None:
    assert printed_latex(as_printed(formula)) == latex


@pytest.mark.parametrize(
    ("number", "latex"),
    [
        (sp.Rational(1, 10**18), "10^{-18}"),
        (sp.Rational(1, 10**6), r"\frac{1}{1000000}"),
        (sp.Rational(1, 10**7 + 1), r"\frac{1}{10000001}"),
        (sp.Rational(3, 10**18), r"\frac{3}{1000000000000000000}"),
    ],
)
def test_only_a_small_power_of_ten_is_written_as_one(number: sp.Rational, latex: str) -> None:
    assert printed_latex(number) == latex


def test_the_value_is_what_sympy_makes_of_it() -> None:
    found = as_printed(lambda: 1 / (4 * sp.sqrt(30 * b * a)))
    assert found == 1 / (4 * sp.sqrt(30 * b * a))


def test_a_formula_within_another_keeps_its_order() -> None:
    inner = as_printed(lambda: 1 + c * b * a)
    assert printed_latex(as_printed(lambda: x * inner)) == r"x \left(1 + c b a\right)"


def test_a_changed_formula_has_no_form() -> None:
    bound = as_printed(lambda: 7 * b + 3 * a)
    assert printed_form(bound) is not None
    assert printed_form(bound + x) is None
    assert printed_latex(bound + x) == sp.latex(bound + x)


def formulas():
    for statement in theorems.registered():
        basis = statement.basis
        yield from ((statement, item.condition) for item in basis.hypotheses)
        yield from ((statement, item.right) for item in statement.assertions)
        yield from ((statement, item) for item in basis.definitions.values())


def at(formula, values) -> complex:
    """Return its value, a mix of both sides for a relation; every node is worked out by itself."""
    if isinstance(formula, sp.Symbol):
        return values[formula]
    if not formula.args:
        return complex(formula)
    parts = [at(part, values) for part in formula.args]
    if isinstance(formula, sp.core.relational.Relational):
        return parts[0] - 3 * parts[1] if sp.oo not in formula.args else parts[0]
    if isinstance(formula, sp.Add):
        return sum(parts)
    if isinstance(formula, sp.Mul):
        return math.prod(parts)
    if isinstance(formula, sp.Pow):
        return parts[0] ** parts[1]
    if type(formula).__name__ == "_InBrackets":
        return parts[0]
    return complex(formula.func(*parts))


def test_what_is_shown_has_the_value_of_what_is_checked() -> None:
    draw = random.Random(1)
    shown = 0
    for statement, formula in formulas():
        form = printed_form(formula)
        if form is None:
            continue
        symbols = sorted(formula.free_symbols | form.free_symbols, key=str)
        values = {symbol: draw.uniform(0.2, 0.8) for symbol in symbols}
        assert at(form, values) == pytest.approx(at(formula, values), rel=1e-9), statement.name
        shown += 1
    assert shown > 60


def test_theorem_4_of_sa_fl_shows_the_papers_root() -> None:
    step = theorems.get("sa-fl/4").hypotheses[2]
    assert printed_latex(step.condition) == r"\eta_{c} \leq \frac{1}{4 \sqrt{30 L K}}"
    assert str(step.condition) == "eta_c <= sqrt(30)/(120*sqrt(K)*sqrt(L))"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (lambda: sp.Le(x, 1 / (4 * sp.sqrt(30 * b * a))), "x <= 1/(4*sqrt(30*b*a))"),
        (lambda: sp.Eq(c * b / 2, x), "c*b/2 = x"),
        (lambda: 2 * c / (b * a) + x, "2*c/(b*a) + x"),
        (lambda: c / b**2 - a * x / 2, "c/b**2 - a*x/2"),
        (lambda: (1 - b) * x * (5 * a), "(1 - b)*x*(5*a)"),
        (lambda: -b * a / 4, "-b*a/4"),
        (lambda: -b * a / 4 + 1**x, "-b*a/4 + 1**x"),
    ],
)
def test_order_and_shape_are_kept_in_text(formula, text: str) -> None:
    assert printed_text(as_printed(formula)) == text


def test_a_sum_in_an_order_that_nobody_told_begins_with_a_positive_term() -> None:
    # An author's own formula, which SymPy draws as (-b x + 1)^2/(-a + c).
    own = (1 - b * x) ** 2 / (c - a)
    assert printed_latex(own) == r"\frac{\left(1 - b x\right)^{2}}{c - a}"
    assert "".join(printed_lines(own)).replace(" ", "") == "2(1-b⋅x)──────────c-a"
    assert printed_latex(-a - b) == "- a - b"


def test_text_of_a_formula_without_a_form_is_that_of_sympy() -> None:
    assert printed_text(13 * c + 11 * a) == str(13 * c + 11 * a)
    assert printed_text(sp.Eq(13 * c, 11 * a)) == "13*c = 11*a"


def test_text_reads_back_as_the_formula() -> None:
    for statement, formula in formulas():
        if printed_form(formula) is None or isinstance(formula, sp.Eq):
            continue
        names = {symbol.name: symbol for symbol in formula.free_symbols}
        read = sp.sympify(printed_text(formula), locals=names)
        values = {
            symbol: 0.2 + 0.01 * k for k, symbol in enumerate(sorted(names.values(), key=str))
        }
        assert at(read, values) == pytest.approx(at(formula, values), rel=1e-9), statement.name


def test_a_drawn_formula_keeps_its_order_and_its_brackets() -> None:
    assert printed_lines(as_printed(lambda: (1 - b) * x * (5 * a))) == ["(1 - b)⋅x⋅(5⋅a)"]
