"""FedProx (Li et al., MLSys 2020): local steps on F_k(y) + mu/2 ||y - x||^2."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, shares

FAULTS = {
    "pulls to zero": Fault(
        "the proximal term is weight decay, mu y, not mu (y - x)",
        r"weight decay|to zero|origin|mu y\b",
        "litian96/FedProx#22",
    ),
    "factor two": Fault(
        "the term is mu (y - x)^2 without the factor 1/2, so it pulls twice as hard",
        r"factor|twice|half|mu/2|2 mu",
    ),
    "factor half": Fault(
        "the gradient of the term is taken as mu/2 (y - x)", r"factor|twice|half|mu/2|2 mu"
    ),
    "norm not squared": Fault(
        "the term is mu/2 ||y - x||: its pull has the same strength at any distance",
        r"squar",
        "flwrlabs/flower#2210",
    ),
    "own last model": Fault(
        "a client is pulled towards the model that it sent last, not towards the server's",
        r"own|server's model|round's model",
        "litian96/FedProx#25",
    ),
    "first model": Fault(
        "clients are pulled towards the initial model, because the server's model is copied only "
        "once",
        r"first|initial|x0|server's model|round's model",
        "securefederatedai/openfederatedlearning#1634",
    ),
    "pushes away": Fault("the sign of the proximal term is wrong", r"sign"),
    "no term": Fault(
        "the copy of the server's model is the same object as the local model, so the term is "
        "always 0",
        r"no proximal|without|missing|ignored|left out|always (0|zero)|never",
        "KarhouTam/FL-bench#165",
    ),
    "last step": Fault(
        "the term acts only in the last local step", r"every|each|once|one step|proximal term"
    ),
    "anchor moves": Fault(
        "the term pulls towards the previous local model, not towards the model at the start of "
        "the round",
        r"step before|local model",
    ),
    "plain mean": Fault(
        "clients count equally although their data sizes differ",
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
    proximal: float,
    weighting: str = "n_samples",
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    plain = weighting == "uniform" or fault == "plain mean"
    sizes = [1 if plain else c.n_samples for c in clients]
    strength = proximal * {"factor two": 2.0, "factor half": 0.5, "pushes away": -1.0}.get(fault, 1)
    sent = {i: np.array(x0) for i in range(len(clients))}
    x = np.array(x0)
    models = [x]
    for who in trace:
        total = np.zeros_like(x)
        for i, weight in shares(sizes, np.flatnonzero(who)).items():
            centre = {
                "pulls to zero": np.zeros_like(x),
                "own last model": sent[i],
                "first model": np.array(x0),
            }.get(fault, x)
            y = last = x
            for k in range(local_steps):
                if fault == "anchor moves":
                    centre, last = last, y
                pull = strength * (y - centre)
                length = np.linalg.norm(y - centre)
                if fault == "norm not squared" and length > 0:
                    pull = 0.5 * pull / length
                if fault == "no term" or (fault == "last step" and k < local_steps - 1):
                    pull = 0 * pull
                y = y - client_lr * (clients[i].gradient(y) + pull)
            sent[i] = y
            total = total + weight * (y - x)
        x = x + server_lr * total
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weighting = str(rng.choice(["n_samples", "uniform"]))
    return {"proximal": float(rng.uniform(0.2, 2.0)), "weighting": weighting}


FEDPROX = Implementation(run, FAULTS, options)
