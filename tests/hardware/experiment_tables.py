"""A small experiment on the bundled digits, as its file would say."""

from __future__ import annotations

import copy
from typing import Any

TABLES: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"name": "logistic"},
    "partition": {"kind": "classes", "n_clients": 5, "classes_per_client": 2},
    "participation": {"kind": "uniform", "size": 2, "excluded": 1},
    "algorithm": {"name": "SAFARI", "q": 0.3},
    "training": {
        "rounds": 4,
        "client_lr": 0.01,
        "local_steps": 3,
        "batch_size": 8,
        "sampling": "replacement",
        "weight_decay": 0.5,
    },
    "server": {"samples": 1442, "lr": 0.05, "batch_size": 16, "steps": 1},
}


def tables(**changes: dict[str, Any]) -> dict[str, Any]:
    """Return the tables with some entries changed; None leaves an entry out."""
    found = copy.deepcopy(TABLES)
    for name, entries in changes.items():
        found[name] = {k: v for k, v in (found[name] | entries).items() if v is not None}
    return found
