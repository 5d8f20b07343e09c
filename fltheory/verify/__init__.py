"""Verdicts: is a statement true on a setting, and on what evidence."""

from fltheory.engines.setting import Setting
from fltheory.verify.baseline import departure, read_baseline, verdict_changed, write_baseline
from fltheory.verify.bound_curve import BoundCurve
from fltheory.verify.bound_curves import cases_curve, quantity_curve, rounds_curve, sweep_curve
from fltheory.verify.certificate import (
    Certified,
    certificate,
    read_certificate,
    write_certificate,
)
from fltheory.verify.certificate_checker import CertificateError
from fltheory.verify.check import check
from fltheory.verify.falsification import Falsification, falsify
from fltheory.verify.family_search import FamilySearch, FamilyWitness
from fltheory.verify.map_parameters import MapAxis, default_axis, varied
from fltheory.verify.mapping import RegionMap, map_region
from fltheory.verify.mutants import Mutant, mutants
from fltheory.verify.order_curves import order_curve
from fltheory.verify.power import Judged, Plan, judge_all
from fltheory.verify.rate_falsification import RateFalsification, falsify_rate
from fltheory.verify.runs import Cell, check_regimes
from fltheory.verify.setting_search import FoundSetting
from fltheory.verify.survival import Survival, survival
from fltheory.verify.verdict import Evidence, Grade, HypothesisCheck, Outcome, Verdict
from fltheory.verify.witness import Witness

__all__ = [
    "BoundCurve",
    "Cell",
    "CertificateError",
    "Certified",
    "Evidence",
    "Falsification",
    "FamilySearch",
    "FamilyWitness",
    "FoundSetting",
    "Grade",
    "HypothesisCheck",
    "Judged",
    "MapAxis",
    "Mutant",
    "Outcome",
    "Plan",
    "RateFalsification",
    "RegionMap",
    "Setting",
    "Survival",
    "Verdict",
    "Witness",
    "cases_curve",
    "certificate",
    "check",
    "check_regimes",
    "default_axis",
    "departure",
    "falsify",
    "falsify_rate",
    "judge_all",
    "map_region",
    "mutants",
    "order_curve",
    "quantity_curve",
    "read_baseline",
    "read_certificate",
    "rounds_curve",
    "survival",
    "sweep_curve",
    "varied",
    "verdict_changed",
    "write_baseline",
    "write_certificate",
]
