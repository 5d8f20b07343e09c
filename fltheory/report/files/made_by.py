"""What made a table of verdicts: versions, seed, and the error probability of the whole."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from fltheory import __version__
from fltheory.verify.runs import FAMILY_ERROR_PROBABILITY

_PACKAGES = ("numpy", "scipy", "sympy")


@dataclass(frozen=True)
class MadeBy:
    """How verdicts were made.

    Attributes
    ----------
    seed, replicas : int
        Of what was sampled.
    family_error_probability : float
        That any sampled interval of the whole table misses.
    """

    seed: int = 0
    replicas: int = 2000
    family_error_probability: float = FAMILY_ERROR_PROBABILITY

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of this package, of Python, and of the packages that compute."""
        return {
            "fltheory": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        }

    def as_dict(self) -> dict[str, str | int | float]:
        """Return all of it, versions first."""
        return {
            **self.versions,
            "seed": self.seed,
            "replicas": self.replicas,
            "family_error_probability": self.family_error_probability,
        }
