"""FedAvg (McMahan et al., Algorithm 1, the form of the erratum)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend, shares

STEPS = r"off.by.one|too (few|many)|K ?[-+] ?1|number of (local )?steps|one step (more|less)"
FAULTS = {
    "plain mean": Fault(
        "clients count equally although their data sizes differ",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
        "SMILELab-FL/FedLab#305",
    ),
    "by size": Fault(
        "clients are weighted by their data where a plain mean was requested",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
    ),
    "over everybody": Fault(
        "the weights are shares of the data of all clients, so absent clients hold the model back",
        r"all clients|those present|renormali|normali[sz]|absent|over everybody|sum to",
        "katsura-jp/fedavg.pytorch#1",
    ),
    "weighted twice": Fault(
        "clients send weighted updates, which the server weights again",
        r"twice",
        "OpenMined/PySyft#3828",
    ),
    "one step too few": Fault(
        "range(1, K): the clients take one step too few",
        STEPS,
        "OpenMined/PySyft#2306",
    ),
    "one step too many": Fault(
        "while k <= K: the clients take one step too many",
        STEPS,
    ),
    "stale model": Fault(
        "clients train from the previous round's model, because they fetch the new one only after "
        "training",
        r"stale|previous round|old model|earlier (model|round)|last round|round before",
        "epfml/disco#1219",
    ),
    "no reset": Fault(
        "one model object serves all clients, and each continues where the last one ended",
        r"one after another|previous client|other client|each other|same model|reset|shared",
        "alibaba/FederatedScope#664",
    ),
    "server step on the model": Fault(
        "the server's step size multiplies the averaged model, not its change", r"server_lr"
    ),
    "no server step": Fault("the server's step size is not used", r"server_lr"),
    "momentum across clients": Fault(
        "all clients share one optimiser with momentum, which remembers the previous client's "
        "gradients",
        r"momentum|optimi[sz]er",
        "alibaba/FederatedScope#450",
    ),
    "gradients at the start": Fault(
        "all K gradients are taken at the model at the start of the round, and added up",
        r"gradients? .*(same|server's|round's|start|at x\b)|y_k|one (large|big|long) step|moving",
    ),
    "empty round": Fault(
        "in a round without participants the model becomes an empty sum, 0",
        r"empty|nobody|no (client|participant)|without participants",
        "NVIDIA/NVFlare#5311",
    ),
    "sign": Fault(
        "the pseudo-gradient is added as if it were the model's change",
        r"\bsign\b|direction|ascent|wrong way",
    ),
    "no data counts": Fault(
        "a client without data counts as if it had one sample, max(n, 1)",
        r"without data|no data|n_samples",
        "flwrlabs/flower#7645",
    ),
    "answers sorted": Fault(
        "changes are sorted by data size, but the weights are not", r"order|another client|whose"
    ),
    "one array for all": Fault(
        "all local models are one array in memory, which ends up holding the last client's model",
        r"last|overwr|same array",
    ),
    "in place": Fault(
        "each client's change is added to the model that the next client starts from",
        r"one after another|after each client|client by client|at once",
    ),
    "momentum at the server": Fault(
        "the server averages its changes over rounds, from 0: v <- v/2 + change/2", r"momentum"
    ),
    "step size decays": Fault(
        "the local step size falls from round to round, as client_lr / t", r"client_lr|step size"
    ),
    "lone client skipped": Fault(
        "a round in which only one client answers is skipped, because at least two are required",
        r"single|alone|lone",
    ),
    "row off by one": Fault(
        "round t reads row t - 1 of the trace, and the first round reads the last row",
        r"round before|off by one",
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
    weighting: str = "n_samples",
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    sizes = [c.n_samples for c in clients]
    if fault == "no data counts":
        sizes = [max(n, 1) for n in sizes]
    plain = weighting == "uniform"
    if fault in ("plain mean", "by size"):
        plain = fault == "plain mean"
    if plain:
        sizes = [1] * len(sizes)
    steps = local_steps + {"one step too few": -1, "one step too many": 1}.get(fault, 0)
    x, old, velocity = np.array(x0), np.array(x0), np.zeros_like(x0)
    models = [x]
    rows = np.roll(trace, 1, axis=0) if fault == "row off by one" else trace
    for t, who in enumerate(rows, start=1):
        present = np.flatnonzero(who)
        weights = shares(sizes, present)
        if fault == "over everybody":
            weights = {i: sizes[i] / sum(sizes) for i in present}
        if fault == "lone client skipped" and len(present) == 1:
            weights = {}
        start = old if fault == "stale model" else x
        total = np.zeros_like(x)
        answers = list(weights)
        if fault == "answers sorted":
            answers = sorted(weights, key=lambda i: clients[i].n_samples)
        for i, weight in zip(answers, weights.values(), strict=True):
            if fault == "gradients at the start":
                y = start - client_lr * steps * clients[i].gradient(start)
            elif fault == "step size decays":
                y = descend(clients[i], start, client_lr / t, steps)
            elif fault == "momentum across clients":
                y = start
                for _ in range(steps):
                    velocity = 0.5 * velocity + clients[i].gradient(y)
                    y = y - client_lr * velocity
            else:
                y = descend(clients[i], start, client_lr, steps)
            change = y - x
            if fault == "no reset":
                start = y
            elif fault == "in place":
                change = y - start
                start = start + server_lr * weight * change
            if fault == "weighted twice":
                change = weight * change
            total = total + weight * change
            if fault == "one array for all":
                total = sum(weights.values()) * change
        if fault == "momentum at the server":
            velocity = 0.5 * velocity + 0.5 * total
            total = velocity
        old = x
        if fault == "sign":
            x = x - server_lr * total
        elif fault == "no server step":
            x = x + total
        elif fault == "server step on the model" and weights:
            x = server_lr * (x + total)
        elif fault == "empty round" and not weights:
            x = np.zeros_like(x)
        else:
            x = x + server_lr * total
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"weighting": str(rng.choice(["n_samples", "uniform"]))}


FEDAVG = Implementation(run, FAULTS, options)
