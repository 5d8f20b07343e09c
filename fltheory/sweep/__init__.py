"""Sweeps: statements over grids and random draws of settings, saved row by row in a store."""

from fltheory.sweep.design import read_sweep
from fltheory.sweep.running import sweep
from fltheory.sweep.store import Store
from fltheory.sweep.table import read_results

__all__ = [
    "Store",
    "read_results",
    "read_sweep",
    "sweep",
]
