"""FedAU (Wang and Ji, ICLR 2024, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

FAULTS = {
    "this round included": Fault(
        "omega is updated before it is used, so it includes the current round",
        r"this round|current round|before (it|the round|use)|rounds before|too early",
    ),
    "last interval": Fault(
        "omega is the last interval, not the mean of all intervals", r"last interval|mean|average"
    ),
    "starts at zero": Fault(
        "omega is 0 until the first interval has ended",
        r"start|initial|begin|at first\b|first round",
    ),
    "start counts": Fault(
        "the initial value 1 of omega counts as an interval in the mean",
        r"first 1|start|initial|begin|at first\b|first round",
    ),
    "cutoff too late": Fault(
        "an interval ends one round after the cut-off", r"cut.{0,5}off|tau_max"
    ),
    "cutoff too early": Fault(
        "an interval ends one round before the cut-off", r"cut.{0,5}off|tau_max"
    ),
    "interval too short": Fault(
        "an interval counts the rounds of absence, but not the round of participation", r"interval"
    ),
    "clock starts late": Fault(
        "a client's first interval begins when it first appears, not at the start",
        r"first (appear|interval)|first comes",
    ),
    "capped on return": Fault(
        "an interval is shortened to K when the client returns, instead of ending after K rounds",
        r"cut.{0,5}off|tau_max",
    ),
    "no cutoff": Fault("the cut-off is ignored", r"cut.{0,5}off|tau_max"),
    "over those present": Fault(
        "the weighted sum is divided by the number of participants, not of all clients",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
    ),
    "inverse": Fault(
        "updates are divided by omega, as if it were a frequency", r"omega|inverse|divi"
    ),
    "time stands still": Fault(
        "a round without participants is not counted in the intervals",
        r"empty|nobody|no (client|participant)|without participants",
    ),
    "renormalised": Fault(
        "the weights are divided by their sum over those present",
        r"all clients|those present|renormali|normali[sz]|absent|over everybody|sum to|renormal",
    ),
    "a round late": Fault(
        "omega counts intervals only up to the round before last", r"late|round before|stale"
    ),
    "median": Fault("omega is the median of the intervals, not their mean", r"median"),
    "by size": Fault(
        "updates are weighted by the clients' data",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
}


def run(
    x0: np.ndarray,
    clients: Any,
    trace: np.ndarray,
    *,
    client_lr: float,
    local_steps: int,
    server_lr: float,
    cutoff: float = math.inf,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    n, x = len(clients), np.array(x0)
    limit = cutoff + {"cutoff too late": 1, "cutoff too early": -1}.get(fault, 0)
    if fault in ("no cutoff", "capped on return"):
        limit = math.inf
    limit = max(limit, 1)
    omega = np.full(n, 0.0 if fault == "starts at zero" else 1.0)
    ended, age = np.full(n, 1.0 if fault == "start counts" else 0.0), np.zeros(n)
    sizes = np.array([c.n_samples for c in clients], dtype=float)
    seen, lengths, used = np.zeros(n, dtype=bool), [[] for _ in range(n)], np.ones(n)
    models = [x]

    def advance(who: np.ndarray) -> None:
        if fault == "time stands still" and not who.any():
            return
        age[:] += 1
        if fault == "clock starts late":
            age[~seen] = 0
        ends = (who | (age == limit)) & (seen | (fault != "clock starts late"))
        seen[who] = True
        for i in np.flatnonzero(ends):
            length = age[i] - 1 if fault == "interval too short" else age[i]
            if fault == "capped on return":
                length = min(length, cutoff)
            omega[i] = (omega[i] * ended[i] + length) / (ended[i] + 1)
            if fault == "last interval":
                omega[i] = length
            lengths[i].append(length)
            if fault == "median":
                omega[i] = np.median(lengths[i])
            ended[i] += 1
            age[i] = 0

    for who in trace:
        if fault == "this round included":
            advance(who)
        used, older = omega.copy(), used
        now = older if fault == "a round late" else used
        weights = np.where(who, 1 / np.maximum(now, 1e-9) if fault == "inverse" else now, 0.0)
        weights = weights / n
        if fault == "over those present":
            weights = weights * n / max(who.sum(), 1)
        elif fault == "renormalised" and weights.sum() > 0:
            weights = weights / weights.sum()
        elif fault == "by size":
            weights = weights * n * sizes / max(sizes.sum(), 1)
        move = np.zeros_like(x)
        for i in np.flatnonzero(who):
            move = move + weights[i] * (descend(clients[i], x, client_lr, local_steps) - x)
        x = x + server_lr * move
        if fault != "this round included":
            advance(who)
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"cutoff": int(rng.integers(2, 5)) if rng.random() < 0.8 else math.inf}


FEDAU = Implementation(run, FAULTS, options)
