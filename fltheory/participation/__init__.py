"""Participation: random processes that determine which clients take part in a round."""

from fltheory.participation.base import Participation
from fltheory.participation.bernoulli import Bernoulli, VaryingBernoulli
from fltheory.participation.chains import FiniteChain
from fltheory.participation.cyclic import Cyclic
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.participation.subsets_of_available import AtMost, WaitingSubset
from fltheory.participation.trace import Trace
from fltheory.participation.uniform_subset import UniformSubset
from fltheory.participation.with_replacement import WithReplacement

__all__ = [
    "AtMost",
    "Bernoulli",
    "Cyclic",
    "FiniteChain",
    "MarkovOnOff",
    "Participation",
    "Trace",
    "UniformSubset",
    "VaryingBernoulli",
    "WaitingSubset",
    "WithReplacement",
]
