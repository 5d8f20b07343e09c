"""Test accuracy along a run, and the figures that papers report of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fltheory.hardware.gradients import FlatModel, cross_entropy
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_CHUNK = 1000


@dataclass(frozen=True, eq=False)
class Curve(ReadOnlyArrays):
    """What was measured on the test images.

    Attributes
    ----------
    rounds : array of int, (n,)
        After how many rounds; the first, 0, is the model before training.
    accuracy : array, (n,)
        In percent.
    loss : array, (n,)
        Mean cross-entropy.
    """

    rounds: FloatArray
    accuracy: FloatArray
    loss: FloatArray

    def at(self, rounds: Sequence[int] | None) -> Curve:
        """Return what was measured after these rounds; None for all but before training.

        Raises
        ------
        ValueError
            If one of them was not measured.
        """
        if rounds is None:
            chosen = np.flatnonzero(self.rounds > 0)
        else:
            missing = [number for number in rounds if number not in self.rounds]
            if missing:
                raise ValueError(f"rounds must have been measured, got {missing[0]}, which was not")
            chosen = np.flatnonzero(np.isin(self.rounds, rounds))
        return Curve(self.rounds[chosen], self.accuracy[chosen], self.loss[chosen])


def evaluated(model: FlatModel, x: Tensor, inputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return accuracy in percent and mean loss of a model, (dim,), on test images."""
    right = torch.zeros((), dtype=torch.long, device=x.device)
    loss = torch.zeros((), dtype=torch.float64, device=x.device)
    with torch.no_grad():
        for first in range(0, len(labels), _CHUNK):
            target = labels[first : first + _CHUNK]
            outputs = model(x, inputs[first : first + _CHUNK])
            right += (outputs.argmax(1) == target).sum()
            loss += cross_entropy(outputs, target).sum()
    return 100 * right.item() / len(labels), loss.item() / len(labels)


def _late(curve: Curve) -> FloatArray:
    """Return the accuracies of the second half of the rounds."""
    return curve.accuracy[curve.rounds > curve.rounds[-1] / 2]


FIGURES: dict[str, Callable[[Curve], float]] = {
    "last": lambda curve: float(curve.accuracy[-1]),
    "best": lambda curve: float(curve.accuracy.max()),
    "late": lambda curve: float(_late(curve).mean()),
    "time-average": lambda curve: float(curve.accuracy.mean()),
    "deviation": lambda curve: float(np.std(_late(curve))),
    "last loss": lambda curve: float(curve.loss[-1]),
}
"""Figures of a run: test accuracy after the last round, the highest, its mean and standard
deviation over the second half of the rounds, its mean over all; and the last test loss."""
