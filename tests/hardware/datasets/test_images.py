"""Labelled images and data sets check themselves."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.hardware.datasets.images import ImageData, Labelled, from_bytes

IMAGES, LABELS = np.zeros((2, 1, 3, 4), dtype=np.float32), np.array([0, 2])


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES[0], LABELS, "images must be float32 of shape"),
        (IMAGES.astype(float), LABELS, "images must be float32 .* got float64"),
        (IMAGES, LABELS[:1], "labels must be 2 of type int64"),
        (IMAGES, LABELS.astype(np.int32), "got int32"),
    ],
)
def test_shapes_and_types(images, labels, message):
    with pytest.raises(ValueError, match=message):
        Labelled(images, labels)


def test_labels_are_classes():
    part = Labelled(IMAGES, LABELS)
    assert ImageData(part, part, 3, "it").image_shape == (1, 3, 4)
    with pytest.raises(ValueError, match="labels of it must lie between 0 and 1, got 2"):
        ImageData(part, part, 2, "it")
    negative = Labelled(IMAGES, np.array([0, -1]))
    with pytest.raises(ValueError, match="got -1 among 2"):
        ImageData(part, negative, 3, "it")


def test_digest_knows_every_image_and_label():
    def digest(images=IMAGES, labels=LABELS, test_labels=LABELS):
        return ImageData(Labelled(images, labels), Labelled(IMAGES, test_labels), 3, "it").digest

    brighter, turned = IMAGES.copy(), IMAGES.reshape(2, 1, 4, 3)
    brighter[1, 0, 2, 3] = 1
    assert digest() == digest(IMAGES.copy(), LABELS.copy())
    parts = [Labelled(turned, LABELS)] * 2
    found = {
        digest(),
        digest(images=brighter),
        digest(labels=LABELS[::-1]),
        digest(test_labels=LABELS[::-1]),
        ImageData(*parts, 3, "it").digest,
    }
    assert len(found) == 5


def test_one_shape():
    part = Labelled(IMAGES, LABELS)
    other = Labelled(IMAGES.swapaxes(2, 3), LABELS)
    with pytest.raises(
        ValueError, match=r"the training images' shape \(1, 3, 4\), got \(1, 4, 3\)"
    ):
        ImageData(part, other, 3, "it")


def test_no_images():
    part, nothing = Labelled(IMAGES, LABELS), Labelled(IMAGES[:0], LABELS[:0])
    with pytest.raises(ValueError, match=r"^test images of it must not be empty, got none$"):
        ImageData(part, nothing, 3, "it")
    with pytest.raises(ValueError, match=r"^training images of it must not be empty, got none$"):
        ImageData(nothing, part, 3, "it")


def test_bytes_scale_to_one():
    found = from_bytes(np.array([0, 51, 255], dtype=np.uint8))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [0, 0.2, 1], rtol=1e-7)
