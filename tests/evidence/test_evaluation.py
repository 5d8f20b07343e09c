"""Hypotheses whose symbols are known to within intervals."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from fltheory.engines.trajectory import Trajectory, round_arrays
from fltheory.evidence.evaluation import check_hypothesis
from fltheory.evidence.truths import Truth
from fltheory.evidence.verdict import Grade
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import RoundRange, RoundSymbol

g = sp.Symbol("g", real=True)
SYMBOL = RoundSymbol(g, "squared_distance", "every", RoundRange(0, 0), "")


def truth(centre, error):
    def arrays(value):
        fields = ("squared_distance", "squared_gradient", "excess_loss")
        return round_arrays({name: np.array([float(value)]) for name in fields})

    values = arrays(centre)
    trajectory = Trajectory(
        values.squared_distance,
        values.squared_gradient,
        values.excess_loss,
        rounding_error=arrays(error),
    )
    return Truth(trajectory, Grade.EXACT, None)


@pytest.mark.parametrize(
    ("condition", "centre", "error", "holds"),
    [
        (sp.Ge(g, 1), 3.0, 1.0, True),
        (sp.Ge(g, 1), 0.0, 0.5, False),
        (sp.Ge(g, 1), 1.5, 1.0, None),
        # 1/(g^2 - 1) is negative at 0 and positive at both ends, with poles between.
        (sp.Ge(1 / (g**2 - 1), 0), 0.0, 2.0, None),
        (sp.Ge(1 / (1 - g**2), 0), 0.0, 2.0, None),
        (sp.Ge(1 / (1 - g**2), 0), 0.0, 0.5, True),
    ],
)
def test_decided_only_if_the_middle_and_the_corners_agree(condition, centre, error, holds):
    found = check_hypothesis(
        Hypothesis("it", condition, "here"), {}, (SYMBOL,), truth(centre, error)
    )
    assert found.holds is holds
