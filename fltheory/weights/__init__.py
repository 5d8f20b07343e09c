"""CA-Fed's optimal aggregation weights: the bound's minimiser, exactly and fast."""

from fltheory.weights.client_weights import for_clients
from fltheory.weights.deployment import Training
from fltheory.weights.optimum import (
    optimal,
    optimal_for_convergence,
    optimal_in_total_variation,
    solve,
)
from fltheory.weights.setting_trade_off import for_setting
from fltheory.weights.sizes_file import read_sizes

__all__ = [
    "Training",
    "for_clients",
    "for_setting",
    "optimal",
    "optimal_for_convergence",
    "optimal_in_total_variation",
    "read_sizes",
    "solve",
]
