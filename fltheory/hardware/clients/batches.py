"""Batches: the samples that a client uses in each step of local SGD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fltheory import validation
from fltheory.read_only import ReadOnlyArrays

Sampling = Literal["shuffle", "replacement"]
SAMPLINGS = ("shuffle", "replacement")

_NEVER = 2.0


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches of several clients in successive steps.

    Attributes
    ----------
    samples : Tensor of int, (steps, rows, width)
        Indices into the data.
    weights : Tensor, (steps, rows, width)
        One over the size of the batch, or 0 for padding and in steps that a client does not take.
    takes : Tensor, (steps, rows)
        1 where the client takes the step, 0 where it has stopped.
    """

    samples: Tensor
    weights: Tensor
    takes: Tensor


class Pools:
    """The samples of each client, and how batches are drawn from them.

    Parameters
    ----------
    parts : sequence of integer arrays
        Indices of each client's samples in the data; none may be empty.
    n_samples : int
        Number of samples in the data.
    device : torch.device
    dtype : torch.dtype
        Dtype of the weights.

    Raises
    ------
    ValueError
        If a client has no samples, or an index is outside the data. The message names it.
    """

    def __init__(
        self,
        parts: Sequence[NDArray[np.integer]],
        n_samples: int,
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        places = [np.asarray(part, dtype=np.int64).reshape(-1) for part in parts]
        for client, part in enumerate(places):
            if part.size == 0:
                raise ValueError(
                    f"parts must give every client at least one sample, got none for {client}"
                )
            if part.min() < 0 or part.max() >= n_samples:
                raise ValueError(
                    f"parts must hold indices of samples, 0 to {n_samples - 1}, got "
                    f"{part.max() if part.max() >= n_samples else part.min()} for client {client}"
                )
        sizes = np.array([part.size for part in places])
        self.host_sizes: tuple[int, ...] = tuple(sizes.tolist())
        self.dtype = dtype
        self.places = torch.tensor(np.concatenate(places), device=device)
        self.sizes = torch.tensor(sizes, device=device)
        self._starts = torch.tensor(np.cumsum(sizes) - sizes, device=device)

    def steps_of_epochs(self, epochs: int, batch_size: int | None) -> int:
        """Return the steps that the client with most samples needs for ``epochs`` passes."""
        size = max(self.host_sizes)
        return epochs * -(-size // (batch_size or size))

    def whole(self, clients: Tensor, first: int = 0, last: int | None = None) -> Batches:
        """Return one batch with all samples of each of ``clients``, (rows,), or a slice of it.

        With ``first`` and ``last``, the batch has only the samples from ``first`` up to but not
        including ``last``, with the weights that they have in the whole batch.
        """
        last = max(self.host_sizes) if last is None else last
        local = torch.arange(first, last, device=clients.device)
        sizes = self.sizes[clients][:, None]
        valid = local < sizes
        places = self._places(clients[None, :, None], torch.where(valid, local, 0)[None])
        weights = (valid.to(self.dtype) / sizes)[None]
        return Batches(places, weights, torch.ones_like(weights[:, :, 0]))

    def drawn(
        self,
        clients: Tensor,
        steps: int,
        *,
        batch_size: int | None,
        sampling: Sampling,
        epochs: int | None,
        generator: torch.Generator,
    ) -> Batches:
        """Draw the batches of ``steps`` successive steps for ``clients``, (rows,).

        With ``batch_size=None``, all samples are used in every step. ``"shuffle"`` passes over a
        client's samples repeatedly, each time in a new random order; the last batch of a pass may
        be smaller. ``"replacement"`` draws samples independently. If ``epochs`` is given, a client
        stops after that many passes.
        """
        step = torch.arange(steps, device=clients.device)
        sizes = self.sizes[clients]
        passes = -(-sizes // (batch_size or max(self.host_sizes)))
        takes = torch.ones(steps, clients.numel(), dtype=self.dtype, device=clients.device)
        if epochs is not None:
            takes = (step[:, None] < epochs * passes).to(self.dtype)
        if batch_size is None:
            whole = self.whole(clients)
            expanded = (steps, -1, -1)
            return Batches(
                whole.samples.expand(expanded),
                whole.weights.expand(expanded) * takes[:, :, None],
                takes,
            )
        if sampling == "replacement":
            shape = (steps, clients.numel(), batch_size)
            drawn = torch.rand(
                shape, generator=generator, device=clients.device, dtype=torch.float64
            )
            local = (drawn * sizes[:, None]).long()
            weights = takes[:, :, None].expand(shape) / batch_size
            return Batches(self._places(clients[None, :, None], local), weights, takes)
        return self._shuffled(clients, steps, batch_size, epochs, takes, generator)

    def _shuffled(
        self,
        clients: Tensor,
        steps: int,
        batch_size: int,
        epochs: int | None,
        takes: Tensor,
        generator: torch.Generator,
    ) -> Batches:
        sizes = self.sizes[clients]
        needed = -(-steps // -(-min(self.host_sizes) // batch_size))
        orders = self._orders(sizes, min(needed, epochs or needed), generator)
        step = torch.arange(steps, device=clients.device)[:, None]
        passes = -(-sizes // batch_size)
        begin = (step % passes) * batch_size
        place = begin[:, :, None] + torch.arange(batch_size, device=clients.device)
        valid = (place < sizes[:, None]) & (takes[:, :, None] > 0)
        row = torch.arange(clients.numel(), device=clients.device)[None, :, None]
        turn = torch.where(takes > 0, step // passes, 0)[:, :, None]
        local = orders[turn, row, torch.where(valid, place, 0)]
        held = torch.clamp(sizes - begin, max=batch_size)
        weights = valid.to(self.dtype) / held[:, :, None]
        return Batches(self._places(clients[None, :, None], local), weights, takes)

    def _orders(self, sizes: Tensor, passes: int, generator: torch.Generator) -> Tensor:
        """Return random orders of each row's samples, (passes, rows, most), padded at the end."""
        most = max(self.host_sizes)
        shape = (passes, sizes.numel(), most)
        if sizes.device.type == "cpu":
            # This is ten times as fast as sorting, but possible only if the sizes are known on the
            # host.
            orders = torch.zeros(shape, dtype=torch.long)
            for (turn, row), size in zip(
                product(range(passes), range(sizes.numel())), passes * sizes.tolist(), strict=True
            ):
                torch.randperm(size, generator=generator, out=orders[turn, row, :size])
            return orders
        keys = torch.rand(shape, generator=generator, device=sizes.device)
        absent = torch.arange(most, device=sizes.device) >= sizes[:, None]
        return torch.argsort(keys.masked_fill_(absent, _NEVER), dim=2, stable=True)

    def _places(self, clients: Tensor, local: Tensor) -> Tensor:
        return self.places[self._starts[clients] + local]


def checked_batch_size(name: str, batch_size: int | None) -> int | None:
    """Return a batch size of at least 1, or None for all samples."""
    return None if batch_size is None else validation.whole_number(name, batch_size, at_least=1)


@dataclass(frozen=True)
class LocalTraining:
    """How a client's SGD draws batches, and the penalty added to its loss.

    Parameters
    ----------
    batch_size : int, optional
        B; by default, every step uses all samples, and nothing is random.
    sampling : {"shuffle", "replacement"}
        Whether batches come from passes over the samples in random order or from independent draws.
        With replacement, gradients of different steps are independent, as theorems assume.
    epochs : int, optional
        A client stops after this many passes over its samples, even if ``steps`` is larger.
    weight_decay : float
        Adds ``weight_decay / 2 |x|^2`` to every loss, including the server's.
    loss_batch_size : int, optional
        Number of samples on which a client reports its loss; by default all.

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
    """The server's own samples, and how one server round uses them.

    Parameters
    ----------
    places : integer array
        Indices of the server's samples in the data.
    batch_size : int, optional
        By default, all samples form one batch.
    steps : int
        SGD steps in one round of the server. If there are several, they are taken with step size
        ``lr`` and their gradients are summed, so that an algorithm whose server step has size
        ``lr`` takes exactly these steps.
    lr : float, optional
        Step size; required for more than one step.

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
