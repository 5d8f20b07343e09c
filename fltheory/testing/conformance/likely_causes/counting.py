"""Pseudo-code that counts who has been there: FedAU, F3AST, CA-Fed."""

from __future__ import annotations

import math

import numpy as np

from fltheory.testing.conformance.likely_causes.rounds import (
    Paper,
    Rounds,
    option_of,
    per_client,
    weighted,
)
from fltheory.validation import FloatArray

AU_SLIPS = {
    "cutoff one less": "intervals are cut off one round too early",
    "cutoff one more": "intervals are cut off one round too late",
    "no cutoff": "the cut-off is not applied",
    "interval one less": "an interval is counted one round too short: 0 for a client that returns "
    "at once",
    "interval one more": "an interval is counted one round too long",
    "omega of now": "omega counts the interval that ends in this round already",
    "omega zero": "omega starts at 0 instead of 1",
    "omega waits": "omega is 1 until two intervals have ended",
    "omega last": "omega is the last interval, not their mean",
    "omega over t": "omega is rounds over participations, without intervals",
    "omega with the first 1": "the first 1 of omega counts as an interval of its own",
    "omega moving": "omega is a moving average, not the mean of all intervals",
    "omega inverted": "changes are divided by omega instead of multiplied",
    "no omega": "omega is not used: all weights are 1",
    "omega twice": "omega is applied twice",
    "open interval": "the open interval counts in the mean",
    "cut not counted": "an interval that reaches the cut-off is not counted",
    "cut not restarted": "an interval that reaches the cut-off is counted and goes on",
    "over S": "divides by the number present instead of N",
    "renormalised": "weights are renormalised over those present",
    "no N": "the sum is not divided by N",
    "empty keeps": "an empty round does not lengthen intervals",
    "by size": "weighs by data size, too",
    "omega shared": "all clients share one omega",
}


def fedau(rounds: Rounds) -> None:
    """Play ``1/N sum_k omega_k (y_k - x)``, omega the mean interval of earlier rounds."""
    n = rounds.n
    cutoff = float(option_of(rounds, "cutoff", math.inf))
    cutoff = max(1.0, cutoff + rounds.has("cutoff one more") - rounds.has("cutoff one less"))
    cutoff = math.inf if rounds.has("no cutoff") else cutoff
    first = 0.0 if rounds.has("omega zero") else 1.0
    intervals: list[list[float]] = [[1.0] if rounds.has("omega with the first 1") else []
                                    for _ in range(n)]  # fmt: skip
    age, joined = np.zeros(n), np.zeros(n)
    for t, who in enumerate(rounds.present(), start=1):
        before = [_omega(rounds, one, age[k], first) for k, one in enumerate(intervals)]
        if who or not rounds.has("empty keeps"):
            age = age + 1
        joined[who] += 1
        _end_intervals(rounds, who, intervals, age, cutoff)
        after = [_omega(rounds, one, age[k], first) for k, one in enumerate(intervals)]
        omega = np.array(after if rounds.has("omega of now") else before)
        if rounds.has("omega over t"):
            omega = np.where(joined > 0, t / np.maximum(joined, 1), 1.0)
        if rounds.has("omega shared"):
            omega = np.full(n, omega.mean())
        rounds.move(_omega_sum(rounds, who, omega))


def _end_intervals(
    rounds: Rounds, who: list[int], intervals: list[list[float]], age: FloatArray, cutoff: float
) -> None:
    for k in range(rounds.n):
        if k in who or age[k] == cutoff:
            length = age[k] + rounds.has("interval one more") - rounds.has("interval one less")
            if k in who or not rounds.has("cut not counted"):
                intervals[k].append(length)
            if k in who or not rounds.has("cut not restarted"):
                age[k] = 0


def _omega(rounds: Rounds, ended: list[float], age: float, first: float) -> float:
    if rounds.has("open interval") and age > 0:
        ended = [*ended, age]
    if not ended or (rounds.has("omega waits") and len(ended) < 2):
        return first
    if rounds.has("omega last"):
        return ended[-1]
    if rounds.has("omega moving"):
        mean = ended[0]
        for length in ended[1:]:
            mean = (mean + length) / 2
        return mean
    return float(np.mean(ended))


def _omega_sum(rounds: Rounds, who: list[int], omega: FloatArray) -> FloatArray:
    power = {"omega inverted": -1.0, "no omega": 0.0, "omega twice": 2.0}.get(rounds.slip, 1.0)
    weights = omega**power
    if rounds.has("by size"):
        weights = weights * rounds.sizes * rounds.n / max(rounds.sizes.sum(), 1.0)
    total: float = {"over S": max(len(who), 1), "no N": 1}.get(rounds.slip, rounds.n)
    if rounds.has("renormalised"):
        total = float(weights[who].sum()) or 1.0
    changes = {k: rounds.change(k) for k in who}
    return weighted(changes, {k: float(weights[k]) / total for k in who}, rounds.dim)


F3_SLIPS = {
    "old rate": "weights use the rate before its renewal",
    "no rate": "weights are not divided by the rate",
    "times rate": "weights are multiplied by the rate, not divided by it",
    "rate root": "weights are divided by the root of the rate",
    "rate twice": "weights are divided by the rate twice",
    "by target": "clients are chosen by target weight, not by target weight over rate",
    "by rate": "clients are chosen by their rate alone",
    "by data": "clients are chosen by data size",
    "by first power": "clients are chosen by alpha^2 / r, not by alpha^2 / r^2",
    "by new rate": "clients are chosen by the rate after its renewal",
    "by old rate": "clients are chosen by the availability itself, not by the smoothed rate",
    "least urgent": "the clients that matter least are chosen",
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
        used = old if rounds.has("old rate") else rate
        rounds.move(_chosen_sum(rounds, alpha, used, chosen, size))


def _marked(who: list[int], n: int) -> FloatArray:
    """Return 1 for those listed and 0 for the others."""
    return np.asarray(np.isin(np.arange(n), who), dtype=np.float64)


def _smoothed(
    rounds: Rounds, rate: FloatArray, mark: FloatArray, beta: float, who: list[int]
) -> FloatArray:
    if rounds.has("no smoothing") or (rounds.has("empty keeps") and not who):
        return rate
    share = 1 - beta if rounds.has("smoothing swapped") else beta
    fresh = (1 - share) * rate + share * mark
    if rounds.has("absent keep"):
        return np.where(np.isin(np.arange(rounds.n), who), fresh, rate)
    return fresh


def _chosen(
    rounds: Rounds, alpha: FloatArray, rate: FloatArray, who: list[int], size: int
) -> list[int]:
    urgency = {
        "by target": alpha,
        "by rate": -rate,
        "by data": rounds.sizes,
        "by first power": alpha**2 / rate,
        "least urgent": -alpha / rate,
        "by index": -np.arange(rounds.n),
    }.get(rounds.slip, alpha / rate)
    return sorted(sorted(who, key=lambda k: (-urgency[k], k))[:size])


def _chosen_sum(
    rounds: Rounds, alpha: FloatArray, rate: FloatArray, chosen: list[int], size: int
) -> FloatArray:
    powers = {"no rate": 0.0, "times rate": 1.0, "rate root": -0.5, "rate twice": -2.0}
    targets = np.ones(rounds.n) if rounds.has("no targets") else alpha
    weights = targets * rate ** powers.get(rounds.slip, -1.0)
    total = {"divided by size": float(size), "divided by N": float(rounds.n)}.get(rounds.slip, 1.0)
    if rounds.has("renormalised"):
        total = float(weights[chosen].sum()) or 1.0
    changes = {k: rounds.change(k) for k in chosen}
    return weighted(changes, {k: float(weights[k]) / total for k in chosen}, rounds.dim)


CA_SLIPS = {
    "nobody goes": "nobody is ever excluded",
    "correlation pass only": "clients are tried in the order of correlation only",
    "availability pass only": "clients are tried in the order of availability only",
    "passes swapped": "clients are tried by availability first, then by correlation",
    "correlation ascending": "clients are tried in ascending correlation",
    "availability descending": "clients are tried in descending availability",
    "absolute correlation": "the modulus of the correlation orders, not its signed value",
    "one goes": "at most one client is excluded in a pass",
    "no availability": "weights are not divided by the availability",
    "times availability": "weights are multiplied by the availability, not divided by it",
    "renormalised": "weights are renormalised over those who train",
    "excluded shared": "weights are divided by the share of alpha that is left",
    "excluded train": "excluded clients train, too",
    "excluded for ever": "a client that was excluded never comes back",
    "smoothing swapped": "the smoothed loss keeps beta of its past instead of 1 - beta",
    "first from zero": "the first report is smoothed from 0",
    "raw loss": "losses are not smoothed",
    "raw minimum": "the minimum is over raw reports, not over smoothed losses",
    "minimum zero": "the minima are taken to be 0",
    "minimum of all": "all clients share the least loss as their minimum",
    "losses after": "losses are reported after the local steps, not at the round's model",
    "known ignored": "the minima that are given are not used",
    "kappa not squared": "kappa_bar is not squared",
    "distance not squared": "the distance of the weights is not squared",
    "largest of kept": "Gamma is over the clients kept, not over all",
    "largest of present": "Gamma is over the clients present, not over all",
    "loss not renormalised": "the loss term is not renormalised over those kept",
    "present only": "only present clients are tried",
    "threshold sign": "a client goes where epsilon rises by less than the threshold",
    "no threshold": "the threshold is not used",
    "no prior": "the availability is estimated without the prior",
    "prior swapped": "the prior's two numbers are swapped",
    "before the round": "the availability is estimated without the present round",
    "availability of mean": "all clients share the mean availability",
    "correlation of prior": "the correlation is estimated without the prior",
    "divided by N": "the update is divided by N",
    "no targets": "target weights are not used in the update",
    "oracle ignored": "the availability and correlation that are given are not used",
}


def ca_fed(rounds: Rounds) -> None:
    """Play ``sum alpha_k / pi_k (y_k - x)`` over those present that two passes leave in."""
    n = rounds.n
    alpha = per_client(rounds.options["target_weights"], n)
    loss, least = np.full(n, np.nan), np.full(n, np.nan)
    history: list[list[bool]] = []
    gone: set[int] = set()
    for who in rounds.present():
        _report(rounds, who, loss, least)
        if not rounds.has("before the round") or not history:
            history.append([k in who for k in range(n)])
            pi, correlation = _facts(rounds, history)
        else:
            pi, correlation = _facts(rounds, history)
            history.append([k in who for k in range(n)])
        kept = _left_in(rounds, alpha, _gaps(rounds, loss, least), pi, correlation, who)
        if rounds.has("excluded for ever"):
            gone |= set(range(n)) - kept
            kept = kept - gone
        train = [k for k in who if k in kept or rounds.has("excluded train")]
        powers = {"no availability": 0.0, "times availability": 1.0}
        targets = np.ones(n) / n if rounds.has("no targets") else alpha
        weights = targets * pi ** powers.get(rounds.slip, -1.0)
        total = {
            "renormalised": float(weights[train].sum()) or 1.0,
            "excluded shared": float(alpha[sorted(kept)].sum()) or 1.0,
            "divided by N": float(n),
        }.get(rounds.slip, 1.0)
        changes = {k: rounds.change(k) for k in train}
        rounds.move(weighted(changes, {k: float(weights[k]) / total for k in train}, rounds.dim))


def _report(rounds: Rounds, who: list[int], loss: FloatArray, least: FloatArray) -> None:
    beta = float(option_of(rounds, "loss_smoothing", 0.2))
    beta = {"smoothing swapped": 1 - beta, "raw loss": 1.0}.get(rounds.slip, beta)
    for k in who:
        at = rounds.x + rounds.change(k) if rounds.has("losses after") else rounds.x
        fresh = rounds.case.clients[k].loss(at)
        first = beta * fresh if rounds.has("first from zero") else fresh
        loss[k] = first if math.isnan(loss[k]) else (1 - beta) * loss[k] + beta * fresh
        least[k] = np.fmin(least[k], fresh if rounds.has("raw minimum") else loss[k])


def _gaps(rounds: Rounds, loss: FloatArray, least: FloatArray) -> FloatArray:
    known = rounds.options.get("known_minima")
    minima = least
    if known is not None and not rounds.has("known ignored"):
        minima = per_client(known, rounds.n)
    if rounds.has("minimum zero"):
        minima = np.zeros(rounds.n)
    if rounds.has("minimum of all") and not np.isnan(least).all():
        minima = np.full(rounds.n, np.nanmin(least))
    return np.where(np.isnan(loss), 0.0, loss - minima)


def _facts(rounds: Rounds, history: list[list[bool]]) -> tuple[FloatArray, FloatArray]:
    """Return pi and lambda: an oracle's, or estimates."""
    n, given = rounds.n, rounds.options
    if given.get("availability") is not None and not rounds.has("oracle ignored"):
        pi = per_client(given["availability"], n)
        correlation = per_client(given["correlation"], n)
    else:
        first, second = option_of(rounds, "prior", (1.0, 1.0))
        if rounds.has("prior swapped"):
            first, second = second, first
        seen = np.array(history, dtype=np.float64)
        there, away = seen.sum(axis=0), (1 - seen).sum(axis=0)
        pi = (there + first) / (there + away + first + second)
        if rounds.has("no prior"):
            pi = np.maximum(there, 1) / len(seen)
        now, then = seen[1:], seen[:-1]
        if rounds.has("correlation of prior"):
            first = second = 1e-9
        stays = ((now * then).sum(axis=0) + first) / (then.sum(axis=0) + first + second)
        waits = (((1 - now) * (1 - then)).sum(axis=0) + second) / (
            (1 - then).sum(axis=0) + first + second
        )
        correlation = stays + waits - 1
    if rounds.has("availability of mean"):
        pi = np.full(n, pi.mean())
    return pi, np.abs(correlation) if rounds.has("absolute correlation") else correlation


def _left_in(
    rounds: Rounds,
    alpha: FloatArray,
    gaps: FloatArray,
    pi: FloatArray,
    correlation: FloatArray,
    who: list[int],
) -> set[int]:
    """Return who is left after both passes, each tried in turn."""
    kept = set(range(rounds.n))
    if rounds.has("nobody goes"):
        return kept
    by_correlation = correlation if rounds.has("correlation ascending") else -correlation
    by_availability = -pi if rounds.has("availability descending") else pi
    passes = {
        "correlation pass only": [by_correlation],
        "availability pass only": [by_availability],
        "passes swapped": [by_availability, by_correlation],
    }.get(rounds.slip, [by_correlation, by_availability])
    threshold = 0.0 if rounds.has("no threshold") else float(
        option_of(rounds, "threshold", 0.0)
    )  # fmt: skip
    threshold = -threshold if rounds.has("threshold sign") else threshold
    for order in passes:
        for k in sorted(range(rounds.n), key=lambda k, o=order: (o[k], k)):  # type: ignore[misc]
            if not _may_go(rounds, k, kept, gaps, who):
                continue
            without = kept - {k}
            fall = _epsilon(rounds, alpha, gaps, kept, who) - _epsilon(
                rounds, alpha, gaps, without, who
            )
            if fall >= threshold:
                kept = without
                if rounds.has("one goes"):
                    break
    return kept


def _may_go(rounds: Rounds, k: int, kept: set[int], gaps: FloatArray, who: list[int]) -> bool:
    if rounds.has("present only") and k not in who:
        return False
    return k in kept and len(kept) > 1 and bool(gaps.max() > 0)


def _epsilon(
    rounds: Rounds, alpha: FloatArray, gaps: FloatArray, kept: set[int], who: list[int]
) -> float:
    left = sorted(kept)
    share = float(alpha[left].sum())
    kappa = float(option_of(rounds, "kappa_bar", 1.0))
    largest = float(gaps.max())
    if rounds.has("largest of kept"):
        largest = float(gaps[left].max())
    if rounds.has("largest of present"):
        largest = float(gaps[who].max()) if who else 0.0
    loss = float(alpha[left] @ gaps[left]) / (1 if rounds.has("loss not renormalised") else share)
    distance = (1 - share) ** (1 if rounds.has("distance not squared") else 2)
    return loss + kappa ** (1 if rounds.has("kappa not squared") else 2) * distance * largest


PAPERS = {
    "fedau": Paper(fedau, AU_SLIPS),
    "f3ast": Paper(f3ast, F3_SLIPS),
    "ca-fed": Paper(ca_fed, CA_SLIPS),
}
