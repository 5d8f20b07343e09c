"""The two contracts between algorithms and everything below them.

Arrays carry a leading replica axis and belong to the backend (NumPy, torch); an algorithm
does arithmetic on them and never asks which backend it has.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from array_api_compat import array_namespace

from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.validation import FloatArray, shown

Array: TypeAlias = Any
State: TypeAlias = Mapping[str, Array]

CLIENTS = "clients"
SERVER = "server"
EVERY_ROUND_CLIENTS = ((CLIENTS, 1.0),)


class Clients(Protocol):
    """What an algorithm talks to, and what a backend implements.

    ``x`` is (replicas, dim); ``who`` a boolean mask (replicas, n_clients), True where a
    client takes part; ``correction`` (replicas, n_clients, dim) is added to every
    stochastic gradient of that client, and so is ``proximal`` times ``y - x``, the way from
    the model that the steps started from.
    """

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        ...

    @abstractmethod
    def local_sgd(
        self,
        x: Array,
        who: Array,
        *,
        steps: int,
        lr: float,
        correction: Array | None = None,
        proximal: float = 0,
    ) -> Array:
        """Return ``y_K - x`` of each client after ``steps`` SGD steps from ``x``.

        Shape (replicas, n_clients, dim), zero where a client is absent.
        """
        ...

    def summed_local_sgd(
        self,
        x: Array,
        who: Array,
        weights: Array,
        *,
        steps: int,
        lr: float,
        correction: Array | None = None,
        proximal: float = 0,
    ) -> Array:
        """Return ``sum_i weights_i (y_K^i - x)`` over those present, shape (replicas, dim).

        The same law as summing `local_sgd`, for algorithms that need no client's own
        change: a backend may then draw the noise of the sum at once. One that subclasses this
        contract gets the plain sum, on NumPy and on torch.
        """
        change = self.local_sgd(
            x, who, steps=steps, lr=lr, correction=correction, proximal=proximal
        )
        xp = array_namespace(change)
        # Who is absent may have any weight, an infinite one too.
        present = xp.astype(xp.where(who, weights, xp.zeros_like(weights)), change.dtype)
        return xp.einsum("ri,ria->ra", present, change)

    def loss(self, x: Array, who: Array) -> Array:
        """Return ``F_i(x)`` of each client, (replicas, n_clients), zero where absent."""
        ...

    def server_gradient(self, x: Array) -> Array:
        """Return a stochastic gradient of F from the server's own data, (replicas, dim)."""
        ...


class Algorithm(Protocol):
    """Hyper-parameters of a federated algorithm, and its pseudo-code.

    ``branches`` lists the algorithm's own random choice of a round, as (name, probability);
    an engine draws one branch a round, independently of who takes part, and passes its name.
    A class that subclasses this contract has client rounds alone, and a server that remembers
    nothing but the model, unless it says otherwise.
    """

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        """(name, probability) of each random choice."""
        return EVERY_ROUND_CLIENTS

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the state before the first round, from models ``x0`` of (replicas, dim).

        The entry ``"x"`` is the server's model; others are memory.
        """
        return {"x": x0}

    @abstractmethod
    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        ...


@runtime_checkable
class Schedule(Protocol):
    """An algorithm whose hyper-parameters depend on the round.

    The state is made by the first round's algorithm, and each round's goes on from it.
    """

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm as it is in a round, the first being 1."""
        ...


def checked_algorithm(value: Any, *, scheduled: bool = True) -> None:
    """Raise ValueError unless ``value`` runs rounds, or, if that may be, is a schedule of such.

    Raises
    ------
    ValueError
        Also for the class in place of an object of it.
    """
    if not (_runs_rounds(value) or (scheduled and _is_schedule(value))):
        kinds = "an algorithm, or a schedule of one" if scheduled else "an algorithm"
        raise ValueError(f"algorithm must be {kinds}, got {shown(value)}")


def _runs_rounds(value: Any) -> bool:
    # Numbers can be rounded, too.
    found = (getattr(value, name, None) for name in ("init", "round"))
    return not isinstance(value, type) and all(map(callable, found))


def _is_schedule(value: Any) -> bool:
    # Step sizes have values at rounds, too.
    return not isinstance(value, type) and isinstance(value, Schedule) and _runs_rounds(value.at(1))


def in_round(algorithm: Algorithm | Schedule, round_index: int) -> Algorithm:
    """Return what runs in a round, the first being 1: the algorithm itself unless scheduled."""
    # Asked in every round, so by a look-up: isinstance of a protocol takes 20 microseconds.
    at: Callable[[int], Algorithm] | None = getattr(algorithm, "at", None)
    return cast("Algorithm", algorithm) if at is None else at(round_index)


Moves: TypeAlias = Callable[[int, float], FloatArray]
"""Takes a number of steps and their size; returns how far each client gets towards its own optimum,
as a share of the way, (N,)."""


@runtime_checkable
class KnownLimit(Protocol):
    """An algorithm that says which mean of its clients' optima it ends at.

    For clients whose losses are quadratic with curvature alike in all directions, and who come
    and go by chains of their own.
    """

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Return the mean pull of each client in a round, (N,); 0 for one never there.

        The model ends, on average, at the mean of the clients' optima with weights in proportion
        to these: exactly where who comes tells nothing of where the model is, as if rounds are
        independent or the weights of a round always add up to the same; else to first order in
        the step size.
        """
        ...
