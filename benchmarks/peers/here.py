"""The package itself on what all peers have: exact, sampled, and torch for the digits."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import torch
from serving import Case, instances, serve
from torch import nn

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import Setting, exact, monte_carlo
from fltheory.engines.simulation import simulate
from fltheory.hardware import TorchClients
from fltheory.participation import Trace, UniformSubset
from fltheory.problems import QuadraticProblem

REPLICAS, STEPPED_REPLICAS = 2048, 256


def setting(of: dict[str, Any], algorithm: FedAvg | Safari) -> Setting:
    problem = QuadraticProblem(of["hessians"], of["optima"], sigma=of["sigma"])
    participation = UniformSubset(problem.n_clients, of["participants"])
    return Setting(algorithm, problem, participation, rounds=of["rounds"], x0=of["x0"])


def sampled(known: Setting, replicas: int, *, step_by_step: bool) -> Case:
    seeds = iter(range(10**6))

    def run() -> dict[str, Any]:
        found = monte_carlo(known, replicas, next(seeds), step_by_step=step_by_step)
        assert found.standard_error is not None
        return {
            "mean": found.squared_distance[1:],
            "error": found.standard_error.squared_distance[1:],
            "replicas": replicas,
        }

    return run


def expected(known: Setting) -> Case:
    def run() -> dict[str, Any]:
        # Results of a setting are not kept: every call computes them.
        return {"mean": exact(known).squared_distance[1:]}

    return run


def digits(of: dict[str, Any]) -> Case:
    """Return a run of softmax regression in torch, float64."""
    images, labels = torch.tensor(of["images"]), torch.tensor(of["labels"])
    parts = [np.flatnonzero(of["owner"] == client) for client in range(len(of["sizes"]))]
    module = nn.Linear(images.shape[1], int(of["classes"]), dtype=torch.float64)
    clients = TorchClients(module, images, labels, parts)
    algorithm = FedAvg(of["digits_lr"], of["local_steps"])

    def run() -> dict[str, Any]:
        states = simulate(
            algorithm,
            clients,
            Trace(of["trace"], start=0),
            torch.zeros(1, sum(part.numel() for part in module.parameters()), dtype=torch.float64),
            participation_rng=np.random.default_rng(0),
            branch_rng=np.random.default_rng(0),
            masks_to_backend=torch.from_numpy,
        )
        state, _ = next(islice(states, len(of["trace"]), None))
        return {"model": state["x"][0].numpy(), "replicas": 1}

    return run


if __name__ == "__main__":
    of = instances()
    fedavg = setting(of, FedAvg(of["lr"], of["local_steps"]))
    safari = setting(of, Safari(of["q"], of["lr"], of["assist_lr"], of["local_steps"]))
    cases = {"digits": digits(of)}
    for name, known in (("fedavg", fedavg), ("safari", safari)):
        cases[name] = sampled(known, REPLICAS, step_by_step=False)
        cases[f"{name} stepped"] = sampled(known, STEPPED_REPLICAS, step_by_step=True)
        cases[f"{name} exact"] = expected(known)
    serve(cases, "fltheory", "numpy", "torch")
