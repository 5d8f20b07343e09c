"""How much data each client has, from a file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fltheory import validation
from fltheory.files.csv_text import read_text
from fltheory.files.read_file import text_of
from fltheory.validation import FloatArray

_HEADER = ["client", "size"]
_MOST_NAMED = 3


def read_sizes(path: Path | str, clients: Sequence[str]) -> FloatArray:
    """Return the size of each client's data, (N,), in the order of the clients.

    The file is CSV with the header ``client,size``, a line a client in any order.

    Parameters
    ----------
    path : Path
    clients : sequence of str, (N,)
        Names, as a log has them.

    Raises
    ------
    ValueError
        For a file that is none, a wrong header, a size that is no positive number, a client that
        appears twice or is in no log, with the line; and for clients without a size.
    """
    path = validation.path("path", path)
    text = text_of("sizes must be an existing file", path)
    wanted = {name: place for place, name in enumerate(clients)}
    sizes = np.full(len(wanted), np.nan)
    try:
        _read(io.StringIO(text, newline=""), wanted, sizes)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error
    without = [name for name, size in zip(clients, sizes, strict=True) if np.isnan(size)]
    if without:
        more = f" and {len(without) - _MOST_NAMED} more" if len(without) > _MOST_NAMED else ""
        named = ", ".join(map(repr, without[:_MOST_NAMED]))
        raise ValueError(
            f"{path}: every client of the log must have a size, none for {named}{more}"
        )
    with np.errstate(over="ignore"):
        total = sizes.sum()
    if not np.isfinite(total):
        raise ValueError(f"{path}: sizes must have a finite sum, got {total}")
    return sizes


def _read(lines: Iterable[str], wanted: dict[str, int], sizes: FloatArray) -> None:
    rows = csv.reader(lines)
    header = [name.strip() for name in next(rows, [])]
    if header != _HEADER:
        raise ValueError(f"line 1: the header must be client,size, got {','.join(header)!r}")
    for row in rows:
        if not row:
            continue
        here = f"line {rows.line_num}"
        if len(row) != 2:
            raise ValueError(f"{here}: a line must be client,size, got {','.join(row)!r}")
        name, text = read_text(row[0].strip()), row[1].strip()
        if name not in wanted:
            raise ValueError(f"{here}: client must be one of the log, got {name!r}")
        if not np.isnan(sizes[wanted[name]]):
            raise ValueError(f"{here}: client {name!r} must appear once, has a size already")
        sizes[wanted[name]] = _size(here, text)


def _size(here: str, text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        raise ValueError(f"{here}: size must be a positive number, got {text!r}")
    return size
