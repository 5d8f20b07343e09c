"""Strategies of Flower's former API, `flwr.server.strategy`, along a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.client_manager import SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy

from fltheory.engines.clients.stepped_clients import LossClient, descended
from fltheory.flower.exact_clients import LocalSteps, steps_of
from fltheory.flower.in_process_grid import InProcessGrid
from fltheory.participation.base import Masks
from fltheory.validation import FloatArray


def numpy_client_app(
    clients: Sequence[LossClient], client_lr: float, local_steps: LocalSteps
) -> ClientApp:
    """Return the ClientApp of `gradient_descent_app` for strategies of the former API."""

    class Client(NumPyClient):
        def __init__(self, number: int) -> None:
            self._client = clients[number]
            self._steps = steps_of(local_steps, number)

        def fit(self, parameters: list[FloatArray], config: dict[str, Any]) -> tuple[Any, ...]:
            (start,) = parameters
            mu = float(config.get("proximal_mu", 0.0))
            y = descended(self._client, start, steps=self._steps, lr=client_lr, proximal=mu)
            loss = float(self._client.loss(start))
            return [y], int(self._client.n_samples), {"loss": loss, "train_loss": loss}

        def evaluate(self, parameters: list[FloatArray], config: dict[str, Any]) -> tuple[Any, ...]:
            (x,) = parameters
            return float(self._client.loss(x)), int(self._client.n_samples), {}

    return ClientApp(lambda context: Client(int(context.node_config["partition-id"])).to_client())


class _Nodes(SimpleClientManager):
    """The nodes that are connected; more do not come."""

    def wait_for(self, num_clients: int, timeout: int = 0) -> bool:
        """Return True where there are so many; nobody waits."""
        if self.num_available() < num_clients:
            _refuse_waiting(num_clients, self.num_available())
        return True


def _refuse_waiting(wanted: int, there: int) -> NoReturn:
    raise RuntimeError(
        f"the strategy waits for {wanted} nodes where the round has {there}: give it "
        "min_available_clients=0, min_fit_clients=0 and min_evaluate_clients=0"
    )


def legacy_models(
    strategy: Any, grid: InProcessGrid, x0: FloatArray, trace: Masks
) -> Iterator[FloatArray]:
    """Yield the server's models before and after each round, as `flwr.server.Server` makes them.

    A strategy's initial parameters are ``x0`` where it has none of its own.
    """
    manager = _Nodes()
    nodes = [GridClientProxy(client + 1, grid, grid.run.run_id) for client in range(trace.shape[1])]
    parameters = strategy.initialize_parameters(manager) or ndarrays_to_parameters([x0])
    yield _model(parameters)
    for server_round, who in enumerate(trace, start=1):
        grid.let_in(np.flatnonzero(who).tolist())
        connected = set(grid.get_node_ids())
        for node in nodes:
            (manager.register if node.node_id in connected else manager.unregister)(node)
        asked = strategy.configure_fit(server_round, parameters, manager)
        after, _ = strategy.aggregate_fit(server_round, *_fitted(asked, server_round))
        # Flower's server keeps the model where a strategy gives none.
        parameters = after or parameters
        yield _model(parameters)


def _fitted(
    asked: Sequence[tuple[GridClientProxy, Any]], server_round: int
) -> tuple[list[tuple[GridClientProxy, Any]], list[BaseException]]:
    """Return results and failures; a node that answers with an error, or not, is a failure."""
    results: list[tuple[GridClientProxy, Any]] = []
    failures: list[BaseException] = []
    for node, instructions in asked:
        try:
            results.append((node, node.fit(instructions, None, server_round)))
        except ValueError as error:
            failures.append(error)
    return results, failures


def _model(parameters: Any) -> FloatArray:
    array, *_ = parameters_to_ndarrays(parameters)
    return array
