"""What FedAR's claims read off a setting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAR, FedAvg, Harmonic, Scheduled
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.decimals import as_fraction
from fltheory.engines import Setting
from fltheory.engines.affine.numbers import Balls
from fltheory.engines.enclosure.exact_setting import exact_setting
from fltheory.participation import Bernoulli, Cyclic, Trace, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.report.terminal.explanation import explanation
from fltheory.theorems import fedar
from fltheory.theorems.fedar import FedARPath, fedar_of
from fltheory.verify import check

PROBLEM = QuadraticProblem([[2.0]], [[1.0], [-1.0]], sigma=0.3)
HALF_TIME = Cyclic([1, 3], [0, 0])


@dataclass(frozen=True)
class Values:
    """The values of symbols on a setting."""

    setting: Setting

    def __getitem__(self, symbol) -> Any:
        return symbol.on(self.setting)


def setting(participation=HALF_TIME, rounds: int = 7, **changes) -> Setting:
    weight = CappedLinear(0.5, 1.8)
    algorithm = changes.pop("algorithm", None) or FedAR(0.1, 4, weight=weight, **changes)
    return Setting(algorithm, PROBLEM, participation, rounds, [3.0])


def test_long_run_weights_by_hand() -> None:
    """psi = 1, 1.5, 1.8 over a cycle of three, two clients counted: means over N_t = 2."""
    weights = FedARPath(setting()).long_run_weights
    assert weights == pytest.approx([1 / 2, (1 + 1.5 + 1.8) / 6])


def test_cut_off_clients_do_not_count() -> None:
    """tau_max = 1: in a third of the rounds client 0 is alone."""
    weights = FedARPath(setting(cutoff=1.0)).long_run_weights
    assert weights == pytest.approx([(1 / 2 + 1 / 2 + 1) / 3, (1 / 2 + 1.5 / 2) / 3])


def test_the_first_cycle_does_not_count() -> None:
    """Away at first for 2 of 4 rounds, tau = 1 2 0 1, as if just seen; later 2 3 0 1."""
    weights = FedARPath(setting(Cyclic([1, 4], [0, 2]))).long_run_weights
    assert weights[1] == pytest.approx((1.8 + 1.8 + 1 + 1.5) / 8)


def test_a_trace_begins_again_after_its_last_round() -> None:
    trace = Trace([[1, 1], [1, 0], [1, 0]], start=0)
    assert FedARPath(setting(trace)).long_run_weights == pytest.approx(
        FedARPath(setting()).long_run_weights
    )


def test_constants_by_hand() -> None:
    """Seven rounds: client 1 is away for 2, 2 and 0: tau = 0 1 2 0 1 2 0."""
    values = Values(setting())
    first, second = Fraction(1, 2), Fraction(43, 60)
    assert values[fedar.tau_max] == 2
    assert values[fedar.tau_mean] == pytest.approx(6 / 14)
    assert values[fedar.unequal] == pytest.approx(float((second - first) / ((second + first) / 2)))
    assert values[fedar.spread] == 2.0
    assert values[fedar.growth] == 0.5
    assert math.isnan(values[fedar.C])
    assert Values(setting(UniformSubset(2, 2)))[fedar.unequal] == 0.0


def test_settings_of_another_kind_are_named() -> None:
    scheduled = setting(algorithm=Scheduled(FedAR(0.1, 1), Harmonic(1.0)))
    assert fedar_of(scheduled) == FedAR(0.1, 1)
    with pytest.raises(ValueError, match=r"algorithm must be FedAR, or Scheduled.* got FedAvg"):
        fedar_of(setting(algorithm=FedAvg(0.1, 1)))
    with pytest.raises(ValueError, match="participation must be fixed in advance"):
        fedar.THEOREM_1.theorem.constants(setting(Bernoulli([0.5, 0.5])))


def test_axes_change_what_they_name_only() -> None:
    regime = fedar.THEOREM_1.regimes["in rotation"].setting
    for claim, value, symbol, expected in (
        (fedar.AVERAGE_INACTIVITY, 8, fedar.tau_max, 7),
        (fedar.MAXIMUM_INACTIVITY, 4, fedar.tau_max, 4),
        (fedar.NUMBER_OF_CLIENTS, 16, fedar.N, 16),
        (fedar.WEIGHT, 200, fedar.growth, 0.2),
    ):
        (axis,) = claim.axes
        changed = axis.schedule(regime, value)
        assert Values(changed)[symbol] == expected
        assert changed.rounds == regime.rounds
    averages = [
        Values(fedar.MAXIMUM_INACTIVITY.axes[0].schedule(regime, gap))[fedar.tau_mean]
        for gap in (1, 2, 4)
    ]
    assert averages == pytest.approx([0.5] * 3, rel=0.07)


def test_the_text_says_what_is_not_known() -> None:
    text = explanation(theorems.get("fedar/1"))
    assert "C: a constant that our copy of the text lacks" in text
    assert "in T: E[f(w_T) - f*] = O(1/T)" in text
    direction = explanation(theorems.get("fedar/number-of-clients"))
    assert "in N: E[f(w_T) - f*] goes with N" in direction


@pytest.mark.parametrize(
    "statement", theorems.registered("fedar"), ids=lambda one: f"{one.id}-{one.reading}"
)
def test_of_another_algorithm_nothing_is_said(statement) -> None:
    with pytest.raises(ValueError, match="algorithm must be FedAR"):
        check(statement, setting(algorithm=FedAvg(0.1, 1)))


@pytest.mark.parametrize(
    ("cutoff", "weights"),
    [
        (math.inf, (Fraction(1, 2), Fraction(43, 60))),
        (1.0, (Fraction(2, 3), Fraction(5, 12))),
        (lambda rounds: np.where(rounds > 0, 1, 0), (Fraction(2, 3), Fraction(5, 12))),
    ],
)
def test_constants_of_an_exact_twin_are_fractions(cutoff, weights) -> None:
    """Those by hand above, of psi = 1, 3/2, 9/5 over a cycle of three."""
    with Balls(128).in_use():
        twin = exact_setting(setting(cutoff=cutoff))
        of_path = FedARPath(twin).long_run_weights
        found = {
            symbol: symbol.on(twin)
            for symbol in (fedar.unequal, fedar.tau_mean, fedar.tau_max, fedar.spread)
        }
    assert [as_fraction(one.value) for one in of_path] == list(weights)
    apart = abs(weights[0] - weights[1]) / (sum(weights) / 2)
    assert as_fraction(found[fedar.unequal].value) == apart
    assert (found[fedar.tau_mean], found[fedar.tau_max]) == (Fraction(3, 7), 2)
    assert found[fedar.spread].value == 2
