"""Rounds as somebody writes them in which digits cancel: factors of updates have few right.

Or the chances of their branches have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm, Schedule

FACTORS: dict[str, Callable[[Any], Any]] = {
    "1 - b": lambda a: 1 - a.beta,
    "g (1 - b)": lambda a: a.gain * (1 - a.beta),
    "g - g b": lambda a: a.gain - a.gain * a.beta,
    "b - c": lambda a: a.beta - a.gamma,
    "g (1 - b) / (1 - c)": lambda a: a.gain * (1 - a.beta) / (1 - a.gamma),
    "1 - b^2": lambda a: 1 - a.beta**2,
    "1 - (1 - r)^3": lambda a: 1 - (1 - a.rate) ** 3,
}
UPDATES: dict[str, Callable[..., Any]] = {
    "sum": lambda a, x, clients, who: clients.summed_local_sgd(
        x, who, array_namespace(x).ones_like(who, dtype=x.dtype) / clients.n_clients, **a.local
    ),
    "weighted sum": lambda a, x, clients, who: clients.summed_local_sgd(
        x, who, a.factor * array_namespace(x).ones_like(who, dtype=x.dtype), **a.local
    ),
    "each": lambda a, x, clients, who: array_namespace(x).sum(
        clients.local_sgd(x, who, **a.local), axis=1
    ),
    "server": lambda a, x, clients, who: -a.lr * clients.server_gradient(x),
}
STEPS: dict[str, Callable[..., Any]] = {
    "scaled": lambda a, x, u: x + a.factor * u,
    "plain": lambda a, x, u: x + u,
    "model": lambda a, x, u: a.factor * (x + u),
    "updates apart": lambda a, x, u: x + a.gain * (u - a.beta * u),
    "models apart": lambda a, x, u: a.gain * x - (a.gain - 1) * x + (u - a.beta * u),
}


@dataclass(frozen=True)
class Cancelling(Algorithm):
    """A round that multiplies by a factor of which rounding leaves few digits."""

    beta: float
    gamma: float
    gain: float
    lr: float
    factor_name: str = "1 - b"
    update: str = "sum"
    step: str = "scaled"
    remembers: bool = False
    counts: bool = False
    rate: float = 1e-10

    @property
    def factor(self) -> Any:
        return FACTORS[self.factor_name](self)

    @property
    def local(self) -> dict[str, Any]:
        return {"steps": 2, "lr": self.lr}

    def init(self, x0, n_clients):
        memory = {"v": 0 * x0} if self.remembers else {}
        return {"x": x0, **memory, **({"t": 0 * x0[:, 0]} if self.counts else {})}

    def round(self, state, clients, who, branch):
        x, after = state["x"], dict(state)
        update = UPDATES[self.update](self, x, clients, who)
        if self.counts:
            after["t"] = state["t"] + 1
        if self.remembers:
            after["v"] = self.beta * state["v"] + self.factor * update
            update = after["v"]
        return {**after, "x": STEPS[self.step](self, x, update)}


CHANCES: dict[str, Callable[[Any, int], tuple[Any, Any]]] = {
    "1 - b": lambda a, t: (1 - a.beta, a.beta),
    "1 - b^t": lambda a, t: (1 - a.beta**t, a.beta**t),
    "1 - (1 - r)^t": lambda a, t: (1 - (1 - a.rate) ** t, (1 - a.rate) ** t),
    "1 - (1 - r)": lambda a, t: (1 - (1 - a.rate), 1 - a.rate),
}
"""Chances of a kick and of none, in a round."""


@dataclass(frozen=True, kw_only=True)
class Kick(Algorithm):
    """A round that may multiply the clients' update, and counts if it is told to."""

    gain: float
    lr: float
    counts: bool = False

    def init(self, x0, n_clients):
        return {"x": x0, **({"t": 0 * x0[:, 0]} if self.counts else {})}

    def round(self, state, clients, who, branch):
        x, after = state["x"], dict(state)
        update = array_namespace(x).mean(clients.local_sgd(x, who, steps=2, lr=self.lr), axis=1)
        if self.counts:
            after["t"] = state["t"] + 1
        return {**after, "x": x + self.gain * update if branch == "kick" else x + update}


@dataclass(frozen=True, kw_only=True)
class Kicked(Kick):
    """Such a round that is given its chances."""

    chances: tuple[float, float]

    @property
    def branches(self):
        return tuple(zip(("kick", "usual"), self.chances, strict=True))


@dataclass(frozen=True, kw_only=True)
class Kicking(Kick):
    """Such a round in whose branches the digits of chances cancel."""

    beta: float
    rate: float
    chances_name: str

    @property
    def branches(self):
        return tuple(zip(("kick", "usual"), CHANCES[self.chances_name](self, 3), strict=True))


@dataclass(frozen=True, kw_only=True)
class Kicks:
    """A schedule in whose own code they do."""

    gain: float
    lr: float
    counts: bool
    beta: float
    rate: float
    chances_name: str

    def at(self, index):
        chances = CHANCES[self.chances_name](self, index)
        return Kicked(gain=self.gain, lr=self.lr, counts=self.counts, chances=chances)


def _drawn_kicks(draw: np.random.Generator, lr: float) -> Kicking | Kicks:
    """Return a round or a schedule with a rare branch at random, its chance from 1e-12 to 1e-4."""
    gap, (scheduled, counts) = 10 ** draw.uniform(-12, -4), (draw.random(2) < 0.5).tolist()
    return (Kicks if scheduled else Kicking)(
        gain=float(f"{10 ** draw.uniform(0, 8):.3g}"),
        lr=lr,
        counts=counts,
        beta=float(f"{1 - gap:.15g}"),
        rate=float(f"{gap:.3g}"),
        chances_name=str(draw.choice(list(CHANCES))),
    )


def drawn(draw: np.random.Generator, lr: float) -> Algorithm | Schedule:
    """Return one of these at random, one minus beta from 1e-12 to 1e-4."""
    gap = 10 ** draw.uniform(-12, -4)
    below = (f"{1 - float(f'{gap * times:.3g}'):.15g}" for times in (1.0, draw.uniform(0.3, 3)))
    beta, gamma = map(float, below)
    factor, update, step = (str(draw.choice(list(kinds))) for kinds in (FACTORS, UPDATES, STEPS))
    gain = float(f"{10 ** draw.uniform(0, 8):.3g}")
    remembers, counts = (draw.random(2) < 0.3).tolist()
    rate = float(f"{gap:.3g}")
    # From a generator of its own: how much is drawn from the first is then always the same.
    apart = draw.spawn(1)[0]
    if apart.random() < 0.5:
        return _drawn_kicks(apart, lr)
    return Cancelling(beta, gamma, gain, lr, factor, update, step, remembers, counts, rate)
