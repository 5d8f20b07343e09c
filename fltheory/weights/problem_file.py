"""Problems of aggregation weights from TOML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.files.read_file import toml_of
from fltheory.weights.trade_off import TradeOff

_REQUIRED = ("availability", "a", "b", "bias")
_DEFAULTED = ("target_weights", "total")


def read_trade_off(path: Path) -> TradeOff:
    """Read a problem: ``availability``, ``a``, ``b``, ``bias``, and what has a default.

    ``target_weights`` are equal and ``total`` is 1 unless the file says otherwise.

    Raises
    ------
    ValueError
        If the file is not TOML, lacks a field or has an unknown one, or for what `TradeOff`
        refuses.
    """
    fields = toml_of("file must be an existing file", path)
    _check_names(fields)
    if "target_weights" not in fields:
        n_clients = validation.real_array("availability", fields["availability"], shape="(N,)").size
        fields["target_weights"] = np.full(n_clients, 1.0 / max(n_clients, 1))
    return TradeOff(**fields)


def _check_names(fields: dict[str, Any]) -> None:
    for name in _REQUIRED:
        if name not in fields:
            raise ValueError(f"{name} must be given in the file, got {', '.join(fields) or 'none'}")
    for name in fields:
        if name not in _REQUIRED + _DEFAULTED:
            known = ", ".join(_REQUIRED + _DEFAULTED)
            raise ValueError(f"{name} must be one of {known}: the file has an unknown field")
