"""MIFA (Gu et al., NeurIPS 2021), waiting or from zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

FAULTS = {
    "over those present": Fault(
        "the sum of the table is divided by the number of participants",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
    ),
    "over those seen": Fault(
        "with start='zero', the sum is divided by the number of clients seen so far",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
    ),
    "present only": Fault(
        "the entries of absent clients are left out of the sum",
        r"absen|away|miss(ed|es)|return|forg|reset|keep|kept|latest|table|memory",
    ),
    "does not wait": Fault("the model moves before all clients have appeared", r"wait|appeared"),
    "waits too long": Fault(
        "the first step comes one round after the last client has appeared",
        r"wait|one round|appeared",
    ),
    "waits always": Fault("start='zero' is ignored: the server waits", r"wait|zero"),
    "forgets the absent": Fault(
        "the entry of a client that misses a round is set to zero",
        r"absen|away|miss(ed|es)|return|forg|reset|keep|kept",
    ),
    "stands still": Fault(
        "a round without participants makes no step along the table",
        r"empty|nobody|no (client|participant)|without participants",
    ),
    "mean of entries": Fault(
        "a new update is averaged with the client's old one instead of replacing it",
        r"overwr|replac|latest|averag",
    ),
    "mean of all updates": Fault(
        "an entry is the mean of all updates of a client, not the latest",
        r"averag|mean of all|latest|overwr",
    ),
    "one row for all": Fault(
        "all entries are one array in memory, [zeros] * N", r"share|same array|one entry"
    ),
    "models instead of updates": Fault(
        "the table keeps clients' models, and the server takes their mean", r"model|update|stale"
    ),
    "by size": Fault(
        "entries are weighted by the clients' data",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
    "waiting forgotten": Fault(
        "updates sent while the server waits are dropped when the last client appears",
        r"wait",
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
    start: str = "wait",
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    n, x = len(clients), np.array(x0)
    waits = start == "wait"
    if fault in ("does not wait", "waits always"):
        waits = fault == "waits always"
    table, ends = np.zeros((n, x.size)), np.tile(x, (n, 1))
    seen, times = np.zeros(n, dtype=bool), np.zeros(n)
    sizes = np.array([c.n_samples for c in clients], dtype=float)
    models = [x]
    for who in trace:
        moved_before = seen.all()
        renewed = table.copy()
        for i in np.flatnonzero(who):
            ends[i] = descend(clients[i], x, client_lr, local_steps)
            renewed[i] = (x - ends[i]) / client_lr
            if fault == "mean of entries" and seen[i]:
                renewed[i] = (renewed[i] + table[i]) / 2
            times[i] += 1
            if fault == "mean of all updates":
                renewed[i] = table[i] + (renewed[i] - table[i]) / times[i]
            if fault == "one row for all":
                renewed[:] = renewed[i]
        table, seen = renewed, seen | who
        if fault == "waiting forgotten" and waits and seen.all() and not moved_before:
            table = np.where(who[:, None], table, 0.0)
        mean = table.mean(axis=0)
        if fault == "over those present":
            mean = table.sum(axis=0) / max(who.sum(), 1)
        elif fault == "over those seen":
            mean = table.sum(axis=0) / max(seen.sum(), 1)
        elif fault == "present only":
            mean = table[who].sum(axis=0) / n
        elif fault == "by size":
            mean = sizes @ table / max(sizes.sum(), 1)
        moves = not waits or (moved_before if fault == "waits too long" else seen.all())
        if fault == "stands still" and not who.any():
            moves = False
        if moves and fault == "models instead of updates":
            x = x + server_lr * (ends.mean(axis=0) - x)
        elif moves:
            x = x - server_lr * client_lr * mean
        if fault == "forgets the absent":
            table = np.where(who[:, None], table, 0.0)
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"start": str(rng.choice(["wait", "zero"]))}


MIFA = Implementation(run, FAULTS, options)
