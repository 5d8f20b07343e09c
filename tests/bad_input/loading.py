"""Everything loaded once, before processes are forked for the cases."""

from __future__ import annotations

import os
import pkgutil
from importlib import import_module

# Threads do not survive a fork.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ |= {"FLTHEORY_PROGRESS": "off", "COLUMNS": "200", "NO_COLOR": "1"}

# What needs an extra, or pytest, that may not be installed.
_OPTIONAL = (
    "fltheory.flower",
    "fltheory.hardware",
    "fltheory.testing.pytest_plugin",
)


def load_everything() -> None:
    """Import every module of the package, and what its functions import when they are called."""
    import fltheory

    for module in pkgutil.walk_packages(fltheory.__path__, "fltheory.", onerror=lambda _: None):
        if module.name.endswith(".__main__") or module.name.startswith(_OPTIONAL[:1]):
            continue
        try:
            import_module(module.name)
        except ImportError:
            if not module.name.startswith(_OPTIONAL):
                raise
    for name in ("matplotlib.backends.backend_svg", "rich.table", "pyarrow.parquet"):
        try:
            import_module(name)
        except ImportError:
            continue
