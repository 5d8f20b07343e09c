"""Federated algorithms: the papers' pseudo-code, written once for every backend."""

from fltheory.algorithms.averaged_iterate import AveragedIterate
from fltheory.algorithms.contract import Algorithm, Clients, Schedule, State
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.projected import Projected
from fltheory.algorithms.safari import Safari
from fltheory.algorithms.scheduled import Scheduled
from fltheory.algorithms.step_sizes import Constant, Harmonic, StepSizes
from fltheory.algorithms.weighted_fedavg import WeightedFedAvg

__all__ = [
    "Algorithm",
    "AveragedIterate",
    "Clients",
    "Constant",
    "FedAvg",
    "Harmonic",
    "Projected",
    "Safari",
    "Schedule",
    "Scheduled",
    "State",
    "StepSizes",
    "WeightedFedAvg",
]
