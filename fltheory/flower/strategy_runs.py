"""Running any Flower strategy as a function of initial model, clients and trace.

`fltheory.testing.check_algorithm` takes algorithms in this form. The grid has no network: a
ClientApp in this process answers the messages.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.client_manager import SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import NDArray

from fltheory import validation
from fltheory.engines.clients.analytic_clients import LossClient, descended
from fltheory.participation.base import Masks
from fltheory.validation import FloatArray

Absence = Literal["away", "error", "silent"]

_RUN = 1
_SERVER = 1
_ASKED_IN_VAIN = 10


class InProcessGrid(Grid):
    """A Grid whose nodes all run in this process, some of them present in a round.

    Node k + 1 has the partition-id k, and keeps its Context, with anything that a ClientApp stores
    in it, across rounds.

    Parameters
    ----------
    client_app : ClientApp
    n_clients : int
    absent : {"away", "error", "silent"}
        How absent nodes behave: they are not connected, answer with an error, or do not answer.

    Raises
    ------
    ValueError
        If ``absent`` is none of these.
    """

    def __init__(self, client_app: ClientApp, n_clients: int, *, absent: Absence = "away") -> None:
        validation.one_of("absent", absent, get_args(Absence))
        self._app = client_app
        self._absent = absent
        self._present: frozenset[int] = frozenset(range(1, n_clients + 1))
        self._all = tuple(range(1, n_clients + 1))
        self._run = Run.create_empty(_RUN)
        self._numbers = count(1)
        self._replies: dict[str, Message] = {}
        self._asked = 0
        self._contexts = {
            node: Context(
                run_id=_RUN,
                node_id=node,
                node_config={"partition-id": node - 1, "num-partitions": n_clients},
                state=RecordDict(),
                run_config={},
            )
            for node in self._all
        }

    def let_in(self, clients: Iterable[int]) -> None:
        """Set which clients, counted from 0, are present from now on."""
        self._present = frozenset(client + 1 for client in clients)
        self._asked = 0

    def set_run(self, run: Run) -> None:
        """Set the description of the run."""
        self._run = run

    @property
    def run(self) -> Run:
        """The description of the run."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Return a new message."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Sequence[int]:
        """Return the connected nodes.

        Raises
        ------
        RuntimeError
            If it is called too often in a row, by a strategy that waits for more nodes than there
            are.
        """
        self._asked += 1
        if self._asked > _ASKED_IN_VAIN:
            raise RuntimeError(
                f"the strategy waits for more nodes than the {len(self._present)} of this round: "
                "give it min_available_nodes=0 and min_train_nodes=0 (min_fit_clients=0)"
            )
        if self._absent == "away":
            return [node for node in self._all if node in self._present]
        return list(self._all)

    def push_messages(self, messages: Iterable[Message]) -> Sequence[str]:
        """Answer messages, and return their ids."""
        self._asked = 0
        return [self._answered(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Sequence[Message]:
        """Return the replies to messages that have one."""
        found = (self._replies.pop(name, None) for name in message_ids)
        return [reply for reply in found if reply is not None]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Sequence[Message]:
        """Return the replies to messages."""
        return self.pull_messages(self.push_messages(messages))

    def _answered(self, message: Message) -> str:
        name = str(next(self._numbers))
        metadata: Any = message.metadata
        # As the SuperLink does, because replies refer to the message id.
        metadata.__dict__["_message_id"] = name
        node = metadata.dst_node_id
        if node in self._present:
            self._replies[name] = self._app(message, self._contexts[node])
        elif self._absent != "silent":
            self._replies[name] = Message(Error(code=0, reason="absent"), reply_to=message)
        return name


@contextmanager
def as_server() -> Iterator[None]:
    """Allow messages to be created outside a Flower run, as if by its server."""
    names = ("_run_id", "_node_id", "_task_id")
    before = {name: getattr(TaskIdentity, name) for name in names}
    for name in names:
        setattr(TaskIdentity, name, _SERVER)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(TaskIdentity, name, value)


LocalSteps = int | Sequence[int]


MakeApp = Callable[[Sequence[LossClient], float, LocalSteps], ClientApp]


def gradient_descent_app(
    clients: Sequence[LossClient], client_lr: float, local_steps: LocalSteps
) -> ClientApp:
    """Return a ClientApp that takes exact gradient steps, as Flower's strategies expect.

    It answers ``train`` with the local model and the metrics ``num-examples``, ``uniform`` (always
    1, for equal weights), ``loss`` and ``train_loss`` (at the model received), and ``evaluate``
    with ``num-examples``, ``uniform`` and ``loss``. If the server's config has ``proximal-mu``,
    which `flwr.serverapp.strategy.FedProx` sends, steps are on ``F_k(y) + mu/2 |y - x|^2``.

    Parameters
    ----------
    clients : sequence
        Objects with ``gradient(x)``, ``loss(x)`` and ``n_samples``, indexed by a node's
        ``partition-id``.
    client_lr : float
    local_steps : int or sequence of int
        One number for all clients, or one for each.
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
    """Return the number of local steps that a client takes."""
    return local_steps if isinstance(local_steps, int) else int(local_steps[client])


def _weights(client: LossClient) -> dict[str, float]:
    return {"num-examples": int(client.n_samples), "uniform": 1.0}


def _proximal(content: RecordDict) -> float:
    found = [record.get("proximal-mu", 0.0) for record in content.config_records.values()]
    return float(found[0]) if found else 0.0


def numpy_client_app(
    clients: Sequence[LossClient], client_lr: float, local_steps: LocalSteps
) -> ClientApp:
    """Return the ClientApp of `gradient_descent_app` for strategies of Flower's legacy API."""

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
    """The connected nodes, as a client manager of a fixed set."""

    def wait_for(self, num_clients: int, timeout: int = 0) -> bool:
        """Return True; raise RuntimeError if fewer than ``num_clients`` nodes are connected."""
        if self.num_available() < num_clients:
            _refuse_waiting(num_clients, self.num_available())
        return True


def _refuse_waiting(wanted: int, there: int) -> NoReturn:
    raise RuntimeError(
        f"the strategy waits for {wanted} nodes, but the round has {there}: give it "
        "min_available_clients=0, min_fit_clients=0 and min_evaluate_clients=0"
    )


def legacy_models(
    strategy: Any, grid: InProcessGrid, x0: FloatArray, trace: Masks
) -> Iterator[FloatArray]:
    """Yield the server's initial model and those after each round, as `flwr.server.Server` does.

    If a strategy has no initial parameters, they are ``x0``.
    """
    manager = _Nodes()
    nodes = [GridClientProxy(client + 1, grid, grid.run.run_id) for client in range(trace.shape[1])]
    parameters = strategy.initialize_parameters(manager) or ndarrays_to_parameters([x0])
    yield _first_model(parameters)
    for server_round, who in enumerate(trace, start=1):
        grid.let_in(np.flatnonzero(who).tolist())
        connected = set(grid.get_node_ids())
        for node in nodes:
            (manager.register if node.node_id in connected else manager.unregister)(node)
        asked = strategy.configure_fit(server_round, parameters, manager)
        after, _ = strategy.aggregate_fit(server_round, *_fitted(asked, server_round))
        # Flower's server keeps the model if a strategy returns none.
        parameters = after or parameters
        yield _first_model(parameters)


def _fitted(
    asked: Sequence[tuple[GridClientProxy, Any]], server_round: int
) -> tuple[list[tuple[GridClientProxy, Any]], list[BaseException]]:
    """Return results and failures; a node that answers with an error or not at all is a failure."""
    results: list[tuple[GridClientProxy, Any]] = []
    failures: list[BaseException] = []
    for node, instructions in asked:
        try:
            results.append((node, node.fit(instructions, None, server_round)))
        except ValueError as error:
            failures.append(error)
    return results, failures


def _first_model(parameters: Any) -> FloatArray:
    array, *_ = parameters_to_ndarrays(parameters)
    return array


def run_of(
    make_strategy: Callable[..., Any],
    *,
    client_app: MakeApp | None = None,
    absent: Absence = "away",
) -> Callable[..., FloatArray]:
    """Return a Flower strategy as ``run(x0, clients, trace, *, client_lr, local_steps, ...)``.

    The strategy runs in this process, by its own ``start`` (a strategy of the legacy API by its
    ``configure_fit`` and ``aggregate_fit``), and the trace decides which nodes are available. There
    is no Ray and no network: a message takes about half a millisecond, most of it Flower's records.

    Parameters
    ----------
    make_strategy : callable
        Called once per run with ``x0``, ``n_clients``, ``client_lr``, ``local_steps``,
        ``server_lr`` and the algorithm's options by name; it can ignore those it does not need with
        ``**_``. The strategy must not wait for nodes: set ``min_available_nodes=0`` and
        ``min_train_nodes=0``.
    client_app : callable
        Maps ``(clients, client_lr, local_steps)`` to the ClientApp that nodes run; by default
        `gradient_descent_app`, or its counterpart for the legacy API.
    absent : {"away", "error", "silent"}
        How an absent node behaves: it is not connected, it answers with an error, or it does not
        answer.

    Returns
    -------
    callable
        A function that returns the server's models, (rounds + 1, d), starting with ``x0``.

    Notes
    -----
    Python's global generator, which strategies use to shuffle nodes, is seeded in the same way for
    every run, so runs repeat to the last bit. Its state is restored afterwards.

    Examples
    --------
    >>> from flwr.serverapp.strategy import FedAvg
    >>> def fedavg(**_):
    ...     return FedAvg(min_available_nodes=0, min_train_nodes=0, fraction_evaluate=0.0)
    >>> class Client:
    ...     n_samples = 1
    ...     def __init__(self, optimum):
    ...         self.optimum = optimum
    ...     def gradient(self, x):
    ...         return x - self.optimum
    ...     def loss(self, x):
    ...         return 0.5 * float((x - self.optimum) @ (x - self.optimum))
    >>> run = run_of(fedavg)
    >>> clients = [Client(0.0), Client(1.0)]
    >>> trace = np.array([[True, True], [False, False], [False, True]])
    >>> run(np.array([1.0]), clients, trace, client_lr=0.5, local_steps=1, server_lr=1.0).ravel()
    array([1.   , 0.75 , 0.75 , 0.875])
    """

    def run(
        x0: FloatArray,
        clients: Sequence[LossClient],
        trace: NDArray[np.bool_],
        *,
        client_lr: float,
        local_steps: LocalSteps,
        server_lr: float = 1.0,
        **options: Any,
    ) -> FloatArray:
        told = {"client_lr": client_lr, "local_steps": local_steps, "server_lr": server_lr}
        with as_server(), _quiet(), _same_shuffles():
            strategy = make_strategy(x0=x0.copy(), n_clients=len(clients), **told, **options)
            current = isinstance(strategy, Strategy)
            make_app = client_app or (gradient_descent_app if current else numpy_client_app)
            app = make_app(clients, client_lr, local_steps)
            grid = InProcessGrid(app, len(clients), absent=absent)
            models = _models if current else legacy_models
            return np.stack(list(models(strategy, grid, x0, trace)))

    return run


def _models(
    strategy: Strategy, grid: InProcessGrid, x0: FloatArray, trace: Masks
) -> list[FloatArray]:
    """Return the models that a strategy evaluates: the initial one, and one after each round."""
    seen: list[FloatArray] = []

    def look(server_round: int, arrays: ArrayRecord) -> None:
        if server_round != len(seen):
            raise ValueError(
                f"the strategy must evaluate after round {len(seen)}, got round {server_round}"
            )
        seen.append(_model(arrays))
        if server_round < len(trace):
            grid.let_in(np.flatnonzero(trace[server_round]).tolist())

    strategy.start(
        grid,
        ArrayRecord([x0]),
        num_rounds=len(trace),
        train_config=ConfigRecord(),
        evaluate_fn=look,
    )
    if len(seen) != len(trace) + 1:
        raise ValueError(
            f"the strategy must evaluate {len(trace) + 1} models, the first and one per round, "
            f"got {len(seen)}"
        )
    return seen


def _model(arrays: ArrayRecord) -> FloatArray:
    array, *_ = arrays.values()
    return array.numpy()


@contextmanager
def _quiet() -> Iterator[None]:
    """Make Flower log only errors, because it writes ten lines per round."""
    logger = logging.getLogger("flwr")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _same_shuffles() -> Iterator[None]:
    """Seed Python's global generator in the same way for every run."""
    before = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(before)
