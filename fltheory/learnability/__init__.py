"""PAC learnability of federated learning: impossibility, and the benefit of a server's data."""

from fltheory.learnability.impossibility import impossibility
from fltheory.learnability.populations import Source
from fltheory.learnability.system import FederatedSystem

__all__ = ["FederatedSystem", "Source", "impossibility"]
