"""Verdicts: whether a statement is true on a setting, and on what evidence that rests."""

from fltheory.evidence.truths import Sampling, truth
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.verify.certificates.certificate import certificate, read_certificate
from fltheory.verify.check import check, curve
from fltheory.verify.comparison import compare
from fltheory.verify.region_map import MapAxis, map_region
from fltheory.verify.runs import check_regimes
from fltheory.verify.search.falsification import falsify

__all__ = [
    "MapAxis",
    "Outcome",
    "Sampling",
    "Verdict",
    "certificate",
    "check",
    "check_regimes",
    "compare",
    "curve",
    "falsify",
    "map_region",
    "read_certificate",
    "truth",
]
