"""FedAR (Jiang et al., 2024) with psi(tau) = min(1 + growth tau, largest)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.testing.gallery.fault import Fault, Implementation, descend

FAULTS = {
    "a round older": Fault(
        "ages are one too large, so clients just seen have a weight above 1", r"\bage|psi|inactiv"
    ),
    "age starts at the round": Fault(
        "psi is taken at the age in the previous round", r"\bage|psi|inactiv"
    ),
    "N_t is N": Fault(
        "the sum is divided by the number of all clients, even those never seen", r"N_t|number of"
    ),
    "N_t is those present": Fault(
        "the sum is divided by the number of participants", r"N_t|number of"
    ),
    "cutoff excludes equal": Fault(
        "a client counts if tau < tau_max, but not if tau = tau_max", r"cut.{0,5}off|tau_max"
    ),
    "no cutoff": Fault("the cut-off is ignored", r"cut.{0,5}off|tau_max"),
    "counts beyond the cutoff": Fault(
        "clients beyond the cut-off are left out of the sum but counted in N_t",
        r"cut.{0,5}off|tau_max|N_t",
    ),
    "weights fall": Fault(
        "stale updates get smaller weights, 1/(1 + growth tau)", r"psi|grow|\bage|decreas"
    ),
    "no largest": Fault("psi grows beyond its largest value", r"largest|cap"),
    "weights sum to one": Fault(
        "the weighted sum is divided by the sum of psi, not by N_t", r"N_t|sum|normali"
    ),
    "age is kept": Fault("a returning client keeps its old age", r"return|\bage"),
    "expired for good": Fault(
        "a client that was once beyond the cut-off never counts again",
        r"never (counts|comes)|for good|again|return",
    ),
    "stands still": Fault(
        "a round without participants makes no step",
        r"empty|nobody|no (client|participant)|without participants",
    ),
    "present only": Fault(
        "only the participants' updates count",
        r"absen|away|miss(ed|es)|return|forg|reset|keep|kept|stale|latest|memory",
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
    growth: float,
    largest: float,
    cutoff: float = math.inf,
    fault: str = "",
) -> np.ndarray:
    """Return the server's models."""
    n, x = len(clients), np.array(x0)
    updates, age = np.zeros((n, x.size)), np.zeros(n)
    seen, gone = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    models = [x]
    for who in trace:
        before = age
        for i in np.flatnonzero(who):
            updates[i] = (x - descend(clients[i], x, client_lr, local_steps)) / client_lr
        keeps = fault == "age is kept"
        age = np.where(who & ~(seen & keeps), 0, np.where(who, age, age + 1))
        seen = seen | who
        counts = seen & (age <= cutoff)
        if fault == "cutoff excludes equal":
            counts = seen & ((age < cutoff) | who)
        elif fault == "no cutoff":
            counts = seen
        elif fault == "present only":
            counts = who
        elif fault == "expired for good":
            gone |= seen & (age > cutoff)
            counts = counts & ~gone
        at = {"a round older": age + 1, "age starts at the round": before}.get(fault, age)
        psi = np.minimum(1 + growth * at, math.inf if fault == "no largest" else largest)
        if fault == "weights fall":
            psi = 1 / (1 + growth * at)
        psi = np.where(counts, psi, 0.0)
        number = {
            "N_t is N": n,
            "N_t is those present": who.sum(),
            "counts beyond the cutoff": seen.sum(),
            "weights sum to one": psi.sum(),
        }.get(fault, counts.sum())
        if not (fault == "stands still" and not who.any()):
            x = x - server_lr * client_lr * psi @ updates / max(number, 1)
        models.append(x)
    return np.array(models)


def options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    cutoff = int(rng.integers(1, 4)) if rng.random() < 0.8 else math.inf
    return {
        "growth": float(rng.uniform(0.2, 0.6)),
        "largest": float(rng.uniform(1.3, 1.9)),
        "cutoff": cutoff,
    }


FEDAR = Implementation(run, FAULTS, options)
