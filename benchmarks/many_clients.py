"""Exact engine by the number of clients: time, peak memory, and the exponent of N.

One shared Hessian: d = 50, R = 1,000, one client in a hundred per round. One Hessian per client: N
= 10,000, d = 20, R = 100. Each case runs once in a process of its own, so `exact` is timed on a
problem with empty caches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from cases import clients
from measure import in_fresh_processes, measured_cold, report

from fltheory.algorithms import FedAvg, Safari
from fltheory.algorithms.contract import Algorithm
from fltheory.engines import Setting, exact
from fltheory.participation import Bernoulli, Participation, UniformSubset
from fltheory.problems import QuadraticProblem

NUMBERS = (10**3, 10**4, 10**5, 10**6)
FEDAVG, SAFARI = FedAvg(0.02, 5), Safari(0.6, 0.02, 0.1, 5)
TARGETS = {10**5: "under 5 s, 1 GB", 10**6: "under 60 s"}


def shared(n_clients: int) -> QuadraticProblem:
    rng = np.random.default_rng(0)
    optima = rng.standard_normal((n_clients, 50))
    return QuadraticProblem(np.diag(np.geomspace(1.0, 0.1, 50)), optima, sigma=1.0)


def prepared(
    algorithm: Algorithm,
    problem: Callable[[int], QuadraticProblem],
    who: Callable[[int], Participation],
    n_clients: int,
    rounds: int,
) -> Callable[[], object]:
    losses = problem(n_clients)
    setting = Setting(algorithm, losses, who(n_clients), rounds, np.ones(losses.dim))
    return lambda: exact(setting)


def sampled(n_clients: int) -> UniformSubset:
    return UniformSubset(n_clients, n_clients // 100)


def coins(n_clients: int) -> Bernoulli:
    return Bernoulli(np.tile([0.005, 0.01, 0.02, 0.05], n_clients // 4))


WAYS = {
    "FedAvg, uniform subsets": (FEDAVG, sampled),
    "SAFARI, uniform subsets": (SAFARI, sampled),
    "FedAvg, coins of four kinds": (FEDAVG, coins),
}
CASES = {
    f"{way}, N = {n:,}": partial(prepared, algorithm, shared, who, n, 1000)
    for way, (algorithm, who) in WAYS.items()
    for n in NUMBERS
}
OWN = "SAFARI, a Hessian per client, N = 10,000"
CASES[OWN] = partial(prepared, SAFARI, partial(clients, dim=20, shared=False), sampled, 10**4, 100)

if __name__ == "__main__":
    found = in_fresh_processes(__file__, CASES, measured_cold)
    rows = []
    for way in WAYS:
        for n in NUMBERS:
            name = f"{way}, N = {n:,}"
            figure = f"{found[name]['seconds']:.2f} s, {found[name]['megabytes']:,.0f} MB"
            rows.append((name, figure, TARGETS.get(n, "")))
        seconds = [found[f"{way}, N = {n:,}"]["seconds"] for n in NUMBERS]
        exponent = np.polyfit(np.log(NUMBERS), np.log(seconds), 1)[0]
        last = np.log10(seconds[-1] / seconds[-2])
        figure = f"{exponent:.2f}, {last:.2f} at the end"
        rows.append((f"{way}, exponent of N", figure, "at most 1.1"))
    own = found[OWN]
    rows.append((OWN, f"{own['seconds']:.2f} s, {own['megabytes']:,.0f} MB", "under 20 s, 2 GB"))
    report("Exact engine by the number of clients", rows)
