"""Run an algorithm on given participants, with a scalar model and no noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fltheory.algorithms.contract import CLIENTS, Algorithm
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem


def replay(
    algorithm: Algorithm, presence: Sequence[Sequence[int]], optima: Sequence[float] = (-2.0, 4.0)
) -> dict[str, list]:
    """Start at 3 with losses ``(x - c_i)^2 / 2``; return each entry of the state, round by round.

    From gradient g, two steps of 0.1 change a model by ``-0.19 g``: 0.1 g and then 0.09 g.
    """
    clients = SteppedClients(QuadraticProblem([[1.0]], [[c] for c in optima]), Silence())
    states = [algorithm.init(np.array([[3.0]]), len(optima))]
    for row in presence:
        states.append(algorithm.round(states[-1], clients, np.array([row], dtype=bool), CLIENTS))
    return {name: [np.squeeze(s[name]).tolist() for s in states] for name in states[0]}
