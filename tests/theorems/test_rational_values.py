"""Expressions and conditions in fractions."""

from fractions import Fraction

import pytest
import sympy as sp

from tests.theorems.rational_values import IrrationalError, rational_value, satisfied

a, b, s = sp.symbols("a b s", positive=True)
VALUES = {a: Fraction(2, 3), b: Fraction(5), s: Fraction(4, 9)}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (a + b - 1, Fraction(14, 3)),
        (a**2 / b, Fraction(4, 45)),
        (a ** (b - 2), Fraction(8, 27)),
        (1 / (a - b), Fraction(-3, 13)),
        (sp.Rational(1, 7) * a, Fraction(2, 21)),
    ],
)
def test_values(expression: sp.Expr, value: Fraction) -> None:
    assert rational_value(expression, VALUES) == value


def test_roots_are_no_fractions() -> None:
    with pytest.raises(IrrationalError):
        rational_value(sp.sqrt(a), VALUES)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (sp.Le(a, sp.Rational(2, 3)), True),
        (sp.Lt(a, sp.Rational(2, 3)), False),
        (sp.Ge(b, a), True),
        (sp.Gt(a, b), False),
        (sp.Eq(3 * a, 2), True),
        (sp.Eq(a, b), False),
        (sp.Lt(a, sp.oo, evaluate=False), True),
        (sp.Le(a, sp.sqrt(s)), True),
        (sp.Le(a + sp.Rational(1, 10**30), sp.sqrt(s)), False),
        (sp.Le(a, 1 / (4 * sp.sqrt(30 * a * b))), False),
        (sp.Le(1, 1 / (a - a * b / 5)), False),
    ],
    ids=str,
)
def test_conditions(condition: sp.Basic, holds: bool) -> None:
    assert satisfied(condition, VALUES) is holds
