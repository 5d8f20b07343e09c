"""How the truth is obtained: exactly where a round is affine, sampled elsewhere."""

from fltheory.engines.conditional_moments import conditional
from fltheory.engines.dependent_weight_error import (
    cyclic_weights,
    mean_weight,
    recorded_weights,
    weight_error_under,
)
from fltheory.engines.enumeration import enumerated
from fltheory.engines.limits import stationary
from fltheory.engines.moment_recursion import exact
from fltheory.engines.monte_carlo_runs import monte_carlo
from fltheory.engines.observables import (
    BiasedExcessLoss,
    Observable,
    ParticipantExcessLoss,
    ParticipantGradientSum,
    QuadraticForm,
)
from fltheory.engines.path_moments import along_path
from fltheory.engines.probe import DependentRoundsError, NotAffineError
from fltheory.engines.sampled_weights import sampled_weight_errors
from fltheory.engines.setting import Setting
from fltheory.engines.stationary_limit import StationaryLimit
from fltheory.engines.trajectory import RoundArrays, Trajectory
from fltheory.engines.weight_error import WeightError, rational_weight_error, weight_error

__all__ = [
    "BiasedExcessLoss",
    "DependentRoundsError",
    "NotAffineError",
    "Observable",
    "ParticipantExcessLoss",
    "ParticipantGradientSum",
    "QuadraticForm",
    "RoundArrays",
    "Setting",
    "StationaryLimit",
    "Trajectory",
    "WeightError",
    "along_path",
    "conditional",
    "cyclic_weights",
    "enumerated",
    "exact",
    "mean_weight",
    "monte_carlo",
    "rational_weight_error",
    "recorded_weights",
    "sampled_weight_errors",
    "stationary",
    "weight_error",
    "weight_error_under",
]
