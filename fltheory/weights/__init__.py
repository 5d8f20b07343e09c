"""CA-Fed's optimal aggregation weights: the bound's minimiser, exactly and fast."""

from fltheory.weights.optimum import (
    optimal,
    optimal_for_convergence,
    optimal_in_total_variation,
    solve,
)
from fltheory.weights.setting_trade_off import for_setting

__all__ = [
    "for_setting",
    "optimal",
    "optimal_for_convergence",
    "optimal_in_total_variation",
    "solve",
]
