"""The torch backend: the same algorithm objects, unchanged, on torch tensors.

Data sets and partitions are NumPy arrays and do not need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fltheory.hardware.client_losses import client_loss, module_at
    from fltheory.hardware.gradient_file import write_gradients
    from fltheory.hardware.local_training import LocalTraining, ServerData
    from fltheory.hardware.torch_clients import TorchClients

__all__ = [
    "LocalTraining",
    "ServerData",
    "TorchClients",
    "client_loss",
    "module_at",
    "write_gradients",
]

_HOMES = {
    "LocalTraining": "local_training",
    "ServerData": "local_training",
    "TorchClients": "torch_clients",
    "client_loss": "client_losses",
    "module_at": "client_losses",
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
