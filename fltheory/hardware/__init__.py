"""The torch backend, which runs the same algorithm objects on torch tensors.

Data sets and partitions are NumPy arrays and do not need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fltheory.hardware.clients.batches import LocalTraining, ServerData
    from fltheory.hardware.clients.single_client import client_loss, module_at
    from fltheory.hardware.clients.torch_clients import TorchClients
    from fltheory.hardware.gradients import write_gradients

__all__ = [
    "LocalTraining",
    "ServerData",
    "TorchClients",
    "client_loss",
    "module_at",
    "write_gradients",
]

_HOMES = {
    "LocalTraining": "clients.batches",
    "ServerData": "clients.batches",
    "TorchClients": "clients.torch_clients",
    "client_loss": "clients.single_client",
    "module_at": "clients.single_client",
    "write_gradients": "gradients",
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
