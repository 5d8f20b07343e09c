"""Units against an independent check: change the units, and see what the numbers do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.claims.statement import unit_flags
from fltheory.evidence.evaluation import evaluate
from fltheory.grammar.units import LENGTH, LOSS, PURE, Unit, UnitFlag, unit_of
from fltheory.theorems.sa_fl import statements as sa_fl

x, y, z = sp.symbols("x y z", positive=True)
n = sp.Symbol("n", positive=True, integer=True)
UNITS = {x: LENGTH, y: LOSS, z: LOSS / LENGTH**2, n: PURE}
SA_FL = [item for item in theorems.registered() if item.id.startswith("sa-fl")]
THEOREMS = [item for item in SA_FL if isinstance(item, theorems.Theorem)]
UNIT_OF_X, UNIT_OF_F = 3, 7


def scale(unit: Unit, of_length: float, of_loss: float) -> float:
    return float(of_length) ** float(unit.length) * float(of_loss) ** float(unit.loss)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (PURE, "1"),
        (LOSS / LENGTH**2, "F/X^2"),
        (LENGTH**2 / LOSS, "X^2/F"),
        (LOSS * LENGTH, "F*X"),
        (PURE / (LOSS * LENGTH), "1/(F*X)"),
        ((LENGTH**2 / LOSS) ** Fraction(1, 2), "X/F^(1/2)"),
    ],
)
def test_units_in_words(unit: Unit, text: str) -> None:
    assert str(unit) == text


@pytest.mark.parametrize(
    ("expression", "unit"),
    [
        (x**2 * y / z, LENGTH**4),
        (x + sp.sqrt(y / z), LENGTH),
        (sp.Max(y, z * x**2), LOSS),
        (sp.Le(y, z * x**2), LOSS),
        (sp.Lt(y, sp.oo, evaluate=False), LOSS),
        (sp.Gt(y, 0, evaluate=False), LOSS),
        (sp.log(y / (z * x**2)) + n, PURE),
        ((1 - z * x**2 / y) ** n * x, LENGTH),
        (sp.exp(-n) * y, LOSS),
        (sp.Integer(0), None),
        (sp.oo, None),
        (sp.sqrt(2), PURE),
    ],
)
def test_unit_of_a_clean_expression(expression, unit) -> None:
    assert unit_of(expression, UNITS) == unit


@pytest.mark.parametrize(
    ("expression", "flagged", "parts"),
    [
        (n * (x + y), x + y, {x: LENGTH, y: LOSS}),
        (sp.Le(y, x, evaluate=False), sp.Le(y, x, evaluate=False), {x: LENGTH, y: LOSS}),
        (sp.Max(x, y) ** 2, sp.Max(x, y), {x: LENGTH, y: LOSS}),
        (1 + sp.log(x), sp.log(x), {x: LENGTH}),
        (sp.exp(x), sp.exp(x), {x: LENGTH}),
        (n**x, n**x, {x: LENGTH}),
        (x**n, x**n, {x: LENGTH}),
        (x ** sp.sqrt(2), x ** sp.sqrt(2), {x: LENGTH}),
        (sp.Eq(n, 1 / (1 + x), evaluate=False), 1 + x, {sp.Integer(1): PURE, x: LENGTH}),
    ],
)
def test_what_is_flagged(expression, flagged, parts) -> None:
    (flag,) = unit_of(expression, UNITS)
    assert flag.expression == flagged
    assert dict(flag.parts) == parts


def test_a_symbol_without_unit_is_named() -> None:
    with pytest.raises(ValueError, match="units must have a unit for every symbol, w has none"):
        unit_of(x + sp.Symbol("w"), UNITS)


def test_an_unknown_kind_of_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="expression must be made of sums"):
        unit_of(sp.gamma(n), UNITS)


L, K, mu, eta_c, eta_s, bar = (
    sa_fl.L,
    sa_fl.K,
    sa_fl.mu,
    sa_fl.eta_c,
    sa_fl.eta_s,
    sa_fl.eta_bar,
)
ROOT = 1 / (4 * sp.sqrt(30 * L * K))
STEP = LENGTH**2 / LOSS
FLAGS_4 = [
    (
        "hypothesis 'small client step'",
        sp.Le(eta_c, ROOT),
        {eta_c: STEP, ROOT: LENGTH / LOSS ** Fraction(1, 2)},
    ),
    (
        "hypothesis 'few client rounds'",
        1 / (2 * K**2) - 2 * L * eta_s**2 / K**2,
        {1 / (2 * K**2): PURE, -2 * L * eta_s**2 / K**2: STEP},
    ),
]
CORRECTION = -((L + mu) ** 2) * bar / (4 * L**2 * mu**2)
FLAGS_5 = [
    (
        "hypothesis 'few client rounds'",
        1 / (L + mu) + CORRECTION,
        {1 / (L + mu): STEP, CORRECTION: STEP**2},
    )
]


@pytest.mark.parametrize(
    ("identifier", "reading", "flags"),
    [
        ("sa-fl/4", "printed", FLAGS_4),
        ("sa-fl-submission/4", "printed", FLAGS_4),
        ("sa-fl/5", "printed", FLAGS_5),
        *((item.id, "derived", []) for item in SA_FL if item.reading == "derived"),
        ("sa-fl/corollary-1", "printed", []),
        ("sa-fl/corollary-2", "printed", []),
    ],
)
def test_flags_of_the_registered_statements(identifier, reading, flags) -> None:
    found = unit_flags(theorems.get(identifier, reading))
    assert [(f.place, f.flag.expression, dict(f.flag.parts)) for f in found] == flags


def test_a_bound_of_another_unit_than_its_quantity_is_flagged() -> None:
    theorem = theorems.get("sa-fl/5", "derived")
    quantity = replace(theorem.quantity, unit=LENGTH)
    (flag,) = unit_flags(replace(theorem, quantity=quantity))
    assert flag.place == "bound"
    assert str(flag).endswith("has unit X^2")


def random_values(rng: np.random.Generator, symbols) -> dict[sp.Symbol, float]:
    return {
        symbol: float(rng.integers(1, 5) if symbol.is_integer else rng.uniform(0.1, 2.0))
        for symbol in sorted(symbols, key=str)
    }


def rescaled(values, of_length: float, of_loss: float) -> dict[sp.Symbol, float]:
    return {s: v * scale(s.unit, of_length, of_loss) for s, v in values.items()}


@pytest.mark.parametrize("seed", range(4))
def test_a_registered_formula_scales_by_its_unit_or_is_flagged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for theorem in THEOREMS:
        for hypothesis in theorem.hypotheses:
            for side in (theorem.bound, hypothesis.condition.lhs, hypothesis.condition.rhs):
                if side.is_number:
                    continue
                unit = unit_of(side, {s: s.unit for s in side.free_symbols})
                by = np.exp(rng.uniform(0.2, 1, 2))
                # A sum of two units may be ruled by one of its terms at one point: flagged, it
                # must break the power law at one of several.
                breaks = []
                for _ in range(5 if isinstance(unit, tuple) else 1):
                    values = random_values(rng, side.free_symbols)
                    once, twice = (
                        evaluate(side, rescaled(values, *by**power)) / evaluate(side, values)
                        for power in (1, 2)
                    )
                    breaks.append(abs(twice / once**2 - 1))
                if isinstance(unit, tuple):
                    assert max(breaks) > 1e-6
                else:
                    assert once == pytest.approx(scale(unit, *by), rel=1e-9)


monomials = st.tuples(
    st.integers(1, 5), *(st.integers(-2, 2) for _ in (x, y, z)), st.integers(0, 1)
).map(lambda t: t[0] * x ** t[1] * y ** t[2] * z ** t[3] * n ** t[4])
expressions = st.recursive(
    monomials,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: sp.Add(*parts)),
        st.lists(inner, min_size=2, max_size=2).map(lambda parts: sp.Mul(*parts)),
        inner.map(lambda part: part**2),
        st.tuples(inner, st.integers(1, 3)).map(
            lambda t: t[0] + t[1] * t[0].subs({x: 2 * x, n: n + 1})
        ),
    ),
    max_leaves=5,
)


def at(expression: sp.Expr, power: int) -> sp.Rational:
    """Its value at fixed numbers, with X and F multiplied by powers of 3 and 7."""
    start = {x: sp.Rational(2, 3), y: sp.Rational(5, 4), z: sp.Rational(1, 7), n: sp.Integer(2)}
    factor = {
        s: sp.Integer(UNIT_OF_X) ** (u.length * power) * sp.Integer(UNIT_OF_F) ** (u.loss * power)
        for s, u in UNITS.items()
    }
    return expression.subs({s: v * factor[s] for s, v in start.items()}, simultaneous=True)


@given(expressions)
def test_exactly_the_clean_expressions_scale(expression: sp.Expr) -> None:
    """Positive terms: f(s) f(1/s) >= f(1)^2, and equal only if all of them scale alike."""
    unit = unit_of(expression, UNITS)
    one, up, down = (at(expression, power) for power in (0, 1, -1))
    if isinstance(unit, tuple):
        assert all(isinstance(flag, UnitFlag) for flag in unit)
        assert up * down > one**2
    else:
        factor = sp.Integer(UNIT_OF_X) ** unit.length * sp.Integer(UNIT_OF_F) ** unit.loss
        assert up == factor * one
        assert down == one / factor
