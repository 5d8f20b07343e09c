"""A round of an algorithm with remote clients, run as far as their answers allow.

An algorithm's round asks its clients for losses and local steps, one after another, and continues
with the answers. It has no side effects, so it can be run until the first unanswered question, and
again from the beginning once the answers have arrived. If a client does not answer, the round is
run again with that client absent from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fltheory.algorithms.contract import Algorithm, Clients, State
from fltheory.participation.base import Masks
from fltheory.validation import FloatArray

ServerGradient = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ClientTask:
    """A question to one client.

    Attributes
    ----------
    x : array, (dim,)
    steps : int
        Local steps to take; 0 for the loss at ``x``.
    lr, proximal : float
    correction : array, (dim,), or None
        Vector to add to every gradient.
    """

    x: FloatArray
    steps: int = 0
    lr: float = 0.0
    proximal: float = 0.0
    correction: FloatArray | None = None

    def same(self, other: ClientTask) -> bool:
        """Return whether the two tasks have the same answer."""
        if (self.steps, self.lr, self.proximal) != (other.steps, other.lr, other.proximal):
            return False
        if (self.correction is None) != (other.correction is None):
            return False
        corrections = np.array_equal(self.correction, other.correction)  # type: ignore[arg-type]
        return np.array_equal(self.x, other.x) and corrections


@dataclass(frozen=True)
class Question:
    """The tasks sent to clients at one point of a round.

    Attributes
    ----------
    number : int
        Number of questions that the round has asked before.
    tasks : mapping of int to ClientTask
        The task of each client.
    """

    number: int
    tasks: Mapping[int, ClientTask]


class _Unanswered(Exception):  # noqa: N818
    """The round cannot continue without an answer."""

    def __init__(self, question: Question) -> None:
        self.question = question


@dataclass(eq=False)
class AskedRound:
    """A round that continues as answers arrive.

    Attributes
    ----------
    who : array of bool, (n_clients,)
        The participants; clients that do not answer are removed.
    question : Question or None
        The next question; None when the round is done.
    after : State or None
        The state after the round; None until it is done.
    """

    algorithm: Algorithm
    state: State
    who: Masks
    branch: str
    server_gradient: ServerGradient
    question: Question | None = field(init=False, default=None)
    after: State | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.who = self.who.copy()
        self._answers: dict[tuple[int, int], tuple[ClientTask, FloatArray]] = {}
        self._server_gradients: list[FloatArray] = []
        self._go_on()

    def answer(self, answers: Mapping[int, FloatArray]) -> None:
        """Accept answers to the question, by client: models after local steps, or losses.

        Clients that were asked but did not answer count as absent in the whole round.
        """
        if self.question is None:
            raise ValueError(
                "answers must reply to a question, got answers after the round was done"
            )
        for client, task in self.question.tasks.items():
            if client in answers:
                self._answers[self.question.number, client] = task, answers[client]
            else:
                self.who[client] = False
        self._go_on()

    def _go_on(self) -> None:
        clients = _FarClients(self.who.size, self._known, self._gradient_of_server)
        self.question = None
        try:
            self.after = self.algorithm.round(self.state, clients, self.who[None], self.branch)
        except _Unanswered as unanswered:
            self.question = unanswered.question

    def _known(self, number: int, client: int, task: ClientTask) -> FloatArray | None:
        found = self._answers.get((number, client))
        return found[1] if found is not None and found[0].same(task) else None

    def _gradient_of_server(self, number: int, x: FloatArray) -> FloatArray:
        """Return the server's gradient, drawn once and reused when the round is run again."""
        if number == len(self._server_gradients):
            self._server_gradients.append(self.server_gradient(x))
        return self._server_gradients[number]


class _FarClients(Clients):
    """An implementation of `Clients` from the received answers, for one replica."""

    def __init__(
        self,
        n_clients: int,
        known: Callable[[int, int, ClientTask], FloatArray | None],
        server_gradient: Callable[[int, FloatArray], FloatArray],
    ) -> None:
        self._n_clients = n_clients
        self._known = known
        self._server_gradient = server_gradient
        self._asked = 0
        self._gradients = 0

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._n_clients

    def local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (1, n_clients, dim), zero where absent."""
        tasks = {
            client: ClientTask(
                x[0], steps, lr, proximal, None if correction is None else correction[0, client]
            )
            for client in np.flatnonzero(who[0]).tolist()
        }
        changes = np.zeros((1, self._n_clients, x.shape[1]), dtype=x.dtype)
        for client, model in self._answered(tasks).items():
            changes[0, client] = model - x[0]
        return changes

    def loss(self, x: FloatArray, who: Masks) -> FloatArray:
        """Return each client's loss, (1, n_clients), zero where absent."""
        tasks = {client: ClientTask(x[0]) for client in np.flatnonzero(who[0]).tolist()}
        losses = np.zeros((1, self._n_clients), dtype=x.dtype)
        for client, loss in self._answered(tasks).items():
            losses[0, client] = loss
        return losses

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return the server's gradient, (1, dim)."""
        self._gradients += 1
        return self._server_gradient(self._gradients - 1, x[0])[None]

    def _answered(self, tasks: Mapping[int, ClientTask]) -> dict[int, FloatArray]:
        """Return the answers to all tasks; if some are missing, raise `_Unanswered`."""
        number, self._asked = self._asked, self._asked + 1
        found = {client: self._known(number, client, task) for client, task in tasks.items()}
        open_ = {client: tasks[client] for client, answer in found.items() if answer is None}
        if open_:
            raise _Unanswered(Question(number, open_))
        return {client: answer for client, answer in found.items() if answer is not None}
