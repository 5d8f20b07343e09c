"""What made a table of verdicts."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sympy as sp

from fltheory import __version__
from fltheory.report.verdict_file import MadeBy


def test_it_names_versions_then_seed_and_sampling() -> None:
    assert MadeBy(3, 50, 1e-6).as_dict() == {
        "fltheory": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sympy": sp.__version__,
        "seed": 3,
        "replicas": 50,
        "family_error_probability": 1e-6,
    }
