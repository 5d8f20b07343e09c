"""Ranges of rounds and their reductions."""

import numpy as np
import pytest

from fltheory.engines import Trajectory
from fltheory.theorems import BoundedQuantity, RoundRange
from fltheory.theorems.statement import reduced

ROUNDS = np.array([5.0, 1.0, 4.0, 2.0])


@pytest.mark.parametrize(
    ("rounds", "text", "values"),
    [
        (RoundRange(0, -1), "r = 0 .. R-1", [5, 1, 4]),
        (RoundRange(1, 0), "r = 1 .. R", [1, 4, 2]),
        (RoundRange(0, 0), "r = 0 .. R", [5, 1, 4, 2]),
    ],
)
def test_range_of_rounds(rounds: RoundRange, text: str, values: list[float]) -> None:
    assert rounds.text == text
    assert rounds.of(ROUNDS).tolist() == values


@pytest.mark.parametrize(
    ("reduction", "values"),
    [("mean", [3]), ("max", [5]), ("min", [1]), ("last", [2]), ("every", [5, 1, 4, 2])],
)
def test_reductions(reduction, values) -> None:
    assert reduced(ROUNDS, reduction).tolist() == values


def test_bounded_quantity_reads_its_field() -> None:
    trajectory = Trajectory(ROUNDS, 10 * ROUNDS, 100 * ROUNDS)
    quantity = BoundedQuantity("squared_gradient", "mean", RoundRange(1, 0), "text", "latex")
    assert quantity.of(trajectory) == pytest.approx(70 / 3)
    assert quantity.error(np.array([9.0, 1.0, 2.0, 3.0])) == 2.0
