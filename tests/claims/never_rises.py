"""A kind of claim of one's own, in one file: a quantity of a run never rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.claims.statement import Basis
from fltheory.engines import Setting
from fltheory.evidence.evaluation import check_point_hypothesis
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.symbols import symbol
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import BoundedQuantity, Hypothesis, Regime, RoundRange
from fltheory.verify import Outcome, Sampling, Verdict, truth

ETA = symbol("eta", "step size", number="client_lr", positive=True)


@dataclass(frozen=True, kw_only=True)
class NeverRises(Basis):
    """A claim that a quantity is, after every round, at most what it was before."""

    why_not_certified: ClassVar[str] = "a course is not one number"

    quantity: BoundedQuantity
    kind: StatementKind = StatementKind.REMARK

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        return (Assertion("largest factor of a round", "", Relation.AT_MOST, sp.Integer(1)),)

    def verdict(self, setting: Any, sampling: Sampling) -> Verdict:
        run = truth(setting, (), sampling)
        course = run.trajectory[self.quantity.field]
        factor = float((course[1:] / course[:-1]).max())
        checks = tuple(
            check_point_hypothesis(one, self.constants(setting)) for one in self.hypotheses
        )
        met = all(check.holds for check in checks)
        found = Outcome.HOLDS if factor <= 1 else Outcome.REFUTED
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=found if met else Outcome.INAPPLICABLE,
            evidence=run.evidence(np.finfo(np.float64).eps),
            truth=factor,
            bound=1.0,
            hypotheses=checks,
        )


def descent(step: float) -> Setting:
    problem = QuadraticProblem([[1.0]], [[0.0]])
    return Setting(FedAvg(step, 1), problem, UniformSubset(1, 1), 5, [1.0])


STATEMENTS = (
    NeverRises(
        id="own/never-rises",
        reading="printed",
        title="Gradient descent never moves away",
        source="a textbook, without its condition",
        quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "||x||^2", ""),
        hypotheses=(Hypothesis("a step", sp.Lt(ETA, 4), "textbook"),),
        regimes={
            "small": Regime("contracts by 1/2", lambda: descent(0.5)),
            "large": Regime("|1 - 3| = 2, so distances grow by 4", lambda: descent(3.0)),
            "too large": Regime("no step of the claim", lambda: descent(5.0)),
        },
    ),
)
