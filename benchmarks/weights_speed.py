"""Optimal aggregation weights: the O(N) method, and Clarabel through cvxpy."""

from __future__ import annotations

import numpy as np
from measure import in_fresh_processes, report

from fltheory.weights.optimum import Choice, solve
from fltheory.weights.trade_off import TradeOff

MANY, MOST = 10_000, 1_000_000
SOLVES = 20


def problem(n_clients: int) -> TradeOff:
    rng = np.random.default_rng(0)
    availability = rng.uniform(0.05, 1, n_clients)
    target_weights = rng.dirichlet(np.full(n_clients, 5.0))
    return TradeOff(availability, target_weights, a=2 * n_clients * availability, b=0.5, bias=0.01)


def run(n_clients: int, method: Choice, solves: int = 1) -> None:
    for _ in range(solves):
        solve(problem(n_clients), method)


CASES = {
    "newton, many": lambda: run(MANY, "newton", SOLVES),
    "cvxpy, many": lambda: run(MANY, "cvxpy"),
    "newton, most": lambda: run(MOST, "newton"),
}

if __name__ == "__main__":
    results = in_fresh_processes(__file__, CASES)
    fast = results["newton, many"]["seconds"] / SOLVES
    conic = results["cvxpy, many"]["seconds"]
    most = results["newton, most"]
    residuals = {size: solve(problem(size)).kkt_residual for size in (MANY, MOST)}
    rows = [
        (f"{MANY:,} clients, Newton", f"{1000 * fast:.1f} ms", f"{1000 * conic / 50:.1f} ms"),
        (f"{MANY:,} clients, Clarabel", f"{1000 * conic:.0f} ms", "50 times as long"),
        (f"{MOST:,} clients, Newton", f"{most['seconds']:.2f} s", "under 2 s"),
        (f"{MOST:,} clients, peak memory", f"{most['megabytes']:.0f} MB", "under 1,000 MB"),
    ]
    rows += [
        (f"{size:,} clients, KKT residual", f"{residual:.0e}", "under 1e-9")
        for size, residual in residuals.items()
    ]
    report("Optimal weights, each from its arguments", rows)
