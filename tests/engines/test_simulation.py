"""The loop that runs an algorithm: which branch on which replica, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pytest

from fltheory.algorithms import FedAvg, Safari
from fltheory.engines.clients.analytic_clients import QuadraticClients, Silence
from fltheory.engines.simulation import simulate
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem


@dataclass
class Tally:
    """An algorithm that counts, in each replica, how often each branch ran, and on whom."""

    branches: tuple[tuple[str, float], ...]
    masks: list[np.ndarray] = field(default_factory=list)

    def init(self, x0: np.ndarray, n_clients: int) -> dict[str, np.ndarray]:
        return {"x": x0, "present": np.zeros((x0.shape[0], n_clients))}

    def round(
        self, state: dict[str, np.ndarray], clients: object, who: np.ndarray, branch: str
    ) -> dict[str, np.ndarray]:
        self.masks.append(who)
        column = [name for name, _ in self.branches].index(branch)
        x = state["x"].copy()
        x[:, column] += 1
        return {"x": x, "present": state["present"] + who}


def clients_of(problem: QuadraticProblem) -> QuadraticClients:
    return QuadraticClients(problem, Silence())


def run_tally(
    probabilities: tuple[float, ...], replicas: int, rounds: int
) -> list[tuple[dict[str, np.ndarray], np.ndarray]]:
    tally = Tally(tuple((f"branch {i}", p) for i, p in enumerate(probabilities)))
    problem = QuadraticProblem(np.eye(3), np.zeros((4, 3)))
    states = simulate(
        tally,
        clients_of(problem),
        UniformSubset(4, 2),
        np.zeros((replicas, 3)),
        participation_rng=np.random.default_rng(1),
        branch_rng=np.random.default_rng(2),
    )
    return [
        ({name: array.copy() for name, array in state.items()}, who.copy())
        for state, who in islice(states, rounds + 1)
    ]


def test_every_replica_runs_one_branch_a_round_with_its_own_participants() -> None:
    history = run_tally((0.2, 0.5, 0.3), replicas=50, rounds=30)
    present = np.zeros((50, 4))
    for round_, (state, who) in enumerate(history):
        np.testing.assert_array_equal(state["x"].sum(axis=1), round_)
        np.testing.assert_array_equal(state["present"], present)
        present = present + who


def test_branches_come_up_with_their_probabilities() -> None:
    """20 000 draws; each count lies within 8 deviations: a false alarm below 1e-14."""
    probabilities = np.array([0.2, 0.5, 0.3])
    final, _ = run_tally((0.2, 0.5, 0.3), replicas=1000, rounds=20)[-1]
    deviation = np.sqrt(20_000 * probabilities * (1 - probabilities))
    assert (np.abs(final["x"].sum(axis=0) - 20_000 * probabilities) < 8 * deviation).all()
    same_branch = (final["x"] == final["x"][0]).all()
    assert not same_branch


@pytest.mark.parametrize(("q", "column"), [(1.0, 0), (0.0, 1)])
def test_a_certain_branch_always_runs(q: float, column: int) -> None:
    final, _ = run_tally((q, 1 - q), replicas=200, rounds=10)[-1]
    assert (final["x"][:, column] == 10).all()


@pytest.mark.parametrize("algorithm", [FedAvg(0.25, 1), Safari(0.5, 0.25, 0.25, 1)])
def test_a_state_once_yielded_is_never_written_to(algorithm: FedAvg | Safari) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    states = simulate(
        algorithm,
        clients_of(problem),
        UniformSubset(2, 1),
        np.ones((6, 1)),
        participation_rng=np.random.default_rng(1),
        branch_rng=np.random.default_rng(2),
    )
    held = [(state["x"], state["x"].copy()) for state, _ in islice(states, 8)]
    for array, copy in held:
        np.testing.assert_array_equal(array, copy)


def test_masks_reach_the_algorithm_in_the_backends_arrays() -> None:
    class Wrapped(np.ndarray):
        pass

    tally = Tally((("only", 1.0),))
    states = simulate(
        tally,
        clients_of(QuadraticProblem(np.eye(1), np.zeros((3, 1)))),
        UniformSubset(3, 1),
        np.zeros((2, 1)),
        participation_rng=np.random.default_rng(1),
        branch_rng=np.random.default_rng(2),
        masks_to_backend=lambda masks: masks.view(Wrapped),
    )
    list(islice(states, 3))
    assert all(isinstance(mask, Wrapped) for mask in tally.masks)


def test_one_sgd_step_a_round_by_hand() -> None:
    """x <- x - lr (x - c_i) for the client whose mask is set."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [3.0]])
    states = simulate(
        FedAvg(0.5, 1),
        clients_of(problem),
        UniformSubset(2, 1),
        np.full((5, 1), 2.0),
        participation_rng=np.random.default_rng(3),
        branch_rng=np.random.default_rng(4),
    )
    expected = np.full(5, 2.0)
    for state, who in islice(states, 12):
        np.testing.assert_allclose(state["x"][:, 0], expected, rtol=1e-14)
        expected = 0.5 * expected + 0.5 * np.where(who[:, 0], -1.0, 3.0)


@pytest.mark.parametrize("algorithm", [FedAvg(0.25, 1), Safari(0.5, 0.25, 0.25, 1)])
@pytest.mark.parametrize("done", [0, 1, 5])
def test_going_on_from_a_state_gives_the_same_rounds(algorithm: FedAvg | Safari, done: int) -> None:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0], [4.0]])

    def states(begun: tuple[int, Mapping[str, np.ndarray]] | None) -> list[tuple[list, list]]:
        rounds = simulate(
            algorithm,
            clients_of(problem),
            UniformSubset(3, 1),
            np.ones((6, 1)),
            participation_rng=np.random.default_rng(1),
            branch_rng=np.random.default_rng(2),
            begun=begun,
        )
        return [(state["x"].tolist(), who.tolist()) for state, who in islice(rounds, 9)]

    whole = states(None)
    again = states((done, {"x": np.array(whole[done][0])}))
    assert again[: 9 - done] == whole[done:]
