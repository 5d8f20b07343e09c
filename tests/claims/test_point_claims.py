"""Claims without a run: verdicts on hand-made ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.claims.statement import unit_flags
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Grade
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import LENGTH, LOSS
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import Hypothesis, PointClaim, PointQuantity, RateAxis, RateClaim
from fltheory.verify import Outcome, check

h = symbol("h", "curvature", LOSS / LENGTH**2, "L", positive=True)
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
    assert verdict.evidence.grade is Grade.FLOAT64
    assert (verdict.theorem, verdict.reading) == ("toy", "printed")


ASKED: list[int] = []


def test_hypotheses_and_both_sides_share_the_constants() -> None:
    """What a search asks of each setting, one after the other; another setting has its own."""
    ASKED.clear()

    def times_rounds(setting: Setting) -> float:
        ASKED.append(setting.rounds)
        return setting.problem.L * setting.rounds

    counted = replace(claim(5 * h), read_as={h: symbol("h", number=times_rounds)})
    for rounds in (1, 2):
        setting = replace(SETTING, rounds=rounds)
        (flat,) = counted.hypotheses_without_run(setting)
        assert flat.margin == 5 - 2 * rounds
        assert counted.compared(setting, Sampling()).bound == 10.0 * rounds
    assert ASKED == [1, 2]


def test_definitions_enter_the_bound() -> None:
    other = sp.Symbol("g", positive=True)
    defined = replace(claim(other), definitions={other: 5 * h})
    assert check(defined, SETTING).bound == 10.0


@pytest.mark.parametrize(
    ("power", "outcome"),
    [(-1.0, Outcome.HOLDS), (-0.8, Outcome.UNDECIDED), (-0.5, Outcome.REFUTED)],
)
def test_an_order_of_a_claim_without_a_run(power: float, outcome: Outcome) -> None:
    """F(x0) = R^power on R = 1 .. 1000, claimed to be of order 1/R, its bound 1/(1000 R)."""
    rounds = symbol("R", number="rounds", positive=True)
    of = replace(
        claim(1),
        bound=1 / (1000 * rounds),
        quantity=PointQuantity(lambda setting: (setting.rounds**power, 0.0), "F(x0)", LOSS),
    )

    def longer(setting: Setting, value: int) -> Setting:
        return Setting(setting.algorithm, setting.problem, setting.participation, value, setting.x0)

    axis = RateAxis(rounds, 1 / rounds, lambda setting: (1, 10, 100, 1000), longer)
    flat = Hypothesis("flatter", sp.Le(h, 1), "here")
    order = RateClaim(
        id="toy", reading="printed", title="an order", source="here", theorem=of, axes=(axis,)
    )
    verdict = check(order, SETTING)
    assert verdict.outcome is outcome
    assert verdict.truth == pytest.approx(power)
    limited = replace(order, axes=(replace(axis, hypotheses=(flat,)),))
    assert check(limited, SETTING).outcome is Outcome.INAPPLICABLE
    trial = order.trial(SETTING, Sampling())
    assert (trial.applies, trial.refutes) == (True, outcome is Outcome.REFUTED)
    # At R = 1000 the truth is R^power, the bound 1e-6.
    assert trial.ratio == pytest.approx(1000**power * 1e6)
    # What decays as claimed is no nearer to a refutation for being far above its bound.
    assert trial.score == pytest.approx(min(trial.ratio, 10 ** (power + 1 - 0.25)))


def test_units_are_those_of_quantity_and_bound() -> None:
    places = [flag.place for flag in unit_flags(claim(4 * h))]
    assert places == ["bound", "hypothesis 'flat'"]
    curvature = PointQuantity(lambda setting: (2.0, 0.0), "F''", LOSS / LENGTH**2)
    assert unit_flags(replace(claim(4 * h), quantity=curvature, hypotheses=())) == ()
