"""Which of Flower's nodes is which client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fltheory.flower.local_clients import QUERY_CLIENT

LOG = logging.getLogger("flwr")


class Nodes:
    """Clients, counted from 0, and the nodes that they run on.

    A node says once which client it is, by its ``partition-id``. Node ids are drawn anew when
    a SuperNode starts again; its client is the same.

    Parameters
    ----------
    n_clients : int
    """

    def __init__(self, n_clients: int) -> None:
        self._n_clients = n_clients
        self._client_of: dict[int, int] = {}

    def connected(self, grid: Grid, timeout: float) -> Mapping[int, int]:
        """Return the connected node of each client that has one."""
        ids = list(grid.get_node_ids())
        new = [node for node in ids if node not in self._client_of]
        if new:
            self._ask(grid, new, timeout)
        # Of two nodes of one client the later has come back in place of the earlier.
        ordered = [node for node in self._client_of if node in ids]
        return {self._client_of[node]: node for node in ordered}

    def client(self, node: int) -> int | None:
        """Return which client a node is, None where it is none."""
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
    """Return the last line of what a node says went wrong."""
    lines = str(reply.error.reason or "").strip().splitlines()
    return lines[-1] if lines else f"error {reply.error.code}"
