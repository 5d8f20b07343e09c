"""Closed-form local SGD against stepping, and its noise against an explicit sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_problem

from fltheory.engines.clients import analytic_clients
from fltheory.engines.clients.analytic_clients import (
    GaussianNoise,
    QuadraticClients,
    Silence,
    SteppedClients,
)
from fltheory.problems import QuadraticProblem
from tests.engines.impulses import CountedSilence, UnitImpulses

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
    proximal=st.sampled_from([0, 0.3, 5.0]),
)
def test_silent_local_sgd_equals_stepping(
    seed: int, shared: bool, steps: int, lr: float, corrected: bool, proximal: float
) -> None:
    problem = random_problem(seed, 4, 3, shared=shared, sigma=0.0)
    rng = np.random.default_rng(seed)
    x, who = rng.standard_normal((6, 3)), some_masks(rng, 6, 4)
    weights = rng.random((6, 4))
    correction = rng.standard_normal((6, 4, 3)) if corrected else None
    closed, stepped = (kind(problem, Silence()) for kind in (QuadraticClients, SteppedClients))
    arguments = {"steps": steps, "lr": lr, "correction": correction, "proximal": proximal}
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
    problem: QuadraticProblem, client: int, steps: int, lr: float, proximal: float = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariances of a client's change and of its gradient sum, step by step."""
    dim = problem.dim
    hessian = problem.hessians if problem.shared_hessian else problem.hessians[client]
    model = np.zeros((dim, 0))
    total = np.zeros((dim, 0))
    for _ in range(steps):
        total = total + hessian @ model
        pull = hessian + proximal * np.eye(dim)
        model = np.hstack([(np.eye(dim) - lr * pull) @ model, -lr * np.eye(dim)])
        total = np.hstack([total, np.zeros((dim, dim))])
    level = problem.sigma**2 / dim
    return level * model @ model.T, level * total @ total.T


def read_covariance(
    method: str, problem: QuadraticProblem, who: np.ndarray, **arguments: object
) -> np.ndarray:
    """Feed unit impulses to a summing method and add up the squares of the answers."""
    silence = CountedSilence()
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
def test_noise_of_sums_that_a_proximal_term_holds_back(shared: bool) -> None:
    problem = random_problem(3, 4, 3, shared=shared, sigma=1.7)
    who = np.array([[False, True, False, False]])
    expected = 0.25**2 * explicit_noise(problem, 1, 4, 0.3, 0.9)[0]
    found = read_covariance("summed_local_sgd", problem, who, steps=4, lr=0.3, proximal=0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


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
    silence = CountedSilence()
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


def test_few_clients_are_added_up_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(5, 4, 3, shared=False, sigma=0.7)
    rng = np.random.default_rng(5)
    x, who, weights = rng.standard_normal((6, 3)), some_masks(rng, 6, 4), rng.random((6, 4))

    def summed() -> np.ndarray:
        clients = QuadraticClients(problem, GaussianNoise(np.random.default_rng(1)))
        return clients.summed_local_sgd(x, who, weights, steps=3, lr=0.2)

    in_turn = summed()
    monkeypatch.setattr(analytic_clients, "_MOST_ADDED_IN_TURN", 0)
    np.testing.assert_allclose(in_turn, summed(), rtol=1e-14)
    assert in_turn[-1].any()


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


# --- sums drawn from their own law -----------------------------------------------------------

CROWD, PLANE = 12, 3
SUMS = {"summed_local_sgd": 0, "summed_local_gradients": 1}


def crowd_masks_and_weights(case: str) -> tuple[np.ndarray, np.ndarray]:
    """Return who takes part and with which weights, (replicas, 12), 0 to 12 of whom take part."""
    rng = np.random.default_rng(8)
    if case == "alike":
        who = np.tile(rng.random(CROWD) < 0.7, (5, 1))
        return who, np.tile(rng.normal(size=CROWD), (5, 1))
    if case == "one replica":
        return np.ones((1, CROWD), dtype=bool), rng.normal(size=(1, CROWD))
    if case == "nobody":
        return np.zeros((3, CROWD), dtype=bool), np.ones((3, CROWD))
    who = np.arange(CROWD) < np.arange(CROWD + 1)[:, None]
    weights = rng.normal(size=who.shape)
    if case == "zero for some who are there":
        weights[:, ::3] = 0.0
    if case == "tiny":
        weights *= 1e-150
    if case == "same for all who are there":
        weights[:] = 0.125
    return who, weights


CROWDS = (
    "alike",
    "one replica",
    "nobody",
    "different",
    "zero for some who are there",
    "tiny",
    "same for all who are there",
)


@pytest.mark.parametrize("case", CROWDS)
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("method", SUMS)
def test_noise_of_each_replicas_sum(case: str, steps: int, method: str) -> None:
    """Every replica gets each of its numbers as an impulse, all in one call."""
    problem = random_problem(9, CROWD, PLANE, sigma=1.3)
    who, weights = crowd_masks_and_weights(case)
    x, arguments = np.zeros((len(who), PLANE)), {"steps": steps, "lr": 0.35}
    silence = CountedSilence()
    still = getattr(QuadraticClients(problem, silence), method)(x, who, weights, **arguments)
    count = silence.numbers_per_replica
    clients = QuadraticClients(problem, UnitImpulses(np.tile(np.arange(count), len(who))))
    spread = (np.repeat(array, count, axis=0) for array in (x, who, weights))
    moved = getattr(clients, method)(*spread, **arguments)
    columns = moved.reshape(len(who), count, PLANE) - still[:, None]
    scale = np.abs(weights).max()
    each = [explicit_noise(problem, i, steps, 0.35)[SUMS[method]] for i in range(CROWD)]
    expected = np.einsum("ri,iab->rab", np.where(who, weights / scale, 0.0) ** 2, each)
    columns /= scale
    np.testing.assert_allclose(
        np.swapaxes(columns, 1, 2) @ columns, expected, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("case", CROWDS)
@pytest.mark.parametrize("corrected", [False, True])
def test_mean_of_each_replicas_sum(case: str, corrected: bool) -> None:
    problem = random_problem(10, CROWD, PLANE, sigma=0.0)
    who, weights = crowd_masks_and_weights(case)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(len(who), PLANE))
    correction = rng.normal(size=(*who.shape, PLANE)) if corrected else None
    arguments = {"steps": 5, "lr": 0.3, "correction": correction}
    each = SteppedClients(problem, Silence()).local_sgd(x, who, **arguments)
    scale = np.abs(weights).max()
    sums = QuadraticClients(problem, Silence()).summed_local_sgd(x, who, weights, **arguments)
    np.testing.assert_allclose(
        sums / scale, np.einsum("ri,ria->ra", weights / scale, each), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(("case", "numbers"), [("alike", 3), ("different", 21), ("nobody", 0)])
def test_numbers_drawn_for_a_sum(case: str, numbers: int) -> None:
    """Three for a sum drawn as one; seven is the most for whom they are drawn one by one."""
    silence = CountedSilence()
    who, weights = crowd_masks_and_weights(case)
    clients = QuadraticClients(random_problem(9, CROWD, PLANE, sigma=1.3), silence)
    clients.summed_local_sgd(np.zeros((len(who), PLANE)), who, weights, steps=2, lr=0.1)
    assert silence.numbers_per_replica == numbers


def test_a_replicas_numbers_do_not_hang_on_the_others() -> None:
    """Engines count the numbers in one run, and read each one's effect off another."""
    problem = random_problem(9, CROWD, PLANE, sigma=1.3)
    who, weights = crowd_masks_and_weights("different")
    for rows in (slice(0, 6), slice(4, 13), slice(10, 13)):
        silence, some = CountedSilence(), who[rows]
        QuadraticClients(problem, silence).summed_local_sgd(
            np.zeros((len(some), PLANE)), some, weights[rows], steps=2, lr=0.1
        )
        sizes = some.sum(axis=1)
        expected = max(PLANE * size if size < 8 else PLANE for size in sizes.tolist())
        assert silence.numbers_per_replica == expected


def test_noise_of_very_uneven_directions() -> None:
    """Steps that blow one direction up by 1e16 leave the other's noise as it is: no rounding of
    the large variance swamps the small one, as it would in a factor of their sum.
    """
    hessian = np.diag([0.5, 12.0])
    problem = QuadraticProblem([hessian] * CROWD, np.zeros((CROWD, 2)), sigma=1.0)
    who = np.arange(CROWD) < np.array([[11], [12]])
    count, weights = 2 * CROWD, np.full((2, CROWD), 0.1)
    clients = QuadraticClients(problem, UnitImpulses(np.tile(np.arange(count), 2)))
    x, spread = np.zeros((2 * count, 2)), (np.repeat(array, count, 0) for array in (who, weights))
    columns = clients.summed_local_sgd(x, *spread, steps=12, lr=0.5).reshape(2, count, 2)
    small = 0.5 * 0.25 * sum(0.75 ** (2 * j) for j in range(12))
    large = 0.5 * 0.25 * sum(5.0 ** (2 * j) for j in range(12))
    for size, some in zip((11, 12), columns, strict=True):
        variances = (some**2).sum(axis=0)
        np.testing.assert_allclose(variances, [0.01 * size * small, 0.01 * size * large], rtol=1e-9)


@pytest.mark.parametrize("present", [3, 12])
def test_a_client_that_overflows_harms_nobody_while_it_is_away(present: int) -> None:
    """The last client's hundred steps multiply by 1e10 each; the sum of the others is finite."""
    curvatures = np.ones(CROWD + 1)
    curvatures[-1] = 1e11
    problem = QuadraticProblem(curvatures[:, None, None], np.ones((CROWD + 1, 1)), sigma=1.0)
    who = np.arange(CROWD + 1) < np.array([[present], [present - 1]])
    clients = QuadraticClients(problem, Silence())
    x, weights = np.zeros((2, 1)), np.full(who.shape, 0.1)
    with np.errstate(over="ignore", invalid="ignore"):
        total = clients.summed_local_sgd(x, who, weights, steps=100, lr=0.1)
    expected = 0.1 * np.array([[present], [present - 1]]) * (1 - 0.9**100)
    np.testing.assert_allclose(total, expected, rtol=1e-6)


@pytest.mark.parametrize(("hessian", "lr"), [("0.3", "7.1"), ("0.3", "6.9"), ("1.1", "1.9")])
@pytest.mark.parametrize("steps", [1, 30, 1000])
def test_rounding_of_powers_is_bounded(hessian: str, lr: str, steps: int) -> None:
    """Beyond a step of 2/L each local step adds to what is lost of the decimals: by 1,000 steps
    425, 673 and 587 units in the last place."""
    problem = QuadraticProblem([[float(hessian)]], [[0.0]])
    clients = QuadraticClients(problem, Silence())
    here = np.ones((1, 1), dtype=bool)
    change = clients.local_sgd(np.ones((1, 1)), here, steps=steps, lr=float(lr))
    exact = (1 - Fraction(lr) * Fraction(hessian)) ** steps - 1
    assert abs(Fraction(float(change[0, 0, 0])) - exact) <= Fraction(clients.power_rounding)


@pytest.mark.parametrize("hessians", [[[1.0]], [[[1.0]], [[1.0]]]], ids=["shared", "own"])
def test_little_noise_is_noise(hessians: list) -> None:
    """h = 1, sigma = 1/2, steps of 1/2, all draws 1: a step moves by 1/4, and the next gradient."""

    class Ones:
        def normal(self, replica_of_row: np.ndarray, width: int) -> np.ndarray:
            return np.ones((replica_of_row.size, width))

    x, who, alone = np.ones((1, 1)), np.array([[True, False]]), np.array([[1.0, 0.0]])
    found = []
    for sigma in (0.0, 0.5):
        problem = QuadraticProblem(hessians, [[0.0], [0.0]], sigma=sigma)
        clients = QuadraticClients(problem, Ones())
        each = clients.local_sgd(x, who, steps=1, lr=0.5)[0, 0]
        total = clients.summed_local_sgd(x, who, alone, steps=1, lr=0.5)[0]
        gradients = clients.summed_local_gradients(x, who, alone, steps=2, lr=0.5)[0]
        found.append(np.concatenate([each, total, gradients]))
    still, noisy = found
    assert still == pytest.approx([-0.5, -0.5, 1.5], rel=1e-12)
    assert abs(noisy - still) == pytest.approx([0.25, 0.25, 0.25], rel=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_who_asks_for_maps_alone_holds_no_second_copy_of_the_optima(shared: bool) -> None:
    """A million clients' fill 400 MB."""
    clients = QuadraticClients(random_problem(5, 4, 2, shared=shared), Silence())
    clients.local_parts(3, 0.1)
    clients.push(3, 0.1)
    assert "_offsets" not in vars(clients)
