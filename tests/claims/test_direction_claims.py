"""Claims that a quantity grows or falls with a variable."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    DirectionClaim,
    Hypothesis,
    RateAxis,
    RoundRange,
    Theorem,
    fedar,
)
from fltheory.verify import Outcome, Sampling, check, falsify

R, LIMIT = symbol("R", number="rounds", positive=True), sp.Symbol("c", positive=True)
PROBLEM = QuadraticProblem([[1.0]], [[0.0]])


def with_rounds(setting: Setting, rounds: int) -> Setting:
    return Setting(setting.algorithm, setting.problem, setting.participation, rounds, setting.x0)


THEOREM = Theorem(
    id="test/0",
    reading="printed",
    title="",
    source="",
    quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "", ""),
    bound=sp.Integer(1),
    hypotheses=(Hypothesis("not too long", sp.Le(R, 100), ""),),
)
FALLS = DirectionClaim(
    id="test/falls",
    reading="printed",
    title="",
    source="",
    theorem=THEOREM,
    axes=(RateAxis(R, 1 / R, lambda setting: (1, 2, 5), with_rounds),),
)
SETTING = Setting(FedAvg(0.5, 1), PROBLEM, UniformSubset(1, 1), 1, [2.0])


def test_where_a_hypothesis_fails_no_run_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 rounds are too long."""
    monkeypatch.delattr(Theorem, "compared")
    axis = RateAxis(R, 1 / R, lambda setting: (1, 2, 500), with_rounds)
    trial = replace(FALLS, axes=(axis,)).trial(SETTING, Sampling())
    assert not trial.applies
    assert -2 <= trial.score < -1


def test_what_stays_as_it_is_neither_falls_nor_rises() -> None:
    """Whoever starts at the optimum stays there, without a rounding."""
    assert check(FALLS, replace(SETTING, x0=[0.0])).outcome is Outcome.UNDECIDED


def test_an_error_that_halves_falls() -> None:
    """(x_R - x*)^2 = 4 (1/4)^R: the quotient nearest one is 1/4."""
    verdict = check(FALLS, SETTING)
    assert verdict.outcome is Outcome.HOLDS
    assert (verdict.truth, verdict.bound) == (pytest.approx(1 / 4), 1.0)
    assert verdict.detail == "R = 1, 2, 5: 1, 0.25, 0.003906"


def test_and_does_not_grow() -> None:
    grows = replace(FALLS, axes=(replace(FALLS.axes[0], order=R),))
    verdict = check(grows, SETTING)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(64)


def test_what_does_not_change_is_undecided() -> None:
    at_optimum = Setting(FedAvg(0.5, 1), PROBLEM, UniformSubset(1, 1), 1, [1e-30])
    still = replace(FALLS, axes=(replace(FALLS.axes[0], schedule=lambda s, r: at_optimum),))
    assert check(still, at_optimum).outcome is Outcome.UNDECIDED


def test_hypotheses_count_at_every_value() -> None:
    longer = replace(FALLS, axes=(replace(FALLS.axes[0], grid=lambda setting: (1, 200)),))
    assert check(longer, SETTING).outcome is Outcome.INAPPLICABLE


def test_it_is_searched_by_its_step_that_is_nearest_to_going_the_other_way() -> None:
    """The steps from 1 to 2 and 5 rounds multiply the error by 1/4 and 1/64."""
    trial = FALLS.trial(SETTING, Sampling())
    assert (trial.ratio, trial.refutes) == (pytest.approx(1 / 4), False)
    grows = replace(FALLS, axes=(replace(FALLS.axes[0], order=R),))
    assert grows.trial(SETTING, Sampling()).refutes
    found = falsify(FALLS, 30, settings={"halves": SETTING})
    # A step that the curvature makes too long lets the error grow, and noise keeps it from falling.
    assert found.witness is not None
    assert check(FALLS, found.witness.setting()).outcome is Outcome.REFUTED
    assert "R = 1, 2, 5: " in found.effort


def test_an_order_that_is_one_number_is_no_direction() -> None:
    with pytest.raises(
        ValueError, match="order of the claim 'test/falls' must grow or fall, got 1"
    ):
        replace(FALLS, axes=(replace(FALLS.axes[0], order=sp.Integer(1)),))


def test_what_rests_on_a_lost_hypothesis_is_not_searched() -> None:
    with pytest.raises(
        ValueError, match=r"got fedar/weight \(printed\): no setting .* against 'psi"
    ):
        falsify(fedar.WEIGHT, 1)
