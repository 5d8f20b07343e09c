"""Pseudo-code that keeps each client's latest update: FedVARP, MIFA, FedAR."""

from __future__ import annotations

import math

import numpy as np

from fltheory.testing.conformance.likely_causes.averaging import PLAIN_MEAN_SLIPS, averaged
from fltheory.testing.conformance.likely_causes.rounds import Paper, Rounds, option_of
from fltheory.validation import FloatArray

VARP_SLIPS = {
    "y mean over S": "the memory's mean is over those present, not over all N",
    "y mean over seen": "the memory's mean is over those seen so far, not over all N",
    "y mean over seen before": "the memory's mean is over those seen in earlier rounds, not over "
    "all N",
    "y sum": "the memory is added up instead of averaged over N",
    "y after": "the memory's mean is taken after its renewal",
    "no y mean": "the memory's mean is left out",
    "no surprise": "the old memory is not subtracted from the changes",
    "y at the first update": "a client's memory starts at its first update instead of 0, so that "
    "this is no surprise",
    "y mean of the absent": "the memory's mean leaves out those present: it is over absent clients",
    "surprise over N": "the surprise is divided by N, not by those present",
    "y renewed first": "the memory is overwritten before the surprise is taken, which is then 0",
    "y reset": "the memory of an absent client is set to 0",
    "y keeps surprise": "the memory keeps the surprise instead of the update",
    "y at the weights": "the memory starts at the model's weights instead of 0",
    "y averaged": "the memory is averaged with the update instead of overwritten",
    "y scaled": "the memory is scaled by client_lr K, unlike the update",
    "y sign": "the memory's mean has the wrong sign",
    "y never": "the memory is never renewed",
    "y for all": "every client's memory becomes the mean of the round's updates",
    "y of the round before": "the surprise is over the memory of the round before last",
    "empty moves": "an empty round moves along the memory",
    "y by size": "the memory's mean is weighted by data size",
    "y with server_lr": "the memory has server_lr in it",
    "y swapped": "memory is kept by the place in the round, not by the client",
}


def fedvarp(rounds: Rounds) -> None:
    """Play the participants' mean surprise over the memory, plus the memory's mean."""
    n, dim = rounds.n, rounds.dim
    y = np.tile(rounds.x, (n, 1)) if rounds.has("y at the weights") else rounds.zeros(n, dim)
    older, seen = y.copy(), set[int]()
    for who in rounds.present():
        slots = list(range(len(who))) if rounds.has("y swapped") else who
        changes = {k: rounds.change(k) for k in who}
        if rounds.has("y renewed first") or rounds.has("y at the first update"):
            early = who if rounds.has("y renewed first") else [k for k in who if k not in seen]
            for k in early:
                y[k] = changes[k]
        earlier = len(seen)
        seen |= set(who)
        against = older if rounds.has("y of the round before") else y
        surprises = {
            k: change - against[slot] * (not rounds.has("no surprise"))
            for slot, (k, change) in zip(slots, changes.items(), strict=True)
        }
        fresh = _memory_after(rounds, y, dict(zip(slots, changes.values(), strict=True)))
        mean = _memory_mean(rounds, fresh if rounds.has("y after") else y, who, len(seen), earlier)
        surprise = averaged(rounds, surprises, by_size=False)
        if rounds.has("surprise over N"):
            surprise = surprise * len(who) / n
        older, y = y, fresh
        if who or rounds.has("empty moves"):
            rounds.move(surprise + mean)
        else:
            rounds.move(rounds.zeros(dim))


def _memory_after(rounds: Rounds, y: FloatArray, changes: dict[int, FloatArray]) -> FloatArray:
    fresh = y.copy()
    for k, change in changes.items():
        fresh[k] = {
            "y keeps surprise": change - y[k],
            "y averaged": (y[k] + change) / 2,
            "y scaled": change / (rounds.eta * rounds.case.steps[k]),
            "y never": y[k],
            "y with server_lr": rounds.case.server_lr * change,
        }.get(rounds.slip, change)
    if rounds.has("y reset"):
        fresh[[k for k in range(rounds.n) if k not in changes]] = 0
    if rounds.has("y for all") and changes:
        fresh[:] = np.mean(list(changes.values()), axis=0)
    return fresh


def _memory_mean(
    rounds: Rounds, y: FloatArray, who: list[int], seen: int, earlier: int
) -> FloatArray:
    if rounds.has("no y mean"):
        return np.zeros(rounds.dim)
    if rounds.has("y mean of the absent"):
        away = [k for k in range(rounds.n) if k not in who]
        return np.asarray(y[away].sum(axis=0) / rounds.n)
    if rounds.has("y by size"):
        return np.asarray(rounds.sizes @ y / max(rounds.sizes.sum(), 1.0))
    if rounds.has("y mean over S"):
        return np.asarray(y[who].mean(axis=0)) if who else np.zeros(rounds.dim)
    divisor = {
        "y mean over seen": max(seen, 1),
        "y mean over seen before": max(earlier, 1),
        "y sum": 1,
    }.get(rounds.slip, rounds.n)
    return np.asarray(y.sum(axis=0) / divisor) * (-1 if rounds.has("y sign") else 1)


MIFA_SLIPS = {
    "over S": "the table's sum is divided by the number present, not by N",
    "over seen": "the table's sum is divided by the clients seen so far, not by N",
    "sum": "the table is added up instead of averaged over N",
    "other start": "the other start: it waits where it should not, or does not where it should",
    "always waits": "start is ignored: it always waits until all have appeared",
    "never waits": "start is ignored: it never waits until all have appeared",
    "one round late": "the first step is made one round after the last client has appeared",
    "waits for any": "it waits until anybody has appeared, not all",
    "reset when absent": "the entry of an absent client is set to 0: no memory",
    "reset after": "the entry of an absent client is set to 0 after the round: no memory",
    "used once": "an entry counts only once, and is then set to 0",
    "empty stands": "an empty round leaves the model, instead of a step along the table",
    "averaged": "an entry is averaged with the new update instead of overwritten, the first one "
    "with 0",
    "averaged once seen": "an entry is averaged with the new update instead of overwritten",
    "mean of all": "an entry is the mean of all updates of the client, not the latest one",
    "one entry": "all clients share one entry: the same array in memory",
    "added": "the new update is added to the entry instead of overwriting it",
    "before": "the step is along the table before its renewal",
    "at the weights": "the table starts at the model's weights instead of 0",
    "with server_lr": "the table has server_lr in it: it counts twice",
    "by size": "the table's mean is weighted by data size",
    "swapped": "entries are kept by the place in the round, not by the client",
    "waiting forgotten": "updates of the waiting time are forgotten",
    "first kept": "an entry keeps the client's first update",
    "decayed": "entries decay with their age",
    "models kept": "the table keeps models, not changes: stale clients pull to old models",
    "models of all": "the table keeps models, not changes, at x0 for those who have not appeared",
}


def mifa(rounds: Rounds) -> None:
    """Play the table's mean over N; entries of those present are overwritten."""
    n, dim = rounds.n, rounds.dim
    waits = (option_of(rounds, "start", "wait") == "wait") != rounds.has("other start")
    waits = {"always waits": True, "never waits": False}.get(rounds.slip, waits)
    table = np.tile(rounds.x, (n, 1)) if rounds.has("at the weights") else rounds.zeros(n, dim)
    ends, seen = np.tile(rounds.x, (n, 1)), set[int]()
    times = np.zeros(n)
    for who in rounds.present():
        complete_before, old = len(seen) == n, table.copy()
        seen |= set(who)
        for place, k in enumerate(who):
            slot = place if rounds.has("swapped") else k
            change = rounds.change(k)
            ends[slot] = rounds.x + change
            times[slot] += 1
            table[slice(None) if rounds.has("one entry") else slot] = _entry(
                rounds, old[slot], change, times[slot]
            )
        away = [k for k in range(n) if k not in who]
        table[away] *= {"reset when absent": 0.0, "decayed": 0.5}.get(rounds.slip, 1.0)
        complete = complete_before if rounds.has("one round late") else len(seen) == n
        complete = bool(seen) if rounds.has("waits for any") else complete
        still = (waits and not complete) or (rounds.has("empty stands") and not who)
        if rounds.has("waiting forgotten") and waits and len(seen) < n:
            table[:] = 0
        source = {
            "before": old,
            "models kept": np.where(table.any(axis=1, keepdims=True), ends - rounds.x, 0.0),
            "models of all": ends - rounds.x,
        }.get(rounds.slip, table)
        step = _table_mean(rounds, source, len(who), len(seen))
        rounds.move(np.zeros(dim) if still else step)
        table[away] *= not rounds.has("reset after")
        table *= still or not rounds.has("used once")


def _entry(rounds: Rounds, old: FloatArray, change: FloatArray, times: float) -> FloatArray:
    return {
        "averaged once seen": change if times == 1 else (old + change) / 2,
        "mean of all": old + (change - old) / times,
        "averaged": (old + change) / 2,
        "added": old + change,
        "with server_lr": rounds.case.server_lr * change,
        "first kept": old if old.any() else change,
    }.get(rounds.slip, change)


def _table_mean(rounds: Rounds, table: FloatArray, present: int, seen: int) -> FloatArray:
    if rounds.has("by size"):
        return np.asarray(rounds.sizes @ table / max(rounds.sizes.sum(), 1.0))
    divisor = {"over S": max(present, 1), "over seen": max(seen, 1), "sum": 1}
    return np.asarray(table.sum(axis=0) / divisor.get(rounds.slip, rounds.n))


AR_SLIPS = {
    "cutoff below": "the cut-off excludes an age equal to it: < instead of <=",
    "cutoff above": "the cut-off is one round too late",
    "no cutoff": "the cut-off is not applied",
    "cutoff of weights only": "clients beyond the cut-off have weight 0 and still count in N_t",
    "age one more": "ages are one too high: psi(tau + 1)",
    "age one less": "ages are one too low: psi(tau - 1)",
    "age never reset": "an age is not set to 0 on return: it grows on",
    "age kept": "an age is not set to 0 on return: it stands still while the client is present",
    "ages before": "psi is taken at the ages of the round before",
    "present only": "only those present count: stale updates are left out, there is no memory",
    "expired for good": "a client that was beyond the cut-off once never counts again",
    "over S or one": "divides by the number present instead of N_t, by 1 where nobody is",
    "decay without cap": "weights fall with the age, 1/(1 + growth tau), instead of growing",
    "over N": "divides by N instead of N_t, those that count",
    "over seen": "divides by all who ever appeared, not by those within the cut-off",
    "over S": "divides by the number present instead of N_t",
    "over weights": "divides by the sum of the weights instead of N_t",
    "no growth": "weights do not grow with the age",
    "no cap": "weights are not capped at largest",
    "growth compounds": "weights grow by the factor 1 + growth a round, not by the term growth",
    "decay": "weights fall with the age instead of growing",
    "cap on growth": "the cap is on growth tau, before 1 is added",
    "never seen counts": "clients who never appeared count in N_t",
    "empty stands": "an empty round leaves the model",
    "empty keeps ages": "ages do not grow in an empty round",
    "reset when absent": "the update of an absent client is forgotten",
    "by size": "updates are weighted by data size, too",
    "age in participations": "ages count rounds since the first appearance",
    "twice": "weights are applied twice",
}


def fedar(rounds: Rounds) -> None:
    """Play 1/N_t sum psi(tau_i) (latest change), over those within the cut-off."""
    n = rounds.n
    growth = float(option_of(rounds, "growth", 0.05))
    largest = float(option_of(rounds, "largest", 2.0))
    cutoff = option_of(rounds, "cutoff", math.inf)
    table, ages, seen = rounds.zeros(n, rounds.dim), np.zeros(n), np.zeros(n, dtype=bool)
    first_seen, gone = np.zeros(n), np.zeros(n, dtype=bool)
    for t, who in enumerate(rounds.present(), start=1):
        ages_before, ages = ages, _ages_after(rounds, who, ages, seen)
        first_seen[[k for k in who if not seen[k]]] = t
        seen[who] = True
        for k in who:
            table[k] = rounds.change(k)
        if rounds.has("reset when absent"):
            table[[k for k in range(n) if k not in who]] = 0
        limit = cutoff(float(t)) if callable(cutoff) else float(cutoff)
        gone |= seen & (ages > limit)
        counts = {
            "expired for good": seen & ~gone,
            "present only": np.isin(np.arange(n), who),
        }.get(rounds.slip, _within(rounds, ages, limit, seen))
        age = {
            "age in participations": t - first_seen,
            "ages before": ages_before,
        }.get(rounds.slip, ages)
        weights = np.where(counts, _psi(rounds, age, growth, largest), 0.0)
        if rounds.has("by size"):
            weights = weights * rounds.sizes * n / max(rounds.sizes.sum(), 1.0)
        total = {
            "over N": n,
            "over seen": seen.sum(),
            "cutoff of weights only": seen.sum(),
            "over S": len(who),
            "over S or one": max(len(who), 1),
            "over weights": weights.sum(),
            "never seen counts": counts.sum() + (~seen).sum(),
        }.get(rounds.slip, counts.sum())
        still = not who and rounds.has("empty stands")
        step = weights @ table / total if total > 0 and not still else np.zeros(rounds.dim)
        rounds.move(step)


def _ages_after(rounds: Rounds, who: list[int], ages: FloatArray, seen: np.ndarray) -> FloatArray:
    """Return how many rounds ago clients were last present."""
    after = ages + bool(who or not rounds.has("empty keeps ages"))
    if rounds.has("age kept"):
        after[who] = np.where(seen[who], ages[who], 0)
    elif not rounds.has("age never reset"):
        after[who] = 0
    return np.asarray(after)


def _within(rounds: Rounds, ages: FloatArray, limit: float, seen: np.ndarray) -> np.ndarray:
    if rounds.has("no cutoff"):
        return seen.copy()
    if rounds.has("cutoff below"):
        return seen & (ages < limit)
    return np.asarray(seen & (ages <= limit + rounds.has("cutoff above")))


def _psi(rounds: Rounds, ages: FloatArray, growth: float, largest: float) -> FloatArray:
    ages = ages + rounds.has("age one more") - rounds.has("age one less")
    if rounds.has("no growth"):
        return np.ones_like(ages)
    if rounds.has("no cap"):
        return 1 + growth * ages
    if rounds.has("growth compounds"):
        return np.minimum((1 + growth) ** ages, largest)
    if rounds.has("decay without cap"):
        return 1 / (1 + growth * ages)
    if rounds.has("decay"):
        return 1 / np.minimum(1 + growth * ages, largest)
    if rounds.has("cap on growth"):
        return 1 + np.minimum(growth * ages, largest)
    psi = np.minimum(1 + growth * ages, largest)
    return np.asarray(psi ** (2 if rounds.has("twice") else 1))


# Dividing all by N is what the surprise over N is already.
_SURPRISE_SLIPS = {name: text for name, text in PLAIN_MEAN_SLIPS.items() if name != "over N"}

PAPERS = {
    "fedvarp": Paper(fedvarp, {**VARP_SLIPS, **_SURPRISE_SLIPS}),
    "mifa": Paper(mifa, MIFA_SLIPS),
    "fedar": Paper(fedar, AR_SLIPS),
}
