"""CA-Fed's optimal aggregation weights: the bound's minimiser, exactly and fast."""

from fltheory.weights.optimum import (
    optimal,
    optimal_for_convergence,
    optimal_in_total_variation,
    solve,
)
from fltheory.weights.problem_file import read_trade_off
from fltheory.weights.result import OptimalWeights
from fltheory.weights.setting_trade_off import for_setting
from fltheory.weights.trade_off import TradeOff

__all__ = [
    "OptimalWeights",
    "TradeOff",
    "for_setting",
    "optimal",
    "optimal_for_convergence",
    "optimal_in_total_variation",
    "read_trade_off",
    "solve",
]
