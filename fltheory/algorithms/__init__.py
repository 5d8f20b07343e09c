"""Federated algorithms: the papers' pseudo-code, written once for every backend."""

from fltheory.algorithms.contract import Algorithm, Clients, State
from fltheory.algorithms.fedau import FedAU
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.safari import Safari

__all__ = ["Algorithm", "Clients", "FedAU", "FedAvg", "Safari", "State"]
