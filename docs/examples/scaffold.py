"""SCAFFOLD with a common slip: c moves by the mean over the clients present, not over all.

It looks right if all clients take part. fltheory conformance scaffold.py:run scaffold
"""

from __future__ import annotations

import numpy as np


def run(x0, clients, trace, *, client_lr, local_steps, server_lr, option):
    """Return the models after every round; trace[t, k] says whether client k is present."""
    x, c = x0, np.zeros_like(x0)
    controls = np.zeros((len(clients), len(x0)))
    models = [x]
    for who in trace:
        present = np.flatnonzero(who)
        moves, changes = [], []
        for k in present:
            y = x
            for _ in range(local_steps):
                y = y - client_lr * (clients[k].gradient(y) - controls[k] + c)
            new = clients[k].gradient(x)
            if option == 2:
                new = controls[k] - c + (x - y) / (local_steps * client_lr)
            moves.append(y - x)
            changes.append(new - controls[k])
            controls[k] = new
        if len(present):
            x = x + server_lr * np.mean(moves, axis=0)
            c = c + np.mean(changes, axis=0)  # the paper: np.sum(...) / len(clients)
        models.append(x)
    return np.array(models)
