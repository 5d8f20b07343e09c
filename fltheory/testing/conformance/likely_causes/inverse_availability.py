"""Pseudo-code that weighs by the inverse of the availability: FedAvg-IS, AdaFed."""

from __future__ import annotations

import numpy as np

from fltheory.testing.conformance.likely_causes.rounds import (
    Paper,
    Rounds,
    per_client,
    shares,
    weighted,
)

IS_SLIPS = {
    "no N": "the sum is not divided by N",
    "over those present": "the sum is divided by the number present, not by N",
    "renormalised": "weights are renormalised over those present: biased where they vary",
    "times p": "changes are multiplied by the availability, not divided by it",
    "no p": "the availability is not used",
    "p twice": "changes are divided by the availability twice",
    "p rolled": "a client gets the availability of the client before: off by one",
    "p root": "changes are divided by the root of the availability",
    "p of data": "weighs by data size, too",
    "p observed": "the share of rounds seen so far stands for the availability",
    "p to one": "availabilities are made to sum to one, as if they were chances of being drawn",
    "p by place": "the availability is looked up by the place in the round, not by the client",
    "one minus p": "changes are divided by 1 - p, the probability of absence",
    "p mean": "the mean availability stands for each client's own",
}


def fedavg_is(rounds: Rounds) -> None:
    """Play ``x <- x + server_lr / N sum_k (y_k - x) / p_k``."""
    given, seen = per_client(rounds.options["availability"], rounds.n), np.zeros(rounds.n)
    p = {
        "p rolled": np.roll(given, 1),
        "p to one": shares(given),
        "one minus p": np.maximum(1 - given, 1e-3),
        "p mean": np.full(rounds.n, given.mean()),
    }.get(rounds.slip, given)
    power = {"times p": 1.0, "no p": 0.0, "p twice": -2.0, "p root": -0.5}.get(rounds.slip, -1.0)
    for t, who in enumerate(rounds.present(), start=1):
        seen[who] += 1
        rate = np.maximum(seen, 1) / t if rounds.has("p observed") else p
        raw = np.array(rate**power)
        if rounds.has("p of data"):
            raw = raw * rounds.sizes * rounds.n / max(rounds.sizes.sum(), 1.0)
        total = {"no N": 1.0, "over those present": float(max(len(who), 1))}.get(
            rounds.slip, float(rounds.n)
        )
        if rounds.has("renormalised"):
            total = float(raw[who].sum()) or 1.0
        if rounds.has("p by place"):
            raw[who] = raw[: len(who)].copy()
        changes = {k: rounds.change(k) for k in who}
        rounds.move(weighted(changes, {k: float(raw[k]) / total for k in who}, rounds.dim))


ADAFED_SLIPS = {
    "not renormalised": "weights are not renormalised over those present: that is Unbiased",
    "no availability": "the availability is not used",
    "times availability": "target weights are multiplied by the availability, not divided",
    "no targets": "target weights are not used",
    "over all": "weights are normalised over all clients, not over those present",
    "total of the round before": "weights are divided by their sum in the round before",
    "availability twice": "target weights are divided by the availability twice",
    "availability rolled": "a client gets the availability of the client before: off by one",
    "divided by N": "weights are divided by N, too",
    "by data": "data sizes stand for the target weights",
    "target twice": "target weights are applied twice",
    "over alpha": "weights are divided by the sum of the target weights present, not of alpha / pi",
    "over count": "divides by the number present instead of renormalising",
}


def adafed(rounds: Rounds) -> None:
    """Play weights alpha / pi, renormalised over those present."""
    alpha = per_client(rounds.options["target_weights"], rounds.n)
    pi = per_client(rounds.options["availability"], rounds.n)
    if rounds.has("no targets"):
        alpha = np.ones(rounds.n)
    if rounds.has("by data"):
        alpha = rounds.sizes
    if rounds.has("target twice"):
        alpha = alpha**2
    if rounds.has("availability rolled"):
        pi = np.roll(pi, 1)
    power = {"no availability": 0, "times availability": 1, "availability twice": -2}
    raw = alpha * pi ** float(power.get(rounds.slip, -1))
    before = 0.0
    for who in rounds.present():
        total = float(raw[who].sum())
        if rounds.has("total of the round before") and total > 0:
            before, total = total, before or total
        total = {
            "not renormalised": 1.0,
            "over all": float(raw.sum()),
            "divided by N": total * rounds.n,
            "over alpha": float(alpha[who].sum()),
            "over count": float(len(who)),
        }.get(rounds.slip, total)
        changes = {k: rounds.change(k) for k in who}
        weights = {k: float(raw[k]) / total if total > 0 else 0.0 for k in who}
        rounds.move(weighted(changes, weights, rounds.dim))


PAPERS = {
    "fedavg-is": Paper(fedavg_is, IS_SLIPS),
    "adafed": Paper(adafed, ADAFED_SLIPS),
}
