"""The papers' statements as data: hypotheses, bounded quantity, bound, source."""

from fltheory.theorems.derivation import (
    Derivation,
    Equal,
    FiniteLimit,
    Implied,
    Step,
    StepOutcome,
    StepResult,
)
from fltheory.theorems.derivation_check import check_derivation, check_step
from fltheory.theorems.family import Family, Parameter
from fltheory.theorems.regime import Regime
from fltheory.theorems.registry import get, ids, load, readings, register, registered
from fltheory.theorems.repair import Mend, Repair
from fltheory.theorems.statement import (
    BoundedQuantity,
    Hypothesis,
    PointClaim,
    PointQuantity,
    RateAxis,
    RateClaim,
    RoundRange,
    RoundSymbol,
    Statement,
    Theorem,
)
from fltheory.theorems.statement_units import StatementFlag, unit_flags
from fltheory.theorems.units import Unit, UnitFlag, unit_of

__all__ = [
    "BoundedQuantity",
    "Derivation",
    "Equal",
    "Family",
    "FiniteLimit",
    "Hypothesis",
    "Implied",
    "Mend",
    "Parameter",
    "PointClaim",
    "PointQuantity",
    "RateAxis",
    "RateClaim",
    "Regime",
    "Repair",
    "RoundRange",
    "RoundSymbol",
    "Statement",
    "StatementFlag",
    "Step",
    "StepOutcome",
    "StepResult",
    "Theorem",
    "Unit",
    "UnitFlag",
    "check_derivation",
    "check_step",
    "get",
    "ids",
    "load",
    "readings",
    "register",
    "registered",
    "unit_flags",
    "unit_of",
]
