"""The papers' models as torch modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import cast

from torch import Tensor, nn

from fltheory import validation
from fltheory.argument_kinds import checks_kinds

ImageShape = tuple[int, int, int]
_GROUPS = 32


@checks_kinds
def build(name: str, image_shape: ImageShape, n_classes: int) -> nn.Module:
    """Return a new model that maps images (n, channels, height, width) to logits (n, classes).

    Parameters
    ----------
    name : str
        - ``logistic``: multinomial logistic regression, with an intercept.
        - ``cnn``: McMahan et al. (2017), which SA-FL follows: two 5 x 5 convolutions of 64
          channels, each with 3 x 3 pooling of stride 2, then layers of 384 and 192; about a million
          parameters on the 24 x 24 crops of that paper. It omits the local response normalisation
          of the tutorial from which it comes.
        - ``fedau-cnn``: the model of FedAU's experiments on CIFAR-10, with two 3 x 3 convolutions
          of 32 channels, then layers of 256 and 64, with He's initial weights.
        - ``lenet5``: convolutions of 6 and 16 channels, layers of 120 and 84 (FedAR, MIFA);
          images of 28 x 28 are padded, as LeCun et al. (1998) do.
        - ``resnet18``: for images of about 32 x 32, with a 3 x 3 stem without pooling. It has group
          norm with 32 groups instead of batch norm, which mixes clients' statistics.
    image_shape : tuple of int
        (channels, height, width).
    n_classes : int
        At least 2.

    Raises
    ------
    ValueError
        If the name is unknown, or images are too small for the model.

    Examples
    --------
    >>> sum(one.numel() for one in build("logistic", (1, 8, 8), 10).parameters())
    650
    """
    validation.one_of("name", name, NAMES)
    shape = tuple(validation.whole_number("image_shape", side, at_least=1) for side in image_shape)
    if len(shape) != 3:
        raise ValueError(f"image_shape must be (channels, height, width), got {image_shape!r}")
    least = _LEAST_SIDE[name]
    if min(shape[1:]) < least:
        raise ValueError(
            f"image_shape must have sides of at least {least} for {name}, got {image_shape!r}"
        )
    return _BUILDERS[name](shape, validation.whole_number("n_classes", n_classes, at_least=2))


def _logistic(shape: ImageShape, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), n_classes))


def _cnn(shape: ImageShape, n_classes: int) -> nn.Module:
    channels, height, width = shape
    sides = [math.ceil(math.ceil(side / 2) / 2) for side in (height, width)]

    def convolution(inputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]

    return nn.Sequential(
        *convolution(channels),
        *convolution(64),
        nn.Flatten(),
        *_layers(64 * math.prod(sides), 384, 192, n_classes),
    )


def _fedau_cnn(shape: ImageShape, n_classes: int) -> nn.Module:
    channels, height, width = shape
    model = nn.Sequential(
        *(nn.Conv2d(channels, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *_layers(32 * (height // 4) * (width // 4), 256, 64, n_classes),
    )
    for layer in list(model)[:-1]:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.constant_(cast(Tensor, layer.bias), 0.0)
    return model


def _lenet5(shape: ImageShape, n_classes: int) -> nn.Module:
    channels, height, width = shape
    padding = 2 if (height, width) == (28, 28) else 0
    sides = [((side + 2 * padding - 4) // 2 - 4) // 2 for side in (height, width)]
    return nn.Sequential(
        *(nn.Conv2d(channels, 6, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *_layers(16 * math.prod(sides), 120, 84, n_classes),
    )


def _resnet18(shape: ImageShape, n_classes: int) -> nn.Module:
    blocks = [
        _ResidualBlock(inputs, outputs, stride)
        for inputs, outputs, stride in (
            *((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)),
            *((128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)),
        )
    ]
    return nn.Sequential(
        *_normed_convolution(shape[0], 64, 1),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, n_classes),
    )


class _ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with a shortcut (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_normed_convolution(inputs, outputs, stride),
            nn.ReLU(),
            *_normed_convolution(outputs, outputs, 1),
        )
        self.shortcut = (
            nn.Identity()
            if stride == 1
            else nn.Sequential(*_normed_convolution(inputs, outputs, stride, size=1))
        )

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def _normed_convolution(inputs: int, outputs: int, stride: int, size: int = 3) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return [convolution, nn.GroupNorm(_GROUPS, outputs)]


def _layers(*widths: int) -> list[nn.Module]:
    """Return linear layers of these widths with rectifiers between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return layers[:-1]


_BUILDERS: dict[str, Callable[[ImageShape, int], nn.Module]] = {
    "logistic": _logistic,
    "cnn": _cnn,
    "fedau-cnn": _fedau_cnn,
    "lenet5": _lenet5,
    "resnet18": _resnet18,
}
_LEAST_SIDE = {"logistic": 1, "cnn": 1, "fedau-cnn": 4, "lenet5": 16, "resnet18": 2}
NAMES = tuple(_BUILDERS)
"""The names of the models that `build` can make."""
