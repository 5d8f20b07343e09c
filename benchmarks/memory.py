"""Algorithms with memory: exact moments by enumeration and by structure, and Monte Carlo."""

from __future__ import annotations

from functools import partial

import numpy as np
from cases import clients
from measure import in_fresh_processes, report

from fltheory.algorithms import FedVarp, Scaffold
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.participation import Bernoulli, Participation, UniformSubset

ALGORITHMS = {"SCAFFOLD": Scaffold(0.05, 3), "FedVARP": FedVarp(0.05, 3)}
MANY = {
    "10 of 50": UniformSubset(50, 10),
    "50 independent": Bernoulli(np.linspace(0.1, 0.9, 50)),
}
PARTICIPANTS, REPLICAS, ROUNDS = 10, 1000, 200


def enumerated(algorithm: Algorithm) -> None:
    exact(Setting(algorithm, clients(8, 4, shared=False), UniformSubset(8, 3), 500, np.ones(4)))


def structured(algorithm: Algorithm, participation: Participation) -> None:
    exact(Setting(algorithm, clients(50, 5, shared=False), participation, 200, np.ones(5)))


def sampled(algorithm: Algorithm) -> None:
    monte_carlo(
        Setting(
            algorithm,
            clients(50, 20, shared=False),
            UniformSubset(50, PARTICIPANTS),
            rounds=ROUNDS,
            x0=np.ones(20),
        ),
        replicas=REPLICAS,
        seed=0,
    )


def label(name: str, what: str) -> str:
    return f"{name}, {what}"


FEW = "3 of 8, d = 4, 500 rounds"
CASES = {
    **{label(name, FEW): partial(enumerated, alg) for name, alg in ALGORITHMS.items()},
    **{
        label(name, f"{who}, d = 5, 200 rounds"): partial(structured, alg, participation)
        for name, alg in ALGORITHMS.items()
        for who, participation in MANY.items()
    },
}
SAMPLED = {label(name, "sampled, d = 20"): partial(sampled, a) for name, a in ALGORITHMS.items()}

if __name__ == "__main__":
    results = in_fresh_processes(__file__, CASES | SAMPLED)
    rows = [
        (
            name,
            f"{results[name]['seconds']:.2f} s, {results[name]['megabytes']:.0f} MB",
            "under 30 s" if FEW in name else "under 60 s",
        )
        for name in CASES
    ]
    million = PARTICIPANTS * REPLICAS * ROUNDS / 1e6
    rows += [
        (name, f"{million / results[name]['seconds']:.2f} million/s", "0.3 million client-rounds/s")
        for name in SAMPLED
    ]
    report("Algorithms with memory, with everything they import", rows)
