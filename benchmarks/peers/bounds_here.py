"""The same worst rounds by `fltheory.worst_case.best_bound`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from serving import Case, instances, serve

from fltheory.algorithms import FedAvg
from fltheory.participation import UniformSubset
from fltheory.worst_case import ClientClass, best_bound
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import slack_of


def fedavg(of: dict[str, Any], n_clients: int, *, several: bool) -> Case:
    participants = max(n_clients // 2, 1) if several else n_clients
    algorithm = FedAvg(of["bound_lr"], of["bound_steps"] if several else 1)
    participation = UniformSubset(n_clients, participants)
    clients = ClientClass(1, of["bound_mu"])

    def run() -> dict[str, Any]:
        at = Fraction(str(of["bound_rate"])) if several else None
        found = best_bound(algorithm, participation, clients, rate=at)
        return {"value": found.residual if several else found.rate}

    slack = slack_of(OneRound.of(algorithm, participation), clients)
    rows = max(slack.sizes)

    def told() -> dict[str, Any]:
        return {**run(), "rows": rows, "conditions": len(slack.conditions)}

    return told


if __name__ == "__main__":
    of = instances()
    cases = {}
    for n_clients in [*of["bound_sizes"].astype(int).tolist(), 10**6]:
        cases[f"one step {n_clients}"] = fedavg(of, n_clients, several=False)
        cases[f"several {n_clients}"] = fedavg(of, n_clients, several=True)
    serve(cases, "fltheory", "cvxpy", "clarabel")
