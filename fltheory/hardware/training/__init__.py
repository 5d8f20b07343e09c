"""Experiments as TOML files with training settings, images, and the paper's table."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fltheory.hardware.training needs torch, an optional extra: pip install 'fltheory[torch]'"
    ) from error

from fltheory.hardware.training.experiment import read_experiment
from fltheory.hardware.training.measure import measure

__all__ = ["measure", "read_experiment"]
