"""PAC learnability of federated learning: what is impossible, and how a server's data helps."""

from fltheory.learnability.impossibility import impossibility
from fltheory.learnability.populations import Source
from fltheory.learnability.system import FederatedSystem

__all__ = ["FederatedSystem", "Source", "impossibility"]
