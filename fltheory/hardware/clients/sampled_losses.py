"""Losses of several models on batches of the data, and local SGD on them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from fltheory.hardware.clients.batches import Batches
from fltheory.hardware.gradients import BatchLosses, Descent, Parts

_FETCHED_BYTES = 2**22


class SampledLosses:
    """Losses of models, one per row, on samples given by their indices in the data.

    Parameters
    ----------
    of_batches : BatchLosses
    inputs, targets : Tensor, (n, ...)
        All samples.
    """

    def __init__(self, of_batches: BatchLosses, inputs: Tensor, targets: Tensor) -> None:
        self._of_batches = of_batches
        self._inputs, self._targets = inputs, targets

    def losses(self, y: Tensor, batches: Batches) -> Tensor:
        """Return each row's loss on the first step's batch, (rows,)."""
        return self._of_batches.losses(y, *self._first(batches))

    def gradients(self, y: Tensor, batches: Batches) -> Tensor:
        """Return each row's gradient on the first step's batch, (rows, dim)."""
        return self._of_batches.gradients(y, *self._first(batches))

    def descend(
        self,
        start: Tensor,
        batches: Batches,
        lr: float,
        *,
        decay: float = 0.0,
        push: Tensor | None = None,
        proximal: float = 0,
    ) -> Tensor:
        """Return the models (rows, dim) after SGD from ``start`` on all steps of ``batches``.

        Every gradient is the gradient of the loss, plus ``decay`` times the model, plus ``push``,
        plus ``proximal`` times the displacement from ``start``.
        """
        # Together, the two pulls are (decay + proximal) y plus the constant -proximal start.
        decay = decay + proximal
        if proximal:
            push = -proximal * start if push is None else push - proximal * start
        parts = self._of_batches.split(start)
        pushes = None if push is None else self._of_batches.split(push)
        for takes, descend in self._descents(parts, batches, lr):
            pulls = _pulls(parts, decay, pushes)
            descend()
            if pulls is None:
                continue
            for part, pull in zip(parts, pulls, strict=True):
                part.sub_(takes.view(-1, *(1,) * (pull.ndim - 1)) * pull, alpha=lr)
        return self._of_batches.joined(parts)

    def _descents(
        self, parts: Parts, batches: Batches, lr: float
    ) -> Iterator[tuple[Tensor, Descent]]:
        """Yield, for each step, the mask of rows that take it, and the descent on the losses.

        Samples are fetched for several steps at once into the same memory, because fresh memory for
        every step costs more than the copying.
        """
        steps, *shape = batches.samples.shape
        samples_a_step = batches.samples[0].numel()
        stretch = max(1, _FETCHED_BYTES // (samples_a_step * self._inputs[0].nbytes))
        room = min(steps, stretch) * samples_a_step
        fetched = self._inputs.new_empty((room, *self._inputs.shape[1:]))
        for first in range(0, steps, stretch):
            now = slice(first, first + stretch)
            places = batches.samples[now].reshape(-1)
            taken = torch.index_select(self._inputs, 0, places, out=fetched[: len(places)])
            inputs = taken.view(-1, *shape, *self._inputs.shape[1:])
            targets = self._targets[batches.samples[now]]
            descents = self._of_batches.descents(parts, inputs, targets, batches.weights[now], lr)
            yield from zip(batches.takes[now], descents, strict=True)

    def _first(self, batches: Batches) -> tuple[Tensor, Tensor, Tensor]:
        samples = batches.samples[0]
        # This is several times as fast as indexing with samples, which has two axes.
        taken = self._inputs.index_select(0, samples.reshape(-1))
        inputs = taken.view(*samples.shape, *self._inputs.shape[1:])
        return inputs, self._targets[samples], batches.weights[0]


def _pulls(parts: Parts, decay: float, pushes: Parts | None) -> Parts | None:
    """Return the terms added to the gradients of the losses, or None if there are none."""
    if not decay:
        return pushes
    if pushes is None:
        return tuple(decay * part for part in parts)
    return tuple(decay * part + push for part, push in zip(parts, pushes, strict=True))
