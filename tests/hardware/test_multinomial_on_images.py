"""Logistic regression on images: the constants, and the optimum to 1e-8."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fltheory.hardware import datasets
from fltheory.hardware.datasets.images import Labelled
from fltheory.hardware.partitions import classes_per_client
from fltheory.problems import MultinomialProblem


def dealt(part, ridge, n_classes=10):
    """Ten clients of two classes each; F weighs all images alike."""
    features = part.images.reshape(len(part), -1)
    parts = classes_per_client(part.labels, 10, 2, np.random.default_rng(0))
    sizes = np.array([len(places) for places in parts])
    return MultinomialProblem(
        [features[places] for places in parts],
        [part.labels[places] for places in parts],
        n_classes=n_classes,
        ridge=ridge,
        target_weights=sizes / sizes.sum(),
    )


@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
def test_digits_against_scikit_learn(ridge):
    """Its solver minimises the same loss over the same images, with a constant pixel added."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    train = datasets.digits().train
    it = dealt(train, ridge)
    assert it.optimum.distance <= 1e-8
    pixels = np.c_[train.images.reshape(len(train), -1).astype(float), np.ones(len(train))]
    solver = linear_model.LogisticRegression(
        C=1 / (ridge * len(train)),
        fit_intercept=False,
        tol=1e-12,
        solver="newton-cg",
        max_iter=1000,
    )
    other = solver.fit(pixels, train.labels)
    weights, intercepts = it.split(it.x_star[None])
    found = np.c_[weights[0], intercepts[0]]
    np.testing.assert_allclose(found, other.coef_, rtol=0, atol=1e-6)
    assert it.accuracy(it.x_star) == pytest.approx(other.score(pixels, train.labels))


def test_digits_constants():
    """By singular values of the images with a constant added, client by client."""
    pytest.importorskip("sklearn", reason="scikit-learn is an optional extra")
    it = dealt(datasets.digits().train, 0.1)
    for client, size in enumerate(it.sizes):
        rows = it.samples[it.starts[client] : it.starts[client + 1]].astype(float)
        largest = np.linalg.svd(np.c_[rows, np.ones(size)], compute_uv=False)[0]
        assert it.smoothness[client] == pytest.approx(largest**2 / size / 2 + 0.1, rel=1e-12)
    assert (it.L, it.mu) == (it.smoothness.max(), 0.1)


def test_mnist():
    folder = Path(os.environ.get("FLTHEORY_DATA", "data")) / "mnist"
    if not folder.is_dir():
        pytest.skip(f"no files of mnist in {folder}: FLTHEORY_DATA names the folder of data sets")
    test = datasets.mnist(folder).test
    few = Labelled(test.images[:1000], test.labels[:1000])
    it = dealt(few, 1e-2)
    assert it.dim == 7850
    assert it.optimum.distance <= 1e-8
    assert np.linalg.norm(it.gradient(it.x_star[None])) <= it.optimum.gradient_norm
