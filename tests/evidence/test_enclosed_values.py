"""Expressions in fractions and balls, against mpmath at 60 digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import sympy as sp
from flint import arb, fmpq

from fltheory import theorems
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.decimals import as_fraction
from fltheory.engines.affine.numbers import Balls
from fltheory.engines.enclosure.exact_setting import NoExactTwinError
from fltheory.evidence.enclosed_values import (
    Evaluation,
    Intervals,
    UndefinedError,
    exact_value,
    half_width,
    intervals_of,
    relation_holds,
)

x, y = sp.Symbol("x"), sp.Symbol("y")
STATEMENTS = [s for s in theorems.registered() if isinstance(s, Theorem | PointClaim)]


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: f"{s.id}-{s.reading}")
def test_bounds_and_conditions_hold_the_value_of_60_digits(statement: Theorem) -> None:
    rng = np.random.default_rng(7)
    sides = [statement.bound, *statement.definitions.values()]
    for hypothesis in statement.hypotheses:
        sides += [hypothesis.condition.lhs, hypothesis.condition.rhs]
    symbols = sorted({s for side in sides for s in side.free_symbols}, key=str)
    for _ in range(5):
        values = {
            s: int(rng.integers(1, 9)) if s.is_integer else round(float(rng.uniform(0.1, 3)), 6)
            for s in symbols
        }
        for side in sides:
            _agrees(side, values)


def _agrees(side: sp.Expr, values: dict[sp.Basic, float]) -> None:
    fractions = {s: as_fraction(value) for s, value in values.items()}
    with Balls(256).in_use():
        evaluation = Evaluation({s: exact_value(str(s), f) for s, f in fractions.items()})
        try:
            found = evaluation.of(side)
        except UndefinedError:
            return
        with mpmath.workdps(60):
            numbers = [mpmath.mpf(f.numerator) / f.denominator for f in fractions.values()]
            known = sp.lambdify(list(values), side, "mpmath")(*numbers)
            if isinstance(found, float):
                assert mpmath.isinf(known)
                return
            distance = abs(arb(found) - arb(mpmath.nstr(mpmath.re(known), 58)))
        assert float(distance.lower()) <= 1e-40 * max(1.0, abs(float(known)))


def test_an_equation_of_decimals_is_met_exactly() -> None:
    values = {x: exact_value("x", as_fraction(0.1)), y: exact_value("y", as_fraction(0.3))}
    left = Evaluation(values).of(x + sp.Rational(1, 5))
    assert relation_holds(sp.Eq(x, y), left, values[y]) is True


def test_an_equation_missed_by_one_last_place_is_not_met() -> None:
    beyond = exact_value("y", as_fraction(math.nextafter(0.3, 1)))
    assert relation_holds(sp.Eq(x, y), fmpq(3, 10), beyond) is False


def test_balls_that_overlap_decide_nothing() -> None:
    assert relation_holds(sp.Le(x, y), arb(1.0, 0.1), fmpq(1)) is None


@pytest.mark.parametrize("expression", [1 / x, sp.log(x - 1), sp.sqrt(x - 1), sp.oo - 1 / x])
def test_what_has_no_value_is_undefined(expression: sp.Expr) -> None:
    with pytest.raises(UndefinedError):
        Evaluation({x: fmpq(0)}).of(expression)


def test_roots_of_squares_stay_fractions() -> None:
    assert Evaluation({x: fmpq(9, 4)}).of(1 / sp.sqrt(x)) == fmpq(2, 3)


def test_infinity_is_worked_with() -> None:
    evaluation = Evaluation({x: math.inf, y: fmpq(2)})
    assert evaluation.of(y * x + 1) == math.inf
    assert evaluation.of(y / x) == 0
    assert relation_holds(sp.Lt(x, sp.oo, evaluate=False), math.inf, math.inf) is False


@pytest.mark.parametrize("value", [0.5, np.float64(2.0)])
def test_a_float_is_no_exact_value(value: object) -> None:
    with pytest.raises(NoExactTwinError, match=r"the constant q was rounded to a float, [02]"):
        exact_value("the constant q", value)


@pytest.mark.parametrize("value", ["2", "many", None])
def test_what_is_no_number_is_no_exact_value(value: object) -> None:
    with pytest.raises(NoExactTwinError, match=f"the constant q must be a number, got {value!r}"):
        exact_value("the constant q", value)


def test_half_widths_count_the_rounding_of_floats() -> None:
    error = half_width(fmpq(1, 3))
    assert abs(Fraction(1 / 3) - Fraction(1, 3)) <= Fraction(error) < Fraction(1, 10**16)


def test_intervals_hold_the_values_of_fractions() -> None:
    expression = (x - y / 3) ** 3 / (x**2 + sp.Rational(1, 7)) - 2 * x
    points = np.random.default_rng(3).uniform(-2, 2, 50)
    fixed = Evaluation({y: fmpq(1, 7)})
    found = intervals_of(expression, fixed, {x: Intervals.around(points, 0.0)})
    assert found is not None
    for place, point in enumerate(points):
        exact = Evaluation({x: _binary(point), y: fmpq(1, 7)}).of(expression)
        assert arb(found.low[place]) <= exact <= arb(found.high[place])
    assert (found.high - found.low).max() < 1e-12


def _binary(point: float) -> fmpq:
    above, below = float(point).as_integer_ratio()
    return fmpq(above, below)
