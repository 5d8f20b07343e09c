"""Mutants are what they say: one change each, none twice, none the theorem itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.theorems import Hypothesis, Theorem
from fltheory.verify.search.mutants import mutants

x, y = sp.symbols("x y", positive=True)


def toy(bound: sp.Expr, *conditions: sp.Basic) -> Theorem:
    return replace(
        theorems.get("sa-fl/5", "derived"),
        bound=bound,
        hypotheses=tuple(Hypothesis(f"h{i}", c, "") for i, c in enumerate(conditions)),
        round_symbols=(),
    )


def bounds(expression: sp.Expr) -> set[sp.Expr]:
    found = mutants(toy(expression))
    return {mutant.theorem.bound for mutant in found if mutant.about.startswith("bound")}


def test_every_constant_sign_and_exponent_of_a_sum() -> None:
    half, tenth, hundredth = (sp.Rational(1, d) for d in (2, 10, 100))
    divided = {3 * x**2 * d + y for d in (half, tenth, hundredth)}
    divided |= {3 * x**2 + y * d for d in (half, tenth, hundredth)}
    signs = {-3 * x**2 + y, 3 * x**2 - y}
    exponents = {3 * x + y, 3 * x**3 + y}
    assert bounds(3 * x**2 + y) == divided | signs | exponents


def test_a_denominators_constant_is_divided_there() -> None:
    assert {x / 4, 10 * x / 8, 100 * x / 8} == bounds(x / 8)
    assert {3 * x / 16, 3 * x / 80, 3 * x / 800} == bounds(3 * x / 8)


def test_inner_sums_and_symbolic_exponents() -> None:
    found = bounds((1 - x) ** y)
    assert {(1 - x) ** (y + 1), (1 - x) ** (y - 1), (1 + x) ** y, (1 - x / 2) ** y} < found
    assert (sp.Rational(1, 2) - x) ** y in found


def test_minima_and_maxima_change_places() -> None:
    assert sp.Max(x, y) in bounds(sp.Min(x, y))
    assert sp.Min(x, y) in bounds(sp.Max(x, y))


def test_hypotheses_are_dropped_and_changed_on_their_formula_side() -> None:
    theorem = toy(x, sp.Le(x, 1 / y), sp.Eq(x, 2 * y))
    changed = [mutant.theorem.hypotheses for mutant in mutants(theorem)]
    assert sum(len(hypotheses) == 1 for hypotheses in changed) == 2
    conditions = [h.condition for hypotheses in changed for h in hypotheses]
    assert sp.Le(x, 1 / y**2) in conditions
    assert sp.Eq(x, y, evaluate=False) in conditions
    assert not any(c.lhs != x for c in conditions)


@pytest.mark.parametrize("identifier", ["sa-fl/4", "sa-fl-submission/4", "sa-fl/5"])
@pytest.mark.parametrize("reading", ["derived", "repaired"])
def test_registered_theorems_have_distinct_mutants(identifier: str, reading: str) -> None:
    theorem = theorems.get(identifier, reading)
    assert isinstance(theorem, Theorem)
    found = mutants(theorem)
    contents = {
        (
            m.theorem.bound,
            tuple(h.condition for h in m.theorem.hypotheses),
            m.theorem.round_symbols,
            m.theorem.quantity,
        )
        for m in found
    }
    assert len(contents) == len(found) == len({mutant.about for mutant in found})
    original = (theorem.bound, tuple(h.condition for h in theorem.hypotheses))
    assert (*original, theorem.round_symbols, theorem.quantity) not in contents
    dropped = [mutant for mutant in found if mutant.about.endswith("dropped")]
    assert len(dropped) == len(theorem.hypotheses)
    reductions = [mutant for mutant in found if ": mean -> " in mutant.about]
    assert len(reductions) == sum(
        2 * (r == "mean")
        for r in (theorem.quantity.reduction, *(s.reduction for s in theorem.round_symbols))
    )


def test_a_weighted_mean_loses_its_weights_with_its_mean() -> None:
    """A maximum of weighted rounds is not defined; such mutants could not be checked."""
    theorem = theorems.get("scaffold/strongly-convex")
    assert isinstance(theorem, Theorem)
    assert theorem.quantity.weights is not None
    changed = [
        m.theorem.quantity for m in mutants(theorem) if m.theorem.quantity.reduction != "mean"
    ]
    assert {quantity.reduction for quantity in changed} == {"min", "max"}
    assert all(quantity.weights is None for quantity in changed)
