"""FedAvg-IS (MIFA's baseline) and AdaFed (CA-Fed's): weights inverse to availability."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

IS_FAULTS = {
    "multiplied": Fault("updates are multiplied by p, not divided by it", r"multipl|divi"),
    "squared": Fault("updates are divided by p^2", r"squar|twice|p\^2"),
    "renormalised": Fault(
        "the weights are divided by their sum over those present", r"normali|sum to"
    ),
    "over those present": Fault(
        "the sum is divided by the number of participants, not by N",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
        "omarfoq/FedEM#3",
    ),
    "no probability": Fault("the weights are 1/N, without p", r"availab|probab|1/p"),
    "p sums to one": Fault(
        "availabilities are scaled to sum to one, as if they were chances of being drawn",
        r"availab|probab|sum to",
    ),
    "one minus p": Fault(
        "updates are divided by the probability of absence, 1 - p", r"absen|1 - p"
    ),
    "by size": Fault(
        "updates are weighted by the clients' data",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
    "another's probability": Fault(
        "p is looked up by a client's position among those present, not by its number",
        r"index|place|order|whose|own|permut",
    ),
}


def fedavg_is(
    x0: np.ndarray,
    clients: Any,
    trace: np.ndarray,
    *,
    client_lr: float,
    local_steps: int,
    server_lr: float,
    availability: Any,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    n, x, p = len(clients), np.array(x0), np.asarray(availability, dtype=float)
    sizes = np.array([c.n_samples for c in clients], dtype=float)
    each = {
        "multiplied": p / n,
        "squared": 1 / (n * p**2),
        "no probability": np.full(n, 1 / n),
        "p sums to one": p.sum() / (n * p),
        "one minus p": 1 / (n * np.maximum(1 - p, 1e-3)),
        "by size": sizes / max(sizes.sum(), 1) / p,
    }.get(fault, 1 / (n * p))
    models = [x]
    for who in trace:
        present = np.flatnonzero(who)
        weights = each[present]
        if fault == "another's probability":
            weights = each[: len(present)]
        elif fault == "renormalised":
            weights = weights / max(weights.sum(), 1e-300)
        elif fault == "over those present":
            weights = weights * n / max(len(present), 1)
        ends = [descend(clients[i], x, client_lr, local_steps) for i in present]
        move = sum((w * (y - x) for w, y in zip(weights, ends, strict=True)), np.zeros_like(x))
        x = x + server_lr * move
        models.append(x)
    return np.array(models)


ADAFED_FAULTS = {
    "not normalised": Fault(
        "the weights alpha/pi do not sum to one over those present", r"normali|sum to"
    ),
    "multiplied": Fault("weights are alpha pi, not alpha/pi", r"multipl|divi"),
    "squared": Fault("weights are alpha/pi^2", r"squar|twice|pi\^2"),
    "no availability": Fault("weights are alpha, without pi", r"availab|\bpi\b"),
    "no importance": Fault("weights are 1/pi, without alpha", r"target.weights|alpha"),
    "normalised over everybody": Fault(
        "the weights are divided by the sum of alpha/pi over all clients",
        r"all clients|those present|renormali|normali[sz]|absent|over everybody|sum to",
    ),
    "divided by targets": Fault(
        "the weights alpha/pi are divided by the sum of alpha over those present",
        r"sum of the target weights|of alpha",
    ),
    "sum of the last round": Fault(
        "the weights are divided by their sum in the round before",
        r"round before|previous|stale",
    ),
}


def adafed(
    x0: np.ndarray,
    clients: Any,
    trace: np.ndarray,
    *,
    client_lr: float,
    local_steps: int,
    server_lr: float,
    target_weights: Any,
    availability: Any,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    alpha = np.asarray(target_weights, dtype=float)
    pi = np.broadcast_to(np.asarray(availability, dtype=float), alpha.shape)
    x = np.array(x0)
    ratios = {
        "multiplied": alpha * pi,
        "squared": alpha / pi**2,
        "no availability": alpha,
        "no importance": 1 / pi,
    }.get(fault, alpha / pi)
    models, total = [x], 0.0
    for who in trace:
        weights = np.where(who, ratios, 0.0)
        if who.any() and fault == "sum of the last round":
            weights, total = weights / (total or weights.sum()), weights.sum()
        elif who.any() and fault != "not normalised":
            over = ratios if fault == "normalised over everybody" else weights
            over = alpha[who] if fault == "divided by targets" else over
            weights = weights / over.sum()
        move = np.zeros_like(x)
        for i in np.flatnonzero(who):
            move = move + weights[i] * (descend(clients[i], x, client_lr, local_steps) - x)
        x = x + server_lr * move
        models.append(x)
    return np.array(models)


def _availability(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"availability": tuple(rng.uniform(0.3, 0.9, n).tolist())}


def _both(rng: np.random.Generator, n: int) -> dict[str, Any]:
    alpha = rng.uniform(0.5, 2.0, n)
    return {"target_weights": tuple((alpha / alpha.sum()).tolist()), **_availability(rng, n)}


FEDAVG_IS = Implementation(fedavg_is, IS_FAULTS, _availability)
ADAFED = Implementation(adafed, ADAFED_FAULTS, _both)
