"""How clients and the server train on samples of their own."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.hardware.clients.batches import SAMPLINGS, Sampling, checked_batch_size
from fltheory.read_only import ReadOnlyArrays


@dataclass(frozen=True)
class LocalTraining:
    """How a client's SGD draws its batches, and what is added to its loss.

    Parameters
    ----------
    batch_size : int, optional
        B; by default all samples in every step, and nothing is random.
    sampling : {"shuffle", "replacement"}
        Passes over the samples in random orders, or every sample drawn anew; the latter makes
        gradients of different steps independent, as theorems assume.
    epochs : int, optional
        A client stops after so many passes over its samples, where ``steps`` goes on longer.
    weight_decay : float
        Adds ``weight_decay / 2 |x|^2`` to every loss, the server's too.
    loss_batch_size : int, optional
        Samples on which a client reports its loss; by default all.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> LocalTraining(32, epochs=1).sampling
    'shuffle'
    """

    batch_size: int | None = None
    _: KW_ONLY
    sampling: Sampling = "shuffle"
    epochs: int | None = None
    weight_decay: float = 0.0
    loss_batch_size: int | None = None

    def __post_init__(self) -> None:
        checked_batch_size("batch_size", self.batch_size)
        checked_batch_size("loss_batch_size", self.loss_batch_size)
        validation.one_of("sampling", self.sampling, SAMPLINGS)
        if self.epochs is not None:
            validation.whole_number("epochs", self.epochs, at_least=1)
        validation.nonnegative("weight_decay", self.weight_decay)


@dataclass(frozen=True, eq=False)
class ServerData(ReadOnlyArrays):
    """The server's own samples, and what one round of its own does with them.

    Parameters
    ----------
    places : integer array
        The places of its samples in the data.
    batch_size : int, optional
        By default all samples are one batch.
    steps : int
        SGD steps in one round of the server. More than one are taken with step size ``lr``,
        and their gradients are summed: an algorithm whose server step has the same size then
        takes those steps.
    lr : float, optional
        Needed for more than one step.

    Raises
    ------
    ValueError
        If a number is out of range, or ``lr`` is missing for more than one step.

    Examples
    --------
    >>> ServerData(np.arange(100), batch_size=20, steps=5, lr=0.1).steps
    5
    """

    places: NDArray[np.integer]
    _: KW_ONLY
    batch_size: int | None = None
    steps: int = 1
    lr: float | None = None

    def __post_init__(self) -> None:
        checked_batch_size("server batch_size", self.batch_size)
        validation.whole_number("server steps", self.steps, at_least=1)
        if self.lr is not None:
            validation.positive("server lr", self.lr)
        elif self.steps > 1:
            raise ValueError(f"server lr must be given for {self.steps} steps per round, got none")
