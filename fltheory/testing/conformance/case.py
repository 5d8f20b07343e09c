"""The clients and other arguments that are passed to an implementation under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fltheory.decimals import how_many
from fltheory.engines.clients.analytic_clients import LossClient
from fltheory.read_only import ReadOnlyArrays
from fltheory.testing.conformance.options import OPTIONS, Option
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class QuadraticClient(ReadOnlyArrays):
    """A client with ``F(x) = 1/2 (x - c)' H (x - c) + slope'x`` and exact gradients.

    With H = 0 the gradient is the same everywhere, and a round shows each client's weight.

    Attributes
    ----------
    hessian : array, (d, d)
    optimum : array, (d,)
        c.
    n_samples : int
    slope : array, (d,), or 0
    """

    hessian: FloatArray
    optimum: FloatArray
    n_samples: int = 1
    slope: FloatArray | float = 0.0

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return ``H (x - c) + slope``."""
        return np.asarray(self.hessian @ (np.asarray(x) - self.optimum) + self.slope)

    def loss(self, x: FloatArray) -> float:
        """Return F(x)."""
        x = np.asarray(x)
        offset = x - self.optimum
        return float(0.5 * offset @ self.hessian @ offset + (self.slope * x).sum())


@dataclass(frozen=True, eq=False)
class CountedClient:
    """A client that records the gradients requested from it."""

    client: LossClient
    gradients: list[FloatArray] = field(default_factory=list)

    @property
    def n_samples(self) -> int:
        """The number of samples of the client."""
        return self.client.n_samples

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the client's gradient."""
        self.gradients.append(np.array(x, dtype=np.float64))
        return self.client.gradient(x)

    def loss(self, x: FloatArray) -> float:
        """Return the client's loss."""
        return self.client.loss(x)


Trace: TypeAlias = NDArray[np.bool_]

_SHOWN = 24


@dataclass(frozen=True, eq=False)
class Case(ReadOnlyArrays):
    """The arguments of ``run``.

    Attributes
    ----------
    clients : tuple of QuadraticClient
    x0 : array, (d,)
    trace : array of bool, (rounds, N)
    client_lr : float
    server_lr : float or None
        The server's step size, or None if the algorithm has none.
    local_steps : int or tuple of int
        The number of local steps; for FedNova, one number per client.
    options : mapping
        Options by their names in the package's class. Options with one value per client are tuples.
    kinds : mapping
        The kind of each option.
    """

    clients: tuple[QuadraticClient, ...]
    x0: FloatArray
    trace: Trace
    client_lr: float
    local_steps: int | tuple[int, ...]
    server_lr: float | None = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, Option] = field(default_factory=lambda: OPTIONS)

    @property
    def n_clients(self) -> int:
        """The number of clients, N."""
        return len(self.clients)

    @property
    def dim(self) -> int:
        """The dimension d."""
        return int(self.x0.size)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(self.trace.shape[0])

    @property
    def steps(self) -> tuple[int, ...]:
        """The number of local steps of each client."""
        one = self.local_steps
        return one if isinstance(one, tuple) else (one,) * self.n_clients

    @property
    def rate(self) -> float:
        """The server's step size, or 1 if there is none."""
        return 1.0 if self.server_lr is None else self.server_lr

    @property
    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of ``run``."""
        return {
            "client_lr": self.client_lr,
            "local_steps": self.local_steps,
            **({} if self.server_lr is None else {"server_lr": self.server_lr}),
            **self.options,
        }

    @property
    def scale(self) -> float:
        """The largest number in the start and the optima, to which errors are relative."""
        return max(1e-300, float(abs(self.x0).max()), *(abs(c.optimum).max() for c in self.clients))

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is unique to the case."""
        clients = tuple(
            (c.hessian.tobytes(), c.optimum.tobytes(), c.n_samples, np.asarray(c.slope).tobytes())
            for c in self.clients
        )
        return clients, self.x0.tobytes(), self.trace.tobytes(), repr(self.keywords)

    def first_rounds(self, rounds: int) -> Case:
        """Return the case with only its first rounds."""
        return replace(self, trace=self.trace[:rounds])

    def ordered(self, order: Sequence[int]) -> Case:
        """Return the case with only the given clients, in this order."""
        picked = list(order)
        options = {
            name: self.kinds[name].ordered(value, picked) for name, value in self.options.items()
        }
        steps = self.local_steps
        return replace(
            self,
            clients=tuple(self.clients[k] for k in picked),
            trace=self.trace[:, picked],
            local_steps=tuple(steps[k] for k in picked) if isinstance(steps, tuple) else steps,
            options=options,
        )

    def in_dimension(self, dim: int) -> Case:
        """Return the case with only the first coordinates."""
        return self.with_clients(
            lambda k, client: {
                "hessian": client.hessian[:dim, :dim],
                "optimum": client.optimum[:dim],
                "slope": client.slope[:dim]
                if isinstance(client.slope, np.ndarray)
                else client.slope,
            },
            x0=self.x0[:dim],
        )

    def with_clients(
        self, change: Callable[[int, QuadraticClient], Mapping[str, Any]], **besides: Any
    ) -> Case:
        """Return the case with fields of each client changed, and its own fields in ``besides``."""
        clients = tuple(replace(one, **change(k, one)) for k, one in enumerate(self.clients))
        return replace(self, clients=clients, **besides)

    def with_trace(self, trace: Trace) -> Case:
        """Return the case with a different trace."""
        return replace(self, trace=trace)

    def smaller(self, *, fewer_clients: bool, fewer_steps: bool) -> Iterator[Case]:
        """Yield slightly smaller cases: one round, client, dimension, step or participant less."""
        for index in range(self.rounds):
            if self.rounds > 1:
                yield self.with_trace(np.delete(self.trace, index, axis=0))
        if fewer_clients and self.n_clients > 1:
            for k in reversed(range(self.n_clients)):
                yield self.ordered([j for j in range(self.n_clients) if j != k])
        if self.dim > 1:
            yield self.in_dimension(1)
        if fewer_steps and isinstance(self.local_steps, int) and self.local_steps > 1:
            yield replace(self, local_steps=self.local_steps - 1)
        for place in zip(*np.nonzero(self.trace), strict=True):
            trace = self.trace.copy()
            trace[place] = False
            yield self.with_trace(trace)

    def described(self) -> str:
        """Describe the case in text, with its trace round by round."""
        given = ", ".join(f"{name}={_short(value)}" for name, value in self.keywords.items())
        sizes = tuple(client.n_samples for client in self.clients)
        lines = [
            f"N = {how_many(self.n_clients, 'client')}, d = {self.dim}, "
            f"{how_many(self.rounds, 'round')}, {given}",
            f"x0 = {numbers(self.x0)}, n_samples = {sizes}",
            *(
                f"client {k}: gradient(x) = {_gradient(client)}"
                for k, client in enumerate(self.clients)
            ),
            *(f"round {t}: {_who(row)}" for t, row in enumerate(self.trace[:_SHOWN], start=1)),
        ]
        if self.rounds > _SHOWN:
            lines.append(f"... {how_many(self.rounds - _SHOWN, 'more round')}")
        return "\n".join(lines)


def numbers(vector: FloatArray) -> str:
    """Return a model as text.

    Examples
    --------
    >>> numbers(np.array([1.0, 0.1 + 0.2]))
    '(1, 0.3)'
    """
    return f"({', '.join(f'{entry:.9g}' for entry in np.asarray(vector).ravel())})"


def _who(row: Trace) -> str:
    present = [str(k) for k in np.flatnonzero(row)]
    if not present:
        return "nobody present"
    return f"client{'s' if len(present) > 1 else ''} {', '.join(present)} present"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))})"
    return repr(value)


def _gradient(client: QuadraticClient) -> str:
    if not client.hessian.any():
        return numbers(client.slope + np.zeros(client.optimum.size))
    if client.optimum.size == 1:
        return f"{client.hessian[0, 0]:.6g} (x - {client.optimum[0]:.6g})"
    rows = "; ".join(" ".join(f"{entry:.4g}" for entry in row) for row in client.hessian)
    return f"[{rows}] (x - {numbers(client.optimum)})"
