"""PAC learnability of federated learning: what is impossible, and what a server's data revives."""

from fltheory.learnability.arrays import disagreement_at, excess_at
from fltheory.learnability.challenge import Challenge, challenge
from fltheory.learnability.clients import alike_clients, drawn_clients, split_clients
from fltheory.learnability.complexity import cited_complexity, printed_complexity
from fltheory.learnability.erm_sample import ErmSample, sample_erm
from fltheory.learnability.grid_law import GridLaw
from fltheory.learnability.impossibility import Impossibility, error_floor, impossibility
from fltheory.learnability.marginal import Marginal, uniform
from fltheory.learnability.noiseless import NoiselessLaw
from fltheory.learnability.noiseless_sample import sample_noiseless
from fltheory.learnability.population import Population, Source, as_population, mixture
from fltheory.learnability.relation import (
    AlphaBounds,
    Relation,
    alpha_bounds,
    bernstein_constant,
    relate,
)
from fltheory.learnability.server_assisted import ServerAssisted, sample_server_assisted
from fltheory.learnability.system import (
    DisagreementCase,
    FederatedSystem,
    LearningSetting,
    ServerAssistedSystem,
    TailCase,
    UniformPair,
)

__all__ = [
    "AlphaBounds",
    "Challenge",
    "DisagreementCase",
    "ErmSample",
    "FederatedSystem",
    "GridLaw",
    "Impossibility",
    "LearningSetting",
    "Marginal",
    "NoiselessLaw",
    "Population",
    "Relation",
    "ServerAssisted",
    "ServerAssistedSystem",
    "Source",
    "TailCase",
    "UniformPair",
    "alike_clients",
    "alpha_bounds",
    "as_population",
    "bernstein_constant",
    "challenge",
    "cited_complexity",
    "disagreement_at",
    "drawn_clients",
    "error_floor",
    "excess_at",
    "impossibility",
    "mixture",
    "printed_complexity",
    "relate",
    "sample_erm",
    "sample_noiseless",
    "sample_server_assisted",
    "split_clients",
    "uniform",
]
