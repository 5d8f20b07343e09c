"""Federated algorithms: the papers' pseudo-code, written once for every backend."""

from fltheory.algorithms.adafed import AdaFed
from fltheory.algorithms.ca_fed import CAFed
from fltheory.algorithms.cluster_fedvarp import ClusterFedVarp
from fltheory.algorithms.f3ast import F3ast
from fltheory.algorithms.fedar import FedAR
from fltheory.algorithms.fedau import FedAU
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.fedavg_is import FedAvgIS
from fltheory.algorithms.fedawe import FedAWE
from fltheory.algorithms.fednova import FedNova
from fltheory.algorithms.fedprox import FedProx
from fltheory.algorithms.fedvarp import FedVarp
from fltheory.algorithms.local_sgd import LocalSgd
from fltheory.algorithms.mifa import Mifa
from fltheory.algorithms.proxskip import ProxSkip
from fltheory.algorithms.safari import Safari
from fltheory.algorithms.scaffold import Scaffold
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.algorithms.shared.step_sizes import Constant, Harmonic
from fltheory.algorithms.unbiased import Unbiased
from fltheory.algorithms.weighted_fedavg import WeightedFedAvg
from fltheory.algorithms.wrapped import (
    AveragedIterate,
    Projected,
    Scheduled,
    ServerMomentum,
    WarmStarted,
)

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
    "FedAWE",
    "FedAvg",
    "FedAvgIS",
    "FedNova",
    "FedProx",
    "FedVarp",
    "Harmonic",
    "LocalSgd",
    "Mifa",
    "Projected",
    "ProxSkip",
    "Safari",
    "Scaffold",
    "Scheduled",
    "ServerMomentum",
    "Unbiased",
    "WarmStarted",
    "WeightedFedAvg",
]
