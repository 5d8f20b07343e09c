"""FedAWE (Xiang et al., NeurIPS 2024, Algorithm 1): echoes of updates, and postponed gossip."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

NUMBER = r"by N\b|by all|number of (clients|participants)|those present|divi|all clients"
AGE = r"tau|\bage|echo|rounds? (away|since|missed)|since the last"
FAULTS = {
    "no echo": Fault("every update counts once, however long the client was away", AGE),
    "rounds missed": Fault(
        "an update counts t - tau - 1 times, once per missed round, so a client that is never "
        "absent counts for nothing",
        AGE,
    ),
    "one too many": Fault("an update counts t - tau + 1 times", AGE),
    "tau at 0": Fault(
        "tau starts at 0, not at -1, so a client's first update counts one time too few", AGE
    ),
    "tau not renewed": Fault(
        "tau stays at -1, so an update counts once for every round so far", AGE
    ),
    "rounds with somebody": Fault(
        "rounds in which nobody is present are not counted", r"empty|nobody"
    ),
    "echo in the step size": Fault(
        "t - tau multiplies the local step size instead of the update", r"step size|client_lr"
    ),
    "the server's model": Fault(
        "clients start from the server's latest model, although they were absent when it was sent",
        r"server's|latest|own model|gossip",
    ),
    "added to the server's model": Fault(
        "echoed updates are averaged and added to the server's model", r"server's|own model|added"
    ),
    "keeps its own": Fault(
        "a present client keeps the model it has trained instead of taking the mean",
        r"own|keep|take|mean",
    ),
    "over N": Fault(
        "the mean is over the models of all clients, including absent ones",
        rf"{NUMBER}|absent",
    ),
    "outer step": Fault(
        "server_lr scales the change of the server's model, not each update", r"server_lr"
    ),
    "by size": Fault(
        "the mean is weighted by the clients' data",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
    "forgets the absent": Fault(
        "a client that was away starts from x0 again",
        r"absen|away|return|forg|reset|x0|first model",
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
    n, x = len(clients), np.array(x0)
    own, tau = [x] * n, np.full(n, 0 if fault == "tau at 0" else -1)
    sizes = np.array([c.n_samples for c in clients], dtype=float)
    models, t = [x], 0
    for who in trace:
        present = np.flatnonzero(who)
        sent = {}
        for i in present:
            times = t - tau[i]
            times += {"rounds missed": -1, "one too many": 1}.get(fault, 0)
            begun = x if fault == "the server's model" else own[i]
            if fault == "echo in the step size":
                change = descend(clients[i], begun, client_lr * times, local_steps) - begun
            else:
                change = descend(clients[i], begun, client_lr, local_steps) - begun
                change = change * (1 if fault == "no echo" else times)
            place = x if fault == "added to the server's model" else begun
            sent[i] = place + (1.0 if fault == "outer step" else server_lr) * change
        if len(present):
            mean = sum(sent.values()) / len(present)
            if fault == "by size" and sizes[present].any():
                mean = sum(sizes[i] * y for i, y in sent.items()) / sizes[present].sum()
            elif fault == "over N":
                mean = sum(sent.get(i, own[i]) for i in range(n)) / n
            elif fault == "outer step":
                mean = x + server_lr * (mean - x)
            x = mean
        for i in range(n):
            if i in sent:
                own[i] = sent[i] if fault == "keeps its own" else x
                tau[i] = -1 if fault == "tau not renewed" else t
            elif fault == "forgets the absent":
                own[i] = np.array(x0)
        t += 1 if len(present) or fault != "rounds with somebody" else 0
        models.append(x)
    return np.array(models)


FEDAWE = Implementation(run, FAULTS, lambda rng, n: {})
