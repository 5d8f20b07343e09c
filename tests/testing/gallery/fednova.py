"""FedNova (Wang et al., NeurIPS 2020): tau_eff sum_i p_i (y_i - x)/tau_i over those present."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend, shares

FAULTS = {
    "largest": Fault("tau_eff is the largest number of steps of any participant", r"tau_eff"),
    "unweighted": Fault("tau_eff is the plain mean of tau_i over the participants", r"tau_eff"),
    "of everybody": Fault("tau_eff counts absent clients, too", r"tau_eff"),
    "no tau_eff": Fault(
        "the normalised changes are averaged but not multiplied by tau_eff", r"tau_eff"
    ),
    "not normalised": Fault(
        "changes are not divided by their numbers of steps: it is FedAvg",
        r"normali[sz]|divided by tau|FedAvg",
        "felisat/clustered-federated-learning#1",
    ),
    "divided by the largest": Fault(
        "every change is divided by the largest number of steps, not by its own",
        r"normali[sz]|tau_i|own",
    ),
    "p of everybody": Fault(
        "p is a share of all clients' data and sums to less than one over those present",
        r"all clients|those present|renormali|normali[sz]|absent|over everybody|sum to",
    ),
    "plain mean": Fault(
        "p is 1/|S|, whatever the data sizes",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
    "equal steps": Fault("every client makes the largest number of steps", r"steps|tau_i"),
    "tau_eff of the last round": Fault(
        "tau_eff is that of the previous round, because it is updated after the step",
        r"round before|stale|previous",
    ),
    "cut to a whole number": Fault(
        "tau_eff is rounded down to a whole number of steps",
        r"whole number|round(ed)? (down|off)|cut",
    ),
    "tau squared": Fault(
        "changes are divided by tau_i at the client and again at the server",
        r"normali[sz]|tau_i|twice",
    ),
}


def run(
    x0: np.ndarray,
    clients: Any,
    trace: np.ndarray,
    *,
    client_lr: float,
    local_steps: tuple[int, ...],
    server_lr: float,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    sizes = [1 if fault == "plain mean" else c.n_samples for c in clients]
    tau = dict(enumerate(local_steps))
    if fault == "equal steps":
        tau = dict.fromkeys(tau, max(local_steps))
    x, before = np.array(x0), 0.0
    models = [x]
    for who in trace:
        present = np.flatnonzero(who)
        p = shares(sizes, present)
        if fault == "p of everybody":
            p = {i: sizes[i] / sum(sizes) for i in present}
        effective = sum(p[i] * tau[i] for i in p)
        if p and fault == "largest":
            effective = max(tau[i] for i in p)
        elif p and fault == "unweighted":
            effective = np.mean([tau[i] for i in p])
        elif p and fault == "of everybody":
            effective = sum(n * tau[i] for i, n in enumerate(sizes)) / sum(sizes)
        elif p and fault == "p of everybody":
            effective = effective / max(sum(p.values()), 1e-300)
        elif fault == "cut to a whole number":
            effective = int(effective + 1e-9)
        elif fault == "no tau_eff":
            effective = 1
        if p and fault == "tau_eff of the last round":
            before, effective = effective, before or effective
        total = np.zeros_like(x)
        for i, weight in p.items():
            change = descend(clients[i], x, client_lr, tau[i]) - x
            divisor = {"tau squared": tau[i] ** 2, "divided by the largest": max(tau.values())}
            total = total + weight * change / divisor.get(fault, tau[i])
            if fault == "not normalised":
                total = total + weight * change * (1 / effective - 1 / tau[i])
        x = x + server_lr * effective * total
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {}


FEDNOVA = Implementation(run, FAULTS, options)
