"""A stationary error that is known and not zero refutes an order that vanishes; no slope does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sympy as sp

from fltheory.algorithms import FedAvg, Harmonic, Scheduled
from fltheory.claims.order import known_limit, vanishes
from fltheory.engines import Setting
from fltheory.evidence.verdict import Grade
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    DirectionClaim,
    Hypothesis,
    RateAxis,
    RateClaim,
    Regime,
    RoundRange,
    Theorem,
)
from fltheory.verify import Outcome, Sampling, check, falsify

R = symbol("R", number="rounds", positive=True)
C = symbol("C", number=lambda setting: math.nan, positive=True)
eta = symbol("eta", number="client_lr", positive=True)
LAST = BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "x_R^2", "x_R^2")


def run(sigma: float, step: float = 0.5, start: float = 1000.0) -> Setting:
    problem = QuadraticProblem([[1.0]], [[0.0]], sigma=sigma)
    return Setting(FedAvg(step, 1), problem, UniformSubset(1, 1), 1, [start])


def with_rounds(setting: Setting, rounds: int) -> Setting:
    return replace(setting, rounds=rounds)


THEOREM = Theorem(
    id="own/floor",
    reading="printed",
    title="gradient descent with a constant step",
    source="here",
    quantity=LAST,
    bound=C / R,
    hypotheses=(Hypothesis("steps", eta <= 1, "here"),),
)
AXIS = RateAxis(R, 1 / R, lambda setting: (1, 10, 100, 1000), with_rounds)
CLAIM = RateClaim(
    id="own/floor",
    reading="printed",
    title="O(1/R)",
    source="here",
    theorem=THEOREM,
    axes=(AXIS,),
    regimes={"quiet": Regime("no noise", lambda: run(0.0))},
)
# x' = (1 - eta) x + eta sigma xi has the stationary variance eta sigma^2/(2 - eta): 1/3.
NOISY, FLOOR = run(1.0), 1 / 3


def along(setting: Setting) -> list[Setting]:
    return [with_rounds(setting, rounds) for rounds in (1, 10, 100, 1000)]


@pytest.mark.parametrize("reduction", ["last", "mean"])
def test_the_limit_is_the_stationary_variance(reduction: str) -> None:
    quantity = replace(LAST, reduction=reduction)
    assert known_limit(quantity, along(NOISY)) == pytest.approx(FLOOR, rel=1e-9)
    assert known_limit(quantity, along(run(0.0))) == 0


def test_no_limit_is_known_of_other_runs() -> None:
    assert known_limit(replace(LAST, reduction="min"), along(NOISY)) is None
    assert known_limit(object(), along(NOISY)) is None
    slower = replace(NOISY, algorithm=FedAvg(0.1, 1))
    assert known_limit(LAST, [NOISY, slower]) is None
    assert known_limit(LAST, along(run(1.0, step=2.5))) is None
    falling = replace(NOISY, algorithm=Scheduled(FedAvg(0.5, 1), Harmonic(1.0)))
    assert known_limit(LAST, along(falling)) is None


def test_an_order_with_a_floor_does_not_vanish() -> None:
    assert vanishes(C * sp.log(R) / R, R, {R: 5.0, C: 2.0})
    assert not vanishes(C / R + eta, R, {R: 5.0, C: 2.0, eta: 0.1})
    assert vanishes(C / R + eta, R, {R: 5.0, C: 2.0, eta: 0.0})


@pytest.mark.parametrize(
    "order", [sp.Max(1 / R, 1 / sp.sqrt(R)), sp.Piecewise((1, R < 5), (1 / R, True))]
)
def test_an_order_whose_limit_is_not_found_is_judged_by_slopes(order: sp.Expr) -> None:
    """The variance stays at 1/3, and a bound of unknown constant refutes nothing."""
    claim = replace(CLAIM, axes=(replace(AXIS, order=order),))
    assert not vanishes(order, R, {R: 5.0})
    assert check(claim, NOISY).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("order", [-1 / R, sp.Integer(0)])
def test_an_order_that_is_not_above_0_is_refused(order: sp.Expr) -> None:
    claim = replace(CLAIM, axes=(replace(AXIS, order=order),))
    with pytest.raises(ValueError, match=r"order of the axis of R must end above 0, got "):
        check(claim, NOISY)
    with pytest.raises(ValueError, match=r"order of the axis of R must end above 0, got "):
        falsify(claim, 5, settings={"unmet": run(1.0, step=1.5)})


def test_what_can_be_evaluated_nowhere_is_not_called_unrefuted() -> None:
    short = replace(CLAIM, axes=(replace(AXIS, grid=lambda setting: (1, 10)),), regimes={})
    with pytest.raises(ValueError, match="must increase from above 0 over at least 3 decades"):
        falsify(short, 5, settings={"noisy": NOISY, "quiet": run(0.0)})


def test_an_order_may_begin_at_0() -> None:
    """As log(R)/R does at R = 1."""
    claim = replace(CLAIM, axes=(replace(AXIS, order=sp.log(R) / R),))
    assert check(claim, run(0.0, step=0.01)).outcome is Outcome.HOLDS


def test_a_limit_refutes_whatever_the_constant() -> None:
    verdict = check(CLAIM, NOISY)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.detail.endswith("; the truth tends to at least 0.333")
    assert "the truth's is known" in verdict.evidence.scope
    assert check(CLAIM, run(0.0, step=0.01)).outcome is Outcome.HOLDS


def test_a_limit_in_floats_is_no_exact_evidence() -> None:
    """Both sides, the order and the hypotheses can be enclosed at every value; the limit is not."""
    bounded = replace(THEOREM, read_as={C: symbol("C", number="1000000")})
    verdict = check(replace(CLAIM, theorem=bounded), NOISY)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.evidence.grade is Grade.FLOAT64
    assert verdict.evidence.why_not_exact == "a stationary error"


def test_a_slope_as_claimed_does_not_hide_a_limit() -> None:
    """From so far away the error falls faster than 1/R over all tried, by 0.999 per round."""
    slow = run(1e-3, step=0.0005, start=1e9)
    verdict = check(replace(CLAIM, axes=(replace(AXIS, order=sp.log(R + 1) ** -4),)), slow)
    assert verdict.outcome is Outcome.REFUTED


def test_hypotheses_are_asked_first_and_directions_are_spared() -> None:
    assert check(CLAIM, run(1.0, step=1.5)).outcome is Outcome.INAPPLICABLE
    rises = DirectionClaim(
        id="own/falls", reading="printed", title="", source="", theorem=THEOREM, axes=(AXIS,)
    )
    assert "tends" not in check(rises, NOISY).detail
    floored = replace(CLAIM, axes=(replace(AXIS, order=1 / R + eta),))
    assert check(floored, NOISY).outcome is not Outcome.REFUTED


def test_it_is_searched_although_its_constant_is_not_known() -> None:
    assert CLAIM.why_not_searched == ""
    found = falsify(CLAIM, 40)
    assert found.witness is not None
    assert found.witness.setting().problem.sigma > 0
    assert "the truth tends to at least" in found.witness.lines[-1]
    assert not CLAIM.trial(run(0.0), Sampling()).refutes
