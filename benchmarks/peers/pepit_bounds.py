"""Worst rounds of FedAvg by PEPit: every client is a function, so the program grows with N."""

from __future__ import annotations

import time
from typing import Any

from PEPit import PEP
from PEPit.functions import SmoothStronglyConvexFunction
from serving import Case, instances, serve


def fedavg(of: dict[str, Any], n_clients: int, *, several: bool) -> Case:
    """Return the largest distance after one step of all, or what the round adds at a rate."""
    participants = max(n_clients // 2, 1) if several else n_clients
    steps = of["bound_steps"] if several else 1
    alone = participants / n_clients
    together = alone * (participants - 1) / max(n_clients - 1, 1)

    def run() -> dict[str, Any]:
        problem = PEP()
        given = {"mu": of["bound_mu"], "L": 1.0}
        clients = [
            problem.declare_function(SmoothStronglyConvexFunction, **given)
            for _ in range(n_clients)
        ]
        mean = sum(clients[1:], clients[0]) / n_clients
        x_star, x = mean.stationary_point(), problem.set_initial_point()
        updates = []
        for client in clients:
            y = x
            for _ in range(steps):
                y = y - of["bound_lr"] * client.gradient(y)
            updates.append(y - x)
        total = sum(updates[1:], updates[0])
        # E||x+ - x*||^2 over all sets of so many participants.
        after = (x - x_star) ** 2 + 2 * alone / participants * (x - x_star) * total
        squares = sum((update**2 for update in updates[1:]), updates[0] ** 2)
        after += ((alone - together) * squares + together * total**2) / participants**2
        if several:
            optima = [client.gradient(x_star) ** 2 for client in clients]
            problem.add_constraint(sum(optima[1:], optima[0]) / n_clients <= 1)
            problem.set_performance_metric(after - of["bound_rate"] * (x - x_star) ** 2)
        else:
            problem.set_initial_condition((x - x_star) ** 2 <= 1)
            problem.set_performance_metric(after)
        start = time.perf_counter()
        value = problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)
        conditions = sum(len(one.list_of_class_constraints) for one in clients)
        rows = problem.wrapper.G.shape[0]
        solved = time.perf_counter() - start
        return {"value": value, "solving": solved, "rows": rows, "conditions": conditions}

    return run


if __name__ == "__main__":
    of = instances()
    cases = {}
    for n_clients in of["bound_sizes"].astype(int).tolist():
        cases[f"one step {n_clients}"] = fedavg(of, n_clients, several=False)
        cases[f"several {n_clients}"] = fedavg(of, n_clients, several=True)
    serve(cases, "PEPit", "cvxpy", "clarabel")
