"""CA-Fed's optimal aggregation weights: the minimiser of its bound, computed fast and exactly."""

from fltheory.weights.client_weights import Training, for_clients
from fltheory.weights.optimum import optimal
from fltheory.weights.trade_off import for_setting

__all__ = [
    "Training",
    "for_clients",
    "for_setting",
    "optimal",
]
