"""Clients whose losses and gradients are functions, and ClientApps that train them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fltheory.engines.clients.stepped_clients import LossClient, descended

LocalSteps = int | Sequence[int]


MakeApp = Callable[[Sequence[LossClient], float, LocalSteps], ClientApp]


def gradient_descent_app(
    clients: Sequence[LossClient], client_lr: float, local_steps: LocalSteps
) -> ClientApp:
    """Return a ClientApp that takes exact gradient steps, as Flower's strategies expect.

    It answers ``train`` with the local model and the metrics ``num-examples``, ``uniform``
    (which is 1: to weight all alike), ``loss`` and ``train_loss`` (at the model received), and
    ``evaluate`` with ``num-examples``, ``uniform`` and ``loss``. Where the server's config has
    ``proximal-mu``, as `flwr.serverapp.strategy.FedProx` sends, steps are on
    ``F_k(y) + mu/2 |y - x|^2``.

    Parameters
    ----------
    clients : sequence
        With ``gradient(x)``, ``loss(x)`` and ``n_samples``; which one is asked is the node's
        ``partition-id``.
    client_lr : float
    local_steps : int or sequence of int
        The same for all clients, or one for each.
    """
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        client = clients[number]
        (name, arrays), *_ = message.content.array_records.items()
        (key, array), *_ = arrays.items()
        start, mu = array.numpy(), _proximal(message.content)
        steps = steps_of(local_steps, number)
        y = descended(client, start, steps=steps, lr=client_lr, proximal=mu)
        loss = float(client.loss(start))
        metrics = MetricRecord({**_weights(client), "loss": loss, "train_loss": loss})
        reply = {name: ArrayRecord({key: Array(y)}), "metrics": metrics}
        return Message(RecordDict(reply), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        client = clients[int(context.node_config["partition-id"])]
        arrays, *_ = message.content.array_records.values()
        array, *_ = arrays.values()
        metrics = MetricRecord({**_weights(client), "loss": float(client.loss(array.numpy()))})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def steps_of(local_steps: LocalSteps, client: int) -> int:
    """Return how many local steps a client takes."""
    return local_steps if isinstance(local_steps, int) else int(local_steps[client])


def _weights(client: LossClient) -> dict[str, float]:
    return {"num-examples": int(client.n_samples), "uniform": 1.0}


def _proximal(content: RecordDict) -> float:
    found = [record.get("proximal-mu", 0.0) for record in content.config_records.values()]
    return float(found[0]) if found else 0.0
