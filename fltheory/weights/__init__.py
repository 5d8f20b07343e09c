"""CA-Fed's optimal aggregation weights: the bound's minimiser, exactly and fast."""

from fltheory.weights.optimum import (
    optimal,
    optimal_for_convergence,
    optimal_in_total_variation,
)
from fltheory.weights.result import OptimalWeights

__all__ = [
    "OptimalWeights",
    "optimal",
    "optimal_for_convergence",
    "optimal_in_total_variation",
]
