"""IDX files that are wrong in themselves."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from fltheory.files.read_file import Result, results_apart
from fltheory.hardware import datasets
from fltheory.hardware.datasets.files import parse_idx, read_file
from tests.hardware.datasets.written_files import idx_bytes, write_idx


def test_header_by_hand():
    content = bytes.fromhex("00000803 00000002 00000001 00000003 010203 040506")
    np.testing.assert_array_equal(parse_idx("it", content, 3), [[[1, 2, 3]], [[4, 5, 6]]])


@pytest.mark.parametrize("magic", ["00000801", "00000d03", "03080000", "00010803"])
def test_wrong_magic_number(magic):
    content = bytes.fromhex(f"{magic} 00000001 00000001 00000001 ff")
    with pytest.raises(ValueError, match=f"it must open with 0x00000803, got 0x{magic}"):
        parse_idx("it", content, 3)


def test_images_are_not_read_from_a_file_that_is_to_be_written(tmp_path):
    file = tmp_path / "images"
    file.write_bytes(b"images")
    with (
        results_apart([Result("page", file)], []),
        pytest.raises(ValueError, match="page must be another file than "),
    ):
        read_file(tmp_path, "images")


def test_labels_for_images(tmp_path):
    write_idx(tmp_path)
    labels = (tmp_path / "train-labels-idx1-ubyte").read_bytes()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(labels)
    with pytest.raises(ValueError, match="train-images-idx3-ubyte must open with 0x00000803"):
        datasets.mnist(tmp_path)


@pytest.mark.parametrize("change", [-1, 1])
def test_fewer_or_more_bytes_than_promised(change):
    content = idx_bytes(np.zeros((2, 3), dtype=np.uint8))
    wrong = content[:change] if change < 0 else content + b"\0"
    with pytest.raises(ValueError, match=r"must hold 6 bytes of data for shape \(2, 3\), got"):
        parse_idx("it", wrong, 2)


def test_promises_beyond_memory_are_no_trouble():
    with pytest.raises(ValueError, match="truncated or corrupt"):
        parse_idx("it", bytes.fromhex("00000803 ffffffff ffffffff ffffffff"), 3)


def test_as_many_labels_as_images(tmp_path):
    write_idx(tmp_path)
    short = idx_bytes(np.zeros(3, dtype=np.uint8))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(short)
    with pytest.raises(ValueError, match="must hold a label for each of the 4 images, got 3"):
        datasets.mnist(tmp_path, verify=False)


def test_labels_out_of_range(tmp_path):
    write_idx(tmp_path)
    wrong = idx_bytes(np.array([0, 9, 10, 255], dtype=np.uint8))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(wrong)
    with pytest.raises(ValueError, match="labels-idx1-ubyte must lie between 0 and 9, got 10"):
        datasets.mnist(tmp_path)


def test_plain_files_go_before_zipped_ones(tmp_path):
    written = write_idx(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"other"))
    found = datasets.fashion_mnist(tmp_path, verify=False)
    np.testing.assert_array_equal(found.test.labels, written.labels[1])
