"""Slips that any algorithm can have: in local steps, in who counts, in the server's step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fltheory.testing.conformance.own_runs import Play, Slip, Steps
from fltheory.validation import FloatArray


def _steps(says: str, **wanted: Callable[[Steps], Any]) -> Slip:
    """Return steps of another number or size."""
    return Slip(
        says,
        local=lambda play, k, x, go: go(x, **{name: of(go) for name, of in wanted.items()}) - x,
    )


def _size(says: str, lr: Callable[[Play, Steps], float]) -> Slip:
    return Slip(says, local=lambda play, k, x, go: go(x, lr=lr(play, go)) - x)


def _begun(says: str, start: Callable[..., FloatArray], *, from_there: bool = False) -> Slip:
    """Return steps that begin elsewhere; their change is counted from there, or from the model."""

    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        begun = start(play, k, x)
        end = play.kept[k] = play.kept["end", play.t] = go(begun)
        return end - (begun if from_there else x)

    return Slip(says, local=local)


def _remembering(says: str, share: float, place: Callable[[Play, int], Any]) -> Slip:
    """Return steps along ``v <- share v + gradient``, v kept by place."""

    def local(play: Play, k: int, x: FloatArray, go: Steps) -> FloatArray:
        kept = place(play, k)

        def velocity(step: int, y: FloatArray) -> FloatArray:
            fresh = go.client.gradient(y) + go.push + go.proximal * (y - x)
            play.kept[kept] = share * play.kept.get(kept, 0.0) + fresh
            found: FloatArray = play.kept[kept]
            return found

        return go(x, gradient=velocity, added=lambda step, y: np.zeros_like(y)) - x

    return Slip(says, local=local)


def _changed(says: str, change: Callable[[Play, int, FloatArray, Steps], FloatArray]) -> Slip:
    """Return changes that are told wrongly after right steps."""
    return Slip(says, local=lambda play, k, x, go: change(play, k, go(x) - x, go))


def _server(says: str, move: Callable[[Play, float, FloatArray, FloatArray], FloatArray]) -> Slip:
    """Return a server's step from its rate, the model and the mean change."""

    def moved(play: Play, x: FloatArray, step: FloatArray) -> FloatArray:
        rate = play.given.get("server_lr", 1.0)
        return move(play, rate, x, step / rate)

    return Slip(says, move=moved)


def _server_momentum(says: str, share: float, fresh: float) -> Slip:
    def move(play: Play, x: FloatArray, step: FloatArray) -> FloatArray:
        play.kept["velocity"] = share * play.kept.get("velocity", 0.0) + fresh * step
        found: FloatArray = x + play.kept["velocity"]
        return found

    return Slip(says, move=move)


def _who(says: str, trace: Callable[[np.ndarray], np.ndarray]) -> Slip:
    return Slip(says, trace=lambda play, given: trace(given))


def _first_of(trace: np.ndarray, most: int) -> np.ndarray:
    return np.asarray(trace & (np.cumsum(trace, axis=1) <= most))


def _options(says: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Slip:
    return Slip(says, options=lambda play, given: change(given))


_THERE_AND_BACK = "the trace is off by one"
_BEFORE = f"participants are those of the round before: {_THERE_AND_BACK}"
_STALE = "local steps start from a stale model, the one before the latest"

LOCAL: tuple[Slip, ...] = (
    _steps(
        "local steps run one too many (K + 1): an off-by-one in K", number=lambda go: go.number + 1
    ),
    _steps(
        "local steps run one too few (K - 1): an off-by-one in K", number=lambda go: go.number - 1
    ),
    _steps("a single local step is made, whatever local_steps is", number=lambda go: 1),
    Slip(
        "all local steps use the gradient at the round's model, not at the local one",
        local=lambda play, k, x, go: go(x, gradient=lambda step, y: go.client.gradient(x)) - x,
    ),
    _begun(
        f"{_STALE}, and the change is taken from there",
        lambda play, k, x: play.x_before,
        from_there=True,
    ),
    _begun(
        f"{_STALE}, while the change is taken from the latest", lambda play, k, x: play.x_before
    ),
    _begun(
        "local steps start from x0 in every round instead of the server's model",
        lambda play, k, x: play.x0[0],
    ),
    _begun(
        "local steps start from the client's own last model, not the server's",
        lambda play, k, x: play.kept.get(k, x),
    ),
    _begun(
        "local steps start where the client before ended: the model is not reset between clients",
        lambda play, k, x: play.kept.get(("end", play.t), x),
    ),
    *(
        slip
        for share in (0.9, 0.5)
        for slip in (
            _remembering(
                f"momentum ({share}) is in the local steps", share, lambda play, k: (play.t, k)
            ),
            _remembering(
                f"momentum ({share}) is in the local steps and kept from client to client: one "
                "optimizer serves all",
                share,
                lambda play, k: "all",
            ),
            _remembering(
                f"momentum ({share}) is in the local steps, and every client keeps it from round "
                "to round",
                share,
                lambda play, k: ("own", k),
            ),
        )
    ),
    _remembering(
        "gradients add up over the local steps: zero_grad is missing",
        1.0,
        lambda play, k: (play.t, k),
    ),
    _remembering(
        "gradients add up over clients and rounds: zero_grad is missing", 1.0, lambda play, k: "all"
    ),
    _remembering(
        "each client's gradients add up over its rounds: zero_grad is missing",
        1.0,
        lambda play, k: ("own", k),
    ),
    _size(
        "the local step size falls with the round: client_lr / t",
        lambda play, go: go.lr / play.t,
    ),
    _size(
        "the local step size falls with the round: client_lr / sqrt(t)",
        lambda play, go: go.lr / play.t**0.5,
    ),
    _changed(
        "the change is multiplied by client_lr once more",
        lambda play, k, change, go: go.lr * change,
    ),
    _changed(
        "the change is divided by the number of local steps",
        lambda play, k, change, go: change / go.number,
    ),
    _changed(
        "changes are multiplied by the clients' shares of the data, too",
        lambda play, k, change, go: change * play.sizes[k] / max(play.sizes.sum(), 1.0),
    ),
    Slip(
        "all local models are one array in memory, which holds the last one: models overwrite each "
        "other",
        local=lambda play, k, x, go: play.kept.setdefault(
            ("last", play.t), _last_change(play, x, go)
        ),
    ),
)

SIZES: tuple[Slip, ...] = (
    _options("the local step size is halved", lambda given: {"client_lr": given["client_lr"] / 2}),
    _options(
        "client_lr counts twice in the local steps",
        lambda given: {"client_lr": given["client_lr"] ** 2},
    ),
)

SERVER_RATE: tuple[Slip, ...] = (
    _options("server_lr is not used", lambda given: {"server_lr": 1.0}),
    _options("server_lr counts twice", lambda given: {"server_lr": given["server_lr"] ** 2}),
    _options(
        "server_lr multiplies the local step size, too",
        lambda given: {"client_lr": given["server_lr"] * given["client_lr"], "server_lr": 1.0},
    ),
    _server(
        "server_lr scales the new model, not the change of the model",
        lambda play, rate, x, step: rate * (x + step),
    ),
    _server(
        "server_lr scales the new model, not the change of the model, in rounds with participants",
        lambda play, rate, x, step: rate * (x + step) if play.changes else x + step,
    ),
    _server(
        "server_lr weighs the old model, 1 - server_lr the change",
        lambda play, rate, x, step: x + (1 - rate) * step,
    ),
)

SERVER: tuple[Slip, ...] = (
    Slip(
        "the server goes against the change: its sign is wrong",
        move=lambda play, x, step: x - step,
    ),
    *(
        slip
        for share in (0.9, 0.5)
        for slip in (
            _server_momentum(f"the server adds momentum ({share}) to its steps", share, 1.0),
            _server_momentum(
                f"the server averages its steps over rounds: momentum ({share}) from 0",
                share,
                1 - share,
            ),
        )
    ),
    Slip(
        "in a round without participants the model becomes 0, the empty sum",
        move=lambda play, x, step: x + step if play.changes else np.zeros_like(x),
    ),
    Slip(
        "models are rounded to single precision on the way: float32 (see rtol=)",
        move=lambda play, x, step: (x + step).astype(np.float32).astype(np.float64),
    ),
    Slip(
        "models are recorded before their round, not after: off by one",
        record=lambda play, before, after: before,
    ),
)

WHO: tuple[Slip, ...] = (
    _who("everybody takes part: the trace is ignored", np.ones_like),
    _who("the trace is read the wrong way round: the absent take part", np.logical_not),
    _who(_BEFORE, lambda trace: np.concatenate([trace[:1], trace[:-1]])),
    _who(
        f"{_BEFORE}, the first round's those of the last", lambda trace: np.roll(trace, 1, axis=0)
    ),
    _who(
        f"participants are those of the next round: {_THERE_AND_BACK}",
        lambda trace: np.concatenate([trace[1:], trace[-1:]]),
    ),
    _who("only the first of those present counts", lambda trace: _first_of(trace, 1)),
    _who(
        "only the last of those present counts: models overwrite each other",
        lambda trace: _first_of(trace[:, ::-1], 1)[:, ::-1],
    ),
    _who("only the first ten of those present are used", lambda trace: _first_of(trace, 10)),
    _who(
        "in a round without participants everybody takes part",
        lambda trace: trace | ~trace.any(axis=1, keepdims=True),
    ),
    _who(
        "a round with a single client of several is skipped: a minimum of two",
        lambda trace: trace & ((trace.sum(axis=1) != 1) | (trace.shape[1] == 1))[:, None],
    ),
    _who(
        "rounds with less than half of the clients are skipped",
        lambda trace: trace & (2 * trace.sum(axis=1) >= trace.shape[1])[:, None],
    ),
)


def _last_change(play: Play, x: FloatArray, go: Steps) -> FloatArray:
    """Return what the last of those present changes."""
    client = play.clients[play.who[-1]]
    last: FloatArray = Steps(client, go.number, go.lr, go.push, go.proximal)(x) - x
    return last
