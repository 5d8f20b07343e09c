"""A Flower grid without a network: messages are answered by a ClientApp in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal, get_args

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from fltheory import validation

Absence = Literal["away", "error", "silent"]

_RUN = 1
_SERVER = 1
_ASKED_IN_VAIN = 10


class InProcessGrid(Grid):
    """All nodes in this process, of which some are there in a round.

    Node k + 1 has the partition-id k, and keeps its Context, with what a ClientApp stores in
    it, from round to round.

    Parameters
    ----------
    client_app : ClientApp
    n_clients : int
    absent : {"away", "error", "silent"}
        Nodes that are not there are not connected; or they are, and answer with an error, or
        do not answer.

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
        """Say which clients, counted from 0, are there from now on."""
        self._present = frozenset(client + 1 for client in clients)
        self._asked = 0

    def set_run(self, run: Run) -> None:
        """Take a run's description."""
        self._run = run

    @property
    def run(self) -> Run:
        """The run's description."""
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
            If it is asked again and again: whoever waits for further nodes waits in vain.
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
        """Have messages answered; return their ids."""
        self._asked = 0
        return [self._answered(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Sequence[Message]:
        """Return the replies to messages, of those who gave one."""
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
        # As the SuperLink does: replies refer to it.
        metadata.__dict__["_message_id"] = name
        node = metadata.dst_node_id
        if node in self._present:
            self._replies[name] = self._app(message, self._contexts[node])
        elif self._absent != "silent":
            self._replies[name] = Message(Error(code=0, reason="absent"), reply_to=message)
        return name


@contextmanager
def as_server() -> Iterator[None]:
    """Let messages be made outside a run of Flower's, as if by its server."""
    names = ("_run_id", "_node_id", "_task_id")
    before = {name: getattr(TaskIdentity, name) for name in names}
    for name in names:
        setattr(TaskIdentity, name, _SERVER)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(TaskIdentity, name, value)
