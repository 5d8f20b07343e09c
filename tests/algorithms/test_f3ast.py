"""F3AST: selection and rounds by hand, learned and with an oracle; invariances; bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import F3ast, Unbiased
from fltheory.algorithms.contract import CLIENTS
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.problems import QuadraticProblem

ALPHA = [0.5, 0.25, 0.25]


def quiet_clients() -> SteppedClients:
    """Losses (x + 2)^2/2, (x - 100)^2/2 and (x - 4)^2/2."""
    return SteppedClients(QuadraticProblem([[1.0]], [[-2.0], [100.0], [4.0]]), Silence())


def test_two_learned_rounds_by_hand() -> None:
    """Size 1, beta = 1/2, eta = 0.1: r starts at alpha, so all are equally urgent at first.

    Round 1, clients 0 and 2 present: 0 is chosen, r = (3/4, 1/8, 1/8),
    x = 2 - 0.1 (0.5 / 0.75) 4 = 2 - 4/15. Round 2, the same present: alpha/r = 2/3 and 2, so 2 is
    chosen, r = (3/8, 1/16, 9/16), and x moves by -0.1 (0.25 / (9/16)) (x - 4).
    """
    algorithm = F3ast(ALPHA, 1, 0.1, 1, smoothing=0.5)
    who = np.array([[True, False, True]])
    state = algorithm.init(np.array([[2.0]]), 3)
    np.testing.assert_array_equal(state["rate"], [ALPHA])
    state = algorithm.round(state, quiet_clients(), who, CLIENTS)
    first = 2 - 4 / 15
    np.testing.assert_allclose(state["x"], [[first]], rtol=1e-14)
    np.testing.assert_allclose(state["rate"], [[3 / 4, 1 / 8, 1 / 8]], rtol=1e-14)
    state = algorithm.round(state, quiet_clients(), who, CLIENTS)
    np.testing.assert_allclose(state["x"], [[first - 0.1 * (4 / 9) * (first - 4)]], rtol=1e-14)
    np.testing.assert_allclose(state["rate"], [[3 / 8, 1 / 16, 9 / 16]], rtol=1e-14)


def test_an_oracle_round_by_hand() -> None:
    """pi = (0.8, 0.4, 0.2), beta = 1/2, clients 0 and 2 present: r = (0.9, 0.2, 0.6).

    alpha/r is 5/9 and 5/12, so with size 1 client 0 trains: x = 2 - 0.1 (5/9) 4.
    """
    algorithm = F3ast(ALPHA, 1, 0.1, 1, smoothing=0.5, availability=[0.8, 0.4, 0.2])
    state = algorithm.init(np.array([[2.0]]), 3)
    assert set(state) == {"x"}
    image = algorithm.round(state, quiet_clients(), np.array([[True, False, True]]), CLIENTS)
    np.testing.assert_allclose(image["x"], [[2 - 2 / 9]], rtol=1e-14)


def test_an_empty_round_leaves_the_model_and_lets_rates_decay() -> None:
    algorithm = F3ast(ALPHA, 2, 0.1, 1, smoothing=0.25)
    state = algorithm.init(np.array([[2.0]]), 3)
    image = algorithm.round(state, quiet_clients(), np.zeros((1, 3), dtype=bool), CLIENTS)
    np.testing.assert_array_equal(image["x"], [[2.0]])
    np.testing.assert_allclose(image["rate"], [[0.375, 0.1875, 0.1875]], rtol=1e-14)


@given(st.integers(0, 1000), st.integers(1, 5))
def test_chooses_the_most_urgent_of_those_present(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    alpha, rate = np.full(5, 0.2), rng.uniform(0.05, 1, (7, 5))
    who = rng.random((7, 5)) < 0.5
    optima = np.eye(5)
    clients = SteppedClients(QuadraticProblem(np.eye(5), optima), Silence())
    algorithm = F3ast(alpha, size, 0.5, 1, smoothing=0.0)
    # From the origin client k moves along axis k alone, by half of alpha_k / r_k.
    image = algorithm.round({"x": np.zeros((7, 5)), "rate": rate}, clients, who, CLIENTS)
    for replica in range(7):
        present = [k for k in range(5) if who[replica, k]]
        chosen = sorted(present, key=lambda k: -0.2 / rate[replica, k])[:size]
        expected = [0.5 * 0.2 / rate[replica, k] if k in chosen else 0.0 for k in range(5)]
        np.testing.assert_allclose(image["x"][replica], expected, rtol=1e-13, atol=1e-15)


def test_with_an_oracle_room_for_all_and_no_smoothing_it_is_unbiased() -> None:
    rng = np.random.default_rng(3)
    pi, who = [0.9, 0.5, 0.2], rng.random((8, 3)) < 0.5
    x = rng.normal(size=(8, 1))
    ours = F3ast(ALPHA, 3, 0.1, 2, smoothing=0.0, availability=pi)
    theirs = Unbiased(ALPHA, pi, 0.1, 2)
    images = [a.round({"x": x}, quiet_clients(), who, CLIENTS)["x"] for a in (ours, theirs)]
    np.testing.assert_allclose(images[0], images[1], rtol=1e-14)


@given(st.permutations(range(4)))
def test_the_order_of_clients_does_not_matter_without_ties(order: list[int]) -> None:
    rng = np.random.default_rng(11)
    optima, pi = rng.normal(size=(4, 2)), rng.uniform(0.1, 1, 4)
    who = rng.random((5, 6, 4)) < 0.6
    alpha, x = np.array([0.1, 0.2, 0.3, 0.4]), rng.normal(size=(6, 2))

    def image(order: list[int]) -> np.ndarray:
        clients = SteppedClients(QuadraticProblem([[1.0, 0], [0, 2.0]], optima[order]), Silence())
        algorithm = F3ast(alpha[order], 2, 0.1, 3, smoothing=0.3)
        state = {"x": x, "rate": np.tile(pi[order], (6, 1))}
        for present in who:
            state = algorithm.round(state, clients, present[:, order], CLIENTS)
        return state["x"]

    np.testing.assert_allclose(image(list(order)), image([0, 1, 2, 3]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": 3}, r"size must be at most the 2 clients, got 3"),
        ({"size": 0}, r"size must be a whole number of at least 1, got 0"),
        ({"smoothing": 1.5}, r"smoothing must be a probability in \[0, 1\], got 1\.5"),
        ({"availability": [0.5, 0.0]}, r"availability must be in \(0, 1\], got 0 for client 1"),
        ({"client_lr": 0.0}, r"client_lr must be a finite number above 0, got 0\.0"),
        ({"local_steps": 0}, r"local_steps must be a whole number of at least 1, got 0"),
        ({"server_lr": 0.0}, r"server_lr must be a finite number above 0, got 0\.0"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    good = {"target_weights": [0.5, 0.5], "size": 1, "client_lr": 0.1, "local_steps": 2}
    with pytest.raises(ValueError, match=message):
        F3ast(**(good | changed))
