"""The search around settings: finds planted faults, spares what is true, keeps its budget."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import LENGTH, LOSS
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    Hypothesis,
    PointClaim,
    PointQuantity,
    RoundRange,
    Theorem,
)
from fltheory.verify import Outcome, Sampling, check, falsify
from fltheory.verify.safari.witness import Witness
from fltheory.verify.search.falsification import Falsification
from tests.drawn import a_tenth
from tests.theorems import own

ONE_CLIENT = Setting(
    FedAvg(0.1, 1), QuadraticProblem([[1.0]], [[0.0]]), UniformSubset(1, 1), 5, [2.0]
)
L = symbol("L", number="L", positive=True)
eta = symbol("eta", number="client_lr", positive=True)
R = symbol("R", number="rounds", positive=True)
D = symbol("D_0", number=lambda run: abs(float(run.x0[0] - run.problem.x_star[0])), positive=True)
LAST = BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "(x_R)^2", "x_R^2")
SHORT_STEP = Hypothesis("short step", eta <= 1 / L, "here")
LONG_STEP = Hypothesis("long step", eta <= 2 / L, "here")


def plain(setting: Setting) -> Setting:
    algorithm, problem = setting.algorithm, setting.problem
    if (algorithm.local_steps, algorithm.server_lr, problem.sigma) != (1, 1.0, 0.0):
        raise ValueError("this is about plain gradient descent")
    return setting


def gradient_descent(bound: sp.Expr, *hypotheses: Hypothesis) -> Theorem:
    """Say of one quadratic client, whose x_R is (1 - eta L)^R x_0, that x_R^2 <= bound."""
    return Theorem(
        id="own/1",
        reading="printed",
        title="gradient descent",
        source="closed form",
        quantity=LAST,
        bound=bound,
        hypotheses=hypotheses,
        domain=plain,
        regimes={},
    )


TRUE = gradient_descent((1 - eta * L) ** (2 * R) * D**2 * sp.Rational(101, 100), SHORT_STEP)
STARTS = {"one client": ONE_CLIENT}
# Ratios grow towards steps of 0, on this side of the long ones that break the bound.
LONG_STARTS = {"one client": replace(ONE_CLIENT, algorithm=FedAvg(0.8, 1))}


@pytest.mark.parametrize("budget", [50, pytest.param(1000, marks=pytest.mark.soundness)])
def test_a_true_theorem_of_ones_own_survives(budget: int) -> None:
    found = falsify(TRUE, budget, settings=STARTS)
    assert found.witness is None
    assert found.settings_tried == budget
    assert 0.3 < found.settings_applicable / budget < 1
    assert 1 / 1.01 - 1e-9 < found.best_ratio <= 1


FALSE = {
    "distance left out": gradient_descent((1 - eta * L) ** (2 * R), SHORT_STEP),
    "distance not squared": gradient_descent((1 - eta * L) ** (2 * R) * D, SHORT_STEP),
    "curvature left out": gradient_descent((1 - eta) ** (2 * R) * D**2, SHORT_STEP),
    "long steps let in": gradient_descent(sp.exp(-2 * eta * L * R) * D**2, LONG_STEP),
}


@cache
def searched(fault: str) -> Falsification:
    """Return what a search finds of a planted fault, which several tests look at."""
    return falsify(FALSE[fault], 200, settings=LONG_STARTS if "long" in fault else STARTS)


@pytest.mark.parametrize("fault", a_tenth(FALSE, of=4))
def test_planted_faults_are_found_and_are_faults(fault: str) -> None:
    false, found = FALSE[fault], searched(fault)
    assert found.witness is not None
    assert not isinstance(found.witness, Witness)
    setting = found.witness.setting()
    assert check(false, setting).outcome is Outcome.REFUTED
    step, curvature = setting.algorithm.client_lr, float(setting.problem.hessians[0, 0])
    closed_form = (1 - step * curvature) ** (2 * setting.rounds) * float(
        setting.x0[0] - setting.problem.optima[0, 0]
    ) ** 2
    assert check(false, setting).truth == pytest.approx(closed_form)


def test_the_first_refutation_can_be_all_that_is_asked() -> None:
    false = FALSE["curvature left out"]
    first, full = falsify(false, 200, settings=STARTS, first=True), searched("curvature left out")
    assert first.settings_tried < full.settings_tried == 200
    assert first.witness is not None
    assert not isinstance(first.witness, Witness)
    assert check(false, first.witness.setting()).outcome is Outcome.REFUTED


def test_a_witness_shows_every_number_and_where_it_came_from() -> None:
    found = searched("curvature left out")
    assert found.witness is not None
    assert "found from regime 'one client'" in found.witness.lines[0]
    assert "rounds = 1" in found.witness.lines
    assert re.fullmatch(r"truth \S+, bound \S+ \(float64 evidence\)", found.witness.lines[-1])


def test_claims_without_a_run_are_searched_too() -> None:
    h = symbol("h", number="L", positive=True)
    claim = PointClaim(
        id="own/2",
        reading="printed",
        title="curvature of at most five",
        source="here",
        quantity=PointQuantity(lambda s: (s.problem.L, 0.0), "L", LOSS / LENGTH**2),
        bound=sp.Integer(5),
        hypotheses=(Hypothesis("flat", h <= 6, "here"),),
    )
    found = falsify(claim, settings=STARTS)
    assert found.witness is not None
    assert 5 < found.witness.setting().problem.L <= 6


def test_the_budget_counts_settings_that_make_no_sense() -> None:
    seen: list[tuple[int, int]] = []
    found = falsify(
        TRUE, 40, settings=STARTS, progress=lambda tried, total, text: seen.append((tried, total))
    )
    assert seen == [(tried, 40) for tried in range(1, 41)]
    assert found.settings_applicable < found.settings_tried == 40


def test_a_theorem_that_never_applies_has_no_ratio() -> None:
    never = replace(TRUE, hypotheses=(Hypothesis("none", eta >= 1e9, "here"),))
    found = falsify(never, 20, settings=STARTS)
    assert (found.witness, found.best, found.best_ratio) == (None, None, -math.inf)


def test_the_same_seed_finds_the_same() -> None:
    once, again = (falsify(TRUE, 15, 3, settings=STARTS) for _ in range(2))
    assert (once.best_ratio, once.settings_applicable) == (
        again.best_ratio,
        again.settings_applicable,
    )


def test_an_underflow_refutes_nothing() -> None:
    """After 300 rounds of a factor 0.3 the error is below the least float, and so is its bound."""
    strong = replace(ONE_CLIENT, algorithm=FedAvg(0.7, 1), rounds=309)
    trial = TRUE.trial(strong, Sampling())
    assert TRUE.compared(strong, Sampling()).truth > 0
    assert (trial.applies, trial.refutes, trial.ratio) == (True, False, 0.0)


def test_a_true_order_survives_and_a_false_one_does_not() -> None:
    """(1 - eta)^(2R) is at most 1/(eta (2 - eta) R); without that constant it need not be."""
    kept = falsify(own.TRUE_ORDER, 40)
    assert (kept.witness, kept.settings_tried) == (None, 40)
    assert 0 < kept.settings_applicable <= 40
    assert kept.best_ratio <= 1
    assert "in R: truth " in kept.effort
    found = falsify(own.FALSE_ORDER, 40)
    assert found.witness is not None
    setting = found.witness.setting()
    verdict = check(own.FALSE_ORDER, setting)
    assert verdict.outcome is Outcome.REFUTED
    step, last = setting.algorithm.client_lr, 3000
    assert (1 - step) ** (2 * last) > 1 / last
    assert found.witness.lines[-1] == f"{verdict.detail} (float64 evidence)"


def test_steps_that_an_equation_ties_to_the_problem_move_along_with_it() -> None:
    """With eta L = 1/2, 8 eta^2 is 2/L^2, which is below 1/L from L = 2 on."""
    claim = PointClaim(
        id="own/3",
        reading="printed",
        title="an inequality of two units",
        source="here",
        quantity=PointQuantity(lambda s: (1 / s.problem.L, 0.0), "1/L", LENGTH**2 / LOSS),
        bound=8 * eta**2,
        hypotheses=(Hypothesis("coupled", sp.Eq(eta * L, sp.Rational(1, 2)), "here"),),
    )
    coupled = replace(ONE_CLIENT, algorithm=FedAvg(0.5, 1))
    found = falsify(claim, 30, settings={"L = 1": coupled})
    assert found.settings_applicable > 20
    assert found.witness is not None
    assert found.witness.setting().problem.L > 2


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="settings must be given for own/1, which has no regimes"):
        falsify(TRUE)
    with pytest.raises(ValueError, match="budget must be"):
        falsify(TRUE, 0, settings=STARTS)
    with pytest.raises(ValueError, match="seed must be"):
        falsify(TRUE, 1, -1, settings=STARTS)


@pytest.mark.parametrize(
    ("identifier", "is_refuted"),
    [("ca-fed/1", False), ("ca-fed/3", False), ("ca-fed/appendix-d", True)],
)
def test_registered_statements_are_searched_around_their_regimes(identifier, is_refuted) -> None:
    found = falsify(theorems.get(identifier), 40)
    assert (found.witness is not None) == is_refuted


def test_derived_readings_that_have_proofs_survive() -> None:
    for identifier in ("ca-fed/appendix-d", "ca-fed/appendix-e"):
        assert falsify(theorems.get(identifier, "derived"), 60).witness is None
