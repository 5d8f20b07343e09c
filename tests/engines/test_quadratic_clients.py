"""Closed-form local SGD against stepping, and its noise against an explicit sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.engines.noise import GaussianNoise, Silence, UnitImpulses
from fltheory.engines.quadratic_clients import QuadraticClients
from fltheory.engines.stepped_clients import SteppedClients
from fltheory.problems import QuadraticProblem

ALL_PRESENT = np.ones((1, 4), dtype=bool)


def some_masks(rng: np.random.Generator, replicas: int, n_clients: int) -> np.ndarray:
    """Return masks of every size, one of them empty."""
    masks = rng.random((replicas, n_clients)) < 0.5
    masks[0], masks[-1] = False, True
    return masks


@given(
    seed=st.integers(0, 1000),
    shared=st.booleans(),
    steps=st.integers(1, 12),
    lr=st.floats(1e-3, 2.0),
    corrected=st.booleans(),
)
def test_silent_local_sgd_equals_stepping(
    seed: int, shared: bool, steps: int, lr: float, corrected: bool
) -> None:
    problem = random_problem(seed, 4, 3, shared=shared, sigma=0.0)
    rng = np.random.default_rng(seed)
    x, who = rng.standard_normal((6, 3)), some_masks(rng, 6, 4)
    weights = rng.random((6, 4))
    correction = rng.standard_normal((6, 4, 3)) if corrected else None
    closed, stepped = (kind(problem, Silence()) for kind in (QuadraticClients, SteppedClients))
    arguments = {"steps": steps, "lr": lr, "correction": correction}
    expected = stepped.local_sgd(x, who, **arguments)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        closed.local_sgd(x, who, **arguments), expected, rtol=1e-9, atol=1e-12 * scale
    )
    np.testing.assert_allclose(
        closed.summed_local_sgd(x, who, weights, **arguments),
        np.einsum("ri,ria->ra", weights, expected),
        rtol=1e-9,
        atol=1e-12 * scale,
    )
    gradient_sums = stepped.summed_local_gradients(x, who, weights, steps=steps, lr=lr)
    np.testing.assert_allclose(
        closed.summed_local_gradients(x, who, weights, steps=steps, lr=lr),
        gradient_sums,
        rtol=1e-9,
        atol=1e-12 * np.abs(gradient_sums).max(),
    )


def explicit_noise(
    problem: QuadraticProblem, client: int, steps: int, lr: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariances of a client's change and of its gradient sum, step by step."""
    dim = problem.dim
    hessian = problem.hessians if problem.shared_hessian else problem.hessians[client]
    model = np.zeros((dim, 0))
    total = np.zeros((dim, 0))
    for _ in range(steps):
        total = total + hessian @ model
        model = np.hstack([(np.eye(dim) - lr * hessian) @ model, -lr * np.eye(dim)])
        total = np.hstack([total, np.zeros((dim, dim))])
    level = problem.sigma**2 / dim
    return level * model @ model.T, level * total @ total.T


def read_covariance(
    method: str, problem: QuadraticProblem, who: np.ndarray, **arguments: object
) -> np.ndarray:
    """Feed unit impulses to a summing method and add up the squares of the answers."""
    silence = Silence()
    x = np.zeros((1, problem.dim))
    weights = np.array([[0.5, 0.25, 0.125, 0.125]])
    still = getattr(QuadraticClients(problem, silence), method)(x, who, weights, **arguments)
    count = silence.numbers_per_replica
    clients = QuadraticClients(problem, UnitImpulses(np.arange(count)))
    moved = getattr(clients, method)(
        np.repeat(x, count, 0), np.repeat(who, count, 0), np.repeat(weights, count, 0), **arguments
    )
    return (moved - still).T @ (moved - still)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("steps", "lr"), [(1, 0.3), (4, 0.3), (7, 1.1)])
@pytest.mark.parametrize("method", ["summed_local_sgd", "summed_local_gradients"])
def test_noise_of_sums(shared: bool, steps: int, lr: float, method: str) -> None:
    problem = random_problem(3, 4, 3, shared=shared, sigma=1.7)
    who = np.array([[True, False, True, True]])
    which = 0 if method == "summed_local_sgd" else 1
    expected = sum(
        weight**2 * explicit_noise(problem, client, steps, lr)[which]
        for client, weight in ((0, 0.5), (2, 0.125), (3, 0.125))
    )
    answer = read_covariance(method, problem, who, steps=steps, lr=lr)
    np.testing.assert_allclose(answer, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("shared", [True, False])
def test_noise_of_each_client_is_its_own(shared: bool) -> None:
    problem = random_problem(4, 4, 2, shared=shared, sigma=0.9)
    silence = Silence()
    still = QuadraticClients(problem, silence).local_sgd(
        np.zeros((1, 2)), ALL_PRESENT, steps=3, lr=0.4
    )
    count = silence.numbers_per_replica
    clients = QuadraticClients(problem, UnitImpulses(np.arange(count)))
    moved = clients.local_sgd(
        np.zeros((count, 2)), np.repeat(ALL_PRESENT, count, 0), steps=3, lr=0.4
    )
    columns = (moved - still).reshape(count, 8)
    covariance = columns.T @ columns
    expected = np.zeros((8, 8))
    for client in range(4):
        block = slice(2 * client, 2 * client + 2)
        expected[block, block] = explicit_noise(problem, client, 3, 0.4)[0]
    np.testing.assert_allclose(covariance, expected, rtol=1e-11, atol=1e-14)


def test_servers_gradient_and_its_noise() -> None:
    """``E||noise||^2 = server_sigma^2``, split evenly over the coordinates."""
    problem = random_problem(5, 4, 3, server_sigma=1.2)
    x = np.array([[1.0, 2.0, 3.0]])
    still = QuadraticClients(problem, Silence()).server_gradient(x)
    by_hand = np.mean(
        [h @ (x[0] - c) for h, c in zip(problem.hessians, problem.optima, strict=True)], axis=0
    )
    np.testing.assert_allclose(still[0], by_hand, rtol=1e-12)
    clients = QuadraticClients(problem, UnitImpulses(np.arange(3)))
    kicks = clients.server_gradient(np.repeat(x, 3, 0)) - still
    np.testing.assert_allclose(kicks.T @ kicks, 1.2**2 / 3 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("kind", [QuadraticClients, SteppedClients])
def test_losses_of_the_present(kind: type) -> None:
    problem = QuadraticProblem([[2.0]], [[-1.0], [3.0]])
    clients = kind(problem, Silence())
    losses = clients.loss(np.array([[1.0], [4.0]]), np.array([[True, False], [True, True]]))
    np.testing.assert_allclose(losses, [[4.0, 0.0], [25.0, 1.0]], rtol=1e-15)
    assert clients.n_clients == 2


def test_absent_clients_move_nothing_and_draw_nothing() -> None:
    """The stream of the present clients does not depend on who else exists."""
    for shared in (True, False):
        problem = random_problem(6, 4, 2, shared=shared)
        nobody = np.zeros((3, 4), dtype=bool)
        clients = QuadraticClients(problem, GaussianNoise(np.random.default_rng(0)))
        change = clients.local_sgd(np.ones((3, 2)), nobody, steps=2, lr=0.1)
        assert (change == 0).all()
        total = clients.summed_local_sgd(np.ones((3, 2)), nobody, np.ones((3, 4)), steps=2, lr=0.1)
        assert (total == 0).all()


def test_answers_survive_the_next_call() -> None:
    """The clients reuse scratch memory between calls; what they return must not be in it."""
    for shared in (True, False):
        problem = random_problem(7, 4, 2, shared=shared)
        clients = QuadraticClients(problem, GaussianNoise(np.random.default_rng(0)))
        who = np.ones((3, 4), dtype=bool)

        def total(
            scale: float, clients: QuadraticClients = clients, who: np.ndarray = who
        ) -> np.ndarray:
            x, weights = np.full((3, 2), scale), np.full((3, 4), 0.25)
            return clients.summed_local_sgd(x, who, weights, steps=2, lr=0.1)

        held = [total(1.0), clients.local_sgd(np.ones((3, 2)), who, steps=2, lr=0.1)]
        copies = [array.copy() for array in held]
        total(100.0)
        for array, copy in zip(held, copies, strict=True):
            np.testing.assert_array_equal(array, copy)


def test_tiny_steps_do_not_cancel() -> None:
    """``1 - (1 - m)^K`` for m = 1e-12: ``K m - K(K-1)/2 m^2`` to far below rounding."""
    problem = QuadraticProblem([[1.0]], [[0.0]])
    change = QuadraticClients(problem, Silence()).local_sgd(
        np.array([[1.0]]), np.ones((1, 1), dtype=bool), steps=3, lr=1e-12
    )
    np.testing.assert_allclose(change[0, 0, 0], -(3e-12 - 3e-24), rtol=1e-14)
