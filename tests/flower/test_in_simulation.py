"""Flower's own simulation, on Ray, against the package's engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs the extra flower: docs/how-to/flower.md")

import exact_quadratics
from flwr.app import ArrayRecord, MetricRecord
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from ray import cloudpickle
from test_algorithm_strategy import X0, N, here, of_table, server_gradient_of

from fltheory.flower import AlgorithmStrategy, local_client_app
from fltheory.flower.local_clients import GradientClient
from fltheory.participation import MarkovOnOff

ROUNDS = 8
NAMES = ("safari", "fedau", "ca-fed", "fedvarp", "mifa", "scaffold", "fedar")


@pytest.mark.filterwarnings("ignore")
def test_seven_algorithms_follow_the_engine() -> None:
    them = exact_quadratics.clients((5, 1, 9, 3, 2))
    participation = MarkovOnOff([0.3, 0.5, 0.7, 0.9, 0.5], [0.6] * N)
    found: dict[str, list[Any]] = {}
    serving = ServerApp()

    @serving.main()
    def serve(grid: Any, context: Any) -> None:
        for name in NAMES:
            models = found.setdefault(name, [])

            def look(server_round: int, arrays: ArrayRecord, models: Any = models) -> MetricRecord:
                models.append(arrays.to_numpy_ndarrays()[0])
                return MetricRecord()

            AlgorithmStrategy(
                of_table(name), participation, seed=3, server_gradient=server_gradient_of(them)
            ).start(grid, ArrayRecord([X0]), num_rounds=ROUNDS, evaluate_fn=look)

    # Ray's workers do not find the modules of tests.
    cloudpickle.register_pickle_by_value(exact_quadratics)
    try:
        run_simulation(
            serving,
            local_client_app(lambda number: GradientClient(them[number])),
            num_supernodes=N,
            backend_config={
                "init_args": {"num_cpus": 2, "include_dashboard": False},
                "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            },
        )
    finally:
        cloudpickle.unregister_pickle_by_value(exact_quadratics)
    for name in NAMES:
        expected = here(of_table(name), them, participation, ROUNDS, seed=3)
        np.testing.assert_allclose(np.array(found[name]), expected, rtol=0, atol=1e-8)
        assert np.abs(np.diff(expected, axis=0)).max() > 1e-3
