"""Reading the sizes of clients' data from a file, and whole trade-off problems."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np

from fltheory import validation
from fltheory.files.csv_text import read_text
from fltheory.files.read_file import text_of, toml_of
from fltheory.files.tables import check_names
from fltheory.logs.availability_log import AvailabilityLog
from fltheory.validation import FloatArray
from fltheory.weights.trade_off import TradeOff

_HEADER = ["client", "size"]
_MOST_NAMED = 3


def read_sizes(path: Path | str, log: AvailabilityLog) -> tuple[AvailabilityLog, FloatArray]:
    """Return a log extended by all clients in a file, and the sizes of clients' data, (N,).

    The file is CSV with the header ``client,size`` and one line for each client, in any order.
    Clients that are not in the log have never been seen, and they are placed last.

    Parameters
    ----------
    path : Path
    log : AvailabilityLog

    Raises
    ------
    ValueError
        If there is no such file, the header is wrong, a size is not a positive number, or a client
        appears twice (the message gives the line), or if clients of the log have no size.
    """
    path = validation.path("path", path)
    text = text_of("sizes must be an existing file", path)
    try:
        sizes = _read(io.StringIO(text, newline=""))
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error
    without = [name for name in log.clients if name not in sizes]
    if without:
        more = f" and {len(without) - _MOST_NAMED} more" if len(without) > _MOST_NAMED else ""
        named = ", ".join(map(repr, without[:_MOST_NAMED]))
        raise ValueError(
            f"{path}: every client of the log must have a size, got none for {named}{more}"
        )
    clients = list(dict.fromkeys([*log.clients, *sizes]))
    found = np.array([sizes[name] for name in clients])
    with np.errstate(over="ignore"):
        total = found.sum()
    if not np.isfinite(total):
        raise ValueError(f"{path}: sizes must have a finite sum, got {total}")
    return AvailabilityLog(clients, log.n_rounds, log.who, log.first, log.stop), found


def _read(lines: io.StringIO) -> dict[str, float]:
    header = lines.readline()
    separator = next((mark for mark in ",;\t" if mark in header), ",")
    if [name.strip() for name in header.removeprefix("\ufeff").split(separator)] != _HEADER:
        raise ValueError(f"line 1: the header must be client,size, got {header.strip()!r}")
    rows = csv.reader(lines, delimiter=separator)
    sizes = dict[str, float]()
    for row in rows:
        if not row:
            continue
        here = f"line {rows.line_num + 1}"
        if len(row) != 2:
            raise ValueError(f"{here}: a line must be client,size, got {','.join(row)!r}")
        name, text = read_text(row[0].strip()), row[1].strip()
        if not name:
            raise ValueError(f"{here}: client must be a name, got none")
        if name in sizes:
            raise ValueError(f"{here}: client {name!r} must appear once, got it twice")
        sizes[name] = _size(here, text)
    return sizes


def _size(here: str, text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        raise ValueError(f"{here}: size must be a positive number, got {text!r}")
    return size


_REQUIRED = ("availability", "a", "b", "bias")
_DEFAULTED = ("target_weights", "total")


def read_trade_off(path: Path) -> TradeOff:
    """Read a problem with the entries ``availability``, ``a``, ``b``, ``bias`` and optional ones.

    ``target_weights`` are equal and ``total`` is 1 unless the file says otherwise.

    Raises
    ------
    ValueError
        If the file is not TOML, lacks a field or has an unknown one, or `TradeOff` refuses its
        values.
    """
    fields = toml_of("file must be an existing file", path)
    check_names("the file", fields, (*_REQUIRED, *_DEFAULTED), _REQUIRED)
    return TradeOff(**{"target_weights": None, **fields})
