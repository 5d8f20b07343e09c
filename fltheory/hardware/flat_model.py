"""A torch module as a function of one flat parameter vector."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd


class FlatModel:
    """A module whose parameters, in their order, are the entries of a vector of length ``dim``.

    Buffers stay as they are. Modules with memory or randomness of their own are refused: batch
    norm, whose statistics no algorithm here averages, and dropout, whose draws a resumed run
    would not repeat.

    Parameters
    ----------
    module : torch.nn.Module
        With parameters of one floating dtype, on one device.

    Raises
    ------
    ValueError
        For a module without parameters, with parameters of several dtypes, with batch norm or
        with dropout.

    Examples
    --------
    >>> model = FlatModel(nn.Linear(2, 1))
    >>> model.dim
    3
    >>> model(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[1.0, 1.0]])).tolist()
    [[6.0]]
    """

    def __init__(self, module: nn.Module) -> None:
        parameters = dict(module.named_parameters())
        if not parameters:
            raise ValueError(f"module must have parameters, got {type(module).__name__} with none")
        kinds = {parameter.dtype for parameter in parameters.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"module must have parameters of one dtype, got {sorted(map(str, kinds))}"
            )
        for part in module.modules():
            if isinstance(part, _BatchNorm | _DropoutNd):
                raise ValueError(
                    f"module must have neither batch norm nor dropout, got {type(part).__name__}"
                )
        self.module = module
        self._shapes = {name: parameter.shape for name, parameter in parameters.items()}
        self._sizes = [prod(shape) for shape in self._shapes.values()]

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return sum(self._sizes)

    @property
    def initial(self) -> Tensor:
        """(dim,) the module's own parameters, copied."""
        parameters = self.module.parameters()
        return torch.cat([parameter.detach().reshape(-1) for parameter in parameters])

    def __call__(self, flat: Tensor, inputs: Tensor) -> Tensor:
        """Return the module's outputs for ``inputs`` with the parameters ``flat``, (dim,)."""
        parts = torch.split(flat, self._sizes)
        parameters = {
            name: part.view(shape)
            for part, (name, shape) in zip(parts, self._shapes.items(), strict=True)
        }
        return functional_call(self.module, parameters, (inputs,))
