"""Experiments as TOML files: what is trained on which images, and the paper's table beside it."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fltheory.hardware.training needs torch, an optional extra: pip install 'fltheory[torch]'"
    ) from error

from fltheory.hardware.training.measure import Measured, measure
from fltheory.hardware.training.prepared import Prepared, prepared
from fltheory.hardware.training.run import Finished, train
from fltheory.hardware.training.settings import RunSettings, run_settings
from fltheory.hardware.training.table import Cell, Experiment, experiment, read_experiment

__all__ = [
    "Cell",
    "Experiment",
    "Finished",
    "Measured",
    "Prepared",
    "RunSettings",
    "experiment",
    "measure",
    "prepared",
    "read_experiment",
    "run_settings",
    "train",
]
