"""The torch backend: the same algorithm objects, unchanged, on torch tensors."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fltheory.hardware needs torch, an optional extra: pip install 'fltheory[torch]'"
    ) from error

from fltheory.hardware.torch_clients import LocalTraining, ServerData, TorchClients
from fltheory.hardware.torch_quadratic_clients import TorchQuadraticClients
from fltheory.hardware.torch_runs import run_on_torch

__all__ = ["LocalTraining", "ServerData", "TorchClients", "TorchQuadraticClients", "run_on_torch"]
