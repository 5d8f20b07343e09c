"""CA-Fed in pseudo-code: it estimates how clients come and go, and excludes some."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fltheory.testing.conformance.likely_causes.rounds import (
    Paper,
    Rounds,
    option_of,
    per_client,
    weighted,
)
from fltheory.validation import FloatArray

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
    "renormalised over kept": "weights are renormalised over those who are not excluded",
    "excluded shared": "weights are divided by the share of alpha that is left",
    "excluded train": "excluded clients train, too",
    "exclusion late": "those excluded are the ones of the round before",
    "excluded not tried again": "a client that was excluded never comes back: each round goes on "
    "from those left by the one before",
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
    "no prior at all": "the availability and the correlation are estimated without the prior",
    "prior swapped": "the prior's two numbers are swapped",
    "before the round": "the availability is estimated without the present round: a round late",
    "availability of mean": "all clients share the mean availability",
    "correlation of prior": "the correlation is estimated without the prior",
    "correlation of prior, 0 unseen": "the correlation is estimated without the prior",
    "divided by N": "the update is divided by N",
    "no targets": "target weights are not used in the update",
    "oracle ignored": "the availability and correlation that are given are not used",
}


def ca_fed(rounds: Rounds) -> None:
    """Play ``sum alpha_k / pi_k (y_k - x)`` over those present that two passes leave in."""
    n = rounds.n
    alpha = per_client(rounds.options["target_weights"], n)
    loss, least = [math.nan] * n, [math.nan] * n
    availability, correlation = _facts(rounds)
    passes = _passes(rounds, availability, correlation)
    powers = {"no availability": 0.0, "times availability": 1.0}
    targets = np.ones(n) / n if rounds.has("no targets") else alpha
    weights = targets * availability ** powers.get(rounds.slip, -1.0)
    gone, everybody = set[int](), set(range(n))
    before = kept = everybody
    for t, who in enumerate(rounds.present()):
        _report(rounds, who, loss, least)
        start = kept if rounds.has("excluded not tried again") else everybody
        orders = [one[t] for one in passes]
        kept = _left_in(rounds, alpha.tolist(), _gaps(rounds, loss, least), orders, who, start)
        if rounds.has("exclusion late"):
            kept, before = before, kept
        if rounds.has("excluded for ever"):
            gone |= set(range(n)) - kept
            kept = kept - gone
        train = [k for k in who if k in kept or rounds.has("excluded train")]
        total = _total(rounds, weights[t], alpha, train, sorted(kept))
        changes = {k: rounds.change(k) for k in train}
        rounds.move(weighted(changes, {k: float(weights[t, k]) / total for k in train}, rounds.dim))


def _total(
    rounds: Rounds, weights: FloatArray, alpha: FloatArray, train: list[int], kept: list[int]
) -> float:
    """Return what weights are divided by: nothing by the paper."""
    if rounds.has("renormalised"):
        return float(weights[train].sum()) or 1.0
    if rounds.has("renormalised over kept"):
        return float(weights[kept].sum()) or 1.0
    if rounds.has("excluded shared"):
        return float(alpha[kept].sum()) or 1.0
    return float(rounds.n) if rounds.has("divided by N") else 1.0


def _report(rounds: Rounds, who: list[int], loss: list[float], least: list[float]) -> None:
    beta = float(option_of(rounds, "loss_smoothing", 0.2))
    beta = {"smoothing swapped": 1 - beta, "raw loss": 1.0}.get(rounds.slip, beta)
    for k in who:
        at = rounds.x + rounds.change(k) if rounds.has("losses after") else rounds.x
        fresh = rounds.case.clients[k].loss(at)
        first = beta * fresh if rounds.has("first from zero") else fresh
        loss[k] = first if math.isnan(loss[k]) else (1 - beta) * loss[k] + beta * fresh
        candidate = fresh if rounds.has("raw minimum") else loss[k]
        # NaN is not less than anything: the first report is taken.
        least[k] = least[k] if least[k] <= candidate else candidate


def _gaps(rounds: Rounds, loss: list[float], least: list[float]) -> list[float]:
    known = rounds.options.get("known_minima")
    minima = least
    if known is not None and not rounds.has("known ignored"):
        minima = per_client(known, rounds.n).tolist()
    if rounds.has("minimum zero"):
        minima = [0.0] * rounds.n
    if rounds.has("minimum of all"):
        minima = [min((one for one in least if not math.isnan(one)), default=math.nan)] * rounds.n
    pairs = zip(loss, minima, strict=True)
    return [0.0 if math.isnan(one) else one - smallest for one, smallest in pairs]


def _prior(rounds: Rounds) -> tuple[float, float]:
    first, second = option_of(rounds, "prior", (1.0, 1.0))
    if rounds.has("no prior at all"):
        return 0.0, 0.0
    return (second, first) if rounds.has("prior swapped") else (first, second)


def _facts(rounds: Rounds) -> tuple[FloatArray, FloatArray]:
    """Return pi and lambda of each round, (rounds, N): an oracle's, or estimates."""
    n, given, shape = rounds.n, rounds.options, (rounds.case.rounds, rounds.n)
    if given.get("availability") is not None and not rounds.has("oracle ignored"):
        pi = np.broadcast_to(per_client(given["availability"], n), shape)
        correlation = np.broadcast_to(per_client(given["correlation"], n), shape)
    else:
        pi, correlation = _estimates(rounds)
    if rounds.has("availability of mean"):
        pi = np.repeat(pi.mean(axis=1, keepdims=True), n, axis=1)
    if rounds.nudges is not None:
        pi, correlation = pi + rounds.nudges[0], correlation + rounds.nudges[1]
    return pi, np.abs(correlation) if rounds.has("absolute correlation") else correlation


def _estimates(rounds: Rounds) -> tuple[FloatArray, FloatArray]:
    """Return pi and lambda from who has been seen: of all rounds at once, as they learn nothing."""
    first, second = _prior(rounds)
    seen = np.zeros((rounds.case.rounds, rounds.n))
    for t, who in enumerate(rounds.heard):
        seen[t, who] = 1.0
    # Row t counts in the first t + 1 rounds, or in the t before.
    known = slice(None, -1) if rounds.has("before the round") else slice(1, None)
    so_far = np.arange(len(seen) + 1.0)[known, None]
    there = _counts(seen)[known]
    pi = (there + first) / (so_far + first + second)
    if rounds.has("no prior"):
        pi = np.maximum(there, 1) / so_far
    if rounds.slip.startswith("correlation of prior"):
        first = second = 0.0 if rounds.slip.endswith("unseen") else 1e-9
    now, then, none = seen[1:], seen[:-1], np.zeros((1, rounds.n))
    stays, leaves, waits, comes = (
        _counts(np.concatenate([none, both]))[known]
        for both in (then * now, then * (1 - now), (1 - then) * (1 - now), (1 - then) * now)
    )
    tiny = 1e-300
    stays = (stays + first) / np.maximum(stays + leaves + first + second, tiny)
    waits = (waits + second) / np.maximum(waits + comes + first + second, tiny)
    return pi, stays + waits - 1


def _counts(events: FloatArray) -> FloatArray:
    """Return how many there have been after each round, and before the first, (rounds + 1, N)."""
    return np.concatenate([np.zeros((1, events.shape[1])), np.cumsum(events, axis=0)])


def _passes(
    rounds: Rounds, availability: FloatArray, correlation: FloatArray
) -> list[list[list[int]]]:
    """Return in which order clients are tried, pass by pass and round by round."""
    by_correlation = correlation if rounds.has("correlation ascending") else -correlation
    by_availability = -availability if rounds.has("availability descending") else availability
    passes = {
        "correlation pass only": [by_correlation],
        "availability pass only": [by_availability],
        "passes swapped": [by_availability, by_correlation],
    }.get(rounds.slip, [by_correlation, by_availability])
    return [np.argsort(one, axis=1, kind="stable").tolist() for one in passes]


def _left_in(
    rounds: Rounds,
    alpha: list[float],
    gaps: list[float],
    orders: list[list[int]],
    who: list[int],
    kept: set[int],
) -> set[int]:
    """Return who is left after all passes, each tried in turn."""
    if rounds.has("nobody goes") or not max(gaps) > 0:
        return kept
    threshold = 0.0 if rounds.has("no threshold") else float(
        option_of(rounds, "threshold", 0.0)
    )  # fmt: skip
    threshold = -threshold if rounds.has("threshold sign") else threshold
    epsilon = _epsilon(rounds, alpha, gaps, who)
    left = sorted(kept)
    least = epsilon(left)
    for order in orders:
        for k in order:
            if k not in left or len(left) == 1 or (rounds.has("present only") and k not in who):
                continue
            without = [j for j in left if j != k]
            after = epsilon(without)
            if least - after >= threshold:
                left, least = without, after
                if rounds.has("one goes"):
                    break
    return set(left)


def _epsilon(
    rounds: Rounds, alpha: list[float], gaps: list[float], who: list[int]
) -> Callable[[list[int]], float]:
    """Return the error of keeping some clients, as a function of who they are."""
    kappa = float(option_of(rounds, "kappa_bar", 1.0))
    factor = kappa ** (1 if rounds.has("kappa not squared") else 2)
    power = 1 if rounds.has("distance not squared") else 2
    plain = rounds.has("loss not renormalised")
    over_kept = rounds.has("largest of kept")
    over = who if rounds.has("largest of present") else range(len(gaps))
    largest = max((gaps[k] for k in over), default=0.0)
    losses = [one * gap for one, gap in zip(alpha, gaps, strict=True)]

    def epsilon(left: list[int]) -> float:
        # Plain numbers: arrays of so few take many times as long.
        share = sum([alpha[k] for k in left])
        loss = sum([losses[k] for k in left]) / (1 if plain else share)
        gap = max([gaps[k] for k in left]) if over_kept else largest
        return loss + factor * (1 - share) ** power * gap

    return epsilon


PAPERS = {"ca-fed": Paper(ca_fed, CA_SLIPS)}
