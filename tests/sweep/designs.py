"""A small sweep that tests start from."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import tomli_w

_SMALL: dict[str, Any] = {
    "statements": ["sa-fl/5"],
    "readings": ["printed", "derived"],
    "x0": 0.9,
    "problem": {
        "kind": "QuadraticProblem",
        "hessians": [[1.0]],
        "optima": [[-1.0], [1.0], [3.0]],
        "sigma": 0.5,
        "server_sigma": 0.1,
    },
    "algorithm": {
        "kind": "Safari",
        "q": 0.5,
        "client_lr": 0.02,
        "assist_lr": 0.02,
        "local_steps": 2,
    },
    "participation": {"kind": "UniformSubset", "n_clients": 3, "size": 2},
    "grid": {"rounds": [1, 2], "algorithm": {"client_lr": [0.1, 0.02]}},
}


def small(**changed: Any) -> dict[str, Any]:
    """Return a design of eight cells, with some keys changed; None leaves one out."""
    document = {**deepcopy(_SMALL), **changed}
    return {name: value for name, value in document.items() if value is not None}


def as_toml(**changed: Any) -> str:
    """Return the same as the text of a file."""
    return tomli_w.dumps(small(**changed))
