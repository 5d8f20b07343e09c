"""Slips that any algorithm can have, in local steps, participation or the server's step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fltheory.testing.conformance.own_runs import Change, Play, Slip, Steps, slips
from fltheory.validation import FloatArray


def _begun(play: Play, k: int, x: FloatArray, go: Steps, start: FloatArray) -> FloatArray:
    """Return the change of the model by steps that start at a different point."""
    play.kept[k] = play.kept["end", play.t] = end = go(start)
    return end - x


def _along(play: Play, x: FloatArray, go: Steps, share: float, place: Any) -> FloatArray:
    """Return the change by steps along ``v <- share v + gradient``, with v stored by place."""

    def velocity(step: int, y: FloatArray) -> FloatArray:
        fresh = go.client.gradient(y) + go.push + go.proximal * (y - x)
        play.kept[place] = share * play.kept.get(place, 0.0) + fresh
        found: FloatArray = play.kept[place]
        return found

    return go(x, gradient=velocity, added=lambda step, y: np.zeros_like(y)) - x


def _last(play: Play, x: FloatArray, go: Steps) -> FloatArray:
    """Return the change by the last present client."""
    return replace(go, client=play.clients[play.who[-1]])(x) - x


_STALE = "local steps start from a stale model, the one before the latest"
_LOCAL: Mapping[str, Callable[[Play, int, FloatArray, Steps], FloatArray]] = {
    "local steps run one too many, K + 1": lambda p, k, x, go: go(x, number=go.number + 1) - x,
    "local steps run one too few, K - 1": lambda p, k, x, go: go(x, number=go.number - 1) - x,
    "a single local step is made, whatever local_steps is": lambda p, k, x, go: go(x, number=1) - x,
    "all local steps use the gradient at the round's model": lambda p, k, x, go: (
        go(x, gradient=lambda step, y: go.client.gradient(x)) - x
    ),
    f"{_STALE}": lambda p, k, x, go: go(p.x_before) - p.x_before,
    f"{_STALE}, but their change is relative to the latest": lambda p, k, x, go: go(p.x_before) - x,
    "local steps start from x0 in every round": lambda p, k, x, go: go(p.x0[0]) - x,
    "local steps start from the client's own last model": lambda p, k, x, go: _begun(
        p, k, x, go, p.kept.get(k, x)
    ),
    "the model is not reset between clients: each one starts where the previous one ended": (
        lambda p, k, x, go: _begun(p, k, x, go, p.kept.get(("end", p.t), x))
    ),
    "zero_grad is missing: gradients add up over the local steps": lambda p, k, x, go: _along(
        p, x, go, 1.0, (p.t, k)
    ),
    "zero_grad is missing: gradients add up over clients and rounds": lambda p, k, x, go: _along(
        p, x, go, 1.0, "all"
    ),
    "zero_grad is missing: each client's gradients add up over its rounds": lambda p, k, x, go: (
        _along(p, x, go, 1.0, ("own", k))
    ),
    "client_lr falls with the round: client_lr / t": lambda p, k, x, go: go(x, lr=go.lr / p.t) - x,
    "client_lr falls with the round: client_lr / sqrt(t)": lambda p, k, x, go: (
        go(x, lr=go.lr / p.t**0.5) - x
    ),
    "the change is multiplied by client_lr once more": lambda p, k, x, go: go.lr * (go(x) - x),
    "the change is divided by the number of local steps": lambda p, k, x, go: (
        (go(x) - x) / go.number
    ),
    "changes are also multiplied by the clients' shares of the data": lambda p, k, x, go: (
        (go(x) - x) * p.sizes[k] / max(p.sizes.sum(), 1.0)
    ),
    "models overwrite each other: all local models are one array, which holds the last one": (
        lambda p, k, x, go: p.kept.setdefault(("last", p.t), _last(p, x, go))
    ),
}
_MOMENTUM: Mapping[str, Callable[[Play, int], Any]] = {
    "": lambda p, k: (p.t, k),
    ", and kept from client to client: one optimizer serves all": lambda p, k: "all",
    ", and each client keeps it from round to round": lambda p, k: ("own", k),
}

_MOVE: Mapping[str, Change] = {
    "the server goes against the change: its sign is wrong": lambda p, x, step: x - step,
    "the model never moves: changes are not added to it": lambda p, x, step: x,
    "a round without participants makes the model 0, the empty sum": lambda p, x, step: (
        x + step if p.changes else 0 * x
    ),
    "models are rounded to single precision, float32 (see rtol=)": lambda p, x, step: (
        (x + step).astype(np.float32).astype(np.float64)
    ),
}
_RATE: Mapping[str, Change] = {
    "server_lr is not used": lambda p, x, step: x + step / p.rate,
    "server_lr counts twice": lambda p, x, step: x + p.rate * step,
    "server_lr scales the new model, not its change": lambda p, x, step: p.rate * x + step,
    "server_lr scales the new model, not its change, in rounds with participants": (
        lambda p, x, step: p.rate * x + step if p.changes else x
    ),
    "server_lr weighs the old model, 1 - server_lr the new one": lambda p, x, step: (
        x + (1 - p.rate) * step / p.rate
    ),
}

_CLIENT_LR: Mapping[str, Change] = {
    "is halved": lambda p, given: {"client_lr": 0.5 * given["client_lr"]},
    "counts twice in the local steps": lambda p, given: {"client_lr": given["client_lr"] ** 2},
}

_OFF = "participants are those of the round before: the trace is off by one"
_TRACE: Mapping[str, Change] = {
    "everybody takes part: the trace is ignored": lambda p, trace: np.ones_like(trace),
    "the absent take part: the trace is read the wrong way round": lambda p, trace: ~trace,
    _OFF: lambda p, trace: np.concatenate([trace[:1], trace[:-1]]),
    f"{_OFF}, around": lambda p, trace: np.roll(trace, 1, axis=0),
    "participants are those of the next round: the trace is off by one": lambda p, trace: (
        np.concatenate([trace[1:], trace[-1:]])
    ),
    "only the first of those present counts": lambda p, trace: _first_of(trace, 1),
    "only the last of those present counts: models overwrite each other": lambda p, trace: (
        _first_of(trace[:, ::-1], 1)[:, ::-1]
    ),
    "only the first ten of those present are used": lambda p, trace: _first_of(trace, 10),
    "in a round without participants everybody takes part": lambda p, trace: (
        trace | ~trace.any(axis=1, keepdims=True)
    ),
    "a round with a single participant is skipped, although there are more clients: a minimum "
    "of two": lambda p, trace: trace & ((trace.sum(axis=1) != 1) | (trace.shape[1] == 1))[:, None],
    "rounds with fewer than half of the clients are skipped": lambda p, trace: (
        trace & (2 * trace.sum(axis=1) >= trace.shape[1])[:, None]
    ),
}


def _first_of(trace: np.ndarray, most: int) -> np.ndarray:
    return np.asarray(trace & (np.cumsum(trace, axis=1) <= most))


def _server_momentum(says: str, share: float, fresh: float) -> Slip:
    def move(play: Play, x: FloatArray, step: FloatArray) -> FloatArray:
        play.kept["velocity"] = share * play.kept.get("velocity", 0.0) + fresh * step
        found: FloatArray = x + play.kept["velocity"]
        return found

    return Slip(says, move=move)


def _in_local_steps(share: float, at: Callable[[Play, int], Any]) -> Change:
    return lambda p, k, x, go: _along(p, x, go, share, at(p, k))


_WITH_MOMENTUM = {
    f"momentum ({share}) is in the local steps{how}": _in_local_steps(share, at)
    for share in (0.9, 0.5)
    for how, at in _MOMENTUM.items()
}
LOCAL = slips("local", {**_LOCAL, **_WITH_MOMENTUM})
SERVER_RATE = [
    *slips("move", _RATE),
    Slip(
        "server_lr multiplies the local step size, too",
        options=lambda play, given: {"client_lr": given["server_lr"] * given["client_lr"]},
        move=lambda play, x, step: x + step / play.rate,
    ),
]
EVERYWHERE = [
    *slips("move", _MOVE),
    *(
        _server_momentum(f"momentum ({share}) is in the server's steps{how}", share, fresh)
        for share in (0.9, 0.5)
        for how, fresh in {"": 1.0, ", which it averages over rounds from 0": 1 - share}.items()
    ),
    *slips("options", _CLIENT_LR, "client_lr {}"),
    *slips("trace", _TRACE),
    Slip("models are recorded before their round: off by one", record=lambda p, old, new: old),
]
