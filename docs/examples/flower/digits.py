"""Train scikit-learn's digits with FedAvg and seven other algorithms in Flower's simulation.

    python docs/examples/flower/digits.py [rounds]

All ten clients come and go according to Markov chains; five of them are rarely present. All
algorithms have the same participants in each round. Needs the extras flower and torch; nothing is
downloaded.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import numpy as np
from digits_task import SEED, N, accuracy, client_app, module, server_gradient
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from fltheory.algorithms.table import listed
from fltheory.flower import AlgorithmStrategy
from fltheory.participation import MarkovOnOff

CLIENT_LR, LOCAL_STEPS = 0.1, 10
AVAILABILITY, CORRELATION = np.array([0.8] * 5 + [0.2] * 5), np.full(N, 0.5)
CIRCUMSTANCES = {
    "client_lr": CLIENT_LR,
    "local_steps": LOCAL_STEPS,
    "assist_lr": CLIENT_LR * LOCAL_STEPS,
    "target_weights": np.full(N, 1 / N),
    "availability": AVAILABILITY,
    "correlation": CORRELATION,
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "FedAvg": {},
    "SAFARI": {"q": 0.8},
    "FedAU": {"cutoff": 50},
    "CA-Fed": {"kappa_bar": 10.0},
    "FedVARP": {},
    "MIFA": {"start": "zero"},
    "SCAFFOLD": {},
    "FedAR": {},
}


def main(rounds: int) -> None:
    logging.getLogger("flwr").setLevel(logging.ERROR)
    server_app = ServerApp()

    @server_app.main()
    def serve(grid: Grid, context: Context) -> None:
        print(f"| algorithm | accuracy after {rounds // 2} rounds | after {rounds} | seconds |")
        print("|---|---|---|---|", flush=True)
        for name, options in ALGORITHMS.items():
            begun = time.perf_counter()
            strategy = AlgorithmStrategy(
                listed(name).among(CIRCUMSTANCES, **options),
                MarkovOnOff(AVAILABILITY, CORRELATION),
                seed=SEED,
                server_gradient=server_gradient,
                fraction_evaluate=0.0,
            )
            arrays = ArrayRecord(module().state_dict())
            result = strategy.start(grid, arrays, num_rounds=rounds, evaluate_fn=accuracy)
            reached = result.evaluate_metrics_serverapp
            half, last = (f"{100 * reached[at]['accuracy']:.1f}%" for at in (rounds // 2, rounds))
            print(f"| {name} | {half} | {last} | {time.perf_counter() - begun:.0f} |", flush=True)

    run_simulation(
        server_app,
        client_app,
        num_supernodes=N,
        backend_config={
            "init_args": {"num_cpus": 2, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
