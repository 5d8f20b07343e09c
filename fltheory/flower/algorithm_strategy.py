"""A Flower strategy that runs any algorithm of the package."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import sleep
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Schedule, State, in_round
from fltheory.engines.simulation import branches_of
from fltheory.flower.asked_round import AskedRound, ClientTask, Question
from fltheory.flower.layout import ArrayLayout
from fltheory.flower.local_clients import CORRECTED, CORRECTION, QUERY_CLIENT, QUERY_LOSS
from fltheory.participation import Participation
from fltheory.participation.base import Masks
from fltheory.validation import FloatArray

LOG = logging.getLogger("flwr")


class Nodes:
    """The clients, counted from 0, and the nodes that they run on.

    A node reports once, by its ``partition-id``, which client it is. A restarted SuperNode has a
    new node id but is still the same client.

    Parameters
    ----------
    n_clients : int
    """

    def __init__(self, n_clients: int) -> None:
        self._n_clients = n_clients
        self._client_of: dict[int, int] = {}

    def connected(self, grid: Grid, timeout: float) -> Mapping[int, int]:
        """Return the connected nodes by client."""
        ids = list(grid.get_node_ids())
        new = [node for node in ids if node not in self._client_of]
        if new:
            self._ask(grid, new, timeout)
        # If a client has two nodes, the later one has replaced the earlier one.
        ordered = [node for node in self._client_of if node in ids]
        return {self._client_of[node]: node for node in ordered}

    def client(self, node: int) -> int | None:
        """Return the client that a node runs, or None if it runs none."""
        return self._client_of.get(node)

    def _ask(self, grid: Grid, new: list[int], timeout: float) -> None:
        question = RecordDict({"config": ConfigRecord({})})
        messages = [Message(question, node, QUERY_CLIENT) for node in new]
        for reply in grid.send_and_receive(messages, timeout=timeout):
            node = reply.metadata.src_node_id
            if reply.has_error():
                LOG.warning("node %d does not say which client it is: %s", node, reason(reply))
                continue
            client = int(reply.content.metric_records["metrics"]["client"])
            if not 0 <= client < self._n_clients:
                raise ValueError(
                    f"partition-id must be from 0 to {self._n_clients - 1}, got {client} "
                    f"from node {node}"
                )
            before = [old for old, its in self._client_of.items() if its == client]
            LOG.info("client %d is node %d%s", client, node, ", once more" if before else "")
            for old in before:
                del self._client_of[old]
            self._client_of[node] = client


def reason(reply: Any) -> str:
    """Return the last line of a node's error message."""
    lines = str(reply.error.reason or "").strip().splitlines()
    return lines[-1] if lines else f"error {reply.error.code}"


_NOBODY_IS_NEEDED = {"min_train_nodes": 0, "min_evaluate_nodes": 0, "min_available_nodes": 0}


class AlgorithmStrategy(FedAvg):
    """An algorithm as a Flower strategy: its own ``round`` code runs with nodes as clients.

    A round asks its clients for local steps; some algorithms also ask for losses first (CA-Fed), or
    for a second gradient (SCAFFOLD with ``option=1``). `configure_train` sends the first question;
    `aggregate_train` receives the answers and asks any further questions itself. So Flower's own
    loop, its mods and its wrappers (e.g. differential privacy) work as they do with any other
    strategy. A server round of SAFARI sends nothing. Evaluation is that of FedAvg.

    The ``partition-id`` of a node is the index of its client. A client takes part if
    ``participation`` draws it and its node is connected. A node that answers with an error, or not
    before the timeout, counts as absent in the whole round. A restarted node remains the same
    client.

    Parameters
    ----------
    algorithm : Algorithm or Schedule
        An algorithm of `fltheory.algorithms`.
    participation : Participation, optional
        A process of `fltheory.participation` that draws who takes part. By default, all connected
        clients take part.
    n_clients : int, optional
        Needed if ``participation`` does not determine it.
    seed : int
        Seed of the draws of participants and of the algorithm's own random choices.
    server_gradient : callable, optional
        For SAFARI: a function that maps the model's ArrayRecord to the ArrayRecord of the gradient
        on the server's own data.
    wait_for : int, optional
        How many nodes to wait for before the first round; by default one for each client.
    **of_fedavg
        Arguments of Flower's `FedAvg`, for example ``fraction_evaluate``. Shares and minimum
        numbers of nodes for training have no effect here.

    Raises
    ------
    ValueError
        If no number of clients is given, or if two given numbers differ.

    Examples
    --------
    >>> from fltheory.algorithms import Scaffold
    >>> from fltheory.participation import Bernoulli
    >>> scaffold = AlgorithmStrategy(Scaffold(client_lr=0.1, local_steps=5), Bernoulli([0.5] * 10))
    >>> scaffold.n_clients
    10
    """

    def __init__(
        self,
        algorithm: Algorithm | Schedule,
        participation: Participation | None = None,
        *,
        n_clients: int | None = None,
        seed: int = 0,
        server_gradient: Callable[[ArrayRecord], ArrayRecord] | None = None,
        wait_for: int | None = None,
        **of_fedavg: Any,
    ) -> None:
        super().__init__(**{**_NOBODY_IS_NEEDED, **of_fedavg})
        self.algorithm = algorithm
        self.participation = participation
        self.n_clients = _checked_number(participation, n_clients)
        self.seed = validation.seed_number("seed", seed)
        self._server_gradient = server_gradient
        self._wait_for = self.n_clients if wait_for is None else wait_for
        self._timeout = 3600.0
        self._nodes = Nodes(self.n_clients)
        self._state: State = {}

    def summary(self) -> None:
        """Log the algorithm and its settings."""
        LOG.info("\t├──> %r", self.algorithm)
        LOG.info("\t├──> %d clients, present: %r", self.n_clients, self.participation or "all")
        LOG.info("\t└──> seed %d", self.seed)

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        *others: Any,
        **named: Any,
    ) -> Result:
        """Run Flower's loop; ``timeout`` applies to every question of a round."""
        self._timeout = timeout
        return super().start(grid, initial_arrays, num_rounds, timeout, *others, **named)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Begin a round: return the messages of its first question."""
        if server_round == 1:
            self._begin(arrays, grid)
        self._grid, self._config, self._round_index = grid, config, server_round
        x = self._layout.flat(arrays)
        if not np.array_equal(x, self._state["x"][0]):
            # A wrapper of the strategy has changed the model.
            self._state = {**self._state, "x": x[None]}
        now = in_round(self.algorithm, server_round)
        self._where = self._nodes.connected(grid, self._timeout)
        if server_round == 1 and self._wait_for and not self._where:
            raise RuntimeError(
                "no node says which client it is: see fltheory.flower.local_client_app"
            )
        self._round = AskedRound(
            now, self._state, self._present(), self._drawn_branch(now), self._gradient
        )
        self._trained: list[RecordDict] = []
        return self._messages()

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Finish a round: send any further questions, and return the server's new model."""
        while self._round.question is not None:
            self._round.answer(self._read(self._round.question, replies))
            messages = self._messages()
            if messages:
                replies = self._grid.send_and_receive(messages, timeout=self._timeout)
        assert self._round.after is not None
        self._state = self._round.after
        return self._layout.record(self._state["x"][0]), self._metrics()

    @property
    def state(self) -> State:
        """The algorithm's state after the last round: the model ``"x"``, and its memory."""
        return self._state

    def _begin(self, arrays: ArrayRecord, grid: Grid) -> None:
        participants, branches = np.random.SeedSequence(self.seed).spawn(2)
        self._branches_rng = np.random.default_rng(branches)
        self._masks = None
        if self.participation is not None:
            self._masks = self.participation.masks(np.random.default_rng(participants), 1)
        self._layout = ArrayLayout.of(arrays)
        x0 = self._layout.flat(arrays)[None]
        self._state = in_round(self.algorithm, 1).init(x0, self.n_clients)
        while (there := len(list(grid.get_node_ids()))) < self._wait_for:
            LOG.info("waiting for nodes: %d of %d are connected", there, self._wait_for)
            sleep(1)

    def _present(self) -> Masks:
        drawn = np.ones(self.n_clients, dtype=bool) if self._masks is None else next(self._masks)[0]
        connected = np.isin(np.arange(self.n_clients), list(self._where))
        for client in np.flatnonzero(drawn & ~connected):
            LOG.info("client %d is absent: it is not connected", client)
        return np.asarray(drawn & connected)

    def _drawn_branch(self, now: Algorithm) -> str:
        names, ends = branches_of(now)
        if len(names) == 1:
            return names[0]
        return names[int(np.searchsorted(ends, self._branches_rng.random(1), side="right")[0])]

    def _gradient(self, x: FloatArray) -> FloatArray:
        if self._server_gradient is None:
            raise ValueError(
                f"server_gradient must be given for {type(self.algorithm).__name__}, got none"
            )
        return self._layout.flat(self._server_gradient(self._layout.record(x)))

    def _messages(self) -> Sequence[Message]:
        question = self._round.question
        if question is None:
            return []
        return [self._message(question, client) for client in question.tasks]

    def _message(self, question: Question, client: int) -> Message:
        task = question.tasks[client]
        config = ConfigRecord(dict(self._config))
        config["server-round"] = self._round_index
        config["question"] = question.number
        content = RecordDict(
            {self.arrayrecord_key: self._layout.record(task.x), self.configrecord_key: config}
        )
        if not task.steps:
            return self._to(client, content, QUERY_LOSS)
        config["local-steps"], config["client-lr"] = int(task.steps), float(task.lr)
        config["proximal-mu"] = float(task.proximal)
        if task.correction is not None:
            content[CORRECTION] = self._layout.record(task.correction)
        return self._to(client, content, MessageType.TRAIN)

    def _to(self, client: int, content: RecordDict, kind: str) -> Message:
        """Return a message that expires with its round."""
        return Message(content, self._where[client], kind, ttl=self._timeout)

    def _read(self, question: Question, replies: Iterable[Message]) -> Mapping[int, FloatArray]:
        """Return the answers, and log the clients without one."""
        answers: dict[int, FloatArray] = {}
        why: dict[int | None, str] = {}
        for reply in replies:
            # For a node that is gone, the SuperLink itself answers.
            client = self._nodes.client(reply.metadata.src_node_id)
            if reply.has_error():
                why[client] = reason(reply)
            elif client is not None:
                answers[client] = self._answer(question.tasks[client], client, reply.content)
                if question.tasks[client].steps:
                    self._trained.append(reply.content)
        others = why.get(None, "no answer")
        for client in sorted(question.tasks.keys() - answers.keys()):
            LOG.warning("client %d counts as absent: %s", client, why.get(client, others))
        return answers

    def _answer(self, task: ClientTask, client: int, content: RecordDict) -> FloatArray:
        if not task.steps:
            return np.asarray(_metric(content, "loss", client))
        if task.correction is not None and not any(
            record.get(CORRECTED, False) for record in content.config_records.values()
        ):
            raise ValueError(
                f"client {client} must add the arrays {CORRECTION!r} to its gradients and confirm "
                f"it in a ConfigRecord with {CORRECTED!r}: see fltheory.flower.local_client_app"
            )
        arrays, *_ = content.array_records.values()
        return self._layout.flat(arrays)

    def _metrics(self) -> MetricRecord:
        """Return the mean of the clients' reported training metrics, and the number of reports."""
        metrics = MetricRecord()
        counted = [one for one in self._trained if _weight(one, self.weighted_by_key) > 0]
        if counted:
            metrics = self.train_metrics_aggr_fn(counted, self.weighted_by_key)
        metrics["participants"] = int(self._round.who.sum())
        return metrics


def _checked_number(participation: Participation | None, n_clients: int | None) -> int:
    its = None if participation is None else participation.n_clients
    if n_clients is None and its is None:
        raise ValueError("n_clients must be given if participation is not, got neither")
    if n_clients is not None and its is not None and n_clients != its:
        raise ValueError(f"n_clients must be the participation's {its}, got {n_clients}")
    return validation.whole_number("n_clients", its if n_clients is None else n_clients, at_least=1)


def _metric(content: RecordDict, name: str, client: int) -> float:
    for record in content.metric_records.values():
        if name in record:
            return float(record[name])
    raise ValueError(f"client {client} must answer with the metric {name!r}, got none")


def _weight(content: RecordDict, key: str) -> float:
    records = content.metric_records.values()
    return float(next((record[key] for record in records if key in record), 0.0))
