"""Clients on samples of their own: squares, for which everything is known by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from fltheory.problems.regression.sample_problem import SampleProblem
from fltheory.validation import FloatArray

DATA = [np.array([[1.0], [3.0]]), np.array([[6.0]])]


@dataclass(frozen=True, eq=False)
class Squares(SampleProblem):
    """f_ij(x) = (x - a_ij)^2 / 2."""

    samples: FloatArray
    starts: NDArray[np.intp]
    ridge: float
    alpha: FloatArray
    name: str

    def __init__(self, data=DATA, ridge=1.0, target_weights=None) -> None:
        self._set(data, ridge, target_weights, name="squares")

    @property
    def x_star(self) -> FloatArray:
        return self.sample_weights @ self.samples / (1 + self.ridge)

    def client_losses(self, x: FloatArray) -> FloatArray:
        means = [
            np.square(x - self.samples[self.rows_of(client), 0]).mean(axis=-1) / 2
            for client in range(self.n_clients)
        ]
        return np.stack(means, axis=-1) + self.ridge / 2 * np.square(x)


def test_clients_by_hand() -> None:
    """Means 2 and 6: x* = 4 / 2, F_1 = (1 + 1) / 4 + 2 and F_2 = 16 / 2 + 2 there."""
    problem = Squares()
    assert (problem.n_clients, problem.name) == (2, "squares")
    assert problem.sizes.tolist() == [2, 1]
    assert [problem.rows_of(0), problem.rows_of(1)] == [slice(0, 2), slice(2, 3)]
    np.testing.assert_array_equal(problem.sample_weights, [0.25, 0.25, 0.5])
    np.testing.assert_array_equal(problem.x_star, [2.0])
    np.testing.assert_array_equal(problem.client_losses(problem.x_star), [2.5, 10.0])
    assert problem.F_star == 6.25


def test_target_weights_define_the_mean() -> None:
    problem = Squares(target_weights=[0.25, 0.75])
    np.testing.assert_array_equal(problem.sample_weights, [0.125, 0.125, 0.75])
    np.testing.assert_array_equal(problem.x_star, [2.5])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ridge": 0.0}, r"ridge must be a finite number above 0, got 0\.0"),
        ({"target_weights": [1.0]}, r"target_weights must have shape \(2,\), got \(1,\)"),
    ],
)
def test_bad_arguments(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Squares(**changed)
