"""Claims without a run: verdicts on hand-made ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import Hypothesis, PointClaim, PointQuantity, unit_flags
from fltheory.theorems.units import LENGTH, LOSS
from fltheory.verify import Grade, Outcome, check

h = sp.Symbol("h", positive=True)
SETTING = Setting(FedAvg(0.1, 1), QuadraticProblem([[2.0]], [[0.0]]), UniformSubset(1, 1), 1, [3.0])


def claim(bound, value: float = 9.0, error: float = 0.0, limit: int = 5) -> PointClaim:
    """F(x0) <= bound, if the curvature is at most a limit; F(x0) = 9."""
    return PointClaim(
        id="toy",
        reading="printed",
        title="the initial loss",
        source="here",
        quantity=PointQuantity(lambda setting: (value, error), "F(x0)", LOSS),
        bound=sp.sympify(bound),
        hypotheses=(Hypothesis("flat", sp.Le(h, limit), "here"),),
        meanings={h: "curvature"},
        constants=lambda setting: {h: setting.problem.L},
        units={h: LOSS / LENGTH**2},
    )


@pytest.mark.parametrize(
    ("of", "outcome"),
    [
        (claim(5 * h), Outcome.HOLDS),
        (claim(4 * h), Outcome.REFUTED),
        (claim(4 * h, error=2.0), Outcome.UNDECIDED),
        (claim(4 * h, limit=1), Outcome.INAPPLICABLE),
        (claim(4 * h, value=math.nan, limit=1), Outcome.INAPPLICABLE),
        (claim(4 * h, value=math.nan), Outcome.UNDECIDED),
        (claim(sp.oo), Outcome.HOLDS),
    ],
)
def test_verdicts(of: PointClaim, outcome: Outcome) -> None:
    verdict = check(of, SETTING)
    assert verdict.outcome is outcome
    assert verdict.evidence.grade is Grade.EXACT
    assert (verdict.theorem, verdict.reading) == ("toy", "printed")


def test_definitions_enter_the_bound() -> None:
    other = sp.Symbol("g", positive=True)
    defined = replace(claim(other), definitions={other: 5 * h})
    assert check(defined, SETTING).bound == 10.0


def test_units_are_those_of_quantity_and_bound() -> None:
    places = [flag.place for flag in unit_flags(claim(4 * h))]
    assert places == ["bound", "hypothesis 'flat'"]
    curvature = PointQuantity(lambda setting: (2.0, 0.0), "F''", LOSS / LENGTH**2)
    assert unit_flags(replace(claim(4 * h), quantity=curvature, hypotheses=())) == ()
