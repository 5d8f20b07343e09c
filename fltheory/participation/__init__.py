"""Who shows up: random processes that say which clients take part in a round."""

from fltheory.participation.at_most import AtMost
from fltheory.participation.base import MarkovParticipation, Participation, Stateful
from fltheory.participation.bernoulli import Bernoulli, correlated_availability
from fltheory.participation.chain_structure import Mixing
from fltheory.participation.count_chain import count_chain
from fltheory.participation.cyclic import Cyclic, fedau_cycles
from fltheory.participation.finite_chain import FiniteChain
from fltheory.participation.markov_on_off import MarkovOnOff, fedau_chains
from fltheory.participation.trace import Trace
from fltheory.participation.uniform_subset import UniformSubset
from fltheory.participation.waiting_subset import WaitingSubset

__all__ = [
    "AtMost",
    "Bernoulli",
    "Cyclic",
    "FiniteChain",
    "MarkovOnOff",
    "MarkovParticipation",
    "Mixing",
    "Participation",
    "Stateful",
    "Trace",
    "UniformSubset",
    "WaitingSubset",
    "correlated_availability",
    "count_chain",
    "fedau_chains",
    "fedau_cycles",
]
