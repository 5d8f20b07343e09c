"""A log and the sizes of its clients, as the options of several commands name them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fltheory.logs import AvailabilityLog
    from fltheory.validation import FloatArray


def deployment(
    log: Path, sizes: Path | None, round_length: float | None, columns: str | None
) -> tuple[AvailabilityLog, FloatArray | None]:
    """Return a log with all its clients, and their sizes if a file of them is given."""
    from fltheory.logs import read_log
    from fltheory.weights.sizes_file import read_sizes

    named = None if columns is None else _named_columns(columns)
    record = read_log(log, round_length=round_length, columns=named)
    return (record, None) if sizes is None else read_sizes(sizes, record)


def _named_columns(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name and column for name, _, column in pairs):
        raise ValueError(f"columns must be like client=user,from=login,to=logout, got {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}
