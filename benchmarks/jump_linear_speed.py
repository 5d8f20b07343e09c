"""Exact engine along a chain: FedAvg on 20 clients, 256 states, d = 10, R = 500."""

from __future__ import annotations

import numpy as np
from cases import clients
from measure import in_fresh_processes, report

from fltheory.algorithms import AveragedIterate, FedAvg, Harmonic, Scheduled, WeightedFedAvg
from fltheory.engines import Setting, exact, stationary
from fltheory.participation import FiniteChain, MarkovOnOff

N_STATES, N_CLIENTS, DIM, ROUNDS = 256, 20, 10, 500
ALGORITHM = FedAvg(0.1, 5)


def chain() -> FiniteChain:
    rng = np.random.default_rng(0)
    fresh = rng.dirichlet(np.ones(N_STATES), size=N_STATES)
    transition = 0.9 * np.eye(N_STATES) + 0.1 * fresh
    masks = rng.random((N_STATES, N_CLIENTS)) < 0.4
    return FiniteChain(transition / transition.sum(axis=1, keepdims=True), masks)


def own_hessians() -> None:
    exact(Setting(ALGORITHM, clients(N_CLIENTS, DIM, shared=False), chain(), ROUNDS, np.ones(DIM)))


def averaged_schedule() -> None:
    algorithm = AveragedIterate(Scheduled(ALGORITHM, Harmonic(1.0, 9.0)))
    exact(Setting(algorithm, clients(N_CLIENTS, DIM, shared=True), chain(), ROUNDS, np.ones(DIM)))


def product_of_chains() -> None:
    algorithm = WeightedFedAvg((0.1,) * 12, 0.1, 5)
    exact(
        Setting(
            algorithm,
            clients(12, DIM, shared=False),
            MarkovOnOff([0.5] * 12, 0.9),
            50,
            np.ones(DIM),
        )
    )


def limit() -> None:
    problem = clients(N_CLIENTS, DIM, shared=False)
    stationary(Setting(ALGORITHM, problem, chain(), 1, problem.x_star))


CASES = {
    "256 states, 500 rounds": own_hessians,
    "256 states, 500 rounds, steps change, averaged": averaged_schedule,
    "4,096 states of 12 on-off clients, 50 rounds": product_of_chains,
    "256 states, stationary limit": limit,
}
TARGETS = {"256 states, 500 rounds": "under 10 s"}

if __name__ == "__main__":
    rows = [
        (
            name,
            f"{result['seconds']:.2f} s, {result['megabytes']:.0f} MB",
            TARGETS.get(name, "none"),
        )
        for name, result in in_fresh_processes(__file__, CASES).items()
    ]
    report("Exact engine along a chain, with everything it imports", rows)
