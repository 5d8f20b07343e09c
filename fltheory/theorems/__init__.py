"""The papers' statements as data: hypotheses, bounded quantity, bound and source."""

from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.direction import DirectionClaim
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.quantities import RoundSymbol as RoundSymbol
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.theorems.registry import get, load, registered

__all__ = [
    "BoundedQuantity",
    "DirectionClaim",
    "Family",
    "Hypothesis",
    "Parameter",
    "PointClaim",
    "PointQuantity",
    "RateAxis",
    "RateClaim",
    "Regime",
    "RoundRange",
    "Theorem",
    "get",
    "load",
    "registered",
    "symbol",
]
