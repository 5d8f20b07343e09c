"""What divides has to be positive: a condition that a negative denominator meets is not met."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAvg, Safari
from fltheory.claims.along_run import Theorem
from fltheory.engines import Setting
from fltheory.grammar.hypothesis import Hypothesis, with_signs
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.verify import Outcome, certificate, check, falsify

x = symbol("x", number="client_lr", positive=True)
y = symbol("y", number="1", positive=True)
z, R = sp.symbols("z R", positive=True)
D = symbol("D", number="squared_distance", positive=True)


def names(*hypotheses: Hypothesis) -> list[str]:
    return [each.text for each in with_signs(hypotheses)]


def test_each_denominator_of_unknown_sign_is_asked_for_once() -> None:
    once = Hypothesis("small", sp.Le(x / (1 - y) + z / (1 - y), 1), "(1)")
    assert names(once) == ["1 - y > 0", once.text]
    assert with_signs(with_signs([once])) == with_signs([once])
    assert names(Hypothesis("small", sp.Le(x, 1 / (y + z)), "(1)")) == ["x <= 1/(y + z)"]


def test_what_the_condition_itself_says_of_its_denominator_is_not_asked_for() -> None:
    limit = Hypothesis("small", sp.Le(x, 1 / (1 - y)), "(1)")
    assert names(limit) == [limit.text]
    assert names(replace(limit, condition=sp.Ge(x, 1 / (1 - y)))) == ["1 - y > 0", "x >= 1/(1 - y)"]


def test_a_replaced_condition_brings_its_own_denominators() -> None:
    sign, first = with_signs([Hypothesis("small", sp.Ge(x, 1 / (1 - y)), "(1)")])
    other = replace(first, condition=sp.Ge(x, 1 / (1 - z)))
    assert names(other, sign) == ["1 - z > 0", "x >= 1/(1 - z)"]


def test_a_paper_may_say_otherwise() -> None:
    loose = Hypothesis("small", sp.Ge(x, 1 / (1 - y)), "(1)", any_sign=True)
    assert names(loose) == [loose.text]


@pytest.mark.parametrize("statement", theorems.registered(), ids=lambda one: one.name)
def test_every_denominator_in_a_papers_condition_is_positive(statement) -> None:
    """Counted from the formulas: powers below the line, but for what a limit from below says."""
    known = {h.condition.lhs for h in statement.basis.hypotheses if isinstance(h.condition, sp.Gt)}
    for hypothesis in statement.basis.hypotheses:
        whole = sp.fraction(hypothesis.condition.rhs)[1]
        for part in sp.preorder_traversal(hypothesis.condition):
            if isinstance(part, sp.Mul | sp.Pow):
                below = sp.fraction(part)[1]
                factors = [f for f in sp.Mul.make_args(below) if not f.is_positive]
                asked = any(set(factors) <= set(sp.Mul.make_args(one)) for one in known)
                assert not factors or below == whole or asked, (hypothesis.name, below)


HALF_STEPS = Theorem(
    id="own/accident",
    reading="printed",
    title="Descent where x <= 1/(1 - x) is met with steps of more than 1",
    source="a textbook",
    quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "||x_R||^2", ""),
    bound=D,
    hypotheses=(Hypothesis("a step", sp.Ge(1, y / (2 - x) + y), "there"),),
)


def descent(step: float) -> Setting:
    bowl, alone = QuadraticProblem([[1.0]], [[0.0]]), UniformSubset(1, 1)
    return Setting(FedAvg(step, 1), bowl, alone, 5, [1.0])


def test_what_is_met_by_accident_refutes_nothing_of_ones_own() -> None:
    """1 >= 1/(2 - x) + 1 needs x > 2, and there |1 - x| > 1 makes the run diverge."""
    verdict = check(HALF_STEPS, descent(3.0))
    assert verdict.outcome is Outcome.INAPPLICABLE
    failing = [h.name for h in verdict.hypotheses if not h.holds]
    assert failing == ["positive denominator in 'a step'"]
    with pytest.raises(ValueError, match="positive denominator"):
        certificate(HALF_STEPS, descent(3.0))
    found = falsify(HALF_STEPS, 200, settings={"large": descent(3.0)})
    assert found.witness is None
    assert found.settings_applicable == 0
    (given,) = (h for h in HALF_STEPS.hypotheses if not h.is_sign)
    loose = replace(HALF_STEPS, hypotheses=(replace(given, any_sign=True),))
    assert check(loose, descent(3.0)).outcome is Outcome.REFUTED


@pytest.mark.parametrize("identifier", ["sa-fl/4", "sa-fl-submission/4"])
def test_a_step_of_more_than_one_over_l_meets_theorem_4_by_accident(identifier: str) -> None:
    """L eta_s = 9/4, so that 1 - L eta_s = -5/4 in the denominator of the condition on q.

    With that sign left open the truth, about 8,000, is above the bound, about 3,400.
    """
    problem = QuadraticProblem(
        [[[100.0]]] * 4, [[0.01], [0.01], [-0.01], [-0.01]], sigma=1.0, server_sigma=1.0
    )
    algorithm = Safari(0.5, 9 / 20_000, 9 / 400, 100)
    setting = Setting(algorithm, problem, UniformSubset(4, 4), 100, [-5.0])
    theorem = theorems.get(identifier)
    verdict = check(theorem, setting)
    failing = [h for h in verdict.hypotheses if not h.holds]
    assert [h.name for h in failing] == ["positive denominator in 'few client rounds'"]
    assert verdict.outcome is Outcome.INAPPLICABLE
    few = next(h for h in theorem.hypotheses if h.name == "few client rounds")
    others = tuple(h for h in theorem.hypotheses if h is not few and not h.is_sign)
    loose = replace(theorem, hypotheses=(*others, replace(few, any_sign=True)), derivation=None)
    assert check(loose, setting).outcome is Outcome.REFUTED
