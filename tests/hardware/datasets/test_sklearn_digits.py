"""The bundled digits."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fltheory.hardware import datasets


def test_every_fifth_of_a_class_is_held_out():
    sklearn = pytest.importorskip("sklearn.datasets", reason="scikit-learn is an optional extra")
    pixels, labels = sklearn.load_digits(return_X_y=True)
    found = datasets.load("digits")
    assert (found.n_classes, found.image_shape, found.name) == (10, (1, 8, 8), "digits")
    assert len(found.train) + len(found.test) == 1797
    for digit in range(10):
        mine = pixels[labels == digit] / 16
        ours = found.test.images[found.test.labels == digit].reshape(-1, 64)
        np.testing.assert_array_equal(ours, mine[4::5])
        rest = np.delete(mine, np.s_[4::5], axis=0)
        kept = found.train.images[found.train.labels == digit].reshape(-1, 64)
        np.testing.assert_array_equal(kept, rest)


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'fltheory\[torch\]'"):
        datasets.digits()
