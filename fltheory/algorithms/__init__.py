"""Federated algorithms: the papers' pseudo-code, written once for every backend."""

from fltheory.algorithms.averaged_iterate import AveragedIterate
from fltheory.algorithms.cluster_fedvarp import ClusterFedVarp
from fltheory.algorithms.contract import Algorithm, Clients, Schedule, State
from fltheory.algorithms.fedar import FedAR
from fltheory.algorithms.fedau import FedAU
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.fedavg_is import FedAvgIS
from fltheory.algorithms.fedvarp import FedVarp
from fltheory.algorithms.inactivity_weights import CappedLinear, InactivityWeight
from fltheory.algorithms.mifa import Mifa
from fltheory.algorithms.safari import Safari
from fltheory.algorithms.scaffold import Scaffold
from fltheory.algorithms.scheduled import Scheduled
from fltheory.algorithms.step_sizes import Constant, Harmonic, StepSizes
from fltheory.algorithms.weighted_fedavg import WeightedFedAvg

__all__ = [
    "Algorithm",
    "AveragedIterate",
    "CappedLinear",
    "Clients",
    "ClusterFedVarp",
    "Constant",
    "FedAR",
    "FedAU",
    "FedAvg",
    "FedAvgIS",
    "FedVarp",
    "Harmonic",
    "InactivityWeight",
    "Mifa",
    "Safari",
    "Scaffold",
    "Schedule",
    "Scheduled",
    "State",
    "StepSizes",
    "WeightedFedAvg",
]
