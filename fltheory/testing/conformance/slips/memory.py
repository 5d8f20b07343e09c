"""Slips in the server's memory of each client, i.e. in its start, its renewal or its mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.own_runs import Change, Play, Slip, Steps, slips
from fltheory.testing.conformance.slips.weights import over
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

Kept: TypeAlias = Callable[[Play, FloatArray, FloatArray], FloatArray]
"""The memory after a round, (N, d), from the memory before it and the paper's new one."""
State: TypeAlias = Mapping[str, Any]

_IN_ROUND = ("mifa", "fedar")
"""Those that step along what they have just renewed."""


def keeping(one: Specification, says: str, kept: Kept) -> Slip:
    """Return a slip with a wrong memory."""
    if one.name in _IN_ROUND:
        return Slip(
            says,
            names={
                "renewed": lambda play, plain, old, fresh, who: kept(
                    play, old[0], plain(old, fresh, who)[0]
                )[None]
            },
        )
    key = one.memory
    return Slip(
        says, after=lambda play, old, new: {key: kept(play, old[key][0], new[key][0])[None]}
    )


def there(play: Play, rows: FloatArray) -> np.ndarray:
    """Return which clients are present, (N, 1), or which clusters have a client present."""
    here = play.here
    if "clusters" in play.given:
        groups = np.array(play.given["clusters"])
        here = np.array([here[groups == group].any() for group in range(len(rows))])
    return np.asarray(here[:, None])


def _mean_of_all(play: Play, old: FloatArray, new: FloatArray) -> FloatArray:
    times = play.kept["times"] = play.kept.get("times", 0) + there(play, new)
    return np.where(there(play, new), old + (new - old) / np.maximum(times, 1), old)


def _one_entry(play: Play, old: FloatArray, new: FloatArray) -> FloatArray:
    rows = np.flatnonzero(there(play, new))
    return np.tile(new[rows[-1]], (len(new), 1)) if rows.size else old


_KEPT: Mapping[str, Kept] = {
    "the entry of an absent client is set to 0: it begins with 0 when it returns": (
        lambda p, old, new: np.where(there(p, new), new, 0.0)
    ),
    "entries decay while their client is absent": lambda p, old, new: np.where(
        there(p, new), new, 0.5 * new
    ),
    "an entry is averaged with the new update instead of overwritten": lambda p, old, new: np.where(
        old.any(axis=1, keepdims=True), (old + new) / 2, new
    ),
    "an entry is averaged with the new update, the first one with 0": lambda p, old, new: (
        (old + new) / 2
    ),
    "an entry is the mean of all updates of the client, not the latest one": _mean_of_all,
    "the new update is added to the entry instead of overwriting it": lambda p, old, new: np.where(
        there(p, new), old + new, old
    ),
    "an entry keeps the client's first update": lambda p, old, new: np.where(
        old.any(axis=1, keepdims=True), old, new
    ),
    "all clients share one entry: the same array in memory": _one_entry,
    "entries include server_lr, so it counts twice": lambda p, old, new: np.where(
        there(p, new), p.given["server_lr"] * new, old
    ),
}

_MEAN: Mapping[str, Change] = {
    "is over those present, not over all N": lambda p, y, mean: (
        y[p.here].sum(axis=0) / over(sum(p.here))
    ),
    "is the sum divided by the number present, not by all N": lambda p, y, mean: (
        y.sum(axis=0) / over(sum(p.here))
    ),
    "is divided by those seen so far, not by N": lambda p, y, mean: (
        y.sum(axis=0) / over(sum(p.seen))
    ),
    "is divided by those seen in earlier rounds, not by N": lambda p, y, mean: (
        y.sum(axis=0) / over(sum(p.seen_before))
    ),
    "is the sum, not divided by N": lambda p, y, mean: y.sum(axis=0),
    "is left out": lambda p, y, mean: 0 * mean,
    "has the wrong sign": lambda p, y, mean: -mean,
    "is weighted by data size": lambda p, y, mean: p.sizes @ y / over(p.sizes.sum()),
    "leaves out those present: it is over absent clients only": lambda p, y, mean: (
        y[~p.here].sum(axis=0) / p.n
    ),
    "leaves out the absent: they are forgotten": lambda p, y, mean: y[p.here].sum(axis=0) / p.n,
}


def of_memory(one: Specification) -> list[Slip]:
    """Return the slips in the memory of each client and in the mean over all clients."""
    found = [keeping(one, says, kept) for says, kept in _KEPT.items()]
    if one.name == "fedar":
        return found
    starts = "what is stored about a client starts at the model's weights instead of 0"
    found += slips("mean", _MEAN, "the memory's mean {}")
    return [*found, Slip(starts, first=lambda p, state: {one.memory: p.x0 + 0 * state[one.memory]})]


def _packed(play: Play, trace: np.ndarray) -> np.ndarray:
    play.kept["those"] = [np.flatnonzero(row) for row in trace]
    return np.array([np.arange(play.n) < row.sum() for row in trace])


def _placed(play: Play, k: int) -> Any:
    return play.clients[int(play.kept["those"][play.t - 1][k])]


BY_PLACE = Slip(
    "what is known or stored about a client is looked up by its position in the round: it gets "
    "another client's",
    trace=_packed,
    local=lambda play, k, x, go: replace(go, client=_placed(play, k))(x) - x,
    loss=lambda play, k, x: _placed(play, k).loss(x),
)

# --- FedVARP, with a memory of each client or of each cluster


def _reach(play: Play) -> float:
    return float(play.given["client_lr"] * play.given["local_steps"])


def _early(one: Specification, says: str, who: Callable[[Play], list[int]]) -> Slip:
    """Return a slip in which the memory already contains the round's own updates when used."""

    def before(play: Play, state: State) -> dict[str, Any]:
        rows, x = state[one.memory].copy(), state["x"][0]
        for k in who(play):
            go = Steps(play.clients[k], play.given["local_steps"], play.given["client_lr"])
            rows[0, k] = (x - go(x)) / _reach(play)
        return {one.memory: rows}

    return Slip(says, before=before)


def _renewed_mean(play: Play, rows: FloatArray, mean: FloatArray) -> FloatArray:
    fresh = rows.copy()
    for k, change in play.changes.items():
        fresh[k] = change / -_reach(play)
    return np.asarray(fresh.mean(axis=0))


def _without_surprise(play: Play, plain: Any, weights: FloatArray, vectors: FloatArray) -> Any:
    rows = play.state["y"]
    own = rows[:, list(play.given["clusters"])] if "clusters" in play.given else rows
    return plain(weights, vectors + own)


def fedvarp(one: Specification) -> list[Slip]:
    """Return further slips in FedVARP and ClusterFedVARP."""
    surprise = "the memory keeps the surprise instead of the update"
    found = [
        Slip("the old memory is not subtracted: no surprise", names={
            "weighted_sum": _without_surprise
        }),
        Slip("an empty round moves along the memory", names={
            "anybody": lambda play, plain, who, like: np.ones((len(like), 1))
        }),
        keeping(one, surprise, lambda p, old, new: np.where(there(p, new), new - old, old)),
    ]  # fmt: skip
    if one.name == "fedvarp":
        too_early = "the memory is overwritten before the surprise is taken, which is then 0"
        at_first = "a client's memory starts at its first update instead of 0: no surprise"
        found += [
            Slip("the memory's mean is taken after the memory is updated", mean=_renewed_mean),
            _early(one, too_early, lambda p: p.who),
            _early(one, at_first, lambda p: [k for k in p.who if not p.seen_before[k]]),
        ]
    return found


# --- MIFA: the table and the wait


def _models_kept(unseen: bool, play: Play, rows: FloatArray, proper: FloatArray) -> FloatArray:
    """Return the mean of a table of models instead of updates, with x0 or 0 for unseen clients."""
    ends = play.kept.setdefault("ends", np.tile(play.x0[0], (play.n, 1)))
    for k, change in play.changes.items():
        ends[k] = play.x + change
    away = np.where(play.seen[:, None] | unseen, play.x - ends, 0.0)
    return np.asarray(away.mean(axis=0) / play.given["client_lr"])


def _waits(play: Play) -> bool:
    return bool(play.given.get("start", "wait") == "wait")


def _forgotten(play: Play, new: State, *, last: bool) -> State:
    """Return the table without the updates from the waiting time, or with only the last round's."""
    just = play.seen.all() and not play.seen_before.all()
    stays = play.here[:, None] & just | (just and last)
    waited = _waits(play) and not play.seen_before.all()
    return {"updates": np.where(stays | (not waited), new["updates"], 0.0)}


_STANDS: Mapping[str, Change] = {
    "the first step comes one round after the last client has appeared": lambda p, x, step: (
        x if _waits(p) and not p.seen_before.all() else x + step
    ),
}
_STANDS_IF_EMPTY: Mapping[str, Change] = {
    "an empty round leaves the model as it is, instead of stepping along the memory": (
        lambda p, x, step: x + step if p.who else x
    ),
}
_START: Mapping[str, Change] = {
    "the other start: it waits although it should not, or does not wait although it should": (
        lambda p, given: {"start": "zero" if _waits(p) else "wait"}
    ),
    "start is ignored: it always waits until all have appeared": lambda p, given: {"start": "wait"},
    "start is ignored: it never waits until all have appeared": lambda p, given: {"start": "zero"},
}
_TABLE: Mapping[str, Change] = {
    "updates of the waiting time are forgotten": lambda p, old, new: _forgotten(p, new, last=False),
    "updates of the waiting time are forgotten, except those of its last round": (
        lambda p, old, new: _forgotten(p, new, last=True)
    ),
    "the entry of an absent client is set to 0 after the round: no memory": lambda p, old, new: {
        "updates": np.where(p.here[:, None], new["updates"], 0.0)
    },
}
_ALONG: Mapping[str, Change] = {
    "the step uses the table before it is updated": lambda p, y, mean: p.state["updates"][0].mean(
        axis=0
    ),
    "the table keeps models, not changes: stale ones pull": partial(_models_kept, False),
    "the table keeps models, not changes, at first x0": partial(_models_kept, True),
}


def mifa(one: Specification) -> list[Slip]:
    """Return further slips in MIFA."""
    return [
        *slips("options", _START),
        *slips("move", {**_STANDS, **_STANDS_IF_EMPTY}),
        *slips("after", _TABLE),
        *slips("mean", _ALONG),
    ]


# --- FedAR: ages, psi and N_t

_PSI: Mapping[str, Change] = {
    "ages are one too high: psi(tau + 1)": lambda p, psi: lambda age: psi(age + 1),
    "ages are one too low: psi(tau - 1)": lambda p, psi: lambda age: psi(age - 1),
    "weights do not grow with the age": lambda p, psi: lambda age: age**0,
    "psi is not capped at largest": lambda p, psi: lambda age: 1 + psi.growth * age,
    "weights grow by the factor 1 + growth a round": lambda p, psi: (
        lambda age: np.minimum((1 + psi.growth) ** age, psi.largest)
    ),
    "weights fall with the age, 1/(1 + growth tau)": lambda p, psi: (
        lambda age: 1 / (1 + psi.growth * age)
    ),
    "weights fall with the age: 1/psi": lambda p, psi: lambda age: 1 / psi(age),
    "psi is applied twice": lambda p, psi: lambda age: psi(age) ** 2,
}
_LATE_PSI: Mapping[str, Change] = {
    "psi is taken at the ages of the round before": lambda p, psi: (
        lambda age: psi(p.state["inactive"])
    ),
}
_CUTOFF: Mapping[str, Change] = {
    "the cut-off excludes an age equal to it: < instead of <=": lambda p, most: most - 0.5,
    "the cut-off is one round too late": lambda p, most: most + 1,
    "the cut-off is not applied": lambda p, most: np.inf,
}
# The summands, (N,), and the divisor.
_COUNTED: Mapping[str, Callable[[Play, FloatArray], tuple[FloatArray, float]]] = {
    "divides by N instead of N_t, those that count": lambda p, psi: (psi, p.n),
    "divides by all who ever appeared: clients beyond the cut-off still count in N_t": (
        lambda p, psi: (psi, sum(p.seen))
    ),
    "divides by the number present instead of N_t": lambda p, psi: (psi, sum(p.here) or np.inf),
    "divides by the number present instead of N_t, or by 1 if nobody is": (
        lambda p, psi: (psi, sum(p.here))
    ),
    "divides by the sum of the weights instead of N_t": lambda p, psi: (psi, psi.sum()),
    "clients who never appeared count in N_t": lambda p, psi: (psi, sum((psi > 0) | ~p.seen)),
    "only those present count: stale updates are left out": lambda p, psi: _of(psi, p.here),
    "a client that was once beyond the cut-off never counts again": lambda p, psi: _of(
        psi, ~_ever_expired(p, psi > 0)
    ),
}
_SIZED: Mapping[str, Callable[[Play, FloatArray], tuple[FloatArray, float]]] = {
    "updates are also weighted by data size": lambda p, psi: (
        psi * p.sizes * p.n / over(p.sizes.sum()),
        sum(psi > 0),
    ),
}
_AGE: Mapping[str, Callable[[Play, FloatArray, FloatArray], FloatArray]] = {
    "an age is not set to 0 on return: it stays the same": lambda p, old, ages: np.where(
        p.here & p.seen_before, old, ages
    ),
    "an age is not set to 0 on return: it keeps growing": lambda p, old, ages: np.where(
        p.seen_before, old + 1, ages
    ),
    "ages do not grow in an empty round": lambda p, old, ages: ages if p.who else old,
}


def _of(psi: FloatArray, those: np.ndarray) -> tuple[FloatArray, float]:
    mine = np.where(those, psi, 0.0)
    return mine, float((mine > 0).sum())


def _ever_expired(play: Play, counts: np.ndarray) -> np.ndarray:
    gone = play.kept["gone"] = play.kept.get("gone", False) | (play.seen & ~counts)
    return np.asarray(gone)


def _counted(change: Callable[[Play, FloatArray], tuple[FloatArray, float]]) -> Change:
    """Return a mean over clients other than the N_t that count, or with a different divisor."""

    def average(play: Play, plain: Any, psi: FloatArray, updates: FloatArray) -> FloatArray:
        mine, number = change(play, psi[0])
        return np.asarray(plain(mine[None], updates) * (psi > 0).sum() / over(float(number)))

    return average


def _aged(says: str, age: Callable[[Play, FloatArray, FloatArray], FloatArray]) -> Slip:
    """Return a slip in which ages are reset or grow at wrong times."""

    def weight(play: Play, psi: Any) -> Any:
        def of_age(ages: FloatArray) -> FloatArray:
            own = age(play, play.state["inactive"], ages)
            return np.where(own <= play.given.get("cutoff", np.inf), psi(own), 0.0)

        return of_age

    def average(play: Play, plain: Any, psi: FloatArray, updates: FloatArray) -> FloatArray:
        # Without a cut-off, the sum is divided by the number of clients seen.
        return np.asarray(plain(psi, updates) * play.seen.sum() / over(float((psi > 0).sum())))

    return Slip(
        says,
        algorithm={"cutoff": lambda play, cutoff: np.inf, "weight": weight},
        names={"weighted_sum": average},
        after=lambda p, old, new: {"inactive": age(p, old["inactive"], new["inactive"])},
    )


def fedar(one: Specification) -> list[Slip]:
    """Return further slips in FedAR."""
    counted, sized = (
        slips("names.weighted_sum", {says: _counted(change) for says, change in table.items()})
        for table in (_COUNTED, _SIZED)
    )
    return [
        *slips("algorithm.weight", _PSI),
        *slips("algorithm.cutoff", _CUTOFF),
        *counted,
        *(_aged(says, age) for says, age in _AGE.items()),
        *slips("move", _STANDS_IF_EMPTY),
        *slips("algorithm.weight", _LATE_PSI),
        *sized,
    ]
