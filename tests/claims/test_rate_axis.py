"""Slopes of claimed orders, enclosed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from fltheory.claims.comparison import Comparison
from fltheory.claims.rate_axis import (
    AxisReading,
    EnclosedSlopes,
    RateAxis,
    enclosed_slope,
    evidence_of,
    slope_of_last_decade,
)
from fltheory.evidence.enclosed_check import EnclosedSides
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Evidence, Grade, Outcome
from fltheory.theorems import get

GRID = (1, 10, 100, 200, 500, 1000)
AXIS = get("sa-fl/corollary-2").axes[0]
assert isinstance(AXIS, RateAxis)


def sides(values: list[float], error: float = 0.0, bound: float = 1.0) -> list[EnclosedSides]:
    return [
        EnclosedSides(one, error, bound / g, 0.0, one <= bound / g, ())
        for one, g in zip(values, GRID, strict=True)
    ]


def test_a_power_has_its_exponent_for_a_slope() -> None:
    """Logarithms of a power are on a line, whatever the values are spread over."""
    for exponent in (Fraction(-1, 2), Fraction(-3), Fraction(1, 7)):
        values = [arb(one) ** arb(exponent.numerator) / 1 for one in GRID]
        values = [one.root(exponent.denominator) for one in values]
        found = enclosed_slope(GRID, values)
        assert found.contains(arb(exponent.numerator) / exponent.denominator)
        assert found.rad() < 1e-12


def test_it_is_the_slope_that_floats_fit() -> None:
    values = [3.0, 1.0, 0.5, 0.3, 0.07, 0.05]
    found = enclosed_slope(GRID, [arb(one) for one in values])
    assert float(found) == pytest.approx(float(slope_of_last_decade(GRID, values)), rel=1e-12)
    last = np.polyfit(np.log(GRID[2:]), np.log(values[2:]), 1)[0]
    assert float(found) == pytest.approx(last, rel=1e-12)


def test_wider_values_give_a_wider_slope() -> None:
    """At both ends of all values: the line is steepest where early ones are high and late low."""
    middle, error = [1 / one for one in GRID], 1e-6
    found = EnclosedSlopes.of(GRID, sides(middle, error), [arb(1) / one for one in GRID])
    assert found is not None
    logs = np.log(GRID[2:])
    early = logs < logs.mean()
    for sign in (1.0, -1.0):
        heights = np.log(
            [
                one + sign * error * (1 if e else -1)
                for one, e in zip(middle[2:], early, strict=True)
            ]
        )
        assert found.of_truth[0] <= np.polyfit(logs, heights, 1)[0] <= found.of_truth[1]
    assert found.excess_of_truth[0] < 0 < found.excess_of_truth[1]
    assert found.excess_of_bound[0] <= 0 <= found.excess_of_bound[1]
    assert found.excess_of_bound[1] < 1e-12


def test_what_may_be_zero_has_no_slope() -> None:
    orders = [arb(1) / one for one in GRID]
    assert EnclosedSlopes.of(GRID, sides([1e-9] * 6, error=1e-8), orders) is None
    assert EnclosedSlopes.of(GRID, sides([1.0] * 6), [arb(0)] * 6) is None


def test_a_bound_without_end_has_no_slope() -> None:
    unbounded = sides([1.0] * 6, bound=float("inf"))
    found = EnclosedSlopes.of(GRID, unbounded, [arb(1) / one for one in GRID])
    assert found is not None
    assert found.excess_of_bound == (-np.inf, np.inf)


def reading(excess: float, grade: Grade, below: bool = False) -> AxisReading:
    """Return one of so much excess, under a bound that decays as claimed."""
    one = EnclosedSides(1.0, 0.0, 2.0 if below else 0.5, 0.0, below, ())
    shown = Comparison(1.0, one.bound, Evidence(grade, 0.0, why_not_exact="why"), (), one)
    slopes = None
    if grade is Grade.EXACT:
        slopes = EnclosedSlopes((excess - 1, excess - 1), (excess, excess), (0.0, 0.0))
    return AxisReading(AXIS, GRID, (shown,) * 6, (1.0,) * 6, excess - 1, -1.0, -1.0, slopes=slopes)


@pytest.mark.parametrize(
    ("excess", "below", "outcome"),
    [
        (0.05, False, Outcome.HOLDS),
        (0.06, False, Outcome.UNDECIDED),
        (0.24, False, Outcome.UNDECIDED),
        (0.25, False, Outcome.REFUTED),
        (0.25, True, Outcome.UNDECIDED),
    ],
)
def test_enclosed_slopes_decide(excess: float, below: bool, outcome: Outcome) -> None:
    found = reading(excess, Grade.EXACT, below)
    assert found.outcome is outcome
    # Were it for what floats say, it would be another outcome.
    assert replace(found, truth_slope=-1.0, claimed_slope=-1.0).outcome is outcome


def test_an_interval_that_straddles_a_limit_decides_nothing() -> None:
    found = reading(0.05, Grade.EXACT)
    assert found.slopes is not None
    wider = replace(found.slopes, excess_of_truth=(0.04, 0.06))
    assert replace(found, slopes=wider).outcome is Outcome.UNDECIDED
    bound = replace(reading(0.3, Grade.EXACT).slopes, excess_of_bound=(0.0, 0.06))  # type: ignore[type-var]
    assert replace(reading(0.3, Grade.EXACT), slopes=bound).outcome is Outcome.UNDECIDED


def test_what_holds_on_every_axis_is_as_good_as_its_weakest_evidence() -> None:
    exact, floats = reading(0.0, Grade.EXACT), reading(0.0, Grade.FLOAT64)
    assert evidence_of(exact, [exact, exact]).grade is Grade.EXACT
    weaker = evidence_of(exact, [exact, floats])
    assert (weaker.grade, weaker.why_not_exact) == (Grade.FLOAT64, "why")
    broken = reading(0.3, Grade.EXACT)
    assert evidence_of(broken, [broken, floats]).grade is Grade.EXACT


def test_cheap_runs_are_enclosed() -> None:
    """FedAU's Theorem 1: the error that stays, over 1 to 1000 times smaller steps."""
    claim = get("fedau/1")
    verdict = claim.verdict(claim.regimes["equal weights"].setting, Sampling())
    assert (verdict.outcome, verdict.evidence.grade) == (Outcome.HOLDS, Grade.EXACT)
    assert verdict.evidence.error < 1e-12
    assert abs(verdict.truth - verdict.bound) < 1e-4


def test_an_equation_with_a_root_is_not_met_by_a_fraction() -> None:
    """A step of 1/(K sqrt(R)): what the order in K asks is left to floats, and says so."""
    claim = get("sa-fl/corollary-1", "derived")
    alone = replace(claim, axes=claim.axes[1:])
    verdict = alone.verdict(claim.regimes["i.i.d."].setting, Sampling())
    assert (verdict.outcome, verdict.evidence.grade) == (Outcome.HOLDS, Grade.FLOAT64)
    assert "which holds but for rounding" in verdict.evidence.why_not_exact


def test_a_sample_is_told_no_reason_for_being_in_float64() -> None:
    drawn = Comparison(1.0, 2.0, Evidence(Grade.STATISTICAL, 0.1, 1e-6, 100), ())
    assert drawn.said_not_exact("why") is drawn
    computed = replace(drawn, evidence=Evidence(Grade.FLOAT64, 0.1))
    assert computed.said_not_exact("why").evidence.why_not_exact == "why"
