"""FedVARP (Jhunjhunwala et al., UAI 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

NUMBER = r"by N\b|by all|number of (clients|participants)|\|S\||those present|divi|all clients"
FAULTS = {
    "renewed before use": Fault(
        "the memory is overwritten before the surprise (update minus memory) is computed, so the "
        "surprise is zero",
        r"before|surprise|too early|old memory",
    ),
    "mean of those present": Fault(
        "the memory's mean is over the participants, not over all clients",
        NUMBER,
    ),
    "mean of those seen": Fault(
        "the memory's mean is over the clients seen so far",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi|never|seen",
    ),
    "mean of those seen before": Fault(
        "the memory's mean is over the clients seen in earlier rounds",
        r"by N\b|by all|N_t|over all|number of (clients|participants)|never|seen|earlier",
    ),
    "mean of the new memory": Fault(
        "the memory's mean is taken after the participants have updated their entries",
        r"before|after|new memory|old memory",
    ),
    "forgets the absent": Fault(
        "the memory of a client that misses a round is set to zero",
        r"absen|away|miss(ed|es)|return|forg|reset|keep|kept",
    ),
    "surprise over N": Fault(
        "the surprise is divided by all clients, not by those present",
        NUMBER,
    ),
    "server step remembered": Fault(
        "updates are stored after multiplication by the server's step size", r"server_lr"
    ),
    "by size": Fault(
        "the surprise is weighted by the clients' data",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
    "empty round": Fault(
        "a round without participants still makes a step along the memory's mean",
        r"empty|nobody|no (client|participant)|without participants",
    ),
    "mean of the absent": Fault(
        "the memory's mean leaves out the clients that are present",
        r"absent|leaves out|away",
    ),
    "memory at the first update": Fault(
        "a client's memory starts at its first update, so its first surprise is zero",
        r"start|initial|begin|at first\b|first round|first appear",
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
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    n, x, reach = len(clients), np.array(x0), client_lr * local_steps
    y, seen = np.zeros((n, x.size)), np.zeros(n, dtype=bool)
    models = [x]
    for who in trace:
        present = np.flatnonzero(who)
        fresh = {i: (x - descend(clients[i], x, client_lr, local_steps)) / reach for i in present}
        if fault == "memory at the first update":
            for i in present[~seen[present]]:
                y[i] = fresh[i]
        earlier = max(seen.sum(), 1)
        seen |= who
        kept = server_lr if fault == "server step remembered" else 1.0
        new = np.array([kept * fresh[i] if i in fresh else y[i] for i in range(n)])
        old = new if fault == "renewed before use" else y
        weights = dict.fromkeys(present, 1 / max(len(present), 1))
        if fault == "surprise over N":
            weights = dict.fromkeys(present, 1 / n)
        elif fault == "by size":
            total = sum(clients[i].n_samples for i in present)
            weights = {i: clients[i].n_samples / max(total, 1) for i in present}
        v = sum((w * (fresh[i] - old[i]) for i, w in weights.items()), np.zeros_like(x))
        if len(present) or fault == "empty round":
            v = v + {
                "mean of those present": old[present].mean(axis=0) if len(present) else 0,
                "mean of those seen": old.sum(axis=0) / max(seen.sum(), 1),
                "mean of those seen before": old.sum(axis=0) / earlier,
                "mean of the new memory": new.mean(axis=0),
                "mean of the absent": old[~who].sum(axis=0) / n,
            }.get(fault, old.mean(axis=0))
        x = x - server_lr * reach * v
        y = new
        if fault == "forgets the absent":
            y = np.where(who[:, None], y, 0.0)
        models.append(x)
    return np.array(models)


FEDVARP = Implementation(run, FAULTS, lambda rng, n: {})
