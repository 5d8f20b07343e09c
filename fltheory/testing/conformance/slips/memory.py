"""Slips in what the server keeps of each client: how it begins, when it is renewed, its mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.own_runs import Play, Slip, Steps
from fltheory.testing.conformance.slips.weights import over
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

Kept: TypeAlias = Callable[[Play, FloatArray, FloatArray], FloatArray]
"""What is kept after a round, (N, d), of what was kept before and of what the paper keeps."""
State: TypeAlias = Mapping[str, Any]

_IN_ROUND = ("mifa", "fedar")
"""Those that step along what they have just renewed."""


def keeping(one: Specification, says: str, kept: Kept) -> Slip:
    """Return another memory than the paper's."""
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
    """Return who is there, (N, 1); of clusters, which have somebody there."""
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
    "entries have server_lr in them: it counts twice": lambda p, old, new: np.where(
        there(p, new), p.given["server_lr"] * new, old
    ),
}

_MEAN: Mapping[str, Callable[[Play, FloatArray], FloatArray]] = {
    "is over those present, not over all N": lambda p, y: y[p.here].sum(axis=0) / over(sum(p.here)),
    "is the sum divided by the number present, not by all N": lambda p, y: (
        y.sum(axis=0) / over(sum(p.here))
    ),
    "is divided by those seen so far, not by N": lambda p, y: y.sum(axis=0) / over(sum(p.seen)),
    "is divided by those seen in earlier rounds, not by N": lambda p, y: (
        y.sum(axis=0) / over(sum(p.seen_before))
    ),
    "is the sum, not divided by N": lambda p, y: y.sum(axis=0),
    "is left out": lambda p, y: 0 * y[0],
    "has the wrong sign": lambda p, y: -y.mean(axis=0),
    "is weighted by data size": lambda p, y: p.sizes @ y / over(p.sizes.sum()),
    "leaves out those present: it is over absent clients": lambda p, y: (
        y[~p.here].sum(axis=0) / p.n
    ),
    "leaves out the absent: they are forgotten": lambda p, y: y[p.here].sum(axis=0) / p.n,
}


def of_memory(one: Specification) -> list[Slip]:
    """Return the slips in what is kept of each client, and in its mean over all."""
    found = [keeping(one, says, kept) for says, kept in _KEPT.items()]
    if one.name == "fedar":
        return found
    found += [
        Slip(f"the memory's mean {says}", mean=lambda p, y, mean, of=of: of(p, y))
        for says, of in _MEAN.items()
    ]
    starts = "what is kept of a client starts at the model's weights instead of 0"
    return [*found, Slip(starts, first=lambda p, state: {one.memory: p.x0 + 0 * state[one.memory]})]


def _packed(play: Play, trace: np.ndarray) -> np.ndarray:
    play.kept["those"] = [np.flatnonzero(row) for row in trace]
    return np.array([np.arange(play.n) < row.sum() for row in trace])


def _placed(play: Play, k: int) -> Any:
    return play.clients[int(play.kept["those"][play.t - 1][k])]


BY_PLACE = Slip(
    "what is known or kept of a client is looked up by its position in the round: it gets what "
    "is another client's",
    trace=_packed,
    local=lambda play, k, x, go: replace(go, client=_placed(play, k))(x) - x,
    loss=lambda play, k, x: _placed(play, k).loss(x),
)

# --- FedVARP, with a memory of each client or of each cluster


def _reach(play: Play) -> float:
    return float(play.given["client_lr"] * play.given["local_steps"])


def _early(one: Specification, says: str, who: Callable[[Play], list[int]]) -> Slip:
    """Return memories that have the round's own updates before they are used."""

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
    """Return what else goes wrong in FedVARP, and with one memory a cluster."""
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
    """Return the mean of a table of models instead of updates, with x0 of those not seen or 0."""
    ends = play.kept.setdefault("ends", np.tile(play.x0[0], (play.n, 1)))
    for k, change in play.changes.items():
        ends[k] = play.x + change
    away = np.where(play.seen[:, None] | unseen, play.x - ends, 0.0)
    return np.asarray(away.mean(axis=0) / play.given["client_lr"])


def _waits(play: Play) -> bool:
    return bool(play.given.get("start", "wait") == "wait")


def _forgotten(play: Play, rows: FloatArray, last: bool) -> FloatArray:
    """Return the table without what came while it waited, but in the last round of that."""
    just = play.seen.all() and not play.seen_before.all()
    stays = play.here[:, None] & just | (just and last)
    waited = _waits(play) and not play.seen_before.all()
    return np.where(stays, rows, 0.0) if waited else rows


_STANDS: Mapping[str, Callable[[Play], bool]] = {
    "the first step comes one round after the last client has appeared": lambda p: (
        _waits(p) and not p.seen_before.all()
    ),
    "an empty round leaves the model as it is, instead of stepping along the memory": lambda p: (
        not p.who
    ),
}
_TABLE: Mapping[str, Callable[[Play, FloatArray], FloatArray]] = {
    "updates of the waiting time are forgotten": lambda p, y: _forgotten(p, y, last=False),
    "updates of the waiting time are forgotten, except those of its last round": lambda p, y: (
        _forgotten(p, y, last=True)
    ),
    "the entry of an absent client is set to 0 after the round: no memory": lambda p, y: np.where(
        p.here[:, None], y, 0.0
    ),
}


def standing(says: str) -> Slip:
    """Return a round in which the model stays."""
    return Slip(says, move=lambda play, x, step: x if _STANDS[says](play) else x + step)


def mifa(one: Specification) -> list[Slip]:
    """Return what else goes wrong in MIFA."""
    kept = "the table keeps models, not changes"
    starts = {"wait": "always waits", "zero": "never waits"}
    return [
        Slip(
            "the other start: it waits where it should not, or does not where it should",
            options=lambda p, given: {"start": "zero" if _waits(p) else "wait"},
        ),
        *(
            Slip(
                f"start is ignored: it {says} until all have appeared",
                options=lambda p, given, start=start: {"start": start},
            )
            for start, says in starts.items()
        ),
        *map(standing, _STANDS),
        *(
            Slip(says, after=lambda p, old, new, of=of: {"updates": of(p, new["updates"][0])[None]})
            for says, of in _TABLE.items()
        ),
        Slip(
            "the step uses the table before it is updated",
            mean=lambda p, y, mean: p.state["updates"][0].mean(axis=0),
        ),
        Slip(f"{kept}: stale ones pull", mean=partial(_models_kept, False)),
        Slip(f"{kept}, at first x0", mean=partial(_models_kept, True)),
    ]


# --- FedAR: ages, psi and N_t

_PSI: Mapping[str, Callable[[FloatArray, float, float], FloatArray]] = {
    "ages are one too high: psi(tau + 1)": lambda a, g, cap: np.minimum(1 + g * (a + 1), cap),
    "ages are one too low: psi(tau - 1)": lambda a, g, cap: np.minimum(1 + g * (a - 1), cap),
    "weights do not grow with the age": lambda a, g, cap: a**0,
    "psi is not capped at largest": lambda a, g, cap: 1 + g * a,
    "weights grow by the factor 1 + growth a round": lambda a, g, cap: np.minimum(
        (1 + g) ** a, cap
    ),
    "weights fall with the age, 1/(1 + growth tau)": lambda a, g, cap: 1 / (1 + g * a),
    "weights fall with the age: 1/psi": lambda a, g, cap: 1 / np.minimum(1 + g * a, cap),
    "psi is applied twice": lambda a, g, cap: np.minimum(1 + g * a, cap) ** 2,
}
_NUMBER: Mapping[str, Callable[[Play, FloatArray], float]] = {
    "divides by N instead of N_t, those that count": lambda p, psi: p.n,
    "divides by all who ever appeared: clients beyond the cut-off still count in N_t": (
        lambda p, psi: sum(p.seen)
    ),
    "divides by the number present instead of N_t": lambda p, psi: sum(p.here) or np.inf,
    "divides by the number present instead of N_t, or by 1 if nobody is": lambda p, psi: sum(
        p.here
    ),
    "divides by the sum of the weights instead of N_t": lambda p, psi: float(psi.sum()),
    "clients who never appeared count in N_t": lambda p, psi: sum((psi > 0) | ~p.seen),
}
_CUTOFF: Mapping[str, Callable[[float], float]] = {
    "the cut-off excludes an age equal to it: < instead of <=": lambda most: most - 0.5,
    "the cut-off is one round too late": lambda most: most + 1,
    "the cut-off is not applied": lambda most: np.inf,
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


def _counted(says: str, number: Callable[[Play, FloatArray], float]) -> Slip:
    """Return another divisor than N_t, or others in the sum."""

    def average(play: Play, plain: Any, psi: FloatArray, updates: FloatArray) -> FloatArray:
        proper = float((psi > 0).sum())
        return np.asarray(plain(psi, updates) * proper / over(float(number(play, psi[0]))))

    return Slip(says, names={"weighted_sum": average})


def _others_count(says: str, those: Callable[[Play, np.ndarray], np.ndarray]) -> Slip:
    def average(play: Play, plain: Any, psi: FloatArray, updates: FloatArray) -> FloatArray:
        mine = (psi[0] > 0) & those(play, psi[0] > 0)
        share = over(float((psi > 0).sum())) / over(float(mine.sum()))
        return np.asarray(plain(np.where(mine, psi, 0.0), updates) * share)

    return Slip(says, names={"weighted_sum": average})


def _expired(play: Play, counts: np.ndarray) -> np.ndarray:
    gone = play.kept["gone"] = play.kept.get("gone", False) | (play.seen & ~counts)
    return np.asarray(~gone)


def _aged(says: str, age: Callable[[Play, FloatArray, FloatArray], FloatArray]) -> Slip:
    """Return ages that are reset, or grow, at other times."""

    def weight(play: Play, psi: Any) -> Any:
        def of_age(ages: FloatArray) -> FloatArray:
            own = age(play, play.state["inactive"], ages)
            return np.where(own <= play.given.get("cutoff", np.inf), psi(own), 0.0)

        return of_age

    def average(play: Play, plain: Any, psi: FloatArray, updates: FloatArray) -> FloatArray:
        # Without a cut-off the sum is divided by the number of those seen.
        return np.asarray(plain(psi, updates) * play.seen.sum() / over(float((psi > 0).sum())))

    return Slip(
        says,
        algorithm={"cutoff": lambda play, cutoff: np.inf, "weight": weight},
        names={"weighted_sum": average},
        after=lambda p, old, new: {"inactive": age(p, old["inactive"], new["inactive"])},
    )


def fedar(one: Specification) -> list[Slip]:
    """Return what else goes wrong in FedAR."""
    psi = [
        Slip(
            says,
            algorithm={
                "weight": lambda p, psi, of=of: lambda ages: of(ages, psi.growth, psi.largest)
            },
        )
        for says, of in _PSI.items()
    ]
    cutoffs = [
        Slip(says, algorithm={"cutoff": lambda p, cutoff, of=of: of(cutoff)})
        for says, of in _CUTOFF.items()
    ]
    return [
        *psi,
        *cutoffs,
        *(_counted(says, number) for says, number in _NUMBER.items()),
        _others_count("only those present count: stale updates are left out", lambda p, _: p.here),
        _others_count("a client that was once beyond the cut-off never counts again", _expired),
        *(_aged(says, age) for says, age in _AGE.items()),
        standing("an empty round leaves the model as it is, instead of stepping along the memory"),
        Slip(
            "psi is taken at the ages of the round before",
            algorithm={"weight": lambda p, psi: lambda ages: psi(p.state["inactive"])},
        ),
        Slip(
            "updates are also weighted by data size",
            names={
                "weighted_sum": lambda p, plain, psi, updates: plain(
                    psi * p.sizes * p.n / over(p.sizes.sum()), updates
                )
            },
        ),
    ]
