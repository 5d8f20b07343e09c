"""CIFAR-10's records."""

from __future__ import annotations

import pytest
from written_files import write_cifar

from fltheory.hardware import datasets

RECORD = 3073


def test_colours_lie_one_after_another(tmp_path):
    write_cifar(tmp_path)
    red, green = bytes([255] * 1024), bytes([51] * 1024)
    blue = bytes([0] * 32 + [102] * 992)
    (tmp_path / "test_batch.bin").write_bytes(bytes([9]) + red + green + blue)
    test = datasets.cifar10(tmp_path, verify=False).test
    assert test.labels.tolist() == [9]
    assert test.images[0, 0].min() == 1
    assert test.images[0, 1].max() == pytest.approx(0.2, rel=1e-7)
    assert test.images[0, 2, 0].max() == 0
    assert test.images[0, 2, 1:].min() == pytest.approx(0.4, rel=1e-7)


@pytest.mark.parametrize("label", [10, 255])
def test_labels_out_of_range(tmp_path, label):
    write_cifar(tmp_path)
    (tmp_path / "data_batch_3.bin").write_bytes(bytes([label] + [0] * (RECORD - 1)))
    with pytest.raises(
        ValueError, match=rf"data_batch_3\.bin must lie between 0 and 9, got {label}"
    ):
        datasets.cifar10(tmp_path)
