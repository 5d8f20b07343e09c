"""Gradients of a few clients at a few models from a CSV file, one row per minibatch."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fltheory.files.csv_text import read_text
from fltheory.files.read_file import text_of
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_HEADER = ["client", "point"]
_FEWEST_CLIENTS, _FEWEST_BATCHES = 3, 2


@dataclass(frozen=True, eq=False)
class ClientGradients(ReadOnlyArrays):
    """Stochastic gradients of some of a log's clients.

    Attributes
    ----------
    clients : tuple of str, (n,)
    points : tuple of str, (J,)
        The models' names; the first is the initial model, the last the one closest to the optimum.
    gradients : tuple of tuple of array, (n)(J)(batches, dim)
        The gradients of each client at each point, one row per minibatch.
    models : array, (J, dim), or None
        The models, if the file has them.
    """

    clients: tuple[str, ...]
    points: tuple[str, ...]
    gradients: tuple[tuple[FloatArray, ...], ...]
    models: FloatArray | None


def read_gradients(path: Path | str, clients: Sequence[str]) -> ClientGradients:
    r"""Read gradients of a log's clients.

    The file is CSV with the header ``client,point,...`` and one column per coordinate, with any
    name. A row is the gradient of a client's loss on one minibatch, at the model named by
    ``point``; a row without a client is that model itself. Rows may come in any order; points are
    ordered by first appearance.

    Parameters
    ----------
    path : Path
    clients : sequence of str
        Names as in a log; not all of them need to be in the file.

    Raises
    ------
    ValueError
        If there is no such file; if the header, a number or a client's name is wrong (the message
        names the line); if there are fewer than three clients, or fewer than two gradients of a
        client at a point; or if only some points have models.

    Examples
    --------
    >>> import tempfile
    >>> rows = ["client,point,0", ",start,1"]
    >>> rows += [f"{client},start,{slope}" for client in ("ann", "bob", "cid") for slope in (2, 4)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "gradients.csv"
    ...     _ = file.write_text("\n".join(rows))
    ...     found = read_gradients(file, ["ann", "bob", "cid", "dot"])
    >>> found.points, found.gradients[0][0].tolist()
    (('start',), [[2.0], [4.0]])
    """
    path = Path(path)
    text = text_of("file of gradients must exist", path)
    try:
        return _put_in_order(_rows(text, set(clients)))
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: {error}") from error


Rows = dict[tuple[str, str], list[FloatArray]]


def _rows(text: str, known: set[str]) -> Rows:
    """Return the rows of each client at each point; models have the client ''."""
    lines = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip() for name in next(lines, [])]
    if header[:2] != _HEADER or len(header) < 3:
        raise ValueError(
            "line 1: the header must be client,point and then one column per coordinate, got "
            f"{','.join(header[:5])!r}"
        )
    found: Rows = {}
    for row in lines:
        if not row:
            continue
        here = f"line {lines.line_num}"
        if len(row) != len(header):
            raise ValueError(f"{here}: a row must have {len(header)} fields, got {len(row)}")
        client, point = (read_text(cell.strip()) for cell in row[:2])
        if client and client not in known:
            raise ValueError(f"{here}: client must be one of the log's, got {client!r}")
        if not point:
            raise ValueError(f"{here}: point must be a name, got none")
        if not client and (client, point) in found:
            raise ValueError(f"{here}: the model at {point!r} must be given once, got it twice")
        found.setdefault((client, point), []).append(_numbers(here, header, row))
    return found


def _numbers(here: str, header: list[str], row: list[str]) -> FloatArray:
    try:
        numbers = np.array(row[2:], dtype=np.float64)
    except ValueError:
        numbers = None
    # Squares are summed, so numbers must be small enough.
    if numbers is not None and (np.abs(numbers) < 1e100).all():
        return numbers
    bad = next(place for place in range(2, len(row)) if not _is_fine(row[place]))
    raise ValueError(
        f"{here}: column {header[bad]!r} must be a number below 1e100, got {row[bad]!r}"
    )


def _is_fine(text: str) -> bool:
    try:
        return abs(float(text)) < 1e100
    except ValueError:
        return False


def _put_in_order(rows: Rows) -> ClientGradients:
    clients = tuple(dict.fromkeys(client for client, _ in rows if client))
    points = tuple(dict.fromkeys(point for _, point in rows))
    if len(clients) < _FEWEST_CLIENTS:
        raise ValueError(f"gradients must come from at least three clients, got {len(clients)}")
    for client in clients:
        for point in points:
            count = len(rows.get((client, point), []))
            if count < _FEWEST_BATCHES:
                raise ValueError(
                    f"every client must have at least two gradients at every point, got {count} "
                    f"of {client!r} at {point!r}"
                )
    with_model = [point for point in points if ("", point) in rows]
    if with_model and len(with_model) < len(points):
        without = next(point for point in points if point not in with_model)
        raise ValueError(
            f"models must be given at every point or at none, got none at {without!r}: a row "
            "without a client"
        )
    gradients = tuple(
        tuple(np.array(rows[client, point]) for point in points) for client in clients
    )
    models = np.array([rows["", point][0] for point in points]) if with_model else None
    return ClientGradients(clients, points, gradients, models)
