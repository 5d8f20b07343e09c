"""Who shows up: random processes that say which clients take part in a round."""

from fltheory.participation.base import Participation
from fltheory.participation.independent_rounds.at_most import AtMost
from fltheory.participation.independent_rounds.bernoulli import Bernoulli
from fltheory.participation.independent_rounds.uniform_subset import UniformSubset
from fltheory.participation.with_memory.chains import FiniteChain
from fltheory.participation.with_memory.cyclic import Cyclic
from fltheory.participation.with_memory.markov_on_off import MarkovOnOff
from fltheory.participation.with_memory.trace import Trace
from fltheory.participation.with_memory.waiting_subset import WaitingSubset

__all__ = [
    "AtMost",
    "Bernoulli",
    "Cyclic",
    "FiniteChain",
    "MarkovOnOff",
    "Participation",
    "Trace",
    "UniformSubset",
    "WaitingSubset",
]
