"""Truth and bound over the rounds, against checks of shorter runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fltheory import theorems
from fltheory.claims.along_run import over_rounds
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Grade
from fltheory.theorems import PointClaim, RateClaim, Theorem
from fltheory.verify import check, check_regimes

SAMPLING = Sampling(replicas=20)
QUICK = {
    "sa-fl/5": "biased minority excluded",
    "sa-fl/4": "q small",
    "ca-fed/2": "nu = 0.5",
}


def shorter(setting: Setting, rounds: int) -> Setting:
    return Setting(setting.algorithm, setting.problem, setting.participation, rounds, setting.x0)


@pytest.mark.parametrize(("identifier", "regime"), QUICK.items())
def test_each_point_is_the_verdict_on_a_shorter_run(identifier: str, regime: str) -> None:
    theorem = theorems.get(identifier)
    assert isinstance(theorem, Theorem)
    setting = theorem.regimes[regime].setting
    curve = over_rounds(theorem, setting, SAMPLING)
    assert curve.values[0] == 1
    assert curve.values[-1] == setting.rounds
    assert (np.diff(curve.values) > 0).all()
    for place in (0, len(curve.values) // 2, -1):
        verdict = check(theorem, shorter(setting, int(curve.values[place])), replicas=20)
        slack = curve.judged_error[place] + verdict.evidence.error
        assert abs(curve.judged[place] - verdict.truth) <= slack
        # The curve is computed in float64; the verdict, where it is enclosed, is not. In floats
        # the endless sums of Theorem 2 of CA-Fed are good to 1e-7, as `endless_sums` says.
        rounding = 1e-7 if identifier == "ca-fed/2" else 1e-12
        assert curve.bound[place] == pytest.approx(verdict.bound, rel=rounding)
        if verdict.evidence.grade is not Grade.EXACT:
            assert curve.judged_error[place] == pytest.approx(verdict.evidence.error, rel=1e-6)


def test_rounds_without_a_quantity_are_left_out() -> None:
    theorem = theorems.get("sa-fl/4")
    assert isinstance(theorem, Theorem)
    quantity = replace(theorem.quantity, rounds=replace(theorem.quantity.rounds, first=4))
    setting = shorter(theorem.regimes["q small"].setting, 30)
    curve = over_rounds(replace(theorem, quantity=quantity), setting, SAMPLING)
    assert curve.values[0] == 4


def test_rounds_that_the_theorem_does_not_speak_of_are_left_out() -> None:
    theorem = theorems.get("sa-fl/5")
    assert isinstance(theorem, Theorem)

    def domain(setting: Setting) -> Setting:
        if setting.rounds < 10:
            raise ValueError("too short")
        return theorem.domain(setting)

    setting = shorter(theorem.regimes["q small"].setting, 30)
    curve = over_rounds(replace(theorem, domain=domain), setting, SAMPLING)
    assert curve.values[0] >= 10
    assert curve.values[-1] == 30


def test_the_curve_of_an_order_is_that_of_its_worst_variable() -> None:
    claim = theorems.get("sa-fl/corollary-2")
    assert isinstance(claim, RateClaim)
    setting = claim.regimes["i.i.d."].setting
    verdict, curve = claim.verdict_and_curve(setting, SAMPLING)
    assert verdict.is_rate
    assert curve is not None
    assert curve.variable == "R"
    assert curve.values[-1] >= 1000 * curve.values[0]
    last = curve.values >= curve.values[-1] / 10
    slope = np.polyfit(np.log(curve.values[last]), np.log(curve.judged[last]), 1)[0]
    assert slope == pytest.approx(verdict.truth, abs=1e-9)


def test_claims_without_a_run_have_no_curve() -> None:
    claim = theorems.get("ca-fed/appendix-e")
    assert isinstance(claim, PointClaim)
    cells = check_regimes([claim], curves=True)
    assert cells
    assert all(cell.curve is None for cell in cells)


def test_no_curve_is_drawn_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_: object) -> None:
        raise AssertionError("nobody asked for a curve")

    monkeypatch.setattr("fltheory.claims.along_run.over_rounds", drawn)
    theorem = theorems.get("sa-fl/5")
    short = replace(theorem, regimes={"q = 0": theorem.regimes["q = 0"]}, refutations=())
    assert check_regimes([short])[0].curve is None
    with pytest.raises(AssertionError, match="nobody asked"):
        check_regimes([short], curves=True)
