"""The algorithms that an experiment may ask for, by name, and what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fltheory.algorithms import F3ast
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.algorithms.table import Listed, listed
from fltheory.files.tables import made
from fltheory.participation import Participation

_MISSING = {
    "assist_lr": "without a table [server]",
    "correlation": "unless the participation is Markov's or a log",
}


def circumstances(
    client_lr: float,
    local_steps: int,
    assist_lr: float | None,
    rounds: int,
    participation: Participation,
) -> dict[str, Any]:
    """Return what methods are told, by name: steps, ``rounds``, and what is known of clients.

    Oracles are told who is how available, under Markov's participation, or a log, also each
    client's second eigenvalue; all clients weigh alike. ``assist_lr`` is None where there is no
    server.
    """
    n_clients = participation.n_clients
    alike = np.full(n_clients, 1.0 / n_clients)
    known: dict[str, Any] = {
        "client_lr": client_lr,
        "local_steps": local_steps,
        "rounds": rounds,
        "target_weights": alike,
        "aggregation_weights": tuple(alike.tolist()),
        "availability": participation.marginals,
    }
    if assist_lr is not None:
        known["assist_lr"] = assist_lr
    correlation = getattr(participation, "correlation", None)
    if correlation is not None:
        known["correlation"] = np.broadcast_to(correlation, n_clients)
    return known


@dataclass(frozen=True)
class Method:
    """An algorithm by name with options of its own; step sizes and steps come from outside.

    The names are those of `fltheory.algorithms.table`; ``average all`` is FedAvg with weights 1/N
    whoever is there. Those that may know the availability know it here (CA-Fed the correlation
    too), and all clients weigh alike. F3AST's ``smoothing`` is 1/rounds unless it is given.
    """

    name: str
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        try:
            listed(self.name)
        except ValueError as error:
            raise ValueError(f"algorithm.{error}") from error

    @property
    def listed(self) -> Listed:
        """Its line in the table of algorithms."""
        return listed(self.name)

    @property
    def uses_server(self) -> bool:
        """Whether it uses the server's own images."""
        return "assist_lr" in self.listed.told

    def algorithm(self, given: Mapping[str, Any]) -> Algorithm | Schedule:
        """Return the algorithm in `circumstances`; ValueError names an option it does not take."""
        entry = self.listed
        for name in entry.told:
            if name not in given:
                raise ValueError(f"algorithm.name must not be {entry.title} {_MISSING[name]}")
        options = dict(self.options)
        if entry.algorithm is F3ast:
            # As in CA-Fed's code: Ribero et al.'s 0.01 is made for thousands of rounds.
            options.setdefault("smoothing", 1 / given["rounds"])
        told = {name: given[name] for name in entry.told}
        return made(entry, options, "algorithm", told=told)
