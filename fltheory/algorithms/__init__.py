"""Federated algorithms: the papers' pseudo-code, written once for every backend."""

from fltheory.algorithms.adafed import AdaFed
from fltheory.algorithms.averaged_iterate import AveragedIterate
from fltheory.algorithms.ca_fed import CAFed
from fltheory.algorithms.cluster_fedvarp import ClusterFedVarp
from fltheory.algorithms.f3ast import F3ast
from fltheory.algorithms.fedar import FedAR
from fltheory.algorithms.fedau import FedAU
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.fedavg_is import FedAvgIS
from fltheory.algorithms.fednova import FedNova
from fltheory.algorithms.fedprox import FedProx
from fltheory.algorithms.fedvarp import FedVarp
from fltheory.algorithms.inactivity_weights import CappedLinear
from fltheory.algorithms.local_sgd import LocalSgd
from fltheory.algorithms.mifa import Mifa
from fltheory.algorithms.projected import Projected
from fltheory.algorithms.safari import Safari
from fltheory.algorithms.scaffold import Scaffold
from fltheory.algorithms.scheduled import Scheduled
from fltheory.algorithms.server_momentum import ServerMomentum
from fltheory.algorithms.step_sizes import Constant, Harmonic
from fltheory.algorithms.unbiased import Unbiased
from fltheory.algorithms.warm_started import WarmStarted
from fltheory.algorithms.weighted_fedavg import WeightedFedAvg

__all__ = [
    "AdaFed",
    "AveragedIterate",
    "CAFed",
    "CappedLinear",
    "ClusterFedVarp",
    "Constant",
    "F3ast",
    "FedAR",
    "FedAU",
    "FedAvg",
    "FedAvgIS",
    "FedNova",
    "FedProx",
    "FedVarp",
    "Harmonic",
    "LocalSgd",
    "Mifa",
    "Projected",
    "Safari",
    "Scaffold",
    "Scheduled",
    "ServerMomentum",
    "Unbiased",
    "WarmStarted",
    "WeightedFedAvg",
]
