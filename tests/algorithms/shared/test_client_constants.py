"""Constants of clients: brought to a backend once, and never shared with what may be written to."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.algorithms.shared.client_constants import held_on_backend, on_backend

VALUES = np.array([0.25, 0.5, 1.0])


def test_a_row_of_the_right_type() -> None:
    row = on_backend(VALUES, np.zeros((4, 2), dtype=np.float32))
    assert (row.shape, row.dtype) == ((1, 3), np.float32)
    np.testing.assert_array_equal(row[0], VALUES)


def test_numpy_arrays_are_fresh() -> None:
    first = on_backend(VALUES, np.zeros((1, 1)))
    first[0, 0] = 9.0
    np.testing.assert_array_equal(on_backend(VALUES, np.zeros((1, 1)))[0], [0.25, 0.5, 1.0])


def test_torch_tensors_are_made_once_for_each_dtype_and_content() -> None:
    torch = pytest.importorskip("torch")
    like, wide = torch.zeros(1, dtype=torch.float32), torch.zeros(1, dtype=torch.float64)
    assert on_backend(VALUES, like) is on_backend(VALUES.copy(), like)
    assert on_backend(VALUES, wide).dtype == torch.float64
    assert on_backend(2 * VALUES, like).tolist() == [[0.5, 1.0, 2.0]]
    labels = held_on_backend(np.array([[1, 0]]), like, torch.int64)
    assert (labels.tolist(), labels.dtype) == ([[1, 0]], torch.int64)
