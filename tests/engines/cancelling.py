"""Rounds as somebody writes them in which digits cancel: what multiplies updates has few right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from fltheory.algorithms.contract import Algorithm

FACTORS: dict[str, Callable[[Any], Any]] = {
    "1 - b": lambda a: 1 - a.beta,
    "g (1 - b)": lambda a: a.gain * (1 - a.beta),
    "g - g b": lambda a: a.gain - a.gain * a.beta,
    "b - c": lambda a: a.beta - a.gamma,
    "g (1 - b) / (1 - c)": lambda a: a.gain * (1 - a.beta) / (1 - a.gamma),
    "1 - b^2": lambda a: 1 - a.beta**2,
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


def drawn(draw: np.random.Generator, lr: float) -> Cancelling:
    """Return such a round at random, one minus beta from 1e-12 to 1e-4."""
    gap = 10 ** draw.uniform(-12, -4)
    below = (f"{1 - float(f'{gap * times:.3g}'):.15g}" for times in (1.0, draw.uniform(0.3, 3)))
    beta, gamma = map(float, below)
    factor, update, step = (str(draw.choice(list(kinds))) for kinds in (FACTORS, UPDATES, STEPS))
    gain = float(f"{10 ** draw.uniform(0, 8):.3g}")
    remembers, counts = (draw.random(2) < 0.3).tolist()
    return Cancelling(beta, gamma, gain, lr, factor, update, step, remembers, counts)
