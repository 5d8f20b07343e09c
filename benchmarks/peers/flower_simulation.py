"""FedAvg and SAFARI in Flower's simulation on Ray: one run of few rounds, strategies are ours.

Seconds are those of the rounds after the first, in which nodes say who they are. The models are
compared with rounds made in plain NumPy that draw the same.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
from flower_clients import client_app, of, quadratic_client
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from plain_numpy import digits
from serving import Case, serve

from fltheory.algorithms import FedAvg, Safari
from fltheory.flower import AlgorithmStrategy
from fltheory.participation import Trace

ROUNDS = 11
SEED = 0


def by_server(x: Any) -> Any:
    return of["hessians"].mean(axis=0) @ (x - of["x_star"])


def server_gradient(arrays: ArrayRecord) -> ArrayRecord:
    return ArrayRecord([by_server(arrays.to_numpy_ndarrays()[0])])


def quadratic_model(q: float) -> Any:
    """Return the model after all rounds, one client after the other."""
    x, branches = of["x0"], np.random.default_rng(np.random.SeedSequence(SEED).spawn(2)[1])
    for index in range(ROUNDS):
        if q < 1 and branches.random(1)[0] >= q:
            x = x - of["assist_lr"] * by_server(x)
            continue
        given = {"steps": of["local_steps"], "lr": of["lr"], "draw": (index + 1, 0)}
        present = np.flatnonzero(of["trace"][index])
        x = np.mean([quadratic_client(one).local_sgd(x, **given) for one in present], axis=0)
    return x


def training(grid: Grid, algorithm: FedAvg | Safari, x0: Any, expected: Any) -> Case:
    def run() -> dict[str, Any]:
        times: list[float] = []

        def look(server_round: int, arrays: ArrayRecord) -> MetricRecord:
            times.append(time.perf_counter())
            return MetricRecord()

        strategy = AlgorithmStrategy(
            algorithm,
            Trace(of["trace"], start=0),
            seed=SEED,
            server_gradient=server_gradient,
            fraction_evaluate=0.0,
        )
        found = strategy.start(grid, ArrayRecord([x0]), num_rounds=ROUNDS, evaluate_fn=look)
        return {
            "seconds": times[-1] - times[1],
            "rounds": ROUNDS - 1,
            "replicas": 1,
            "difference": np.abs(found.arrays.to_numpy_ndarrays()[0] - expected).max(),
        }

    return run


server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    fedavg = FedAvg(of["lr"], of["local_steps"])
    safari = Safari(of["q"], of["lr"], of["assist_lr"], of["local_steps"])
    softmax = FedAvg(of["digits_lr"], of["local_steps"])
    model = digits({**of, "trace": of["trace"][:ROUNDS]})()["model"]
    cases = {
        "fedavg": training(grid, fedavg, of["x0"], quadratic_model(1.0)),
        "safari": training(grid, safari, of["x0"], quadratic_model(of["q"])),
        "digits": training(grid, softmax, np.zeros(len(model)), model),
    }
    serve(cases, "flwr", "ray", "numpy", "torch")


if __name__ == "__main__":
    logging.getLogger("flwr").setLevel(logging.ERROR)
    run_simulation(
        server_app,
        client_app,
        num_supernodes=len(of["optima"]),
        backend_config={
            "init_args": {"num_cpus": 2, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
