"""What a setting tells a search: how near it is, and no more than its verdict."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.comparison import Trial, ratio_of
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import HypothesisCheck, Outcome
from fltheory.theorems import Hypothesis, RoundRange, RoundSymbol, Theorem
from tests.theorems import own


def failing(margin: float, holds: bool | None = False) -> HypothesisCheck:
    return HypothesisCheck("h", "", "", holds, margin)


def test_fewer_and_smaller_misses_are_nearer() -> None:
    far, near = Trial.unmet([failing(-5.0)]), Trial.unmet([failing(-0.1), failing(1.0, True)])
    both = Trial.unmet([failing(-0.1), failing(-0.1)])
    assert both.score < far.score < near.score < 0
    assert near.score == pytest.approx(-1 - math.tanh(0.1))
    assert (far.applies, far.refutes) == (False, False)


@pytest.mark.parametrize(
    ("truth", "bound", "ratio"), [(1, 2, 0.5), (1, 0, math.inf), (-1, 0, -math.inf)]
)
def test_a_bound_that_is_not_positive_has_no_finite_ratio(truth, bound, ratio) -> None:
    assert ratio_of(truth, bound) == ratio


def test_what_is_undefined_is_hopeless() -> None:
    assert Trial.applied(math.nan, refutes=False).score == -math.inf


@pytest.mark.parametrize("step", [0.0001, 0.01, 0.5, 1.9999, 2.5])
def test_an_order_is_refuted_by_a_trial_where_its_verdict_refutes_it(step: float) -> None:
    for claim in (own.TRUE_ORDER, own.FALSE_ORDER):
        setting = own.FAMILY.setting(step=step)
        trial, verdict = claim.trial(setting, Sampling()), claim.verdict(setting, Sampling())
        assert trial.refutes == (verdict.outcome is Outcome.REFUTED)
        assert trial.refutes <= trial.applies
        assert (verdict.outcome is Outcome.INAPPLICABLE) <= (not trial.applies)


def test_runs_before_the_last_decade_are_followed_only_for_their_hypotheses(monkeypatch) -> None:
    """After three rounds the squared distance is 1/64: too far, and it is no slope that tells."""
    followed: list[int] = []
    compared = Theorem.compared

    def noted(theorem, setting, *of):
        followed.append(setting.rounds)
        return compared(theorem, setting, *of)

    monkeypatch.setattr(Theorem, "compared", noted)
    claim, setting = own.TRUE_ORDER, own.FAMILY.setting(step=0.5, distance=1.0)
    assert claim.trial(setting, Sampling()).applies
    assert followed == [300, 3000]
    end = RoundSymbol(sp.Symbol("E"), "squared_distance", "last", RoundRange(0, 0), "||x_R||^2")
    near = Hypothesis("near", end.symbol < 0.001, "here")
    theorem = replace(claim.theorem, round_symbols=(end,), hypotheses=(near,))
    assert not replace(claim, theorem=theorem).trial(setting, Sampling()).applies


def test_an_order_that_its_bound_does_not_have_is_not_tried() -> None:
    """Corollary 1 of SA-FL, said to be of the order of the square of its bound's."""
    slower = theorems.get("sa-fl/corollary-1", "derived")
    axis = replace(slower.axes[0], order=slower.axes[0].order ** 4)
    claim = replace(slower, axes=(axis,))
    trial = claim.trial(slower.regimes["i.i.d."].setting, Sampling())
    assert (trial.applies, trial.refutes) == (False, False)
    # The bound's slope is -1/2, the claimed one -2.
    assert trial.score == pytest.approx(-math.tanh(1.5), abs=1e-3)


def test_known_orders_are_tried_as_recorded() -> None:
    claim = theorems.get("fedau/1")
    outcomes = {
        name: claim.trial(regime.setting, Sampling()) for name, regime in claim.regimes.items()
    }
    applies = {name for name, trial in outcomes.items() if trial.applies}
    assert applies == {"equal weights", "known statistics", "exact gradients"}
    assert not any(trial.refutes for trial in outcomes.values())
