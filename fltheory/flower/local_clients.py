"""The client side of `AlgorithmStrategy`: the answers of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fltheory.engines.clients.analytic_clients import LossClient, descended
from fltheory.flower.layout import ArrayLayout
from fltheory.validation import FloatArray

QUERY_CLIENT = "query.client"
QUERY_LOSS = "query.loss"
CORRECTION = "correction"
CORRECTED = "corrected"

Draw = tuple[int, ...]


class LocalClient(Protocol):
    """A client that takes local steps on its own data.

    ``draw`` identifies the round and its question: a client that draws batches seeds its generator
    with it, so runs are reproducible on any machine.
    """

    @property
    def n_samples(self) -> int:
        """Number of samples that the client has."""
        ...

    def local_sgd(
        self,
        x: FloatArray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None,
        proximal: float,
        draw: Draw,
    ) -> FloatArray:
        """Return the model after ``steps`` steps of SGD from ``x``, both (dim,).

        ``correction`` and ``proximal (y - x)`` are added to every gradient.
        """
        ...

    def loss(self, x: FloatArray, draw: Draw) -> float:
        """Return the loss on the client's own samples at ``x``."""
        ...


class GradientClient:
    """A client defined by its gradient as a function of the model vector.

    Parameters
    ----------
    known : LossClient
        An object with ``gradient(x)``, ``loss(x)`` and ``n_samples``.
    """

    def __init__(self, known: LossClient) -> None:
        self._known = known

    @property
    def n_samples(self) -> int:
        """Number of samples that the client counts for."""
        return self._known.n_samples

    def local_sgd(
        self,
        x: FloatArray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None,
        proximal: float,
        draw: Draw,
    ) -> FloatArray:
        """Return the model after exact gradient steps."""
        return descended(
            self._known, x, steps=steps, lr=lr, correction=correction, proximal=proximal
        )

    def loss(self, x: FloatArray, draw: Draw) -> float:
        """Return the loss."""
        return float(self._known.loss(x))


def local_client_app(client_of: Callable[[int], LocalClient | LossClient]) -> ClientApp:
    """Return the ClientApp that answers an `AlgorithmStrategy`.

    ``train`` takes the config's ``local-steps`` local steps with step size ``client-lr``, the term
    ``proximal-mu`` and the arrays ``correction`` if there are any. ``query.loss`` and ``evaluate``
    return the loss on the client's own samples, and ``query.client`` the node's ``partition-id``.

    Parameters
    ----------
    client_of : callable
        Maps the node's ``partition-id`` (``--node-config 'partition-id=0'``; simulations set it) to
        its `LocalClient`, or to an object with ``gradient(x)``, ``loss(x)`` and ``n_samples``. It
        is called for every message, so cache data that is slow to load.
    """
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client, config, layout, x = _read(message, context, client_of)
        correction = message.content.array_records.get(CORRECTION)
        y = client.local_sgd(
            x,
            steps=int(config["local-steps"]),
            lr=float(config["client-lr"]),
            correction=None if correction is None else layout.flat(correction),
            proximal=float(config.get("proximal-mu", 0.0)),
            draw=_draw(config),
        )
        reply = RecordDict({"arrays": layout.record(y), "metrics": _metrics(client)})
        if correction is not None:
            reply["done"] = ConfigRecord({CORRECTED: True})
        return Message(reply, reply_to=message)

    def lost(message: Message, context: Context) -> Message:
        client, config, _, x = _read(message, context, client_of)
        metrics = _metrics(client, loss=float(client.loss(x, _draw(config))))
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    app.evaluate()(lost)
    app.query("loss")(lost)

    @app.query("client")
    def who(message: Message, context: Context) -> Message:
        metrics = MetricRecord({"client": _number(context)})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def _read(
    message: Message, context: Context, client_of: Callable[[int], LocalClient | LossClient]
) -> tuple[LocalClient, Any, ArrayLayout, FloatArray]:
    """Return the client, the server's config, and the model with its layout."""
    arrays = message.content.array_records["arrays"]
    layout = ArrayLayout.of(arrays)
    found = client_of(_number(context))
    client = cast(LocalClient, found)
    if not hasattr(found, "local_sgd"):
        client = GradientClient(found)
    return client, message.content.config_records["config"], layout, layout.flat(arrays)


def _number(context: Context) -> int:
    if "partition-id" not in context.node_config:
        raise ValueError(
            "node-config must hold partition-id, the client's number from 0, "
            f"got {dict(context.node_config)}"
        )
    return int(context.node_config["partition-id"])


def _draw(config: Any) -> Draw:
    return int(config["server-round"]), int(config.get("question", 0))


def _metrics(client: LocalClient, **others: float) -> MetricRecord:
    return MetricRecord({"num-examples": int(client.n_samples), **others})
