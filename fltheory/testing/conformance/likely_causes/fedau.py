"""FedAU in pseudo-code: it counts how long clients stay away."""

from __future__ import annotations

import math

import numpy as np

from fltheory.testing.conformance.likely_causes.rounds import Paper, Rounds, option_of, weighted
from fltheory.validation import FloatArray

AU_SLIPS = {
    "cutoff one less": "intervals are cut off one round too early",
    "cutoff one more": "intervals are cut off one round too late",
    "no cutoff": "the cut-off is not applied",
    "cut on return": "intervals are cut to the cut-off when the client returns, instead of ending "
    "after cut-off rounds",
    "clock starts late": "a client's first interval begins when it first appears, not at the start",
    "interval one less": "an interval is counted one round too short: 0 for a client that returns "
    "at once",
    "interval one more": "an interval is counted one round too long",
    "omega of now": "omega counts the interval that ends in this round already",
    "omega zero": "omega starts at 0 instead of 1",
    "omega waits": "omega is 1 until two intervals have ended",
    "omega last": "omega is the last interval, not their mean",
    "omega median": "omega is the median of the intervals, not their mean",
    "omega late": "omega is that of the round before: a round late",
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
    largest = cutoff if rounds.has("cut on return") else math.inf
    cutoff = math.inf if rounds.has("no cutoff") or rounds.has("cut on return") else cutoff
    first = 0.0 if rounds.has("omega zero") else 1.0
    intervals: list[list[float]] = [[1.0] if rounds.has("omega with the first 1") else []
                                    for _ in range(n)]  # fmt: skip
    age, joined = np.zeros(n), np.zeros(n)
    late = np.ones(n)
    for t, who in enumerate(rounds.present(), start=1):
        means = [_omega(rounds, one, age[k], first) for k, one in enumerate(intervals)]
        if who or not rounds.has("empty keeps"):
            age = age + 1
        ending = who
        if rounds.has("clock starts late"):
            ending = [k for k in who if joined[k]]
            age[joined == 0] = 0
        joined[who] += 1
        _end_intervals(rounds, ending, intervals, age, cutoff, largest)
        if rounds.has("omega of now"):
            means = [_omega(rounds, one, age[k], first) for k, one in enumerate(intervals)]
        omega = np.array(means)
        if rounds.has("omega over t"):
            omega = np.where(joined > 0, t / np.maximum(joined, 1), 1.0)
        if rounds.has("omega late"):
            late, omega = omega, late
        if rounds.has("omega shared"):
            omega = np.full(n, omega.mean())
        rounds.move(_omega_sum(rounds, who, omega))


def _end_intervals(
    rounds: Rounds,
    who: list[int],
    intervals: list[list[float]],
    age: FloatArray,
    cutoff: float,
    largest: float,
) -> None:
    for k in range(rounds.n):
        if k in who or age[k] == cutoff:
            length = age[k] + rounds.has("interval one more") - rounds.has("interval one less")
            if k in who or not rounds.has("cut not counted"):
                intervals[k].append(min(length, largest))
            if k in who or not rounds.has("cut not restarted"):
                age[k] = 0


def _omega(rounds: Rounds, ended: list[float], age: float, first: float) -> float:
    if rounds.has("open interval") and age > 0:
        ended = [*ended, age]
    if not ended or (rounds.has("omega waits") and len(ended) < 2):
        return first
    if rounds.has("omega median"):
        return float(np.median(ended))
    if rounds.has("omega last"):
        return ended[-1]
    if rounds.has("omega moving"):
        mean = ended[0]
        for length in ended[1:]:
            mean = (mean + length) / 2
        return mean
    return sum(ended) / len(ended)


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


PAPERS = {"fedau": Paper(fedau, AU_SLIPS)}
