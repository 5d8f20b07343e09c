"""Every algorithm of the papers' comparisons, and every participation process, on three clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from oracles import random_problem

from fltheory.algorithms import (
    AdaFed,
    AveragedIterate,
    CAFed,
    ClusterFedVarp,
    F3ast,
    FedAR,
    FedAU,
    FedAvg,
    FedAvgIS,
    FedNova,
    FedProx,
    FedVarp,
    Harmonic,
    LocalSgd,
    Mifa,
    Projected,
    ProxSkip,
    Safari,
    Scaffold,
    Scheduled,
    ServerMomentum,
    Unbiased,
    WarmStarted,
    WeightedFedAvg,
)
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.algorithms.table import ALGORITHMS as TABLE
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Participation,
    Trace,
    UniformSubset,
    VaryingBernoulli,
    WaitingSubset,
)
from fltheory.problems import Ball

ALPHA = (0.2, 0.3, 0.5)
P = (0.4, 0.6, 0.9)
X0 = np.array([1.5, -1.0])
PROBLEM = random_problem(6, 3, 2, sigma=0.7)

_EXAMPLES: Mapping[str, Algorithm | Schedule] = {
    "FedAvg": FedAvg(0.2, 2),
    "SAFARI": Safari(0.6, 0.2, 0.3, 2),
    "weighted FedAvg": WeightedFedAvg((0.5, 0.25, 0.4), 0.2, 2),
    "FedAvg-IS": FedAvgIS(P, 0.2, 2, server_lr=0.6),
    "Unbiased": Unbiased(ALPHA, P, 0.2, 2, server_lr=0.6),
    "AdaFed": AdaFed(ALPHA, P, 0.2, 2),
    "F3AST": F3ast(ALPHA, 2, 0.2, 2, smoothing=0.1),
    "F3AST, pi known": F3ast(ALPHA, 2, 0.2, 2, smoothing=0.1, availability=P),
    "CA-Fed": CAFed(ALPHA, 0.2, 2, server_lr=0.6),
    "FedAU": FedAU(0.2, 2, cutoff=3, server_lr=0.6),
    "MIFA, waiting": Mifa(0.2, 2),
    "MIFA from zero": Mifa(0.2, 2, start="zero"),
    "FedProx": FedProx(0.2, 2, 0.5, client_weights=(2.0, 0.0, 3.0), server_lr=0.8),
    "FedNova": FedNova(0.2, (3, 1, 2), client_weights=(2.0, 1.0, 3.0), server_lr=0.8),
    "FedVARP": FedVarp(0.2, 2, server_lr=0.8),
    "ClusterFedVARP": ClusterFedVarp((0, 1, 0), 0.2, 2),
    "SCAFFOLD I": Scaffold(0.2, 2, option=1),
    "SCAFFOLD II": Scaffold(0.2, 2, server_lr=1.2),
    "SCAFFOLD, warm": WarmStarted(Scaffold(0.2, 2, server_lr=1.2)),
    "FedAR": FedAR(0.2, 2, weight=CappedLinear(0.5, 1.75), cutoff=2),
    "momentum": ServerMomentum(FedAvg(0.2, 2), 0.5),
    "step sizes that fall": Scheduled(FedVarp(1.0, 2), Harmonic(0.5, offset=2.0)),
    "step by step": LocalSgd(Harmonic(0.5, offset=2.0), 2, ALPHA),
    "ProxSkip": ProxSkip(0.2, 0.4),
    "averaged": AveragedIterate(FedAvg(0.2, 2)),
    "projected": Projected(FedAvg(0.2, 2), Ball([0.0, 0.0], 1.2)),
}

# Circumstances in which rounds are exact in floats.
OF_FOUR_CLIENTS: Mapping[str, Any] = {
    "client_lr": 0.25,
    "assist_lr": 0.125,
    "local_steps": 2,
    "target_weights": np.array([0.125, 0.25, 0.125, 0.5]),
    "aggregation_weights": (0.125, 0.25, 0.125, 0.5),
    "availability": np.array([0.5, 0.25, 0.75, 0.5]),
    "correlation": np.zeros(4),
}

# Algorithms in the package's table that are not listed above are compared as well.
_CIRCUMSTANCES = {
    "client_lr": 0.2,
    "assist_lr": 0.3,
    "local_steps": 2,
    "target_weights": ALPHA,
    "aggregation_weights": ALPHA,
    "availability": P,
    "correlation": 0.6,
}
ALGORITHMS: Mapping[str, Algorithm | Schedule] = {
    **_EXAMPLES,
    **{
        listed.title: listed.tried(3, _CIRCUMSTANCES)
        for listed in TABLE.values()
        if listed.algorithm not in {type(example) for example in _EXAMPLES.values()}
    },
}

PROCESSES: Mapping[str, Participation] = {
    "uniform": UniformSubset(3, 2),
    "uniform, one excluded": UniformSubset(3, 1, excluded=(1,)),
    "Bernoulli": Bernoulli(P),
    "day and night": VaryingBernoulli([P, (0.0, 1.0, 0.5)]),
    "at most two": AtMost(P, 2),
    "waited for": WaitingSubset(P, 2),
    "on and off": MarkovOnOff(P, 0.6),
    "finite chain": FiniteChain(
        [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.5, 0.0, 0.5]],
        [[True, False, True], [False, True, False], [False, False, False]],
    ),
    "cyclic": Cyclic([2, 3, 4], [0, 1, 2], [1, 1, 3]),
    "trace": Trace([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]]),
}
