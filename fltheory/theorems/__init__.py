"""The papers' statements as data: hypotheses, bounded quantity, bound, source."""

from fltheory.theorems.regime import Regime
from fltheory.theorems.registry import get, ids, readings, registered
from fltheory.theorems.repair import Mend, Repair
from fltheory.theorems.statement import (
    BoundedQuantity,
    Hypothesis,
    RateAxis,
    RateClaim,
    RoundRange,
    RoundSymbol,
    Statement,
    Theorem,
)

__all__ = [
    "BoundedQuantity",
    "Hypothesis",
    "Mend",
    "RateAxis",
    "RateClaim",
    "Regime",
    "Repair",
    "RoundRange",
    "RoundSymbol",
    "Statement",
    "Theorem",
    "get",
    "ids",
    "readings",
    "registered",
]
