"""F3AST (Ribero, Vikalo and de Veciana, 2022), with r learned or, as in CA-Fed's code, known."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

FAULTS = {
    "renewed after use": Fault(
        "the weights alpha/r use the value of r before it is updated with this round's choice",
        r"before|after|old r|new r",
    ),
    "least urgent": Fault(
        "the clients of smallest alpha/r are chosen", r"largest|smallest|urgen|order|chosen"
    ),
    "rate squared": Fault(
        "clients are chosen by alpha/r^2, although the descent depends on alpha^2/r^2",
        r"r\^2|squar",
    ),
    "divided by size": Fault("the update is divided by the number of chosen clients", r"size|divi"),
    "with replacement": Fault(
        "the most urgent client is drawn `size` times",
        r"replacement|twice|distinct",
        "litian96/fair_flearn#9",
    ),
    "presence learned": Fault(
        "r estimates how often a client is present, not how often it is chosen", r"chosen|present"
    ),
    "one too many": Fault(
        "one client more than `size` is chosen", r"size|off by one|one client too"
    ),
    "one too few": Fault(
        "one client fewer than `size` is chosen", r"size|off by one|one client too"
    ),
    "chosen among all": Fault(
        "the most urgent of all clients are chosen, even absent ones, which do not answer",
        r"all clients|absent",
    ),
    "weights squared": Fault(
        "the weights are alpha^2/r^2, which should only rank the clients",
        r"squar|alpha/r|alpha / r",
    ),
    "absent do not decay": Fault(
        "r decays only for clients that are present",
        r"absen|away|miss(ed|es)|return|forg|reset|keep|kept|decay",
    ),
    "r starts at one": Fault(
        "r starts at 1 for all clients, not at alpha", r"start|initial|begin|at first\b|first round"
    ),
    "smoothing reversed": Fault(
        "beta is the weight of the old r, not of the new value", r"smoothing|beta"
    ),
    "time stands still": Fault(
        "r does not decay in a round without participants",
        r"empty|nobody|no (client|participant)|without participants|decay",
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
    target_weights: Any,
    size: int,
    smoothing: float = 0.01,
    availability: Any = None,
    last_of_equals: bool = False,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models; the paper does not say who goes first of equals."""
    alpha = np.asarray(target_weights, dtype=float)
    n, x, beta = alpha.size, np.array(x0), smoothing
    if fault == "smoothing reversed":
        beta = 1 - beta
    learned = availability is None
    rate = alpha.copy() if learned else np.broadcast_to(availability, alpha.shape).astype(float)
    if learned and fault == "r starts at one":
        rate = np.ones(n)
    most = max(size + {"one too many": 1, "one too few": -1}.get(fault, 0), 0)
    models = [x]
    for who in trace:
        used = rate if learned else (1 - beta) * rate + beta * who
        power = 2 if fault == "rate squared" else 1
        order = sorted(np.flatnonzero(who), key=lambda k: -alpha[k] / used[k] ** power)
        if fault == "least urgent":
            order = order[::-1]
        elif last_of_equals:
            order = sorted(np.flatnonzero(who), key=lambda k: (-alpha[k] / used[k], -k))
        chosen = order[:most]
        if fault == "chosen among all":
            everybody = sorted(range(n), key=lambda k: -alpha[k] / used[k])
            chosen = [k for k in everybody[:most] if who[k]]
        times = np.zeros(n)
        times[chosen] = 1
        if fault == "with replacement" and chosen:
            times = np.zeros(n)
            times[chosen[0]] = most
        if learned:
            seen = who if fault == "presence learned" else times > 0
            new = (1 - beta) * rate + beta * seen
            if fault == "absent do not decay":
                new = np.where(who, new, rate)
            if fault == "time stands still" and not who.any():
                new = rate
            used = rate if fault == "renewed after use" else new
            rate = new
        move = np.zeros_like(x)
        for k in np.flatnonzero(times):
            weight = alpha[k] / used[k]
            if fault == "weights squared":
                weight = weight**2
            elif fault == "divided by size":
                weight = weight / times.sum()
            move = move + times[k] * weight * (descend(clients[k], x, client_lr, local_steps) - x)
        x = x + server_lr * move
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    alpha = rng.uniform(0.5, 2.0, n)
    if rng.random() < 0.4:
        alpha = np.ones(n)
    found: dict[str, Any] = {
        "target_weights": tuple((alpha / alpha.sum()).tolist()),
        "size": int(rng.integers(1, n)),
        "smoothing": float(rng.uniform(0.05, 0.3)),
    }
    if rng.random() < 0.3:
        found["availability"] = tuple(rng.uniform(0.3, 0.9, n).tolist())
    return found


F3AST = Implementation(run, FAULTS, options)
