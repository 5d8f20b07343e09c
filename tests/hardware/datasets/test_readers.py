"""All readers, on tiny files in the published layouts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fltheory.hardware import datasets
from fltheory.hardware.datasets import files
from tests.hardware.datasets.written_files import (
    N_TRAIN,
    Written,
    write_cifar,
    write_idx,
)

WRITERS: dict[str, Callable[[Path], Written]] = {
    "mnist": write_idx,
    "fashion-mnist": write_idx,
    "cifar10": write_cifar,
}
CHECKSUMS = {
    "mnist": files.MNIST_MD5,
    "fashion-mnist": files.FASHION_MNIST_MD5,
    "cifar10": files.CIFAR10_MD5,
}
TITLES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
}


@pytest.fixture(params=WRITERS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def publish(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the files in a folder the published ones."""
    for file in CHECKSUMS[name]:
        digest = hashlib.md5((folder / file).read_bytes()).hexdigest()
        monkeypatch.setitem(CHECKSUMS[name], file, digest)


def assert_is(found: datasets.ImageData, written: Written) -> None:
    for part, pixels, labels in zip(
        (found.train, found.test), written.pixels, written.labels, strict=True
    ):
        assert part.images.dtype == np.float32
        assert part.labels.dtype == np.int64
        np.testing.assert_array_equal(part.labels, labels)
        np.testing.assert_allclose(part.images, pixels / 255, rtol=1e-7, atol=0)


def test_reads_what_was_written(name, tmp_path, monkeypatch):
    written = WRITERS[name](tmp_path)
    publish(name, tmp_path, monkeypatch)
    found = datasets.load(name, tmp_path)
    assert_is(found, written)
    assert (found.n_classes, found.name, found.published) == (10, TITLES[name], True)


def test_refuses_other_files_and_says_so_when_told_to_take_them(name, tmp_path):
    written = WRITERS[name](tmp_path)
    with pytest.raises(ValueError, match=r"must be the published file, of MD5 \w{32}, got one of"):
        datasets.load(name, tmp_path)
    found = datasets.load(name, tmp_path, verify=False)
    assert_is(found, written)
    assert found.name == f"{TITLES[name]} (not the published files)"
    assert not found.published


@pytest.mark.parametrize("verify", [True, False])
def test_missing_file(name, tmp_path, verify):
    WRITERS[name](tmp_path)
    last = list(CHECKSUMS[name])[-1]
    (tmp_path / last).unlink()
    with pytest.raises(ValueError, match=f"folder must hold {last}, or {last}.gz, got none in"):
        datasets.load(name, tmp_path, verify=verify)


def test_missing_folder(name, tmp_path):
    with pytest.raises(ValueError, match="folder must be an existing folder of data files, got"):
        datasets.load(name, tmp_path / "none")


@pytest.mark.parametrize("left", [0, 2, 6, 100, -100])
def test_truncated_file(name, tmp_path, left):
    WRITERS[name](tmp_path)
    for file in CHECKSUMS[name]:
        path = tmp_path / file
        whole = path.read_bytes()
        path.write_bytes(whole[:left])
        if left < len(whole):
            with pytest.raises(ValueError, match=f"{file}.* must .*got"):
                datasets.load(name, tmp_path, verify=False)
        path.write_bytes(whole)


def test_noise_for_a_file(name, tmp_path):
    WRITERS[name](tmp_path)
    for file in CHECKSUMS[name]:
        path = tmp_path / file
        whole = path.read_bytes()
        path.write_bytes(np.random.default_rng(0).bytes(len(whole)))
        with pytest.raises(ValueError, match=file):
            datasets.load(name, tmp_path, verify=False)
        path.write_bytes(whole)


def test_one_wrong_pixel_is_another_file(name, tmp_path, monkeypatch):
    WRITERS[name](tmp_path)
    publish(name, tmp_path, monkeypatch)
    path = tmp_path / next(iter(CHECKSUMS[name]))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="got"):
        datasets.load(name, tmp_path)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_zipped_files_are_read_by_their_content(name, tmp_path, monkeypatch):
    import gzip

    written = WRITERS[name](tmp_path)
    publish(name, tmp_path, monkeypatch)
    for file in CHECKSUMS[name]:
        plain = tmp_path / file
        (tmp_path / f"{file}.gz").write_bytes(gzip.compress(plain.read_bytes(), 3, mtime=1))
        plain.unlink()
    assert_is(datasets.load(name, tmp_path), written)
    cut = tmp_path / f"{file}.gz"
    for wrong in (cut.read_bytes()[:-9], b"\x1f\x8b" + cut.read_bytes()[5:], b"no gzip"):
        cut.write_bytes(wrong)
        with pytest.raises(ValueError, match=r"\.gz must be readable, got a truncated or corrupt"):
            datasets.load(name, tmp_path)


def test_cifar_may_lie_in_its_archives_folder_and_lack_batches_if_not_verified(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    written = write_cifar(folder, batches=3)
    assert_is(datasets.cifar10(tmp_path, verify=False), written)
    with pytest.raises(ValueError, match=r"folder must hold data_batch_4\.bin"):
        datasets.cifar10(tmp_path)
    for place in (1, 2, 3):
        (folder / f"data_batch_{place}.bin").unlink()
    with pytest.raises(ValueError, match=r"folder must hold data_batch_1\.bin, got none"):
        datasets.cifar10(tmp_path, verify=False)


def test_incomplete_cifar_is_not_the_published_one(tmp_path, monkeypatch):
    write_cifar(tmp_path)
    publish("cifar10", tmp_path, monkeypatch)
    assert datasets.cifar10(tmp_path, verify=False).published
    (tmp_path / "data_batch_2.bin").unlink()
    found = datasets.cifar10(tmp_path, verify=False)
    assert not found.published
    assert len(found.train) < N_TRAIN


def test_the_data_folder_comes_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "mnist").mkdir()
    write_idx(tmp_path / "mnist")
    monkeypatch.setenv("FLTHEORY_DATA", str(tmp_path))
    assert len(datasets.load("mnist", verify=False).train) == N_TRAIN
    monkeypatch.delenv("FLTHEORY_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"got 'data/mnist'"):
        datasets.load("mnist")


def test_unknown_name():
    with pytest.raises(ValueError, match=r"name must be one of 'digits', 'mnist'.* got 'imagenet'"):
        datasets.load("imagenet")
