"""A single client that trains a torch module, for code that calls clients one by one.

`SingleClient` takes NumPy vectors and runs on the device of its data. With `client_loss`,
implementations that train torch modules can use the clients of `fltheory.testing.check_algorithm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.clients.analytic_clients import LossClient
from fltheory.hardware.clients.batches import LocalTraining
from fltheory.hardware.clients.torch_clients import TorchClients
from fltheory.hardware.gradients import Loss, cross_entropy
from fltheory.validation import FloatArray


class SingleClient:
    """`TorchClients` with one client, running on the device of its data.

    Models are vectors of the module's parameters, in their order and with their dtype.

    Parameters
    ----------
    module : torch.nn.Module
    inputs, targets : Tensor, (n, ...)
        The client's own samples.
    training : LocalTraining, optional
        By default, all samples are used in every step.
    loss : callable
        Maps (outputs, targets) to one loss per sample.
    seed : int
        Seed of the batches, together with the ``draw`` of each call.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        *,
        training: LocalTraining | None = None,
        loss: Loss = cross_entropy,
        seed: int = 0,
    ) -> None:
        self._seed = validation.seed_number("seed", seed)
        everything = [np.arange(len(inputs))]
        self._clients = TorchClients(
            module, inputs, targets, everything, loss=loss, training=training
        )
        self._who = torch.ones((1, 1), dtype=torch.bool, device=inputs.device)

    @property
    def n_samples(self) -> int:
        """Number of samples that the client holds."""
        return len(self._clients.inputs)

    def local_sgd(
        self,
        x: FloatArray,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
        draw: Sequence[int] = (),
    ) -> FloatArray:
        """Return the model after ``steps`` steps of SGD from ``x``, both (dim,).

        ``correction`` and ``proximal (y - x)`` are added to every gradient. Equal values of
        ``draw`` give equal batches.
        """
        start = self._begun(x, draw)
        push = None if correction is None else self._tensor(correction)[:, None]
        change = self._clients.local_sgd(
            start, self._who, steps=steps, lr=lr, correction=push, proximal=proximal
        )
        return self._array(start + change[:, 0])

    def loss(self, x: FloatArray, draw: Sequence[int] = ()) -> float:
        """Return the loss at ``x``, on all samples or, if ``training`` sets a size, on a batch."""
        return float(self._clients.loss(self._begun(x, draw), self._who))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient at ``x`` on all samples, (dim,)."""
        return self._array(self._clients.client_gradients(self._tensor(x))[:, 0])

    def _begun(self, x: FloatArray, draw: Sequence[int]) -> Tensor:
        """Seed the generator of batches for a draw, and return the model as a tensor."""
        entropy = np.random.SeedSequence([self._seed, *draw]).generate_state(1, np.uint64)
        generator = torch.Generator(self._who.device)
        generator.manual_seed(int(entropy[0] >> np.uint64(1)))
        self._clients.randomness = generator.get_state()
        return self._tensor(x)

    def _tensor(self, vector: FloatArray) -> Tensor:
        initial = self._clients.model.initial
        return torch.tensor(vector, dtype=initial.dtype, device=initial.device)[None]

    @staticmethod
    def _array(row: Tensor) -> FloatArray:
        return np.asarray(row[0].cpu().numpy())


def module_at(x: Any) -> nn.Module:
    """Return a float64 module whose parameters are the entries of ``x`` (d,): a linear layer.

    Raises
    ------
    ValueError
        If ``x`` is not such an array.

    Examples
    --------
    >>> [tuple(one.shape) for one in module_at([1.0, 2.0]).parameters()]
    [(1, 2)]
    """
    point = validation.array_of("x", x, "d")
    start = torch.tensor(point)
    module = nn.Linear(start.numel(), 1, bias=False, dtype=torch.float64)
    vector_to_parameters(start, module.parameters())
    return module


@checks_kinds
def client_loss(client: LossClient, module: nn.Module) -> Tensor:
    """Return a client's loss at a module's parameters; ``backward()`` gives its exact gradient.

    Parameters
    ----------
    client : LossClient
        A client as passed to ``run``, with ``gradient(x)`` and ``loss(x)``.
    module : torch.nn.Module
        A module with as many parameters as the client's model has entries.

    Examples
    --------
    >>> from fltheory.testing.conformance.case import QuadraticClient
    >>> module = module_at([3.0])
    >>> loss = client_loss(QuadraticClient(np.eye(1), np.array([1.0])), module)
    >>> loss.backward()
    >>> loss.item(), module.weight.grad.tolist()
    (2.0, [[2.0]])
    """
    flat = parameters_to_vector(module.parameters())
    x = flat.detach().cpu().numpy().astype(np.float64)
    slope = torch.as_tensor(np.array(client.gradient(x)), dtype=flat.dtype, device=flat.device)
    linear = slope @ flat
    return linear + (client.loss(x) - linear.detach())
