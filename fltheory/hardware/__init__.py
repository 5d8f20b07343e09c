"""The torch backend: the same algorithm objects, unchanged, on torch tensors.

Data sets and partitions are NumPy arrays and do not need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fltheory.hardware.client_losses import client_loss, flat_parameters, module_at
    from fltheory.hardware.gradient_file import write_gradients
    from fltheory.hardware.local_training import LocalTraining, ServerData
    from fltheory.hardware.torch_clients import TorchClients
    from fltheory.hardware.torch_quadratic_clients import TorchQuadraticClients
    from fltheory.hardware.torch_runs import run_on_torch

__all__ = [
    "LocalTraining",
    "ServerData",
    "TorchClients",
    "TorchQuadraticClients",
    "client_loss",
    "flat_parameters",
    "module_at",
    "run_on_torch",
    "write_gradients",
]

_HOMES = {
    "LocalTraining": "local_training",
    "ServerData": "local_training",
    "TorchClients": "torch_clients",
    "TorchQuadraticClients": "torch_quadratic_clients",
    "client_loss": "client_losses",
    "flat_parameters": "client_losses",
    "module_at": "client_losses",
    "run_on_torch": "torch_runs",
    "write_gradients": "gradient_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "fltheory.hardware needs torch, an optional extra: pip install 'fltheory[torch]'"
        ) from error
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
