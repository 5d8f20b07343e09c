"""Clients of `fltheory.testing.check_algorithm` for implementations that train torch modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.clients.analytic_clients import LossClient


def module_at(x: Any) -> nn.Module:
    """Return a float64 module whose parameters are the entries of ``x`` (d,): a linear layer.

    Raises
    ------
    ValueError
        For what is no such array.

    Examples
    --------
    >>> [tuple(one.shape) for one in module_at([1.0, 2.0]).parameters()]
    [(1, 2)]
    """
    point = validation.real_array("x", x, shape="(d,)")
    if point.ndim != 1:
        raise ValueError(f"x must have shape (d,), got {point.shape}")
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
        What ``run`` is given: ``gradient(x)`` and ``loss(x)``.
    module : torch.nn.Module
        With as many parameters as the client's model has entries.

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
