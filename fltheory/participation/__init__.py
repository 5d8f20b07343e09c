"""Who shows up: random processes that say which clients take part in a round."""

from fltheory.participation.base import Participation
from fltheory.participation.uniform_subset import UniformSubset

__all__ = ["Participation", "UniformSubset"]
