"""The interfaces of algorithms and of the clients that they run on.

Arrays have a leading replica axis and belong to the backend (NumPy, torch). An algorithm only does
arithmetic on them and never asks which backend it runs on.
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
    """The clients as seen by an algorithm; a backend implements them.

    ``x`` is (replicas, dim); ``who`` a boolean mask (replicas, n_clients), True where a
    client takes part; ``correction`` (replicas, n_clients, dim) is added to every
    stochastic gradient of that client, and so is ``proximal`` times ``y - x``, where x is the model
    that the steps started from.
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

        It has the same distribution as the sum of `local_sgd`. For algorithms that do not need each
        client's own change, this lets a backend draw the noise of the sum at once. Subclasses
        inherit the plain sum, which works on NumPy and torch.
        """
        change = self.local_sgd(
            x, who, steps=steps, lr=lr, correction=correction, proximal=proximal
        )
        xp = array_namespace(change)
        # An absent client may have any weight, even an infinite one.
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

    ``branches`` lists the algorithm's own random choices in a round, as (name, probability). An
    engine draws one branch per round, independently of participation, and passes its name. By
    default, subclasses have only client rounds, and their server keeps nothing but the model.
    """

    @property
    def branches(self) -> tuple[tuple[str, float], ...]:
        """(name, probability) of each random choice."""
        return EVERY_ROUND_CLIENTS

    def init(self, x0: Array, n_clients: int) -> State:
        """Return the state before the first round, from models ``x0`` of (replicas, dim).

        The entry ``"x"`` is the server's model; the other entries are memory.
        """
        return {"x": x0}

    @abstractmethod
    def round(self, state: State, clients: Clients, who: Array, branch: str) -> State:
        """Return the state after one round with participants ``who``."""
        ...


@runtime_checkable
class Schedule(Protocol):
    """An algorithm whose hyper-parameters depend on the round.

    The algorithm of the first round makes the state, and every round's algorithm updates it.
    """

    def at(self, round_index: int) -> Algorithm:
        """Return the algorithm of a round, counted from 1."""
        ...


def checked_algorithm(value: Any, *, scheduled: bool = True) -> None:
    """Raise ValueError unless ``value`` is an algorithm or, if ``scheduled``, a schedule of one.

    Raises
    ------
    ValueError
        Also if given a class instead of an instance.
    """
    if not (_runs_rounds(value) or (scheduled and _is_schedule(value))):
        kinds = "an algorithm, or a schedule of one" if scheduled else "an algorithm"
        raise ValueError(f"algorithm must be {kinds}, got {shown(value)}")


def _runs_rounds(value: Any) -> bool:
    # Numbers can have a method ``round``, too, so ``init`` is checked as well.
    found = (getattr(value, name, None) for name in ("init", "round"))
    return not isinstance(value, type) and all(map(callable, found))


def _is_schedule(value: Any) -> bool:
    # Step sizes have a method ``at``, too, so its value is checked.
    return not isinstance(value, type) and isinstance(value, Schedule) and _runs_rounds(value.at(1))


def in_round(algorithm: Algorithm | Schedule, round_index: int) -> Algorithm:
    """Return the algorithm of a round, counted from 1; it is ``algorithm`` without a schedule."""
    # Called in every round, so it avoids isinstance of a protocol, which takes 20 microseconds.
    at: Callable[[int], Algorithm] | None = getattr(algorithm, "at", None)
    return cast("Algorithm", algorithm) if at is None else at(round_index)


Moves: TypeAlias = Callable[[int, float], FloatArray]
"""A function of the number of steps and their size.

It returns the fraction of the way to its own optimum that each client moves, (N,).
"""


@runtime_checkable
class KnownLimit(Protocol):
    """An algorithm whose limit is a known weighted mean of its clients' optima.

    The limit is known for clients with quadratic losses whose curvature is the same in all
    directions, if their presence follows independent two-state chains.
    """

    def limit_pulls(self, chains: MarkovOnOff, moves: Moves) -> FloatArray:
        """Return each client's mean pull in a round, (N,); 0 for clients that are never present.

        The mean of the model converges to the mean of the clients' optima with weights proportional
        to the pulls. This is exact if participation is uncorrelated with the model, for instance if
        rounds are independent or the weights of a round have a constant sum; otherwise it holds to
        first order in the step size.
        """
        ...
