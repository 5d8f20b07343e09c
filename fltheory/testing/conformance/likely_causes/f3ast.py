"""F3AST in pseudo-code: it chooses among those present by how rarely they were chosen."""

from __future__ import annotations

import numpy as np

from fltheory.testing.conformance.likely_causes.rounds import (
    Paper,
    Rounds,
    option_of,
    per_client,
    weighted,
)
from fltheory.validation import FloatArray

F3_SLIPS = {
    "old rate": "weights use the rate before its renewal",
    "old learned rate": "weights use the learned rate before its renewal",
    "replaced": "clients are drawn with replacement: the most urgent one is taken size times",
    "weights squared": "weights are (alpha/r)^2, not alpha/r",
    "among all": "the most urgent of all clients are chosen, and the absent among them do not "
    "answer",
    "no rate": "weights are not divided by the rate",
    "times rate": "weights are multiplied by the rate, not divided by it",
    "rate root": "weights are divided by the root of the rate",
    "rate twice": "weights are divided by the rate twice",
    "by target": "clients are chosen by target weight, not by target weight over rate",
    "by rate": "clients are chosen by their rate alone",
    "by data": "clients are chosen by data size",
    "by first power": "clients are chosen by alpha^2 / r, not by alpha^2 / r^2",
    "by rate squared": "clients are chosen by alpha / r^2, not by alpha^2 / r^2",
    "by new rate": "clients are chosen by the rate after its renewal",
    "by old rate": "clients are chosen by the availability itself, not by the smoothed rate",
    "least urgent": "the clients that matter least are chosen",
    "least urgent, last of equals": "the clients that matter least are chosen",
    "by index": "the first clients present are chosen",
    "no size": "everybody present trains: size is not used",
    "one more": "one client too many is chosen",
    "one less": "one client too few is chosen",
    "present counts": "the rate counts presence instead of being chosen",
    "chosen counts": "with availability known, the rate counts being chosen instead of presence",
    "smoothing swapped": "the rate keeps beta of its past instead of 1 - beta",
    "no smoothing": "the rate is never renewed",
    "empty keeps": "rates do not decay in an empty round",
    "absent keep": "rates of absent clients do not decay",
    "divided by size": "the update is divided by size",
    "divided by chosen": "the update is divided by the number of those chosen",
    "divided by N": "the update is divided by N",
    "renormalised": "weights are renormalised over those chosen",
    "rate one": "rates start at 1 instead of the target weights",
    "rate uniform": "rates start at size/N instead of the target weights",
    "rate share": "rates start at 1/N instead of the target weights",
    "no targets": "target weights are not used in the weights",
    "known ignored": "the availability that is given is not used",
    "rate mean": "rates are the shares of rounds so far instead of smoothed",
    "rate remembered": "with availability known, the rate goes on from round to round",
}


def f3ast(rounds: Rounds) -> None:
    """Play ``sum alpha_k / r_k (y_k - x)`` over the ``size`` present of largest alpha/r."""
    n = rounds.n
    alpha = per_client(rounds.options["target_weights"], n)
    size = int(rounds.options["size"]) + rounds.has("one more") - rounds.has("one less")
    size = n if rounds.has("no size") else size
    beta = float(option_of(rounds, "smoothing", 0.01))
    known = rounds.options.get("availability")
    pi = None if known is None or rounds.has("known ignored") else per_client(known, n)
    rate = {
        "rate one": np.ones(n),
        "rate uniform": np.full(n, size / n),
        "rate share": np.full(n, 1 / n),
    }.get(rounds.slip, alpha.copy())
    base, counts = pi, np.zeros(n)
    for t, who in enumerate(rounds.present(), start=1):
        here = _marked(who, n)
        if base is not None and pi is not None:
            old, rate = base, _smoothed(rounds, base, here, beta, who)
            by = pi if rounds.has("by old rate") or rounds.has("chosen counts") else rate
            chosen = _chosen(rounds, alpha, by, who, size)
            if rounds.has("chosen counts"):
                rate = _smoothed(rounds, pi, _marked(chosen, n), beta, who)
            base = rate if rounds.has("rate remembered") else pi
        else:
            old = rate
            by = _smoothed(rounds, rate, here, beta, who) if rounds.has("by new rate") else rate
            chosen = _chosen(rounds, alpha, by, who, size)
            mark = here if rounds.has("present counts") else _marked(chosen, n)
            counts += mark
            rate = _smoothed(rounds, rate, mark, beta, who)
            if rounds.has("rate mean"):
                rate = np.maximum(counts, 1) / t
        late = rounds.has("old rate") or (rounds.has("old learned rate") and base is None)
        used = old if late else rate
        rounds.move(_chosen_sum(rounds, alpha, used, chosen, size))


def _marked(who: list[int], n: int) -> FloatArray:
    """Return 1 for those listed and 0 for the others."""
    marks = np.zeros(n)
    marks[who] = 1.0
    return marks


def _smoothed(
    rounds: Rounds, rate: FloatArray, mark: FloatArray, beta: float, who: list[int]
) -> FloatArray:
    if rounds.has("no smoothing") or (rounds.has("empty keeps") and not who):
        return rate
    share = 1 - beta if rounds.has("smoothing swapped") else beta
    fresh = (1 - share) * rate + share * mark
    if rounds.has("absent keep"):
        return np.where(_marked(who, rounds.n) > 0, fresh, rate)
    return fresh


def _chosen(
    rounds: Rounds, alpha: FloatArray, rate: FloatArray, who: list[int], size: int
) -> list[int]:
    urgency = {
        "by target": alpha,
        "by rate": -rate,
        "by data": rounds.sizes,
        "by first power": alpha**2 / rate,
        "by rate squared": alpha / rate**2,
        "least urgent": -alpha / rate,
        "by index": -np.arange(rounds.n),
    }.get(rounds.slip, alpha / rate)
    if rounds.has("among all"):
        foremost = sorted(range(rounds.n), key=lambda k: (-urgency[k], k))[:size]
        return [k for k in who if k in foremost]
    if rounds.has("least urgent, last of equals"):
        return sorted(sorted(who, key=lambda k: (urgency[k], -k))[:size])
    most = 1 if rounds.has("replaced") else size
    return sorted(sorted(who, key=lambda k: (-urgency[k], k))[:most])


def _chosen_sum(
    rounds: Rounds, alpha: FloatArray, rate: FloatArray, chosen: list[int], size: int
) -> FloatArray:
    powers = {"no rate": 0.0, "times rate": 1.0, "rate root": -0.5, "rate twice": -2.0}
    targets = np.ones(rounds.n) if rounds.has("no targets") else alpha
    weights = targets * rate ** powers.get(rounds.slip, -1.0)
    total = {
        "divided by size": float(size),
        "divided by chosen": float(max(len(chosen), 1)),
        "divided by N": float(rounds.n),
    }.get(rounds.slip, 1.0)
    if rounds.has("weights squared"):
        weights = weights**2
    if rounds.has("replaced"):
        weights = weights * size
    if rounds.has("renormalised"):
        total = float(weights[chosen].sum()) or 1.0
    changes = {k: rounds.change(k) for k in chosen}
    return weighted(changes, {k: float(weights[k]) / total for k in chosen}, rounds.dim)


PAPERS = {"f3ast": Paper(f3ast, F3_SLIPS)}
