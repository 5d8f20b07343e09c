"""Every algorithm as a Flower strategy, against the engine that runs it here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra flower: docs/how-to/flower.md")

from exact_quadratics import Floats, Quadratic, clients, trace
from flwr.app import ArrayRecord
from flwr.clientapp import ClientApp

from fltheory.algorithms import Algorithm, Safari, Scaffold
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines.simulation import simulate
from fltheory.flower import AlgorithmStrategy, GradientClient, local_client_app, run_of
from fltheory.participation import Bernoulli, MarkovOnOff, Participation, Trace

N = 5
X0 = np.array([1.0, -2.0, 0.5])
WHO = trace(30, N)
STEPS = {"client_lr": 0.1, "local_steps": 3}


class Backend:
    """The Clients contract on `Quadratic`, one step after another, for one replica."""

    n_clients = N

    def __init__(self, them: list[Quadratic]) -> None:
        self.them = them

    def local_sgd(
        self,
        x: Floats,
        who: Any,
        *,
        steps: int,
        lr: float,
        correction: Any = None,
        proximal: float = 0,
    ) -> Floats:
        changes = np.zeros((1, N, x.shape[1]))
        for k in np.flatnonzero(who[0]):
            y = x[0].copy()
            for _ in range(steps):
                push = 0.0 if correction is None else correction[0, k]
                y = y - lr * (self.them[k].gradient(y) + push + proximal * (y - x[0]))
            changes[0, k] = y - x[0]
        return changes

    def summed_local_sgd(self, x: Floats, who: Any, weights: Any, **steps: Any) -> Floats:
        return np.einsum("ri,ria->ra", np.where(who, weights, 0), self.local_sgd(x, who, **steps))

    def loss(self, x: Floats, who: Any) -> Floats:
        return np.where(who, [[one.loss(x[0]) for one in self.them]], 0.0)

    def server_gradient(self, x: Floats) -> Floats:
        return np.mean([[one.gradient(x[0]) for one in self.them]], axis=1)


def here(
    algorithm: Any, them: list[Quadratic], participation: Participation, rounds: int, seed: int = 0
) -> Floats:
    """Return the models that the package's own loop makes."""
    participants, branches = np.random.SeedSequence(seed).spawn(2)
    states = simulate(
        algorithm,
        Backend(them),
        participation,
        X0[None],
        participation_rng=np.random.default_rng(participants),
        branch_rng=np.random.default_rng(branches),
    )
    return np.array(
        [state["x"][0] for (state, _), _ in zip(states, range(rounds + 1), strict=False)]
    )


def app(them: Any, client_lr: float, local_steps: Any) -> ClientApp:
    return local_client_app(lambda number: GradientClient(them[number]))


def server_gradient_of(them: list[Quadratic]) -> Any:
    def gradient(arrays: ArrayRecord) -> ArrayRecord:
        (x,) = arrays.to_numpy_ndarrays()
        return ArrayRecord([np.mean([one.gradient(x) for one in them], axis=0)])

    return gradient


def in_flower(
    algorithm: Any, them: list[Quadratic], who: Any, client_app: Any = app, **given: Any
) -> Floats:
    absent = given.pop("absent", "away")

    def make(**_: Any) -> AlgorithmStrategy:
        gradient = server_gradient_of(them)
        return AlgorithmStrategy(
            algorithm, wait_for=0, n_clients=N, server_gradient=gradient, **given
        )

    run = run_of(make, client_app=client_app, absent=absent)
    return run(X0, them, who, **STEPS, server_lr=1.0)


def of_table(name: str) -> Algorithm:
    circumstances = {
        **STEPS,
        "assist_lr": 0.2,
        "target_weights": np.full(N, 1 / N),
        "aggregation_weights": (1 / N,) * N,
        "availability": np.full(N, 0.5),
        "correlation": np.zeros(N),
    }
    return ALGORITHMS[name].tried(N, circumstances)


@pytest.mark.parametrize("absent", ["away", "error", "silent"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_follows_the_engine(name: str, absent: str) -> None:
    them, algorithm = clients((5, 1, 9, 3, 2)), of_table(name)
    models = in_flower(algorithm, them, WHO, absent=absent)
    np.testing.assert_allclose(
        models, here(algorithm, them, Trace(WHO, start=0), len(WHO)), atol=1e-10
    )


def test_a_second_question_of_a_round_is_asked() -> None:
    them, algorithm = clients((1,) * N), Scaffold(**STEPS, option=1)
    models = in_flower(algorithm, them, WHO)
    np.testing.assert_allclose(
        models, here(algorithm, them, Trace(WHO, start=0), len(WHO)), atol=1e-10
    )


@pytest.mark.parametrize(
    "participation", [Bernoulli([0.3, 0.5, 0.7, 0.9, 1.0]), MarkovOnOff([0.5] * N, [0.6] * N)]
)
def test_participation_is_drawn_from_the_seed(participation: Participation) -> None:
    them, everybody = clients((1,) * N), np.ones((40, N), dtype=bool)
    safari = Safari(q=0.4, assist_lr=0.2, **STEPS)
    models = in_flower(safari, them, everybody, participation=participation, seed=3)
    np.testing.assert_allclose(models, here(safari, them, participation, 40, seed=3), atol=1e-10)
    others = in_flower(safari, them, everybody, participation=participation, seed=4)
    assert np.abs(models - others).max() > 1e-3
