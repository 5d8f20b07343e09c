"""Ranges of rounds and their reductions."""

import numpy as np
import pytest

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting, Trajectory
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import BoundedQuantity, RoundRange
from fltheory.theorems.statement import reduced

ROUNDS = np.array([5.0, 1.0, 4.0, 2.0])
SETTING = Setting(FedAvg(0.1, 1), QuadraticProblem([[1.0]], [[0.0]]), UniformSubset(1, 1), 3, [1.0])


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
    assert quantity.of(trajectory, SETTING) == pytest.approx(70 / 3)
    assert quantity.error(np.array([9.0, 1.0, 2.0, 3.0]), SETTING) == 2.0


def test_a_mean_can_weigh_its_rounds() -> None:
    """Weights of the setting, which need not sum to one; a round of weight zero does not count."""
    trajectory = Trajectory(np.array([np.inf, 1.0, 4.0, 2.0]), ROUNDS, ROUNDS)
    quantity = BoundedQuantity(
        "squared_distance",
        "mean",
        RoundRange(0, -1),
        "text",
        "latex",
        weights=lambda setting: np.array([0.0, 1.0, setting.rounds]),
    )
    assert quantity.of(trajectory, SETTING) == pytest.approx((1 * 1 + 3 * 4) / 4)
    assert quantity.error(np.array([9.0, 1.0, 2.0, 3.0]), SETTING) == pytest.approx(7 / 4)


def test_only_means_can_weigh_their_rounds() -> None:
    quantity = BoundedQuantity(
        "squared_distance",
        "max",
        RoundRange(0, 0),
        "text",
        "latex",
        weights=lambda setting: np.ones(4),
    )
    with pytest.raises(ValueError, match="weights must belong to a mean, got 'max'"):
        quantity.error(ROUNDS, SETTING)
