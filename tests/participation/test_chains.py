"""How laws of states move: factors and loops against the matrices they stand for."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from fltheory.participation import FiniteChain, MarkovOnOff, Trace
from fltheory.participation.process import States

ON_OFF = MarkovOnOff([0.3, 1.0, 0.6, 0.5], [0.8, 0.5, -0.3, 0.0])
BEGUN = MarkovOnOff([0.3, 1.0, 0.6, 0.0], [0.8, 0.5, -0.3, 0.25], start=[1, 0, 0, 0])
CHAIN = FiniteChain([[0.1, 0.6, 0.3], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]], np.eye(3), start=2)
TRACE = Trace([[1, 0], [1, 1], [0, 1], [1, 1]])


def product_of(chains: MarkovOnOff, clients: list[int]) -> np.ndarray:
    matrices = [
        np.array(
            [
                [1 - chains.comes[k], chains.comes[k]],
                [1 - chains.stays[k], chains.stays[k]],
            ]
        )
        for k in clients
    ]
    return reduce(np.kron, matrices)


CASES: list[tuple[States, np.ndarray]] = [
    (ON_OFF.states(), product_of(ON_OFF, [0, 2, 3])),
    (BEGUN.states(), product_of(BEGUN, [0, 1, 2])),
    (CHAIN.states(), CHAIN.transition),
    (TRACE.states(), np.roll(np.eye(4), 1, axis=1)),
    (MarkovOnOff([1.0, 0.0], 0.5).states(), np.eye(1)),
]


@pytest.mark.parametrize(("states", "matrix"), CASES)
def test_values_move_with_the_matrix(states: States, matrix: np.ndarray) -> None:
    values = np.random.default_rng(0).normal(size=(len(matrix), 2, 3))
    forward, backward = np.tensordot(matrix.T, values, 1), np.tensordot(matrix, values, 1)
    np.testing.assert_allclose(states.forward(values), forward, atol=1e-14)
    np.testing.assert_allclose(states.backward(values), backward, atol=1e-14)
    np.testing.assert_allclose(states.forward(values[:, 0, 0]), forward[:, 0, 0], atol=1e-14)
    assert states.masks.shape[0] == states.initial.size == len(matrix)
    assert states.initial.sum() == pytest.approx(1)


@pytest.mark.parametrize("states", [states for states, _ in CASES])
def test_the_limit_does_not_move(states: States) -> None:
    assert states.limit is not None
    np.testing.assert_allclose(states.forward(states.limit), states.limit, atol=1e-15)


@pytest.mark.parametrize("process", [ON_OFF, BEGUN, CHAIN, TRACE], ids=lambda p: type(p).__name__)
def test_states_say_who_is_present_in_the_limit(process) -> None:
    states = process.states()
    assert process.n_states == len(states.masks)
    np.testing.assert_allclose(states.limit @ states.masks, process.marginals, atol=1e-14)


def test_where_a_process_begins() -> None:
    first = BEGUN.states()
    np.testing.assert_array_equal(first.masks[first.initial == 1], [[1, 0, 0, 0]])
    begun = Trace([[1, 0], [0, 1]], start=1).states()
    np.testing.assert_array_equal(begun.initial, [0, 1])
    assert begun.limit is None
