"""Laws that every algorithm obeys, in one table; what does not apply says why.

Runs are noise-free, step by step, on random participants, with some rounds in which nobody is
there, unless a law says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from oracles import random_problem

from fltheory.algorithms.contract import CLIENTS, Algorithm, State
from fltheory.algorithms.table import ALGORITHMS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem

N, DIM, REPLICAS, ROUNDS = 4, 2, 30, 12
LR, STEPS = 0.1, 3
ORDER = [2, 0, 3, 1]
PER_CLIENT = (
    "aggregation_weights",
    "availability",
    "client_weights",
    "clusters",
    "local_steps",
    "target_weights",
)
STEP_SIZES = ("client_lr", "assist_lr")

Make = Callable[[int], Algorithm]


@dataclass(frozen=True)
class Entry:
    """An algorithm for n clients, and the laws that it breaks, each with the reason."""

    make: Make
    broken: Mapping[str, str] = field(default_factory=dict)


def _circumstances(n: int) -> dict[str, Any]:
    alpha = np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum()
    return {
        "client_lr": LR,
        "assist_lr": 0.2,
        "local_steps": STEPS,
        "target_weights": alpha,
        "aggregation_weights": tuple(alpha),
        "availability": tuple(np.linspace(0.4, 0.8, n)),
    }


def _made(name: str, **options: Any) -> Make:
    """Return what makes an algorithm of the table; its example's options where none are given."""
    listed = ALGORITHMS[name]
    return lambda n: listed.among(_circumstances(n), **{**listed.example(n), **options})


NOBODY_ABSENT = "weights 1/(N p) sum to more than one where nobody is ever absent"
HELD_BACK = "the proximal term shortens local steps, which plain local SGD does not have"
UNEVEN = "clients make other numbers of steps than plain local SGD"
ESTIMATED = "estimated availabilities are below one, so that weights sum to more than one"
WEIGHTS_OVER_ONE = {"equal clients": NOBODY_ABSENT, "one client": NOBODY_ABSENT}
BROKEN: dict[str, dict[str, str]] = {
    "FedAvg-IS": WEIGHTS_OVER_ONE,
    "Unbiased": WEIGHTS_OVER_ONE,
    "F3AST": {
        "permutation": "all are equally urgent at first, and of equals the first is chosen",
        "equal clients": "half of the clients train, with weights that do not sum to one",
    },
    "CA-Fed": {"equal clients": ESTIMATED, "one client": ESTIMATED},
    "FedProx": {"equal clients": HELD_BACK, "one client": HELD_BACK},
    "FedNova, uneven steps": {"equal clients": UNEVEN, "one client": UNEVEN},
}
VARIANTS: dict[str, dict[str, Make]] = {
    "safari": {"SAFARI": _made("safari", q=0.7)},
    "fedau": {"FedAU": _made("fedau", cutoff=3)},
    "mifa": {"MIFA, waiting": _made("mifa"), "MIFA from zero": _made("mifa", start="zero")},
    "scaffold": {
        "SCAFFOLD I": _made("scaffold", option=1),
        "SCAFFOLD II": _made("scaffold", option=2),
    },
    "fedavg-is": {
        "FedAvg-IS": _made("fedavg-is"),
        "FedAvg-IS, all available": lambda n: _made("fedavg-is", availability=(1.0,) * n)(n),
    },
    "fedprox": {
        "FedProx": _made("fedprox"),
        "FedAvg, by data": lambda n: _made(
            "fedprox", proximal=0.0, client_weights=tuple(range(1, n + 1))
        )(n),
    },
    "fednova": {
        "FedNova": _made("fednova"),
        "FedNova, uneven steps": lambda n: _made(
            "fednova", local_steps=(4, 1, 2, 1)[:n], client_weights=(3.0, 1.0, 2.0, 5.0)[:n]
        )(n),
    },
    "f3ast": {"F3AST": _made("f3ast", smoothing=0.1, availability=None)},
    "ca-fed": {"CA-Fed": _made("ca-fed", availability=None)},
    "fedar": {"FedAR": _made("fedar", growth=0.2, largest=1.5, cutoff=4)},
}
ENTRIES = {
    row: Entry(make, BROKEN.get(row, {}))
    for name, listed in ALGORITHMS.items()
    for row, make in VARIANTS.get(name, {listed.title: _made(name)}).items()
}


@dataclass(frozen=True)
class Run:
    """Participants (rounds, replicas, N), one branch a round, and initial models."""

    masks: np.ndarray
    branches: tuple[str, ...]
    x0: np.ndarray

    @classmethod
    def drawn(cls, algorithm: Algorithm, rounds: int = ROUNDS) -> Run:
        rng = np.random.default_rng(11)
        masks = rng.random((rounds, REPLICAS, N)) < 0.5
        masks[rng.random((rounds, REPLICAS)) < 0.15] = False
        names, probabilities = zip(*algorithm.branches, strict=True)
        branches = tuple(rng.choice(names, size=rounds, p=probabilities))
        return cls(masks, branches, rng.standard_normal((REPLICAS, DIM)))

    @classmethod
    def of_everybody(cls, n: int) -> Run:
        x0 = np.random.default_rng(12).standard_normal((REPLICAS, DIM))
        return cls(np.ones((ROUNDS, REPLICAS, n), dtype=bool), (CLIENTS,) * ROUNDS, x0)

    def states(self, algorithm: Algorithm, problem: QuadraticProblem) -> list[State]:
        clients = SteppedClients(problem, Silence())
        states = [algorithm.init(self.x0, problem.n_clients)]
        for who, branch in zip(self.masks, self.branches, strict=True):
            states.append(algorithm.round(states[-1], clients, who, branch))
        return states

    def models(self, algorithm: Algorithm, problem: QuadraticProblem) -> np.ndarray:
        return np.stack([state["x"] for state in self.states(algorithm, problem)])


PROBLEM = random_problem(5, N, DIM, sigma=0.0, server_sigma=0.0)


def relabelled(values: Any) -> Any:
    """Return the clients' values in another order; a number for all stays."""
    return values if np.ndim(values) == 0 else tuple(values[i] for i in ORDER)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def with_fields(algorithm: Any, names: tuple[str, ...], change: Callable[[Any], Any]) -> Algorithm:
    """Return the algorithm with its fields of these names changed."""
    return replace(
        algorithm,
        **{
            n: change(getattr(algorithm, n))
            for n in names
            if getattr(algorithm, n, None) is not None
        },
    )


def local_sgd(problem: QuadraticProblem, run: Run) -> np.ndarray:
    """``K`` exact gradient steps per round on the mean loss, for every replica."""
    hessian = np.broadcast_to(problem.hessians, (problem.n_clients, DIM, DIM))[0]
    models = [run.x0]
    for _ in run.masks:
        x = models[-1]
        for _ in range(STEPS):
            x = x - LR * (x - problem.optima[0]) @ hessian
        models.append(x)
    return np.stack(models)


def translation(make: Make) -> None:
    shift, algorithm = np.array([3.0, -2.0]), make(N)
    run = Run.drawn(algorithm)
    moved = QuadraticProblem(PROBLEM.hessians, PROBLEM.optima + shift)
    found = replace(run, x0=run.x0 + shift).models(algorithm, moved)
    same(found, run.models(algorithm, PROBLEM) + shift)


def rotation(make: Make) -> None:
    turn, algorithm = np.array([[0.6, -0.8], [0.8, 0.6]]), make(N)
    run = Run.drawn(algorithm)
    hessians = turn @ PROBLEM.hessians @ turn.T
    turned = QuadraticProblem(0.5 * (hessians + hessians.mT), PROBLEM.optima @ turn.T)
    found = replace(run, x0=run.x0 @ turn.T).models(algorithm, turned)
    same(found, run.models(algorithm, PROBLEM) @ turn.T)


def scaling(make: Make) -> None:
    """Of the space; on quadratics the Hessians stay."""
    algorithm = make(N)
    run = Run.drawn(algorithm)
    scaled = QuadraticProblem(PROBLEM.hessians, -2.5 * PROBLEM.optima)
    found = replace(run, x0=-2.5 * run.x0).models(algorithm, scaled)
    same(found, -2.5 * run.models(algorithm, PROBLEM))


def units_of_loss(make: Make) -> None:
    """Losses times 8 and step sizes of gradients by 8: the same models."""
    algorithm = make(N)
    run = Run.drawn(algorithm)
    steep = QuadraticProblem(8 * PROBLEM.hessians, PROBLEM.optima)
    slow = with_fields(algorithm, STEP_SIZES, lambda lr: lr / 8)
    slow = with_fields(slow, ("proximal",), lambda strength: 8 * strength)
    same(run.models(slow, steep), run.models(algorithm, PROBLEM))


def permutation(make: Make) -> None:
    algorithm = make(N)
    run = Run.drawn(algorithm)
    other = QuadraticProblem(PROBLEM.hessians[ORDER], PROBLEM.optima[ORDER])
    moved = with_fields(algorithm, PER_CLIENT, relabelled)
    found = replace(run, masks=run.masks[..., ORDER]).models(moved, other)
    same(found, run.models(algorithm, PROBLEM))


def equal_clients(make: Make) -> None:
    """Full participation with equal clients is plain local SGD on the mean loss."""
    problem = QuadraticProblem(PROBLEM.hessians[0], np.tile(PROBLEM.optima[0], (N, 1)))
    run = Run.of_everybody(N)
    same(run.models(make(N), problem), local_sgd(problem, run))


def one_client(make: Make) -> None:
    problem = QuadraticProblem(PROBLEM.hessians[:1], PROBLEM.optima[:1])
    run = Run.of_everybody(1)
    same(run.models(make(1), problem), local_sgd(problem, run))


def convergence(make: Make) -> None:
    """With equal clients and whoever is there the models converge to x*."""
    algorithm = make(N)
    problem = QuadraticProblem(PROBLEM.hessians[0], np.tile(PROBLEM.optima[0], (N, 1)))
    last = Run.drawn(algorithm, rounds=800).states(algorithm, problem)[-1]["x"]
    same(last, np.tile(problem.optima[0], (REPLICAS, 1)))


def nobody(make: Make) -> None:
    """Where nobody was ever there, client rounds do not move the model at all."""
    run = Run.of_everybody(N)
    empty = replace(run, masks=np.zeros_like(run.masks))
    np.testing.assert_array_equal(
        empty.models(make(N), PROBLEM), np.tile(run.x0, (ROUNDS + 1, 1, 1))
    )


def never_seen(make: Make) -> None:
    """What a client's data are does not matter if it is never there."""
    algorithm = make(N)
    drawn = Run.drawn(algorithm)
    run = replace(drawn, masks=drawn.masks.copy(), branches=(CLIENTS,) * ROUNDS)
    run.masks[..., 1] = False
    optima = PROBLEM.optima.copy()
    optima[1] = 1e6
    other = QuadraticProblem(PROBLEM.hessians, optima)
    np.testing.assert_array_equal(run.models(algorithm, other), run.models(algorithm, PROBLEM))


def torch_agrees(make: Make) -> None:
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    from tests.hardware.clients.torch_quadratic_clients import TorchQuadraticClients

    algorithm = make(N)
    run = Run.drawn(algorithm)
    clients = TorchQuadraticClients(PROBLEM, Silence())
    state = algorithm.init(torch.tensor(run.x0), N)
    expected = run.states(algorithm, PROBLEM)
    for who, branch, numpy_state in zip(run.masks, run.branches, expected[1:], strict=True):
        state = algorithm.round(state, clients, torch.tensor(who), branch)
        assert set(state) == set(numpy_state)
        for name, array in numpy_state.items():
            assert state[name].dtype == torch.float64
            same(state[name].numpy(), array)


LAWS: dict[str, Callable[[Make], None]] = {
    "translation": translation,
    "rotation": rotation,
    "scaling": scaling,
    "units of loss": units_of_loss,
    "permutation": permutation,
    "equal clients": equal_clients,
    "one client": one_client,
    "convergence": convergence,
    "nobody": nobody,
    "never seen": never_seen,
    "torch": torch_agrees,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ENTRIES)
def test_law(name: str, law: str) -> None:
    entry = ENTRIES[name]
    if law in entry.broken:
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            LAWS[law](entry.make)
    else:
        LAWS[law](entry.make)


def test_every_entry_has_a_first_round_by_hand() -> None:
    assert set(FIRST_ROUND) == set(ENTRIES)


def test_exceptions_name_laws_and_say_why() -> None:
    assert set(BROKEN) <= set(ENTRIES)
    for entry in ENTRIES.values():
        for law, reason in entry.broken.items():
            assert law in LAWS
            assert reason


@pytest.mark.parametrize("name", ENTRIES)
def test_the_state_is_arrays_with_a_row_for_every_replica(name: str) -> None:
    algorithm = ENTRIES[name].make(N)
    states = Run.drawn(algorithm).states(algorithm, PROBLEM)
    first = {key: array.shape for key, array in states[0].items()}
    for state in states:
        assert {key: array.shape for key, array in state.items()} == first
        assert all(array.shape[0] == REPLICAS for array in state.values())
        assert all(array.dtype == np.float64 for array in state.values())


FIRST_ROUND = {
    "FedAvg": 1.0,
    "weighted FedAvg": 1 / 3,
    "SAFARI": 1.0,
    "FedAU": 1 / 2,
    "MIFA, waiting": 0.0,
    "MIFA from zero": 1 / 2,
    "FedProx": (1 - 0.85**3) / 1.5 / 0.271,
    "FedAvg, by data": 1.0,
    "FedNova": 1.0,
    "FedNova, uneven steps": 0.3439 / 0.271,
    "FedVARP": 1.0,
    "ClusterFedVARP": 1.0,
    "SCAFFOLD I": 1.0,
    "SCAFFOLD II": 1.0,
    "FedAvg-IS": 1 / (2 * 0.4),
    "FedAvg-IS, all available": 1 / 2,
    "Unbiased": (1 / 3) / 0.4,
    "AdaFed": 1.0,
    "F3AST": (1 / 3) / (0.9 * (1 / 3) + 0.1),
    "CA-Fed": (1 / 3) / (2 / 3),
    "FedAR": 1.0,
    "FedAWE": 1.0,
}


@pytest.mark.parametrize("name", FIRST_ROUND)
def test_the_first_round_by_hand(name: str) -> None:
    """Losses (x + 2)^2 / 2 and (x - 4)^2 / 2, from 3, and only the first client is there.

    Its gradient is 5, three steps of 0.1 change its model by -(1 - 0.9^3) 5 = -1.355, and the
    server's moves by that times the client's weight: memories are empty and corrections zero.
    CA-Fed's estimate of the availability is (1 + 1) / (1 + 2). FedProx, with a proximal strength
    of 0.5, shrinks the way that is left by 1 - 0.1 (1 + 0.5) in each step towards (1 / 1.5) of
    the whole. FedNova's first client makes four steps, 1 - 0.9^4 = 0.3439.
    """
    algorithm = ENTRIES[name].make(2)
    clients = SteppedClients(QuadraticProblem([[1.0]], [[-2.0], [4.0]]), Silence())
    state = algorithm.init(np.array([[3.0]]), 2)
    after = algorithm.round(state, clients, np.array([[True, False]]), CLIENTS)
    assert after["x"][0, 0] == pytest.approx(3 - 1.355 * FIRST_ROUND[name], rel=1e-14)
