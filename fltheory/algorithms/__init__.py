"""Federated algorithms: the papers' pseudo-code, written once for every backend."""

from fltheory.algorithms.adafed import AdaFed
from fltheory.algorithms.ca_fed import CAFed
from fltheory.algorithms.contract import Algorithm, Clients, State
from fltheory.algorithms.f3ast import F3ast
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.safari import Safari
from fltheory.algorithms.server_momentum import ServerMomentum
from fltheory.algorithms.unbiased import Unbiased

__all__ = [
    "AdaFed",
    "Algorithm",
    "CAFed",
    "Clients",
    "F3ast",
    "FedAvg",
    "Safari",
    "ServerMomentum",
    "State",
    "Unbiased",
]
