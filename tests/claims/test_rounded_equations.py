"""Equations among hypotheses, whose sides somebody worked out in floats."""

from __future__ import annotations

import pytest
import sympy as sp

from fltheory.algorithms import FedAvg, Harmonic, Scheduled
from fltheory.engines import Setting
from fltheory.evidence.verdict import Grade, Outcome
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import BoundedQuantity, Hypothesis, RoundRange, Theorem
from fltheory.verify import check

GAMMA = symbol("gamma", number=lambda setting: setting.algorithm.step_sizes.offset, positive=True)
KAPPA = symbol("kappa", number=lambda run: run.problem.L / run.problem.mu, positive=True)
OFFSET = Theorem(
    id="own/offset",
    reading="printed",
    title="steps 2/(mu (gamma + t)) with gamma = 8 kappa",
    source="this test",
    quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "text", "latex"),
    bound=sp.Integer(4),
    hypotheses=(Hypothesis("offset", sp.Eq(GAMMA, 8 * KAPPA), "this test"),),
)


@pytest.mark.parametrize(
    ("off", "outcome", "grade"),
    [(0.0, Outcome.HOLDS, Grade.FLOAT64), (1e-12, Outcome.INAPPLICABLE, Grade.EXACT)],
)
def test_one_that_is_off_by_rounding_alone_is_met_in_floats(off, outcome, grade) -> None:
    """8 * (1.11/0.3) is 29.600000000000005 in floats, and 29.6 in fractions."""
    problem = QuadraticProblem([[1.11, 0.0], [0.0, 0.3]], [[0.0, 1.0]])
    steps = Harmonic(2 / 0.3, 8 * (1.11 / 0.3) * (1 + off))
    setting = Setting(Scheduled(FedAvg(0.1, 1), steps), problem, UniformSubset(1, 1), 3, [1.0, 0.0])
    verdict = check(OFFSET, setting)
    assert (verdict.outcome, verdict.evidence.grade) == (outcome, grade)
    if off == 0:
        assert "'offset', which holds but for rounding" in verdict.evidence.why_not_exact
