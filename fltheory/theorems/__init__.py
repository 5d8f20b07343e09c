"""The papers' statements as data: hypotheses, bounded quantity, bound, source."""

from fltheory.theorems.regime import Regime
from fltheory.theorems.registry import get, ids, readings, registered
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
    "RateAxis",
    "RateClaim",
    "Regime",
    "RoundRange",
    "RoundSymbol",
    "Statement",
    "Theorem",
    "get",
    "ids",
    "readings",
    "registered",
]
