"""A small experiment on scikit-learn's digits, to be changed by tests."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

RUN: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"name": "logistic"},
    "partition": {"kind": "classes", "n_clients": 8, "classes_per_client": 5},
    "participation": {"kind": "uniform", "size": 4, "excluded": 2},
    "algorithm": {"name": "FedAvg"},
    "training": {"rounds": 6, "client_lr": 0.1, "local_epochs": 1, "batch_size": 32},
}
SERVER: dict[str, Any] = {"samples": 100, "lr": 0.1, "batch_size": 32, "steps": 2}
HEADING: dict[str, Any] = {
    "title": "FedAvg and SAFARI",
    "source": "Paper, Table 0",
    "seeds": [0, 1],
    "figure": "last",
    "columns": [
        {"label": "p = 5"},
        {"label": "p = 10", "set": {"partition": {"classes_per_client": 10}}},
    ],
    "rows": [
        {"label": "FedAvg", "paper": [50, "60.5 ± 1.0"]},
        {
            "label": "SAFARI",
            "set": {"algorithm": {"name": "SAFARI", "q": 0.5}, "server": SERVER},
            "less": {"algorithm": {"name": "FedAvg"}},
            "paper": [20, "-"],
        },
    ],
}
FOUR_CLASSES = {"kind": "four classes", "g": 0.4, "nu": 0.9, "epsilon": 0.01}


def run_table(**changes: Any) -> dict[str, Any]:
    """Return the run's tables, with keys of tables changed; None takes a table or key away."""
    table = deepcopy(RUN)
    for name, value in changes.items():
        if value is None:
            del table[name]
            continue
        part = value if name not in table or "kind" in value else {**table[name], **value}
        table[name] = {key: entry for key, entry in part.items() if entry is not None}
    return table


def document(**changes: Any) -> dict[str, Any]:
    """Return the whole document, with entries changed."""
    return deepcopy({**HEADING, **RUN, **changes})
