"""The rounds of the papers in plain NumPy, independent of this package: the second computation.

Each function follows the paper's algorithm line by line for exact gradients, with the contract's
signature.
"""

import numpy as np


def fedavg(
    x0, clients, trace, *, client_lr, local_steps, server_lr, weighting="n_samples", proximal=0.0
):
    """McMahan et al. 2017, Algorithm 1; with `proximal` Li et al. 2020, Algorithm 2."""
    models = [np.array(x0)]
    for present in trace:
        x, change, total = models[-1], 0.0, 0.0
        for client, here in zip(clients, present, strict=True):
            weight = client.n_samples if weighting == "n_samples" else 1
            if here and weight:
                y = x.copy()
                for _ in range(local_steps):
                    y = y - client_lr * (client.gradient(y) + proximal * (y - x))
                change, total = change + weight * (y - x), total + weight
        models.append(x + server_lr * change / total if total else x)
    return np.array(models)


def fednova(x0, clients, trace, *, client_lr, local_steps, server_lr):
    """Wang et al. 2020, equation (7): x+ = x - tau_eff sum p_i eta d_i, tau_eff = sum p_i tau_i."""
    models = [np.array(x0)]
    for present in trace:
        x, total = (
            models[-1],
            sum(c.n_samples for c, here in zip(clients, present, strict=True) if here),
        )
        direction, tau_eff = 0.0, 0.0
        for client, here, tau in zip(clients, present, local_steps, strict=True):
            if here and client.n_samples:
                y = x.copy()
                for _ in range(tau):
                    y = y - client_lr * client.gradient(y)
                p = client.n_samples / total
                direction, tau_eff = direction + p * (y - x) / tau, tau_eff + p * tau
        models.append(x + server_lr * tau_eff * direction)
    return np.array(models)


def scaffold(x0, clients, trace, *, client_lr, local_steps, server_lr, option=2):
    """Karimireddy et al. 2020, Algorithm 1."""
    n, c = len(clients), np.zeros_like(x0)
    own, models = [c] * n, [np.array(x0)]
    for present in trace:
        x, change, control = models[-1], [], []
        for i in np.flatnonzero(present):
            y = x.copy()
            for _ in range(local_steps):
                y = y - client_lr * (clients[i].gradient(y) - own[i] + c)
            new = (
                clients[i].gradient(x)
                if option == 1
                else own[i] - c + (x - y) / (local_steps * client_lr)
            )
            change.append(y - x)
            control.append(new - own[i])
            own[i] = new
        if change:
            models.append(x + server_lr * np.mean(change, axis=0))
            c = c + np.sum(control, axis=0) / n
        else:
            models.append(x)
    return np.array(models)


def mifa(x0, clients, trace, *, client_lr, local_steps, server_lr, start="wait"):
    """Gu et al. 2021, Algorithm 1; with "wait", no step is made until all clients have reported."""
    memory, models = [None] * len(clients), [np.array(x0)]
    for present in trace:
        x = models[-1]
        for i in np.flatnonzero(present):
            y = x.copy()
            for _ in range(local_steps):
                y = y - client_lr * clients[i].gradient(y)
            memory[i] = y - x
        waiting = start == "wait" and any(update is None for update in memory)
        known = [np.zeros_like(x) if update is None else update for update in memory]
        models.append(x if waiting else x + server_lr * np.mean(known, axis=0))
    return np.array(models)
