"""Cells made by hand."""

from __future__ import annotations

from fltheory.evidence.verdict import Evidence, Grade, HypothesisCheck
from fltheory.grammar.assertion import Relation
from fltheory.verify import Outcome, Verdict
from fltheory.verify.runs import Cell


def cell(
    outcome: Outcome = Outcome.HOLDS,
    *,
    truth: float = 1.0,
    bound: float = 2.0,
    regime: str = "calm",
    grade: Grade = Grade.EXACT,
    error: float = 1e-12,
    hypotheses: tuple[HypothesisCheck, ...] = (),
    relation: Relation = Relation.AT_MOST,
    theorem: str = "t/1",
    reading: str = "printed",
) -> Cell:
    evidence = Evidence(grade, error)
    return Cell(
        regime,
        Verdict(theorem, reading, outcome, evidence, truth, bound, hypotheses, relation=relation),
    )


FAILING = HypothesisCheck("small step", "s <= 1", "Theorem 1", False, -0.25, at_round=3)
