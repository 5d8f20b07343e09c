"""Who shows up: random processes that say which clients take part in a round."""

from fltheory.participation.base import MarkovParticipation, Participation, Stateful
from fltheory.participation.chain_structure import Mixing
from fltheory.participation.count_chain import count_chain
from fltheory.participation.finite_chain import FiniteChain
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.participation.trace import Trace
from fltheory.participation.uniform_subset import UniformSubset

__all__ = [
    "FiniteChain",
    "MarkovOnOff",
    "MarkovParticipation",
    "Mixing",
    "Participation",
    "Stateful",
    "Trace",
    "UniformSubset",
    "count_chain",
]
