"""Averages and weighted sums over participants, on both backends."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms.shared.averaging import participant_average, weighted_sum

WHO = np.array([[True, True, False], [False, False, False]])


def test_averages_are_over_those_present() -> None:
    weights = participant_average(WHO, np.zeros((2, 1)))
    assert weights.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_weighted_sums_are_per_replica(backend: str) -> None:
    weights = np.array([[1.0, 2.0, 0.0], [0.5, 0.0, -1.0]])
    vectors = np.arange(12.0).reshape(2, 3, 2)
    if backend == "torch":
        torch = pytest.importorskip("torch", reason="torch is an optional extra")
        weights, vectors = torch.tensor(weights), torch.tensor(vectors)
    found = np.asarray(weighted_sum(weights, vectors))
    assert found.tolist() == [[4.0, 7.0], [-7.0, -7.5]]
