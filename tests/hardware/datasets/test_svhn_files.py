"""SVHN's MATLAB variables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import savemat
from written_files import write_svhn

from fltheory.hardware import datasets

X, Y = np.zeros((32, 32, 3, 2), dtype=np.uint8), np.array([[1], [10]], dtype=np.uint8)


def test_ten_stands_for_zero(tmp_path):
    write_svhn(tmp_path)
    savemat(tmp_path / "test_32x32.mat", {"X": X, "y": Y})
    assert datasets.svhn(tmp_path, verify=False).test.labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": X}, "must hold the variables X and y, got no y"),
        ({"y": Y}, "must hold the variables X and y, got no X"),
        ({"X": X / 2, "y": Y}, r"X of test_32x32.mat must be unsigned bytes .*, got float64"),
        ({"X": X[:31], "y": Y}, r"of shape \(32, 32, 3, n\), got uint8 of shape \(31,"),
        ({"X": X, "y": Y[:1]}, "must be 2 numbers, one an image, got uint8"),
        ({"X": X, "y": np.array([["a"], ["b"]])}, "must be 2 numbers, one an image, got <U1"),
        ({"X": X, "y": np.array([[1], [0]])}, "must lie between 0 and 9, got -1"),
        ({"X": X, "y": np.array([[1], [11]])}, "must lie between 0 and 9, got 10"),
    ],
    ids=str,
)
def test_wrong_variables(tmp_path, variables, message):
    write_svhn(tmp_path)
    savemat(tmp_path / "test_32x32.mat", variables)
    with pytest.raises(ValueError, match=message):
        datasets.svhn(tmp_path, verify=False)
