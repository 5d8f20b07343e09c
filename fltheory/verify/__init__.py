"""Verdicts: is a statement true on a setting, and on what evidence."""

from fltheory.engines.setting import Setting
from fltheory.verify.baseline import departure, read_baseline, verdict_changed, write_baseline
from fltheory.verify.check import check
from fltheory.verify.runs import Cell, check_regimes
from fltheory.verify.verdict import Evidence, Grade, HypothesisCheck, Outcome, Verdict

__all__ = [
    "Cell",
    "Evidence",
    "Grade",
    "HypothesisCheck",
    "Outcome",
    "Setting",
    "Verdict",
    "check",
    "check_regimes",
    "departure",
    "read_baseline",
    "verdict_changed",
    "write_baseline",
]
