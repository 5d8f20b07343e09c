"""SCAFFOLD (Karimireddy et al., ICML 2020, Algorithm 1), options I and II."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

FAULTS = {
    "c over those present": Fault(
        "the server's control is divided by the number of participants, not of all clients",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
        "Xtra-Computing/NIID-Bench#12",
    ),
    "c_i instead of its change": Fault(
        "the server adds the new c_i to c, not the difference from the old one",
        r"change|difference|c_i\^?\+ ?- ?c_i|delta",
        "TL-System/plato#382",
    ),
    "c_i at the model": Fault(
        "the controls start as copies of the model's weights, not at zero",
        r"start|initial|begin|at first\b|first round",
        "Xtra-Computing/NIID-Bench#8",
    ),
    "c at the model": Fault(
        "the server's control starts as a copy of the model, the clients' controls start at zero",
        r"start|initial|begin|at first\b|first round",
        "Xtra-Computing/NIID-Bench#8",
    ),
    "by size": Fault(
        "changes are weighted by the clients' data where Algorithm 1 has plain means",
        r"n_samples|data siz|by (their|its|the) data|weigh\w* by|plain mean|uniform",
        "TsingZ0/PFLlib#160",
    ),
    "sign": Fault(
        "local steps follow g + c_i - c, not g - c_i + c",
        r"\bsign\b|c - c_i|c_i - c",
        "fedbiomed/fedbiomed#734",
    ),
    "no K": Fault(
        "c_i^+ of option II lacks the division by K",
        r"\bK\b|local_steps|number of (local )?steps",
        "TsingZ0/PFLlib#160",
    ),
    "no lr": Fault(
        "c_i^+ of option II lacks the division by the step size",
        r"client_lr|step size|learning rate|eta_l",
        "TL-System/plato#386",
    ),
    "gradient at the end": Fault(
        "option I takes the gradient at y_K, where the client ended, not at x",
        r"y_K|at x\b|after the local steps",
    ),
    "renewed in between": Fault(
        "c is updated after every client, so later clients in the round use a different c",
        r"between|during the round|within (a|the) round|one after another|after each client",
    ),
    "renewed before use": Fault(
        "c_i is replaced by the gradient at x before the local steps use it",
        r"before|too early|old c_i|already",
    ),
    "forgets the absent": Fault(
        "c_i of a client that misses a round is set to zero",
        r"absen|away|miss(ed|es)|return|forg|reset|keep|kept",
    ),
    "no c in c_i": Fault(
        "c_i^+ of option II lacks - c", r"- c\b|without c|lacks|minus c|new control|c_i\^\+"
    ),
    "sign of c in c_i": Fault("c_i^+ of option II is c_i + c + ...", r"- c\b|sign|minus c|c_i\^\+"),
    "corrected once": Fault(
        "the correction acts only in the first local step",
        r"(every|each|first) (local )?step|once",
    ),
    "c stays zero": Fault("the server never updates c", r"never|stays|not (updated|renewed)"),
    "server step on c": Fault("the server's step size also scales the change of c", r"server_lr"),
    "server step on c_i": Fault(
        "the client stores its control multiplied by the server's step size", r"server_lr"
    ),
    "summed": Fault(
        "the changes of c_i are averaged over |S| and then multiplied by |S|^2/N",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
    ),
    "c of the last answer": Fault(
        "the server's control takes only the change of the last client", r"last"
    ),
    "mean over N": Fault(
        "the model's change is divided by all clients, not by those present",
        r"by N\b|by all|N_t|number of (clients|participants)|\|S\||those present|divi",
    ),
    "other option": Fault(
        "option II is used where option I was requested, and vice versa", r"option"
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
    option: int = 2,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    n = len(clients)
    if fault == "other option":
        option = 3 - option
    x = np.array(x0)
    c, c_i = np.zeros_like(x), [np.zeros_like(x) for _ in clients]
    if fault == "c_i at the model":
        c_i = [np.array(x0) for _ in clients]
    if fault == "c at the model":
        c = np.array(x0)
    models = [x]
    for who in trace:
        present = np.flatnonzero(who)
        weights = dict.fromkeys(present, 1 / max(len(present), 1))
        sizes = sum(clients[i].n_samples for i in present)
        if fault == "by size":
            weights = {i: clients[i].n_samples / max(sizes, 1) for i in present}
        if fault == "mean over N":
            weights = dict.fromkeys(present, 1 / n)
        move, change_of_c, seen = np.zeros_like(x), np.zeros_like(x), c
        for i in present:
            if fault == "renewed before use":
                c_i[i] = clients[i].gradient(x)
            push = seen - c_i[i]
            if fault == "sign":
                push = -push
            if fault == "corrected once":
                y = descend(clients[i], x, client_lr, 1, push)
                y = descend(clients[i], y, client_lr, local_steps - 1)
            else:
                y = descend(clients[i], x, client_lr, local_steps, push)
            if option == 1:
                new = clients[i].gradient(y if fault == "gradient at the end" else x)
            else:
                rate = {"no K": client_lr, "no lr": local_steps}.get(fault, local_steps * client_lr)
                server = {"no c in c_i": 0 * seen, "sign of c in c_i": -seen}.get(fault, seen)
                new = c_i[i] - server + (x - y) / rate
            move = move + weights[i] * (y - x)
            gain = new if fault == "c_i instead of its change" else new - c_i[i]
            change_of_c = change_of_c + gain
            if fault == "c of the last answer":
                change_of_c = gain
            c_i[i] = server_lr * new if fault == "server step on c_i" else new
            if fault == "renewed in between":
                seen = seen + gain / n
        x = x + server_lr * move
        scale = {
            "c over those present": 1 / max(len(present), 1),
            "c stays zero": 0.0,
            "server step on c": server_lr / n,
            "summed": len(present) / n,
        }.get(fault, 1 / n)
        c = c + scale * change_of_c
        if fault == "forgets the absent":
            c_i = [c_i[i] if who[i] else np.zeros_like(x) for i in range(n)]
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"option": int(rng.integers(1, 3))}


SCAFFOLD = Implementation(run, FAULTS, options)
