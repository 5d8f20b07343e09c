"""CA-Fed in pseudo-code: it estimates how clients come and go, and excludes some."""

from __future__ import annotations

import math
from functools import partial

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
    loss, least = np.full(n, np.nan), np.full(n, np.nan)
    history: list[list[bool]] = []
    gone, everybody = set[int](), set(range(n))
    before = kept = everybody
    for who in rounds.present():
        _report(rounds, who, loss, least)
        known = history
        history = [*history, [k in who for k in range(n)]]
        pi, correlation = _facts(rounds, known if rounds.has("before the round") else history)
        start = kept if rounds.has("excluded not tried again") else everybody
        kept = _left_in(rounds, alpha, _gaps(rounds, loss, least), pi, correlation, who, start)
        if rounds.has("exclusion late"):
            kept, before = before, kept
        if rounds.has("excluded for ever"):
            gone |= set(range(n)) - kept
            kept = kept - gone
        train = [k for k in who if k in kept or rounds.has("excluded train")]
        powers = {"no availability": 0.0, "times availability": 1.0}
        targets = np.ones(n) / n if rounds.has("no targets") else alpha
        weights = targets * pi ** powers.get(rounds.slip, -1.0)
        total = {
            "renormalised": float(weights[train].sum()) or 1.0,
            "renormalised over kept": float(weights[sorted(kept)].sum()) or 1.0,
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


def _prior(rounds: Rounds) -> tuple[float, float]:
    first, second = option_of(rounds, "prior", (1.0, 1.0))
    if rounds.has("no prior at all"):
        return 0.0, 0.0
    return (second, first) if rounds.has("prior swapped") else (first, second)


def _facts(rounds: Rounds, history: list[list[bool]]) -> tuple[FloatArray, FloatArray]:
    """Return pi and lambda: an oracle's, or estimates."""
    n, given = rounds.n, rounds.options
    if given.get("availability") is not None and not rounds.has("oracle ignored"):
        pi = per_client(given["availability"], n)
        correlation = per_client(given["correlation"], n)
    else:
        first, second = _prior(rounds)
        seen = np.array(history, dtype=np.float64).reshape(-1, n)
        there, away = seen.sum(axis=0), (1 - seen).sum(axis=0)
        pi = (there + first) / (there + away + first + second)
        if rounds.has("no prior"):
            pi = np.maximum(there, 1) / len(seen)
        now, then = seen[1:], seen[:-1]
        if rounds.slip.startswith("correlation of prior"):
            first = second = 0.0 if rounds.slip.endswith("unseen") else 1e-9
        tiny = 1e-300
        stays = ((now * then).sum(axis=0) + first) / np.maximum(
            then.sum(axis=0) + first + second, tiny
        )
        waits = (((1 - now) * (1 - then)).sum(axis=0) + second) / np.maximum(
            (1 - then).sum(axis=0) + first + second, tiny
        )
        correlation = stays + waits - 1
    if rounds.has("availability of mean"):
        pi = np.full(n, pi.mean())
    if rounds.nudges is not None:
        pi, correlation = np.array([pi, correlation]) + rounds.nudges
    return pi, np.abs(correlation) if rounds.has("absolute correlation") else correlation


def _left_in(
    rounds: Rounds,
    alpha: FloatArray,
    gaps: FloatArray,
    pi: FloatArray,
    correlation: FloatArray,
    who: list[int],
    kept: set[int],
) -> set[int]:
    """Return who is left after both passes, each tried in turn."""
    if rounds.has("nobody goes") or not gaps.max() > 0:
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
    epsilon = partial(_epsilon, rounds, alpha.tolist(), gaps.tolist(), who)
    least = epsilon(kept)
    for order in passes:
        for k in np.argsort(order, kind="stable").tolist():
            if k not in kept or len(kept) == 1 or (rounds.has("present only") and k not in who):
                continue
            after = epsilon(kept - {k})
            if least - after >= threshold:
                kept, least = kept - {k}, after
                if rounds.has("one goes"):
                    break
    return kept


def _epsilon(
    rounds: Rounds, alpha: list[float], gaps: list[float], who: list[int], kept: set[int]
) -> float:
    # Plain numbers: arrays of so few take many times as long.
    left = sorted(kept)
    share = sum(alpha[k] for k in left)
    kappa = float(option_of(rounds, "kappa_bar", 1.0))
    over = {"largest of kept": left, "largest of present": who}.get(rounds.slip)
    largest = max(gaps) if over is None else max((gaps[k] for k in over), default=0.0)
    loss = sum(alpha[k] * gaps[k] for k in left)
    loss = loss / (1 if rounds.has("loss not renormalised") else share)
    distance = (1 - share) ** (1 if rounds.has("distance not squared") else 2)
    return loss + kappa ** (1 if rounds.has("kappa not squared") else 2) * distance * largest


PAPERS = {"ca-fed": Paper(ca_fed, CA_SLIPS)}
