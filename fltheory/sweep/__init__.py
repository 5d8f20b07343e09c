"""Sweeps: statements over grids and random draws of settings, row by row into a store."""

from fltheory.sweep.design import Design, read_sweep
from fltheory.sweep.running import SweepRun, sweep
from fltheory.sweep.store import Store, StoreError
from fltheory.sweep.table import read_results, write_results

__all__ = [
    "Design",
    "Store",
    "StoreError",
    "SweepRun",
    "read_results",
    "read_sweep",
    "sweep",
    "write_results",
]
