"""The models: their sizes as published, and that they are what they say."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware import models  # noqa: E402

CIFAR, MNIST = (3, 32, 32), (1, 28, 28)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("logistic", MNIST, 785 * 10),
        # 24 x 24 crops, "about 10^6 parameters" (McMahan et al. 2017, Section 3).
        ("cnn", (3, 24, 24), 76 * 64 + 1601 * 64 + 2305 * 384 + 385 * 192 + 193 * 10),
        ("fedau-cnn", CIFAR, 28 * 32 + 289 * 32 + 2049 * 256 + 257 * 64 + 65 * 10),
        # LeNet-5 for 32 x 32 greyscale images has 61,706 with full connections.
        ("lenet5", MNIST, 61_706),
        ("lenet5", (1, 32, 32), 61_706),
        ("lenet5", CIFAR, 62_006),
        # The usual ResNet-18 for CIFAR-10: group norm has as many parameters as batch norm.
        ("resnet18", CIFAR, 11_173_962),
    ],
)
def test_number_of_parameters(name, shape, expected):
    model = models.build(name, shape, 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    assert model(torch.zeros(3, *shape)).shape == (3, 10)


@pytest.mark.parametrize("name", models.NAMES)
def test_smallest_images_and_too_small_ones(name):
    least = models._LEAST_SIDE[name]
    assert models.build(name, (2, least, least + 1), 3)(torch.zeros(1, 2, least, least + 1)).shape
    if least > 1:
        with pytest.raises(ValueError, match=f"sides of at least {least} for {name}, got"):
            models.build(name, (2, least + 1, least - 1), 3)


@pytest.mark.parametrize("name", models.NAMES)
def test_an_image_does_not_see_the_others_of_its_batch(name):
    """Batch norm would fail this, in training mode."""
    model = models.build(name, CIFAR, 10).train()
    images = torch.rand(4, *CIFAR)
    alone = torch.cat([model(image[None]) for image in images])
    torch.testing.assert_close(model(images), alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", models.NAMES)
def test_every_parameter_matters(name):
    model = models.build(name, CIFAR, 10)
    labels = torch.arange(8) % 10
    torch.nn.functional.cross_entropy(model(torch.rand(8, *CIFAR)), labels).backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())


@pytest.mark.parametrize("name", models.NAMES)
def test_no_parameter_is_changed_by_running(name):
    """No running statistics: a model is its parameters alone, as flat vectors need."""
    assert not list(models.build(name, CIFAR, 10).buffers())


def test_logistic_is_affine_in_the_image():
    model = models.build("logistic", (1, 2, 2), 3)
    weight, bias = model.parameters()
    image = torch.rand(1, 1, 2, 2)
    torch.testing.assert_close(model(image), image.reshape(1, 4) @ weight.T + bias)


def test_group_norm_has_32_groups():
    norms = [
        m
        for m in models.build("resnet18", CIFAR, 10).modules()
        if isinstance(m, torch.nn.GroupNorm)
    ]
    assert len(norms) == 1 + 8 * 2 + 3
    assert {norm.num_groups for norm in norms} == {32}


def test_he_initial_weights():
    """Standard deviation sqrt(2/fan_in) in all but the last layer, biases zero (FedAU's code)."""
    layers = [m for m in models.build("fedau-cnn", CIFAR, 10) if hasattr(m, "weight")]
    for layer in layers[:-1]:
        fan_in = layer.weight[0].numel()
        assert layer.weight.std().item() == pytest.approx(math.sqrt(2 / fan_in), rel=0.1)
        assert not layer.bias.any()
    assert layers[-1].bias.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("vgg", CIFAR, 10), "name must be one of 'logistic', 'cnn'.*got 'vgg'"),
        (("cnn", (32, 32), 10), r"image_shape must be \(channels, height, width\), got \(32, 32\)"),
        (("cnn", (3, 32, 0), 10), "image_shape must be a whole number of at least 1, got 0"),
        (("cnn", CIFAR, 1), "n_classes must be a whole number of at least 2, got 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        models.build(*arguments)
