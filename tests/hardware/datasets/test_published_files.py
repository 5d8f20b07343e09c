"""The published files themselves, where the environment names a folder that has them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fltheory.hardware import datasets

MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def folder(name: str) -> Path:
    here = Path(os.environ.get("FLTHEORY_DATA", "data")) / name
    if not here.is_dir():
        pytest.skip(f"no files of {name} in {here}: FLTHEORY_DATA names the folder of data sets")
    return here


def test_mnist():
    """The counts, and the mean and deviation of the pixels that everyone normalises with."""
    found = datasets.mnist(folder("mnist"))
    assert found.published
    assert np.bincount(found.train.labels).tolist() == MNIST_COUNTS
    assert len(found.test) == 10_000
    mean = found.train.images.mean(dtype=np.float64)
    assert mean == pytest.approx(0.1307, abs=5e-5)
    variance = np.square(found.train.images).mean(dtype=np.float64) - mean**2
    assert variance**0.5 == pytest.approx(0.3081, abs=5e-5)


def test_fashion_mnist():
    found = datasets.fashion_mnist(folder("fashion-mnist"))
    assert found.published
    assert np.bincount(found.train.labels).tolist() == [6000] * 10


@pytest.mark.soundness
def test_cifar10():
    """Its classes are balanced; without a checksum a re-encoded copy is taken, and named so."""
    found = datasets.cifar10(folder("cifar10"), verify=False)
    assert np.bincount(found.test.labels).tolist() == [1000] * 10
    if found.published:
        assert np.bincount(found.train.labels).tolist() == [5000] * 10
    else:
        assert found.name == "CIFAR-10 (not the published files)"
        with pytest.raises(ValueError, match=r"must be the published file|folder must hold"):
            datasets.cifar10(folder("cifar10"))
