"""Monte Carlo on quadratics: d = 20, K = 10, m = 10 of N = 50, FedAvg."""

from __future__ import annotations

import numpy as np
from cases import clients
from measure import in_fresh_processes, report

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, monte_carlo
from fltheory.participation import UniformSubset

PARTICIPANTS, REPLICAS, ROUNDS = 10, 1000, 500
MANY_REPLICAS, FEW_ROUNDS = 50_000, 10


def run(*, shared: bool, replicas: int = REPLICAS, rounds: int = ROUNDS) -> None:
    monte_carlo(
        Setting(
            FedAvg(0.05, 10),
            clients(50, 20, shared=shared),
            UniformSubset(50, PARTICIPANTS),
            rounds=rounds,
            x0=np.ones(20),
        ),
        replicas=replicas,
        seed=0,
    )


CASES = {
    "one shared Hessian": lambda: run(shared=True),
    "one Hessian per client": lambda: run(shared=False),
    "many replicas": lambda: run(shared=False, replicas=MANY_REPLICAS, rounds=FEW_ROUNDS),
}
TARGETS = {"one shared Hessian": 10, "one Hessian per client": 2}

if __name__ == "__main__":
    results = in_fresh_processes(__file__, CASES)
    client_rounds = PARTICIPANTS * REPLICAS * ROUNDS / 1e6
    rows = [
        (name, f"{client_rounds / results[name]['seconds']:.1f} million/s", f"{target} million/s")
        for name, target in TARGETS.items()
    ]
    few = results["one Hessian per client"]["megabytes"]
    rows.append((f"peak memory, {REPLICAS:,} replicas", f"{few:.0f} MB", "bounded"))
    many = results["many replicas"]["megabytes"]
    rows.append((f"peak memory, {MANY_REPLICAS:,} replicas", f"{many:.0f} MB", "bounded"))
    report("Monte Carlo, client-rounds per second", rows)
