"""SA-FL's proofs, step by step: which follow, and that the check could have told otherwise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.derivations import derivation_check
from fltheory.derivations.derivation import (
    Equal,
    FiniteLimit,
    Implied,
    Step,
    StepOutcome,
    StepResult,
)
from fltheory.derivations.derivation_check import check_derivation, check_step, gap, rational_points
from fltheory.theorems.sa_fl import (
    proof_4 as sa_fl_proof_4,
)
from fltheory.theorems.sa_fl import (
    proof_5 as sa_fl_proof_5,
)
from fltheory.theorems.sa_fl import (
    statements as sa_fl,
)
from tests.drawn import a_tenth
from tests.theorems.not_following import NOT_FOLLOWING
from tests.theorems.rational_values import rational_value, satisfied

HALF = sp.Rational(1, 2)
FOLLOWS, DIFFERS, FAILS = StepOutcome.FOLLOWS, StepOutcome.DIFFERS, StepOutcome.FAILS
STATEMENTS = theorems.registered()
Key = tuple[str, str]


@cache
def checked(key: Key, index: int) -> StepResult:
    """Check a step once, and only in the process that asks."""
    return check_step(steps_of(key)[index])


def steps_of(key: Key) -> tuple[Step, ...]:
    return theorems.get(*key).derivation.steps


def results_of(key: Key) -> list[StepResult]:
    return [checked(key, index) for index in range(len(steps_of(key)))]


def test_every_derivation_is_listed() -> None:
    assert set(NOT_FOLLOWING) == {(s.id, s.reading) for s in STATEMENTS if s.derivation}


@pytest.mark.parametrize("key", a_tenth(NOT_FOLLOWING, name=" ".join, of=3), ids=" ".join)
def test_which_steps_do_not_follow(key) -> None:
    expected = NOT_FOLLOWING[key]
    outcomes = {result.step.label: result.outcome for result in results_of(key)}
    assert len(outcomes) == len(steps_of(key))
    assert {label: item for label, item in outcomes.items() if item is not FOLLOWS} == expected


def result_of(key: Key, label: str) -> StepResult:
    return checked(key, [step.label for step in steps_of(key)].index(label))


L, mu, K, q, bar, eta_s = sa_fl.L, sa_fl.mu, sa_fl.K, sa_fl.q, sa_fl.eta_bar, sa_fl.eta_s
GROWTH = 1 + 30 * L * bar / mu * (1 + 2 * L * bar / mu)


@pytest.mark.parametrize(
    ("key", "label", "difference"),
    [
        (("sa-fl/4", "printed"), "(55) to the condition on q", 8 * L * eta_s * (1 - eta_s) / K**2),
        (
            ("sa-fl/5", "printed"),
            "(80) to (81), G_3 of clients",
            12 * q * bar**2 / mu**2 * GROWTH,
        ),
        (
            ("sa-fl/5", "printed"),
            "(81) to the condition on q, G_3 of server",
            1 / (L + mu) - 1 / (L * mu),
        ),
        (
            ("sa-fl/5", "printed"),
            "main text to appendix",
            4 * bar * (mu**-2 - 1) * GROWTH * sa_fl.G_3,
        ),
    ],
)
def test_differences(key, label: str, difference: sp.Expr) -> None:
    assert sp.simplify(result_of(key, label).difference - difference) == 0


def test_each_derivation_belongs_to_one_statement() -> None:
    """A reading made from another by `replace` must not keep its derivation."""
    kept = [statement.derivation for statement in STATEMENTS if statement.derivation]
    assert len({id(derivation) for derivation in kept}) == len(kept)


@pytest.fixture
def few_points(monkeypatch) -> None:
    """An outcome other than FOLLOWS need not be told apart further."""
    monkeypatch.setattr(derivation_check, "_POINTS", 20)


FOUR, FIVE = theorems.get("sa-fl/4", "derived"), theorems.get("sa-fl/5", "derived")
IN_4_DERIVED = (FOUR.bound, FOUR.hypotheses[4].condition, FOUR.hypotheses[2].condition)
IN_5_DERIVED = (FIVE.bound, *(FIVE.hypotheses[index].condition for index in (6, 3, 4)))


def scaled(condition, factor: sp.Expr):
    return condition.func(condition.lhs, factor * condition.rhs, evaluate=False)


@pytest.mark.parametrize(
    ("index", "wrong", "broken"),
    [
        (0, FOUR.bound / 2, {"(52) to (53)"}),
        (0, FOUR.bound.subs(sa_fl.m, sa_fl.m + 1), {"(52) to (53)"}),
        (
            1,
            scaled(IN_4_DERIVED[1], sp.Integer(2)),
            {"(55) to the condition on q", "condition on q to (54)"},
        ),
        (2, scaled(IN_4_DERIVED[2], sp.Rational(101, 100)), {"needed in (47)"}),
        (2, scaled(IN_4_DERIVED[2], sp.Rational(3, 2)), {"needed in (47)", "needed in (41)"}),
    ],
)
def test_another_theorem_4_breaks_its_own_steps(
    index: int, wrong, broken: set[str], few_points
) -> None:
    arguments = list(IN_4_DERIVED)
    arguments[index] = wrong
    results = check_derivation(sa_fl_proof_4.derived(*arguments))
    assert {item.step.label for item in results if item.outcome is not FOLLOWS} == broken


@pytest.mark.parametrize(
    ("index", "wrong", "broken"),
    [
        (0, 2 * FIVE.bound, {"(83), (85) to the bound"}),
        (0, FIVE.bound.subs(sa_fl.m, sa_fl.m + 1), {"(83), (85) to the bound"}),
        (
            1,
            scaled(IN_5_DERIVED[1], sp.Integer(2)),
            {"(81) to the condition on q", "(82) to (83)"},
        ),
        (2, scaled(IN_5_DERIVED[2], sp.Rational(3, 2)), {"small server step to etabar <= 1"}),
        (3, scaled(IN_5_DERIVED[3], sp.Rational(8, 7)), {"needed in (75)"}),
    ],
)
def test_another_theorem_5_breaks_its_own_steps(
    index: int, wrong, broken: set[str], few_points
) -> None:
    arguments = list(IN_5_DERIVED)
    arguments[index] = wrong
    results = check_derivation(sa_fl_proof_5.derived(*arguments))
    assert {item.step.label for item in results if item.outcome is not FOLLOWS} == broken


def parts_of(step: Step) -> list[sp.Basic]:
    claim = step.claim
    if isinstance(claim, Equal):
        return [claim.left, claim.right]
    if isinstance(claim, FiniteLimit):
        return [claim.expression]
    return [side for item in (claim.claimed, *claim.given) for side in (item.lhs, item.rhs)]


@pytest.mark.parametrize(
    "theorem",
    [s for s in sa_fl.STATEMENTS if isinstance(s, theorems.Theorem) and s.derivation],
    ids=lambda item: f"{item.id} {item.reading}",
)
def test_the_last_step_ends_at_the_registered_bound(theorem) -> None:
    assert theorem.bound in parts_of(theorem.derivation.steps[-1])
    parts = [part for step in theorem.derivation.steps for part in parts_of(step)]
    few = [h.condition for h in theorem.hypotheses if h.name == "few client rounds"]
    assert bool(few) == (theorem.reading != "repaired")
    for condition in few:
        whole = [part for part in parts if part == condition.rhs]
        in_a_difference = [part for part in parts if part.has(condition.rhs - condition.lhs)]
        assert whole or in_a_difference


# Readings and versions share steps, up to the noise's name; each is tried once.
EVERY = list(
    {
        repr(step).replace("sigma_s", "sigma"): (key, index)
        for key in NOT_FOLLOWING
        for index, step in enumerate(steps_of(key))
    }.values()
)


def step_of(place: tuple[Key, int]) -> Step:
    key, index = place
    return steps_of(key)[index]


def does_follow(place: tuple[Key, int]) -> bool:
    """Whether a step is listed to follow, which `test_which_steps_do_not_follow` checks."""
    return step_of(place).label not in NOT_FOLLOWING[place[0]]


FOLLOWING = [place for place in EVERY if does_follow(place)]


@pytest.fixture
def result(request) -> StepResult:
    """Return the result of the step that a test is about."""
    return checked(*request.param)


def name_of(place: tuple[Key, int]) -> str:
    return " ".join((*place[0], step_of(place).label))


def about(places: list[tuple[Key, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("result", places, ids=map(name_of, places), indirect=True)


def about_a_tenth(places: list[tuple[Key, int]]) -> pytest.MarkDecorator:
    drawn = a_tenth(places, name=name_of)
    return pytest.mark.parametrize("result", drawn, ids=map(name_of, places), indirect=True)


def of_kind(kind: type, places=FOLLOWING) -> list[tuple[Key, int]]:
    return [place for place in places if isinstance(step_of(place).claim, kind)]


def replaced(expression: sp.Expr, claim) -> sp.Expr:
    return expression.xreplace(dict(claim.under))


def constants_of(expression: sp.Expr) -> list[sp.Rational]:
    return sorted(expression.atoms(sp.Rational) - {sp.Integer(0), sp.Integer(1), sp.Integer(-1)})


@about_a_tenth(of_kind(Equal))
def test_any_other_constant_breaks_an_equality(result, few_points) -> None:
    claim = result.step.claim
    constants = constants_of(claim.right)
    assert constants
    for constant in constants:
        wrong = replace(claim, right=claim.right.xreplace({constant: constant + 1}))
        assert check_step(replace(result.step, claim=wrong)).outcome is not FOLLOWS


@about_a_tenth(of_kind(Implied))
def test_a_stronger_inequality_does_not_follow(result, few_points) -> None:
    """Every claim is sharp enough for the certificate: no room for one part in a hundred."""
    claim = result.step.claim
    small = sp.Rational(99, 100)
    upper, lower = claim.claimed.gts, claim.claimed.lts
    stronger = [
        sp.Le(lower, small * upper - 1, evaluate=False),
        sp.Le(lower + 1, upper, evaluate=False),
    ]
    for claimed in stronger:
        wrong = replace(claim, claimed=claimed)
        assert check_step(replace(result.step, claim=wrong)).outcome is not FOLLOWS


@about_a_tenth(of_kind(Implied))
def test_some_change_of_every_constant_breaks_an_inequality(result, few_points) -> None:
    claim = result.step.claim
    for constant in constants_of(gap(claim.claimed)):
        changed = (
            claim.claimed.func(
                *(
                    side.xreplace({constant: factor * constant, -constant: -factor * constant})
                    for side in (claim.claimed.lhs, claim.claimed.rhs)
                ),
                evaluate=False,
            )
            for factor in (sp.Rational(1, 2), sp.Integer(2))
        )
        assert any(
            check_step(replace(result.step, claim=replace(claim, claimed=item))).outcome
            is not FOLLOWS
            for item in changed
        ), constant


CERTIFIED = [place for place in of_kind(Implied) if step_of(place).claim.multipliers]


@about_a_tenth(CERTIFIED)
def test_a_wrong_or_negative_multiplier_is_no_certificate(result, few_points) -> None:
    claim = result.step.claim
    for index in range(len(claim.multipliers)):
        for factor in (sp.Integer(-1), sp.Integer(3)):
            wrong = list(claim.multipliers)
            wrong[index] *= factor
            changed = replace(claim, multipliers=tuple(wrong))
            outcome = check_step(replace(result.step, claim=changed)).outcome
            assert outcome is not FOLLOWS


def points_for(claim, count: int, *more: sp.Basic):
    """Random points in the domain, from another seed than the checker's."""
    relations = [
        item.func(replaced(item.lhs, claim), replaced(item.rhs, claim), evaluate=False)
        for item in claim.domain
    ]
    symbols = set().union(*(item.free_symbols for item in (*relations, *more)))
    for point in rational_points(symbols, count, 2024):
        values = {symbol: rational_value(value, {}) for symbol, value in point.items()}
        if all(satisfied(item, values) for item in relations):
            yield values


def of_squares(*sides: sp.Expr) -> list[sp.Expr]:
    """Put a square in for each symbol whose root is in a side: values are fractions then."""
    roots = [one for side in sides for one in side.atoms(sp.Pow) if one.exp in (HALF, -HALF)]
    under = set().union(*(one.base.free_symbols for one in roots))
    return [side.doit().xreplace({symbol: symbol**2 for symbol in under}).doit() for side in sides]


@about_a_tenth(of_kind(Equal))
def test_equalities_that_follow_hold_in_fractions(result) -> None:
    claim = result.step.claim
    sides = of_squares(replaced(claim.left, claim), replaced(claim.right, claim))
    seen = 0
    for values in points_for(claim, 200, *sides):
        left, right = (rational_value(side, values) for side in sides)
        assert left == right
        seen += 1
    assert seen >= 5


@about_a_tenth(of_kind(Implied))
def test_inequalities_that_follow_hold_in_fractions(result) -> None:
    claim = result.step.claim
    given = [
        item.func(replaced(item.lhs, claim), replaced(item.rhs, claim), evaluate=False)
        for item in claim.given
    ]
    claimed = claim.claimed.func(
        replaced(claim.claimed.lhs, claim), replaced(claim.claimed.rhs, claim), evaluate=False
    )
    seen = 0
    for values in points_for(claim, 1500, claimed, *given):
        if all(satisfied(item, values) for item in given):
            assert satisfied(claimed, values)
            seen += 1
        if seen == 25:
            return
    assert seen >= 3


@about([place for place in EVERY if not does_follow(place)])
def test_counterexamples_are_replayed_in_fractions(result) -> None:
    """By the evaluator of certificates, which shares no code with the search."""
    claim = result.step.claim
    if isinstance(claim, FiniteLimit):
        return
    values = {symbol: rational_value(value, {}) for symbol, value in result.point.items()}
    if isinstance(claim, Equal):
        left, right = (
            rational_value(replaced(s, claim), values) for s in (claim.left, claim.right)
        )
        assert left - right == rational_value(result.difference, values) != 0
        return
    for item in (*claim.domain, *claim.given):
        sides = (without_extrema(replaced(side, claim), values) for side in (item.lhs, item.rhs))
        assert satisfied(item.func(*sides, evaluate=False), values)
    sides = (replaced(side, claim) for side in (claim.claimed.lhs, claim.claimed.rhs))
    assert not satisfied(claim.claimed.func(*sides, evaluate=False), values)


def without_extrema(expression: sp.Expr, values) -> sp.Expr:
    """Replace every maximum by its value, which the evaluator does not know."""
    found = expression.atoms(sp.Max)
    largest = {item: max(rational_value(part, values) for part in item.args) for item in found}
    return expression.xreplace(
        {item: sp.Rational(v.numerator, v.denominator) for item, v in largest.items()}
    )


@about_a_tenth(of_kind(FiniteLimit, EVERY))
def test_limits_are_what_large_numbers_show(result) -> None:
    """Between far and farther the value settles, or grows by a factor, in 60 digits."""
    claim = result.step.claim
    others = claim.expression.free_symbols - set(claim.variables)
    start = {symbol: sp.Rational(1, 2) for symbol in others} | {sa_fl.q: sp.Rational(1, 3)}
    start = {symbol: sp.Integer(2) if symbol.is_integer else v for symbol, v in start.items()}
    values = []
    for power in (2, 4):
        far = {sa_fl.K: sp.Integer(10) ** (4 * power)} if sa_fl.K in claim.variables else {}
        rounds = {sa_fl.R: sp.Integer(10) ** (40 * power)}
        values.append(sp.N(claim.expression.subs({**start, **far, **rounds}), 60, maxn=2000))
    growth = float(values[1] / values[0])
    if result.outcome is FOLLOWS:
        assert growth == pytest.approx(1, abs=0.02)
    else:
        assert growth > 100
