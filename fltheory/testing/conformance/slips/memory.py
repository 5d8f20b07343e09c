"""Slips in what the server keeps of each client: how it begins, when it is renewed, its mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from fltheory.testing.conformance.own_runs import Play, Slip, Steps
from fltheory.testing.conformance.slips.weights import over
from fltheory.testing.conformance.specifications import Specification
from fltheory.validation import FloatArray

Kept: TypeAlias = Callable[[Play, FloatArray, FloatArray], FloatArray]
"""What is kept after a round, (N, d), of what was kept before and of what the paper keeps."""
Mean: TypeAlias = Callable[[Play, FloatArray, FloatArray], FloatArray]

_IN_ROUND = ("mifa", "fedar")
"""Those that step along what they have just renewed."""


def own_change(play: Play, k: int) -> FloatArray:
    """Return what the paper's local steps of a client change in the round's model."""
    given = play.given
    steps = Steps(play.clients[k], int(given["local_steps"]), given["client_lr"])
    return steps(play.x) - play.x


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
    return Slip(
        says,
        after=lambda play, old, new: {
            one.memory: kept(play, old[one.memory][0], new[one.memory][0])[None]
        },
    )


def _there(play: Play, rows: FloatArray) -> np.ndarray:
    """Return who is there, (N, 1); of clusters, which have somebody there."""
    here = play.here
    if "clusters" in play.given:
        groups = np.array(play.given["clusters"])
        here = np.array([here[groups == group].any() for group in range(len(rows))])
    return np.asarray(here[:, None])


def _mean_of_all(play: Play, old: FloatArray, new: FloatArray) -> FloatArray:
    times = play.kept["times"] = play.kept.get("times", 0) + _there(play, new)
    return np.where(_there(play, new), old + (new - old) / np.maximum(times, 1), old)


def _one_entry(play: Play, old: FloatArray, new: FloatArray) -> FloatArray:
    rows = np.flatnonzero(_there(play, new))
    return np.tile(new[rows[-1]], (len(new), 1)) if rows.size else old


def _packed(play: Play, trace: np.ndarray) -> np.ndarray:
    play.kept["those"] = [np.flatnonzero(row) for row in trace]
    return np.array([np.arange(play.n) < row.sum() for row in trace])


def _by_place(play: Play, k: int) -> int:
    return int(play.kept["those"][play.t - 1][k])


BY_PLACE = Slip(
    "what is known or kept of a client is looked up by its place in the round, not by the client: "
    "it gets another's",
    trace=_packed,
    local=lambda play, k, x, go: replace(go, client=play.clients[_by_place(play, k)])(x) - x,
    loss=lambda play, k, x: play.clients[_by_place(play, k)].loss(x),
)


def of_what_is_kept(one: Specification) -> list[Slip]:
    """Return the slips in what is kept of each client after a round."""
    rows: Mapping[str, Kept] = {
        "the entry of an absent client is set to 0: it begins with 0 again when it returns": (
            lambda play, old, new: np.where(_there(play, new), new, 0.0)
        ),
        "entries decay while their client is absent": (
            lambda play, old, new: np.where(_there(play, new), new, 0.5 * new)
        ),
        "an entry is averaged with the new update instead of overwritten, the first one with 0": (
            lambda play, old, new: (old + new) / 2
        ),
        "an entry is averaged with the new update instead of overwritten": (
            lambda play, old, new: np.where(old.any(axis=1, keepdims=True), (old + new) / 2, new)
        ),
        "an entry is the mean of all updates of the client, not the latest one": _mean_of_all,
        "the new update is added to the entry instead of overwriting it": (
            lambda play, old, new: np.where(_there(play, new), old + new, old)
        ),
        "an entry keeps the client's first update": (
            lambda play, old, new: np.where(old.any(axis=1, keepdims=True), old, new)
        ),
        "all clients share one entry: the same array in memory": _one_entry,
        "entries have server_lr in them: it counts twice": (
            lambda play, old, new: np.where(_there(play, new), play.given["server_lr"] * new, old)
        ),
        "entries are never renewed": lambda play, old, new: old,
    }
    found = [keeping(one, says, kept) for says, kept in rows.items()]
    return [*found, _at_the_weights(one)]


def _at_the_weights(one: Specification) -> Slip:
    return Slip(
        "what is kept of a client starts at the model's weights instead of 0",
        first=lambda play, state: {
            one.memory: np.tile(play.x0[0], (1, state[one.memory].shape[1], 1))
        },
    )


def _away(play: Play, rows: FloatArray) -> FloatArray:
    return np.asarray(rows[~play.here].sum(axis=0) / play.n)


def of_mean(one: Specification) -> list[Slip]:
    """Return the slips in the mean over all clients of what is kept of them."""
    what = "the memory's mean"
    means: Mapping[str, Mean] = {
        f"{what} is over those present, not over all N": lambda play, rows, mean: (
            rows[play.here].sum(axis=0) / over(play.here.sum())
        ),
        f"{what} is the sum divided by the number present, not by all N": (
            lambda play, rows, mean: rows.sum(axis=0) / over(play.here.sum())
        ),
        f"{what} is over those seen so far, not over all N": lambda play, rows, mean: (
            rows.sum(axis=0) / over(play.seen.sum())
        ),
        f"{what} is over those seen in earlier rounds, not over all N": (
            lambda play, rows, mean: rows.sum(axis=0) / over(play.seen_before.sum())
        ),
        "the memory is added up instead of averaged over N": (
            lambda play, rows, mean: rows.sum(axis=0)
        ),
        f"{what} is left out": lambda play, rows, mean: 0 * mean,
        f"{what} has the wrong sign": lambda play, rows, mean: -mean,
        f"{what} is weighted by data size": lambda play, rows, mean: (
            play.sizes @ rows / over(play.sizes.sum())
        ),
        f"{what} leaves out those present: it is over absent clients": (
            lambda play, rows, mean: _away(play, rows)
        ),
        f"{what} leaves out the absent: they are forgotten": lambda play, rows, mean: (
            rows[play.here].sum(axis=0) / play.n
        ),
    }
    return [Slip(says, mean=mean) for says, mean in means.items()]


def _still(says: str, stands: Callable[[Play], bool]) -> Slip:
    return Slip(says, move=lambda play, x, step: x if stands(play) else x + step)


def _renewed_early(one: Specification, says: str, who: Callable[[Play], list[int]]) -> Slip:
    """Return memories that the round's own updates are in before they are used."""

    def before(play: Play, state: Mapping[str, Any]) -> dict[str, Any]:
        rows, play.x = state[one.memory].copy(), state["x"][0]
        for k in who(play):
            rows[0, k] = own_change(play, k) / -_reach(play)
        return {one.memory: rows}

    return Slip(says, before=before)


def _reach(play: Play) -> float:
    return float(play.given["client_lr"] * play.given["local_steps"])


def _fresh_rows(play: Play, rows: FloatArray) -> FloatArray:
    fresh = rows.copy()
    for k, change in play.changes.items():
        fresh[k] = change / -_reach(play)
    return fresh


def fedvarp(one: Specification) -> list[Slip]:
    """Return what else goes wrong in FedVARP, and with one memory a cluster."""
    own = "y" if one.name == "fedvarp" else "the cluster's"
    found = [
        Slip(
            "the old memory is not subtracted from the changes",
            names={
                "weighted_sum": lambda play, plain, weights, vectors: plain(
                    weights, vectors + _own_rows(play)
                )
            },
        ),
        Slip(
            "an empty round moves along the memory",
            names={"anybody": lambda play, plain, who, like: np.ones((len(like), 1))},
        ),
        keeping(
            one,
            f"the memory keeps the surprise over {own} instead of the update",
            lambda play, old, new: np.where(_there(play, new), new - old, old),
        ),
        keeping(
            one,
            "the memory is scaled by client_lr K, unlike the update",
            lambda play, old, new: np.where(_there(play, new), -_reach(play) * new, old),
        ),
    ]
    if one.name == "fedvarp":
        found += [
            Slip(
                "the memory's mean is taken after its renewal",
                mean=lambda play, rows, mean: _fresh_rows(play, rows).mean(axis=0),
            ),
            _renewed_early(
                one,
                "the memory is overwritten before the surprise is taken, which is then 0",
                lambda play: play.who,
            ),
            _renewed_early(
                one,
                "a client's memory starts at its first update instead of 0, so that this is no "
                "surprise",
                lambda play: [k for k in play.who if not play.seen_before[k]],
            ),
            keeping(
                one,
                "every client's memory becomes the mean of the round's updates",
                lambda play, old, new: (
                    np.tile(new[play.here].mean(axis=0), (play.n, 1)) if play.who else old
                ),
            ),
        ]
    return found


def _own_rows(play: Play) -> FloatArray:
    rows = play.state["y"]
    return np.asarray(rows[:, list(play.given["clusters"])] if "clusters" in play.given else rows)


def _models_kept(says: str, everybody: bool) -> Slip:
    """Return a table of models instead of updates."""

    def mean(play: Play, rows: FloatArray, proper: FloatArray) -> FloatArray:
        ends = play.kept.setdefault("ends", np.tile(play.x0[0], (play.n, 1)))
        for k, change in play.changes.items():
            ends[k] = play.x + change
        away = play.x - ends if everybody else np.where(play.seen[:, None], play.x - ends, 0.0)
        return np.asarray(away.mean(axis=0) / play.given["client_lr"])

    return Slip(says, mean=mean)


def mifa(one: Specification) -> list[Slip]:
    """Return what else goes wrong in MIFA."""
    other = {"wait": "zero", "zero": "wait"}
    return [
        Slip(
            "the other start: it waits where it should not, or does not where it should",
            options=lambda play, given: {"start": other[given.get("start", "wait")]},
        ),
        *(
            Slip(says, options=lambda play, given, start=start: {"start": start})
            for start, says in {
                "wait": "start is ignored: it always waits until all have appeared",
                "zero": "start is ignored: it never waits until all have appeared",
            }.items()
        ),
        _still(
            "the first step is made one round after the last client has appeared",
            lambda play: play.given.get("start", "wait") == "wait" and not play.seen_before.all(),
        ),
        _still(
            "an empty round leaves the model, instead of a step along the table",
            lambda play: not play.who,
        ),
        Slip(
            "the step is along the table before its renewal",
            mean=lambda play, rows, mean: play.state["updates"][0].mean(axis=0),
        ),
        Slip(
            "updates of the waiting time are forgotten",
            after=lambda play, old, new: (
                {"updates": 0 * new["updates"]} if "appeared" in new and not play.seen.all() else {}
            ),
        ),
        Slip(
            "updates of the waiting time are forgotten, those of the last round of it, too",
            after=lambda play, old, new: (
                {"updates": np.where(play.here[:, None], new["updates"], 0.0)}
                if "appeared" in new and play.seen.all() and not play.seen_before.all()
                else {}
            ),
        ),
        Slip(
            "the entry of an absent client is set to 0 after the round: no memory",
            after=lambda play, old, new: {
                "updates": np.where(play.here[:, None], new["updates"], 0.0)
            },
        ),
        Slip(
            "an entry counts only once, and is then set to 0",
            after=lambda play, old, new: (
                {"updates": 0 * new["updates"]} if (new["x"] != old["x"]).any() else {}
            ),
        ),
        _models_kept(
            "the table keeps models, not changes: stale clients pull to old models", False
        ),
        _models_kept(
            "the table keeps models, not changes, at x0 for those who have not appeared", True
        ),
    ]


def _psi(says: str, weight: Callable[[FloatArray, float, float], FloatArray]) -> Slip:
    """Return other weights of ages than ``min(1 + growth tau, largest)``."""
    return Slip(
        says,
        algorithm={
            "weight": lambda play, psi: (
                lambda ages: np.asarray(weight(ages, psi.growth, psi.largest))
            )
        },
    )


def _number(says: str, number: Callable[[Play, FloatArray], float]) -> Slip:
    """Return another divisor than N_t, of who counts, (N,)."""

    def average(play: Play, plain: Any, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        counts = weights[0] > 0
        proper = over(float(counts.sum()))
        play.kept["psi"] = weights[0]
        return np.asarray(plain(weights, vectors) * proper / over(number(play, counts)))

    return Slip(says, names={"weighted_sum": average})


def _who_counts(says: str, counts: Callable[[Play, np.ndarray], np.ndarray]) -> Slip:
    """Return others than those within the cut-off, in the sum and in N_t."""

    def average(play: Play, plain: Any, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        proper = weights[0] > 0
        those = proper & counts(play, proper)
        found = plain(np.where(those, weights, 0.0), vectors)
        return np.asarray(found * over(float(proper.sum())) / over(float(those.sum())))

    return Slip(says, names={"weighted_sum": average})


def _expired(play: Play, counts: np.ndarray) -> np.ndarray:
    gone = play.kept["gone"] = play.kept.get("gone", False) | (play.seen & ~counts)
    return np.asarray(~gone)


def _cutoff(says: str, change: Callable[[float], float]) -> Slip:
    return Slip(says, algorithm={"cutoff": lambda play, cutoff: change(cutoff)})


def _kept_age(play: Play, old: Mapping[str, Any], ages: FloatArray) -> FloatArray:
    return np.where(play.here & play.seen_before, old["inactive"], ages)


def _empty_age(play: Play, old: Mapping[str, Any], ages: FloatArray) -> FloatArray:
    found: FloatArray = ages if play.who else old["inactive"]
    return found


def fedar(one: Specification) -> list[Slip]:
    """Return what else goes wrong in FedAR."""
    return [
        _cutoff("the cut-off excludes an age equal to it: < instead of <=", lambda c: c - 0.5),
        _cutoff("the cut-off is one round too late", lambda c: c + 1),
        _cutoff("the cut-off is not applied", lambda c: np.inf),
        _psi(
            "ages are one too high: psi(tau + 1)",
            lambda age, g, cap: np.minimum(1 + g * (age + 1), cap),
        ),
        _psi(
            "ages are one too low: psi(tau - 1)",
            lambda age, g, cap: np.minimum(1 + g * (age - 1), cap),
        ),
        _psi("weights do not grow with the age", lambda age, g, cap: np.ones_like(age)),
        _psi("psi is not capped at largest", lambda age, g, cap: 1 + g * age),
        _psi(
            "weights grow by the factor 1 + growth a round, not by the term growth",
            lambda age, g, cap: np.minimum((1 + g) ** age, cap),
        ),
        _psi(
            "weights fall with the age, 1/(1 + growth tau), instead of growing",
            lambda age, g, cap: 1 / (1 + g * age),
        ),
        _psi(
            "weights fall with the age instead of growing: 1/psi",
            lambda age, g, cap: 1 / np.minimum(1 + g * age, cap),
        ),
        _psi(
            "the cap is on growth tau, before 1 is added",
            lambda age, g, cap: 1 + np.minimum(g * age, cap),
        ),
        _psi(
            "weights of the age are applied twice",
            lambda age, g, cap: np.minimum(1 + g * age, cap) ** 2,
        ),
        _number("divides by N instead of N_t, those that count", lambda play, counts: play.n),
        _number(
            "divides by all who ever appeared, not by those within the cut-off: clients beyond it "
            "still count in N_t",
            lambda play, counts: float(play.seen.sum()),
        ),
        _number(
            "divides by the number present instead of N_t",
            lambda play, counts: float(play.here.sum()) or np.inf,
        ),
        _number(
            "divides by the number present instead of N_t, by 1 where nobody is",
            lambda play, counts: float(play.here.sum()),
        ),
        _number(
            "divides by the sum of the weights instead of N_t",
            lambda play, counts: float(play.kept["psi"].sum()),
        ),
        _number(
            "clients who never appeared count in N_t",
            lambda play, counts: float(counts.sum() + (~play.seen).sum()),
        ),
        _who_counts(
            "only those present count: stale updates are left out, there is no memory",
            lambda play, counts: play.here,
        ),
        _who_counts("a client that was beyond the cut-off once never counts again", _expired),
        _still("an empty round leaves the model", lambda play: not play.who),
        _reset_ages(
            "an age is not set to 0 on return: it stands still while the client is present",
            _kept_age,
        ),
        _reset_ages(
            "an age is not set to 0 on return: it grows on",
            lambda play, old, ages: np.where(play.seen, old["inactive"] + 1, ages),
        ),
        _reset_ages("ages do not grow in an empty round", _empty_age),
        Slip(
            "psi is taken at the ages of the round before",
            algorithm={"weight": lambda play, psi: lambda ages: psi(play.state["inactive"])},
        ),
        Slip(
            "updates are weighted by data size, too",
            names={
                "weighted_sum": lambda play, plain, weights, vectors: plain(
                    weights * play.sizes * play.n / over(play.sizes.sum()), vectors
                )
            },
        ),
    ]


def _reset_ages(
    says: str, age: Callable[[Play, Mapping[str, Any], FloatArray], FloatArray]
) -> Slip:
    """Return ages that are reset, or grow, at other times."""

    def weight(play: Play, psi: Any) -> Any:
        def of_age(ages: FloatArray) -> FloatArray:
            own = age(play, play.state, ages)
            return np.where(own <= play.given.get("cutoff", np.inf), psi(own), 0.0)

        return of_age

    def average(play: Play, plain: Any, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        # Without a cut-off the sum is divided by the number of those seen.
        counts = float((weights[0] > 0).sum())
        return np.asarray(plain(weights, vectors) * play.seen.sum() / over(counts))

    return Slip(
        says,
        algorithm={"cutoff": lambda play, cutoff: np.inf, "weight": weight},
        names={"weighted_sum": average},
        after=lambda play, old, new: {"inactive": age(play, old, new["inactive"])},
    )
