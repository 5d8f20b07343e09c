"""Rounds and classes that several tests of proofs start from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fltheory.worst_case import ClientClass
from fltheory.worst_case.rounds.one_round import OneRound


def a_round(
    n_clients: int = 10,
    excluded: int = 0,
    participants: int = 4,
    local_steps: int = 5,
    q: str = "1/2",
    client_lr: str = "1/40",
    assist_lr: str = "1/20",
    server_lr: str = "1",
) -> OneRound:
    return OneRound(
        n_clients,
        Fraction(excluded, n_clients),
        participants,
        local_steps,
        Fraction(client_lr),
        Fraction(server_lr),
        Fraction(assist_lr),
        Fraction(q),
    )


def drawn(rng: np.random.Generator) -> tuple[OneRound, ClientClass]:
    """Draw a round and a class: condition log-uniform to 10^4, K <= 10, N to 10^6.

    Half of them with excluded clients, half with noise, in units of L from 10^-3 to 10^3.
    """
    condition, steps = 10 ** rng.uniform(0.05, 4), int(rng.integers(1, 11))
    n_clients = int(10 ** rng.uniform(0.5, 6))
    excluded = int(rng.integers(1, max(2, n_clients // 2))) if rng.random() < 0.5 else 0
    eligible = n_clients - excluded
    size = int(rng.integers(1, min(eligible, 50 if rng.random() < 0.5 else eligible) + 1))
    noisy = rng.random() < 0.5
    smoothness = 10 ** rng.uniform(-3, 3)
    step = 10 ** rng.uniform(-2.5, 0) / steps / smoothness
    clients = ClientClass(
        smoothness,
        smoothness / condition,
        "optimum" if rng.random() < 0.5 else "everywhere",
        sigma=1 if noisy else 0,
    )
    played = OneRound(
        n_clients,
        Fraction(excluded, n_clients),
        size,
        steps,
        Fraction(repr(step)),
        Fraction(1),
        Fraction(repr(step * steps / 2)),
        Fraction(repr(round(rng.uniform(0.05, 0.9), 3))),
    )
    return played, clients
