"""Papers' experiments, run again."""

from fltheory.experiments.ca_fed_synthetic import (
    CHOICES,
    METHODS,
    PAPER,
    Figures,
    Measured,
    Plan,
    instance,
    keys,
    measure,
    measure_all,
)

__all__ = [
    "CHOICES",
    "METHODS",
    "PAPER",
    "Figures",
    "Measured",
    "Plan",
    "instance",
    "keys",
    "measure",
    "measure_all",
]
