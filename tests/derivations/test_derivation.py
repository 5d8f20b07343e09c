"""The checker of proof steps: right ones follow, and every wrong one is told from them."""

from __future__ import annotations

from random import Random

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st
from sympy.core.random import rng

from fltheory.derivations.derivation import (
    Derivation,
    Equal,
    FiniteLimit,
    Implied,
    Step,
    StepOutcome,
    StepResult,
    deferred,
)
from fltheory.derivations.derivation_check import (
    check_derivation,
    check_step,
    factored,
    holds_at,
    manifestly_nonnegative,
    number_is_nonnegative,
    rational_points,
)
from fltheory.theorems.sa_fl.quotient_condition import clearing_steps, quotient

x, y, t = sp.symbols("x y t", positive=True)
z = sp.Symbol("z", nonnegative=True)
u, v = sp.symbols("u v", real=True)
n = sp.Symbol("n", positive=True, integer=True)
FOLLOWS, DIFFERS = StepOutcome.FOLLOWS, StepOutcome.DIFFERS
FAILS, UNSHOWN = StepOutcome.FAILS, StepOutcome.UNSHOWN


def check(claim) -> StepResult:
    return check_step(Step("label", "text", claim))


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        (Equal((u + v) ** 2, u**2 + 2 * u * v + v**2), FOLLOWS),
        (Equal((u + v) ** 2, u**2 + 3 * u * v + v**2), DIFFERS),
        (Equal(1 / x - 1 / y, (y - x) / (x * y)), FOLLOWS),
        (Equal(x, 2 * y, under={x: 2 * y}), FOLLOWS),
        (Equal(x, 3 * y, under={x: 2 * y}), DIFFERS),
        (Equal((1 - x) ** (n + 1), (1 - x) * (1 - x) ** n), FOLLOWS),
        (Equal(sp.sqrt(2) * sp.sqrt(3), sp.sqrt(6)), FOLLOWS),
        (Equal(sp.sin(x) ** 2 + sp.cos(x) ** 2, sp.Integer(1)), UNSHOWN),
    ],
)
def test_equalities(claim: Equal, outcome: StepOutcome) -> None:
    assert check(claim).outcome is outcome


def test_a_difference_is_shown_and_confirmed_inside_the_domain() -> None:
    result = check(Equal(u**2, v**2, domain=(sp.Ge(u, 2), sp.Le(v, -1))))
    assert result.difference == (u - v) * (u + v)
    assert result.point[u] >= 2
    assert result.point[v] <= -1
    assert result.difference.subs(result.point) != 0


SUM = (sp.Le(u, x), sp.Le(v, y))
CLAIMED = sp.Le(2 * u + 3 * v, 2 * x + 3 * y)


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        (Implied(CLAIMED, SUM, multipliers=(sp.Integer(2), sp.Integer(3))), FOLLOWS),
        (Implied(CLAIMED, SUM, multipliers=(sp.Integer(2), sp.Integer(4))), UNSHOWN),
        (Implied(CLAIMED, SUM), UNSHOWN),
        (
            Implied(
                sp.Le(2 * u + 3 * v, 2 * x + 2 * y),
                SUM,
                multipliers=(sp.Integer(2), sp.Integer(3)),
            ),
            FAILS,
        ),
        (Implied(sp.Le(-u, -x), (sp.Le(u, x),), multipliers=(sp.Integer(-1),)), FAILS),
        (Implied(sp.Le(-v * u, -v * x), (sp.Le(u, x),), multipliers=(-v,)), FAILS),
        (Implied(sp.Le(v * u, v * x), (sp.Le(u, x),), (sp.Ge(v, 0),), (v,)), FOLLOWS),
        (Implied(sp.Le(v * u, v * x), (sp.Le(u, x),), (sp.Le(v, 0),), (v,)), FAILS),
        (Implied(sp.Ge(u**2 + v**2, 2 * u * v)), FOLLOWS),
        (Implied(sp.Ge(u**2 + v**2, 3 * u * v)), FAILS),
        (Implied(sp.Le(x, sp.sqrt(2)), (sp.Le(x, 1),), multipliers=(sp.Integer(1),)), FOLLOWS),
        (Implied(sp.Le(x, sp.sqrt(2)), (sp.Le(x, 2),), multipliers=(sp.Integer(1),)), FAILS),
        (Implied(sp.Le(x, y), under={x: t, y: t + 1}), FOLLOWS),
        (Implied(sp.Le(x, y), under={x: t + 1, y: t}), FAILS),
        (Implied(sp.Le(1 / u, 1), (sp.Le(1, u),)), UNSHOWN),
        (Implied(sp.Le(1 / u, 1), (sp.Le(u, 1),)), FAILS),
        (Implied(sp.Le(x + y, 2 * sp.Max(x, y)), multipliers=()), UNSHOWN),
        (Implied(sp.Ge(x + y, 2 * sp.Max(x, y)), multipliers=()), FAILS),
    ],
)
def test_inequalities(claim: Implied, outcome: StepOutcome) -> None:
    assert check(claim).outcome is outcome


def test_a_counterexample_meets_what_is_given_and_breaks_what_is_claimed() -> None:
    claim = Implied(sp.Le(x, 1), (sp.Le(x**2, y),), (sp.Le(y, 2),))
    result = check(claim)
    assert result.outcome is FAILS
    at_point = {symbol: sp.Rational(value) for symbol, value in result.point.items()}
    assert at_point[x] ** 2 <= at_point[y] <= 2
    assert at_point[x] > 1
    assert result.difference == 1 - at_point[x]


def test_a_check_gives_the_same_result_again() -> None:
    claim = Implied(sp.Le(u * v, x * y), SUM)
    assert check(claim) == check(claim)


@pytest.mark.parametrize(
    ("expression", "variables", "outcome", "limit"),
    [
        ((1 - 1 / n) ** n, (n,), FOLLOWS, sp.exp(-1)),
        (x / n + y, (n,), FOLLOWS, y),
        (x * sp.sqrt(n), (n,), FAILS, sp.oo),
        (-x * n, (n,), FAILS, -sp.oo),
        (x * n * t / (n + t), (n, t), FAILS, sp.oo),
        (x * n / (n + t), (n, t), FOLLOWS, x),
        (n - n, (n,), FOLLOWS, 0),
        (sp.sin(n), (n,), UNSHOWN, None),
    ],
)
def test_limits(expression, variables, outcome, limit) -> None:
    result = check(FiniteLimit(sp.sympify(expression), variables))
    assert (result.outcome, result.difference) == (outcome, limit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"claimed": sp.Lt(u, v)}, "claimed must be a relation <= or >=, got u < v"),
        ({"claimed": sp.true}, "claimed must be a relation <= or >=, got True"),
        (
            {"claimed": CLAIMED, "given": (sp.Eq(u, x),)},
            r"given and domain must contain inequalities, got Eq\(u, x\)",
        ),
        (
            {"claimed": CLAIMED, "domain": (sp.true,)},
            "given and domain must contain inequalities, got True",
        ),
        (
            {"claimed": CLAIMED, "given": SUM, "multipliers": (x,)},
            "multipliers must have one entry for each of the 2 given inequalities, got 1",
        ),
    ],
)
def test_malformed_claims_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Implied(**arguments)


def test_steps_are_checked_one_by_one() -> None:
    steps = (Step("a", "", Equal(x, y)), Step("b", "", Equal(x, x)))
    assert [item.outcome for item in check_derivation(Derivation(steps))] == [DIFFERS, FOLLOWS]


@pytest.mark.parametrize(
    ("number", "nonnegative"),
    [
        (sp.Integer(0), True),
        (sp.Rational(-1, 3), False),
        (sp.sqrt(2), True),
        (-sp.sqrt(2), False),
        (3 - 2 * sp.sqrt(2), True),
        (3 - sp.sqrt(10), False),
        (-3 + sp.sqrt(10), True),
        (-3 + 2 * sp.sqrt(2), False),
        (3 + sp.sqrt(2), True),
        (-3 - sp.sqrt(2), False),
        (sp.I, False),
        (sp.oo, False),
        (sp.zoo, False),
        (sp.nan, False),
        (sp.sqrt(2) + sp.sqrt(3), False),
    ],
)
def test_signs_of_numbers(number, nonnegative: bool) -> None:
    """The last is positive: the answer False says nothing."""
    assert number_is_nonnegative(number) is nonnegative


@pytest.mark.parametrize(
    ("expression", "facts", "shown"),
    [
        (x * y / (x + y) ** 2, (), True),
        (x - y, (), False),
        ((x - y) ** 2, (), True),
        ((x - y) ** 3, (), False),
        ((x - y) ** n, (), False),
        ((x - y) ** n, (x - y,), True),
        ((x - y) * (y - x), (), False),
        (-(x - y) * (y - x), (), True),
        (2 * x - 2 * y, (x - y,), True),
        (2 * y - 2 * x, (x - y,), False),
        ((1 - u) * (1 - v), (1 - u, 1 - v), True),
        ((1 - u) * (1 - v), (1 - u,), False),
        (u**2 * (x - u * x), (1 - u,), True),
        (1 - u, (x * (1 - u),), True),
        (1 - u, (z * (1 - u),), False),
        (z * (1 - u), (z * (1 - u),), True),
        (sp.Max(x, u), (), True),
        (sp.Min(x, u), (), False),
        (sp.Min(x, y), (), True),
        (sp.Integer(-1), (x,), False),
        (-x, (x,), False),
    ],
)
def test_manifest_nonnegativity(expression, facts, shown: bool) -> None:
    assert manifestly_nonnegative(expression, facts) is shown


coefficients = st.integers(-3, 3)


def test_factors_are_found_at_the_same_points_whatever_was_drawn_before() -> None:
    """SymPy's draws decide whether a step takes 0.1 or 15 s."""
    two = sp.expand((x**2 * y + 3 * z * t + 1) * (x * y * z + 5 * t**2 + 2))
    rng.seed(1)
    before, drawn = rng.getstate(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rng, "seed", lambda seed: (drawn.append(seed), Random.seed(rng, seed)))
        assert sp.expand(factored(two) - two) == 0
    assert drawn == [0]
    assert rng.getstate() == before


@given(st.lists(st.tuples(coefficients, st.integers(0, 2), st.integers(0, 2)), max_size=4))
def test_what_is_manifest_is_never_negative(terms) -> None:
    expression = sp.Add(*(c * u**a * v**b for c, a, b in terms))
    facts = (1 - u, v)
    if manifestly_nonnegative(expression, facts):
        for first in (-2, sp.Rational(-1, 3), 0, sp.Rational(1, 2), 1):
            for second in (0, sp.Rational(1, 5), 3):
                assert expression.subs({u: first, v: second}) >= 0


@pytest.mark.parametrize(
    ("relation", "point", "answer"),
    [
        (sp.Le(u, v), {u: 1, v: 1}, True),
        (sp.Lt(u, v), {u: 1, v: 1}, False),
        (sp.Ge(u, v), {u: 1, v: 2}, False),
        (sp.Gt(u, v), {u: 3, v: 2}, True),
        (sp.Le(x, sp.sqrt(y)), {x: sp.Rational(7, 5), y: 2}, True),
        (sp.Le(x, sp.sqrt(y)), {x: sp.Rational(17, 12), y: 2}, False),
        (sp.Le(u, sp.sqrt(y)), {u: -1, y: 2}, None),
        (sp.Le(1 / (u - v), 1), {u: 1, v: 1}, None),
        (sp.Le(sp.Max(u, v), 2), {u: 1, v: 3}, False),
    ],
)
def test_relations_at_points(relation, point, answer) -> None:
    assert holds_at(relation, {s: sp.Rational(value) for s, value in point.items()}) is answer


def test_points_meet_the_assumptions_and_come_again() -> None:
    points = list(rational_points([n, x, z, u], 600, 1))
    assert points == list(rational_points({u, z, x, n}, 600, 1))
    assert points != list(rational_points([n, x, z, u], 600, 2))
    assert all(p[n].is_Integer and p[n] > 0 and p[x] > 0 and p[z] >= 0 for p in points)
    assert any(p[z] == 0 for p in points)
    assert any(p[u] < 0 for p in points)


def test_clearing_a_fraction_needs_both_signs() -> None:
    q = sp.Symbol("q", nonnegative=True)
    condition = sp.Le(q, 1 / (1 + u / v))
    assert quotient(condition) == (u, v)
    steps = clearing_steps(condition, ())
    assert [check_step(step).outcome for step in steps] == [FOLLOWS, FAILS, FAILS]
    above = clearing_steps(sp.Le(q, 1 / (1 + x / y)), ())
    assert check_step(above[0]).outcome is FOLLOWS


def test_a_deferred_derivation_is_written_once_and_when_it_is_looked_into() -> None:
    calls: list[int] = []

    @deferred
    def written(number: int) -> Derivation:
        calls.append(number)
        return Derivation((), (f"fact {number}",))

    later = written(3)
    assert (isinstance(later, Derivation), calls) == (True, [])
    assert (later.taken, later.steps, dict(later.meanings)) == (("fact 3",), (), {})
    assert calls == [3]
    with pytest.raises(AttributeError, match="nothing"):
        _ = later.nothing
