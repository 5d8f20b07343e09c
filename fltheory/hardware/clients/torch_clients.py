"""Clients that train any torch module on their own samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.hardware.clients.batches import Batches, LocalTraining, Pools, ServerData
from fltheory.hardware.clients.sampled_losses import SampledLosses
from fltheory.hardware.gradients import FlatModel, Loss, Way, batch_losses, cross_entropy

_CHUNK = 2048


class TorchClients:
    """The Clients interface for a module, a loss and samples divided among clients.

    Models are flat vectors of the module's parameters. The participants of a round take their
    local steps together, each from its own batches.

    Parameters
    ----------
    module : torch.nn.Module
        The module, which is moved to the device of the samples.
    inputs, targets : Tensor, (n, ...)
        All samples, on the device on which everything runs.
    parts : sequence of integer arrays
        Indices of each client's samples.
    loss : callable
        Maps (outputs, targets) to one loss per sample.
    training : LocalTraining
    server : ServerData, optional
        Needed by algorithms that ask for the server's gradient.
    seed : int
        Seed of the batches.
    way : {"auto", "closed form", "vmap", "one by one"}
        How the gradients of several models are computed.
    compiled : bool
        Whether to compile the gradients with `torch.compile`, which is worthwhile for long runs of
        small models that have no closed form.

    Raises
    ------
    ValueError
        If the arguments do not match one another.

    Notes
    -----
    On a GPU, rounds copy nothing to or from the host if `expect` has been called with the largest
    number of participants. Otherwise, each round reads from the device who takes part.

    Examples
    --------
    Two clients with three samples each; a round of FedAvg works as on any backend:

    >>> import torch
    >>> from fltheory.algorithms import FedAvg
    >>> images, labels = torch.zeros(6, 4), torch.tensor([0, 1, 0, 1, 0, 1])
    >>> clients = TorchClients(torch.nn.Linear(4, 2), images, labels, [[0, 1, 2], [3, 4, 5]])
    >>> fedavg, model = FedAvg(client_lr=0.1, local_steps=2), clients.model.initial[None]
    >>> state = fedavg.init(model, clients.n_clients)
    >>> fedavg.round(state, clients, torch.tensor([[True, False]]), "clients")["x"].shape
    torch.Size([1, 10])
    """

    @checks_kinds
    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        parts: Sequence[NDArray[np.integer]],
        *,
        loss: Loss = cross_entropy,
        training: LocalTraining | None = None,
        server: ServerData | None = None,
        seed: int = 0,
        way: Way = "auto",
        compiled: bool = False,
    ) -> None:
        if len(inputs) != len(targets) or inputs.device != targets.device:
            raise ValueError(
                "inputs and targets must be equally many and on one device, got "
                f"{len(inputs)} on {inputs.device} and {len(targets)} on {targets.device}"
            )
        device = inputs.device
        self.model = FlatModel(module.to(device))
        self._training = training or LocalTraining()
        self._n_clients = len(parts)
        self._server = server
        dtype = self.model.initial.dtype
        self.pools = Pools(parts, len(inputs), device=device, dtype=dtype)
        self._server_pool = self.pools
        if server is not None:
            self._server_pool = Pools([server.places], len(inputs), device=device, dtype=dtype)
        on_gpu = device.type != "cpu"
        losses = batch_losses(self.model, loss, way=way, on_gpu=on_gpu, compiled=compiled)
        self.inputs, self.targets = inputs, targets
        self._losses = SampledLosses(losses, inputs, targets)
        self._generator = torch.Generator(device)
        self._generator.manual_seed(validation.seed_number("seed", seed))
        self._most: int | None = None

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._n_clients

    @property
    def randomness(self) -> Tensor:
        """The state of the generator that draws batches, for resuming."""
        return self._generator.get_state()

    @randomness.setter
    def randomness(self, state: Tensor) -> None:
        self._generator.set_state(state)

    def expect(self, most: int | None) -> None:
        """Announce the largest number of clients that may take part in a coming round, per replica.

        The participants are then found without reading from the device. With None, they are
        counted.
        """
        self._most = most

    def local_sgd(
        self,
        x: Tensor,
        who: Tensor,
        *,
        steps: int,
        lr: float,
        correction: Tensor | None = None,
        proximal: float = 0,
    ) -> Tensor:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        rows, clients, change = self._changes(
            x, who, steps=steps, lr=lr, correction=correction, proximal=proximal
        )
        changes = torch.zeros((*who.shape, x.shape[1]), dtype=x.dtype, device=x.device)
        changes[rows, clients] = change
        return changes

    def summed_local_sgd(self, x: Tensor, who: Tensor, weights: Tensor, **steps: Any) -> Tensor:
        """Return the weighted sum of the participants' changes, (replicas, dim)."""
        rows, clients, change = self._changes(x, who, **steps)
        replicas = torch.arange(len(x), device=x.device)[:, None]
        return torch.where(rows == replicas, weights[rows, clients], 0.0) @ change

    def loss(self, x: Tensor, who: Tensor) -> Tensor:
        """Return each client's loss at its replica's model, zero where absent.

        The loss includes the penalty. It is computed on all of the client's samples, or on a batch
        if `LocalTraining` sets a size for it.
        """
        rows, clients, present = self._participants(who)
        losses = torch.zeros(who.shape, dtype=x.dtype, device=x.device)
        if clients.numel():
            size = self._training.loss_batch_size
            losses[rows, clients] = present * self._reported(x[rows], clients, size)
        return losses

    def client_losses(self, x: Tensor) -> Tensor:
        """Return every client's loss on all of its samples, (replicas, n_clients)."""
        rows, clients = self._everybody(x)
        return self._reported(x[rows], clients, None).reshape(len(x), -1)

    def client_gradients(self, x: Tensor) -> Tensor:
        """Return every client's gradient on all its samples, (replicas, n_clients, dim)."""
        rows, clients = self._everybody(x)
        y = x[rows]
        total = self._training.weight_decay * y
        for part in self._stretches(clients):
            total = total + self._losses.gradients(y, part)
        return total.reshape(len(x), self._n_clients, -1)

    def server_gradient(self, x: Tensor) -> Tensor:
        """Return the gradient on a batch of the server's samples, or the sum over all its steps."""
        if self._server is None:
            raise ValueError("server must be given for an algorithm that uses its data, got none")
        steps, its = self._server.steps, torch.zeros(len(x), dtype=torch.long, device=x.device)
        batches = self._draw(self._server_pool, its, steps, self._server.batch_size)
        decay = self._training.weight_decay
        if steps == 1:
            gradients = self._losses.gradients(x, batches)
            return gradients + decay * x if decay else gradients
        lr = validation.positive("server lr", self._server.lr or 0.0)
        return (x - self._losses.descend(x, batches, lr, decay=decay)) / lr

    def _changes(
        self,
        x: Tensor,
        who: Tensor,
        *,
        steps: int,
        lr: float,
        correction: Tensor | None = None,
        proximal: float = 0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the participants, as (rows, clients), and their changes, (participants, dim)."""
        rows, clients, present = self._participants(who)
        start = x[rows]
        if not clients.numel():
            return rows, clients, torch.zeros_like(start)
        push = None if correction is None else correction[rows, clients]
        own = self._training
        batches = self._draw(self.pools, clients, steps, own.batch_size, own.epochs)
        end = self._losses.descend(
            start, batches, lr, decay=own.weight_decay, push=push, proximal=proximal
        )
        return rows, clients, (end - start) * present[:, None]

    def _participants(self, who: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows and clients that may take part, and an array with 1 for those that do."""
        if self._most is None:
            rows, clients = torch.nonzero(who, as_tuple=True)
        else:
            first = torch.argsort(who.to(torch.uint8), dim=1, descending=True, stable=True)
            clients = first[:, : self._most].reshape(-1)
            replicas = torch.arange(len(who), device=who.device)
            rows = replicas[:, None].expand(-1, self._most).reshape(-1)
        return rows, clients, who[rows, clients].to(self.pools.dtype)

    def _everybody(self, x: Tensor) -> tuple[Tensor, Tensor]:
        replicas = torch.arange(len(x), device=x.device)
        clients = torch.arange(self._n_clients, device=x.device)
        rows, columns = torch.meshgrid(replicas, clients, indexing="ij")
        return rows.reshape(-1), columns.reshape(-1)

    def _draw(
        self,
        pools: Pools,
        clients: Tensor,
        steps: int,
        batch_size: int | None,
        epochs: int | None = None,
    ) -> Batches:
        return pools.drawn(
            clients,
            steps,
            batch_size=batch_size,
            sampling=self._training.sampling,
            epochs=epochs,
            generator=self._generator,
        )

    def _reported(self, y: Tensor, clients: Tensor, batch_size: int | None) -> Tensor:
        losses = 0.5 * self._training.weight_decay * torch.square(y).sum(1)
        if batch_size is not None:
            batch = self._draw(self.pools, clients, 1, batch_size)
            return losses + self._losses.losses(y, batch)
        for part in self._stretches(clients):
            losses = losses + self._losses.losses(y, part)
        return losses

    def _stretches(self, clients: Tensor) -> Iterator[Batches]:
        """Yield batches that cover all samples of clients, to keep memory small."""
        most = max(self.pools.host_sizes)
        for first in range(0, most, _CHUNK):
            yield self.pools.whole(clients, first, min(first + _CHUNK, most))
