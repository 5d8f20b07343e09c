"""Weights by name: targets in proportion to sizes, and clients that are never there."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from fltheory.weights import Training, for_clients, optimal
from fltheory.weights.client_weights import of_problem


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e308])
def test_targets_are_in_proportion_to_sizes_of_any_unit(scale: float) -> None:
    found = for_clients(("a", "b"), [0.9, 0.3], np.array([0.25, 0.75]) * scale)
    assert found.target_weights == pytest.approx([0.25, 0.75])
    assert found.weights.sum() == pytest.approx(1.0)


def test_the_others_share_what_those_never_there_leave() -> None:
    training = Training(100)
    found = for_clients(("a", "b", "c"), [0.9, 0.0, 0.3], [1, 2, 1], training=training)
    assert (found.never_there, found.lost_target) == (("b",), 0.5)
    other = training.trade_off([0.9, 0.3], [0.5, 0.5])
    alone = optimal([0.9, 0.3], [0.5, 0.5], a=other.a, b=other.b, bias=other.bias)
    np.testing.assert_allclose(found.weights, [alone.q[0], 0, alone.q[1]])
    np.testing.assert_allclose(found.importance, [alone.p[0], 0, alone.p[1]])


def test_every_client_has_a_line_that_reads_back() -> None:
    names = tuple(f"client, {k}" for k in range(100))
    found = for_clients(names, np.linspace(0.01, 1, 100))
    rows = list(csv.DictReader(io.StringIO(found.as_csv())))
    assert [row["client"] for row in rows] == list(names)
    assert [float(row["weight"]) for row in rows] == found.weights.tolist()
    assert [float(row["importance"]) for row in rows] == found.importance.tolist()
    assert [float(row["target"]) for row in rows] == found.target_weights.tolist()
    assert [float(row["availability"]) for row in rows] == found.availability.tolist()


def test_a_problem_s_clients_have_numbers() -> None:
    found = of_problem(Training().trade_off([0.5, 0.5], [0.5, 0.5]), "cvxpy")
    assert (found.clients, found.solution.method) == (("0", "1"), "cvxpy")
    assert found.weights == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 0.0],), "availability must be above 0 for some client, got 0 for all"),
        (([0.5],), r"availability must have shape \(2,\), got \(1,\)"),
        (([0.5, 0.5], [1.0]), r"sizes must have shape \(2,\), got \(1,\)"),
        (([0.5, 0.5], [1.0, 0.0]), "sizes must be positive, got 0 for 'b'"),
        (([0.5, -0.5], [1.0, 1.0]), r"availability must be in \[0, 1\], got -0\.5 for 'b'"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        for_clients(("a", "b"), *arguments)
