"""Losses and gradients of several flat models at once, each on a batch of its own.

``y`` is (rows, dim), one model a row; ``inputs`` (rows, width, ...) and ``targets``
(rows, width, ...) are its samples; ``weights`` (rows, width) are what a sample's loss counts:
1/size within a batch, 0 for padding. A row's loss is the weighted sum of its samples' losses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn import functional

from fltheory import validation
from fltheory.hardware.flat_model import FlatModel

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs, targets) to one loss a sample."""

Way = Literal["auto", "closed form", "vmap", "one by one"]
WAYS = ("auto", "closed form", "vmap", "one by one")


class BatchLosses(Protocol):
    """What local SGD asks of a model and its loss."""

    def losses(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return each row's loss, (rows,)."""
        ...

    def gradients(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of each row's loss in its own model, (rows, dim)."""
        ...


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each sample, for logits (n, classes) and labels (n,)."""
    return functional.cross_entropy(outputs, targets, reduction="none")


class Vmapped:
    """All rows in one call, by `torch.func.vmap`."""

    def __init__(self, model: FlatModel, loss: Loss) -> None:
        of_one = _loss_of_one(model, loss)
        self.losses: Callable[..., Tensor] = vmap(of_one)
        self.gradients: Callable[..., Tensor] = vmap(grad(of_one))


class OneByOne:
    """One row after another, for models whose layers do not batch well over parameters."""

    def __init__(self, model: FlatModel, loss: Loss) -> None:
        self._loss = _loss_of_one(model, loss)
        self._gradient = grad(self._loss)

    def losses(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return each row's loss, (rows,)."""
        rows = zip(y, inputs, targets, weights, strict=True)
        return torch.stack([self._loss(*row) for row in rows])

    def gradients(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of each row's loss in its own model, (rows, dim)."""
        rows = zip(y, inputs, targets, weights, strict=True)
        return torch.stack([self._gradient(*row) for row in rows])


class LinearSoftmax:
    """Cross-entropy of one linear layer: its gradient written down, as batched products.

    With ``p`` the softmax of the logits, a sample's gradient is ``(p - onehot) x'`` in the
    matrix and ``p - onehot`` in the bias.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self._shape = (layer.out_features, layer.in_features)
        self._has_bias = layer.bias is not None

    def losses(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return each row's loss, (rows,)."""
        logits = self._logits(y, inputs.flatten(2))
        label = torch.gather(logits, 1, targets.unsqueeze(1)).squeeze(1)
        return ((torch.logsumexp(logits, 1) - label) * weights).sum(1)

    def gradients(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of each row's loss in its own model, (rows, dim)."""
        samples = inputs.flatten(2)
        pull = torch.softmax(self._logits(y, samples), 1)
        pull.scatter_add_(1, targets.unsqueeze(1), -torch.ones_like(pull[:, :1]))
        pull *= weights.unsqueeze(1)
        matrix = torch.bmm(pull, samples).flatten(1)
        return torch.cat([matrix, pull.sum(2)], 1) if self._has_bias else matrix

    def _logits(self, y: Tensor, samples: Tensor) -> Tensor:
        """Return (rows, classes, width): few classes come last at several times the cost."""
        classes, features = self._shape
        matrix = y[:, : classes * features].view(-1, classes, features)
        logits = torch.bmm(matrix, samples.transpose(1, 2))
        return logits + y[:, classes * features :, None] if self._has_bias else logits


def batch_losses(
    model: FlatModel, loss: Loss, *, way: Way = "auto", on_gpu: bool = False, compiled: bool = False
) -> BatchLosses:
    """Return how losses and gradients of several models are computed.

    Parameters
    ----------
    model : FlatModel
    loss : callable
        (outputs, targets) to one loss a sample.
    way : {"auto", "closed form", "vmap", "one by one"}
        By default the closed form for a linear layer under `cross_entropy`, and vmap for the
        rest; but one by one for convolutions on a CPU, where that is as fast or faster.
    on_gpu : bool
        Where it will run, for the choice.
    compiled : bool
        Whether to compile the gradients of all rows, by `torch.compile`.

    Raises
    ------
    ValueError
        For an unknown ``way``, or a closed form asked for where there is none.
    """
    validation.one_of("way", way, WAYS)
    layer = _only_layer(model.module) if loss is cross_entropy else None
    if way == "closed form" and layer is None:
        raise ValueError(
            "way must not be 'closed form' except for one linear layer with cross_entropy, got "
            f"{type(model.module).__name__}"
        )
    chosen: BatchLosses
    if layer is not None and way in ("auto", "closed form"):
        chosen = LinearSoftmax(layer)
    elif way == "one by one" or (way == "auto" and not on_gpu and _has_convolutions(model.module)):
        chosen = OneByOne(model, loss)
    else:
        chosen = Vmapped(model, loss)
    return _Compiled(chosen) if compiled else chosen


class _Compiled:
    def __init__(self, plain: BatchLosses) -> None:
        self.losses: Callable[..., Tensor] = plain.losses
        self.gradients: Callable[..., Tensor] = torch.compile(plain.gradients)


def _loss_of_one(model: FlatModel, loss: Loss) -> Callable[..., Tensor]:
    def of_one(flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        return (loss(model(flat, inputs), targets) * weights).sum()

    return of_one


def _only_layer(module: nn.Module) -> nn.Linear | None:
    """Return the module's linear layer if it has no other, and does nothing but flatten."""
    parts = [part for part in module.modules() if not isinstance(part, nn.Sequential)]
    layers = [part for part in parts if not isinstance(part, nn.Flatten | nn.Identity)]
    if not isinstance(module, nn.Sequential | nn.Linear) or len(layers) != 1:
        return None
    return layers[0] if isinstance(layers[0], nn.Linear) else None


def _has_convolutions(module: nn.Module) -> bool:
    return any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules())
