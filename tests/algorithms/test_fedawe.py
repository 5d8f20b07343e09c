"""FedAWE: against a plain loop over all participants, and what its paper says of weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fltheory.algorithms import FedAWE
from fltheory.engines import Setting, exact, paths
from fltheory.participation import Bernoulli, VaryingBernoulli
from fltheory.problems import QuadraticProblem

HESSIANS = np.array([[[1.0]], [[0.5]]])
OPTIMA = np.array([[-1.0], [2.0]])
CLIENTS = QuadraticProblem(HESSIANS, OPTIMA)
LR, STEPS, SERVER_LR, ROUNDS = 0.1, 2, 0.8, 5


def plain_errors(chances: np.ndarray) -> np.ndarray:
    """Algorithm 1 as its text has it, over every sequence of available clients."""
    errors = np.zeros(ROUNDS + 1)
    for path in product(product([0, 1], repeat=2), repeat=ROUNDS):
        weight = 1.0
        models, last, server = [3.0, 3.0], [-1, -1], 3.0
        so_far = [server]
        for t, available in enumerate(path):
            p = chances[t % len(chances)]
            weight *= float(
                np.prod([q if here else 1 - q for q, here in zip(p, available, strict=True)])
            )
            echoed = {}
            for i in (i for i in (0, 1) if available[i]):
                y = models[i]
                for _ in range(STEPS):
                    y -= LR * HESSIANS[i, 0, 0] * (y - OPTIMA[i, 0])
                echoed[i] = models[i] - SERVER_LR * (t - last[i]) * (models[i] - y)
                last[i] = t
            if echoed:
                server = sum(echoed.values()) / len(echoed)
                for i in echoed:
                    models[i] = server
            so_far.append(server)
        errors += weight * (np.array(so_far) - CLIENTS.x_star[0]) ** 2
    return errors


@pytest.mark.parametrize("chances", [[[0.5, 0.8]], [[1.0, 0.0], [0.25, 0.5], [0.5, 0.9]]])
def test_a_plain_loop_over_all_participants(chances: list[list[float]]) -> None:
    method = FedAWE(LR, STEPS, server_lr=SERVER_LR)
    setting = Setting(method, CLIENTS, VaryingBernoulli(chances), ROUNDS, [3.0])
    expected = plain_errors(np.array(chances))
    np.testing.assert_allclose(paths(setting).squared_distance, expected, rtol=1e-12)
    rational = exact(setting, arithmetic="rational").squared_distance
    np.testing.assert_allclose([float(value) for value in rational], expected, rtol=1e-12)


def test_weights_of_a_client_add_up_to_the_rounds() -> None:
    """Proposition 1: over the rounds up to one in which it takes part."""
    method, rng = FedAWE(LR, STEPS), np.random.default_rng(3)
    masks = Bernoulli([0.3, 0.6]).masks(rng, 50)
    added = np.zeros((50, 2))
    state = method.init(np.zeros((50, 1)), 2)
    for rounds in range(1, 30):
        who = next(masks)
        added += np.where(who, state["since"], 0)
        state = method.round(state, _Still(), who, "clients")
        assert (added[who] == rounds).all()


class _Still:
    """Clients that are where they want to be."""

    n_clients = 2

    def local_sgd(self, x: np.ndarray, who: np.ndarray, **_: object) -> np.ndarray:
        return np.zeros((*who.shape, 1))
