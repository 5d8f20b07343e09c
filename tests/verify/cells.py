"""Cells made by hand."""

from __future__ import annotations

from fltheory.verify import Cell, Evidence, Grade, HypothesisCheck, Outcome, Verdict


def cell(
    outcome: Outcome = Outcome.HOLDS,
    *,
    truth: float = 1.0,
    bound: float = 2.0,
    regime: str = "calm",
    grade: Grade = Grade.EXACT,
    error: float = 1e-12,
    hypotheses: tuple[HypothesisCheck, ...] = (),
    is_rate: bool = False,
    theorem: str = "t/1",
    reading: str = "printed",
) -> Cell:
    evidence = Evidence(grade, error)
    return Cell(
        regime,
        Verdict(theorem, reading, outcome, evidence, truth, bound, hypotheses, is_rate),
    )


FAILING = HypothesisCheck("small step", "s <= 1", "Theorem 1", False, -0.25, at_round=3)
