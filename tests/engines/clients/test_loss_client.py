"""Gradient descent of a client known by its gradient, by hand."""

from __future__ import annotations

import numpy as np

from fltheory.engines.clients.analytic_clients import descended
from fltheory.testing.conformance.case import QuadraticClient

CLIENT = QuadraticClient(np.eye(1), np.array([8.0]))


def test_two_steps_by_hand() -> None:
    # Gradients y - 8: from 4 half the way to 8, twice.
    assert descended(CLIENT, np.array([4.0]), steps=2, lr=0.5).tolist() == [7.0]


def test_correction_and_proximal_term_by_hand() -> None:
    # Gradients y - 8 + 2 + (y - 4)/2: 4 - (-2)/2 = 5, then 5 - (-3 + 2 + 1/2)/2 = 5.25.
    found = descended(
        CLIENT, np.array([4.0]), steps=2, lr=0.5, correction=np.array([2.0]), proximal=0.5
    )
    assert found.tolist() == [5.25]


def test_the_start_is_left_as_it_is() -> None:
    start = np.array([4.0])
    descended(CLIENT, start, steps=3, lr=0.5)
    assert start.tolist() == [4.0]
