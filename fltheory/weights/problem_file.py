"""Problems of aggregation weights from TOML files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fltheory import validation
from fltheory.files.read_file import toml_of
from fltheory.files.tables import check_names
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
    check_names("the file", fields, (*_REQUIRED, *_DEFAULTED), _REQUIRED)
    if "target_weights" not in fields:
        n_clients = validation.real_array("availability", fields["availability"], shape="(N,)").size
        fields["target_weights"] = np.full(n_clients, 1.0 / max(n_clients, 1))
    return TradeOff(**fields)
