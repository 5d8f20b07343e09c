"""Recorded availability, replayed in a loop."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.files.read_file import MOST_BYTES, existing_file, text_of
from fltheory.participation.base import Masks
from fltheory.participation.chains import checked_masks
from fltheory.participation.cyclic import Loop
from fltheory.participation.markov_on_off import MarkovOnOff
from fltheory.participation.process import same_number
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Trace(Loop):
    """The rounds of a record in order; after the last one, the record starts again.

    By default, each run begins at a round drawn uniformly, so its distribution does not change over
    time, and the marginals are exactly the record's shares. With ``start``, all runs begin at that
    round. There is no mixing rate, because the record repeats; `as_on_off` fits chains, which do
    not repeat.

    Parameters
    ----------
    recorded : array of 0 and 1, (rounds, N)
        Who was present.
    start : int, optional
        The round with which every run begins; by default, each run draws its own.

    Raises
    ------
    ValueError
        If the shape is different, an entry is neither 0 nor 1, or a client never participates.

    Examples
    --------
    >>> Trace([[1, 0], [1, 1], [1, 0], [1, 0]]).marginals.tolist()
    [1.0, 0.25]
    """

    recorded: Masks
    start: int | None

    def __init__(self, recorded: ArrayLike, *, start: int | None = None) -> None:
        masks = checked_masks("recorded", recorded, "rounds")
        never = np.flatnonzero(~masks.any(axis=0))
        if never.size:
            raise ValueError(
                "recorded must have every client participate at least once, got client "
                f"{never[0]}, who never does"
            )
        if start is not None:
            start = validation.whole_number("start", start, at_least=0)
            if start >= len(masks):
                raise ValueError(f"start must be a round below {len(masks)}, got {start}")
        object.__setattr__(self, "recorded", masks)
        object.__setattr__(self, "start", start)

    def __repr__(self) -> str:
        return f"Trace({self.n_rounds} rounds, {self.n_clients} clients)"

    @classmethod
    def from_csv(cls, path: Path | str, *, start: int | None = None) -> Trace:
        """Read a CSV file with one line per round, entries 0 and 1, and no header.

        Raises
        ------
        ValueError
            If there is no such file, the lines differ in length, or an entry is wrong; the message
            gives the line and column, counted from 1.
        """
        text = text_of("path must be an existing file", path)
        with io.StringIO(text, newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
        if not rows:
            raise ValueError(f"path must hold a line per round, got {str(path)!r} without any")
        width = len(rows[0][1])
        for line, row in rows:
            if len(row) != width:
                raise ValueError(
                    f"path must have {width} entries in every line, got {len(row)} in "
                    f"line {line} of {str(path)!r}"
                )
            for column, entry in enumerate(row, start=1):
                if entry.strip() not in ("0", "1"):
                    raise ValueError(
                        f"path must have entries 0 and 1, got {entry!r} in line {line}, "
                        f"column {column} of {str(path)!r}"
                    )
        return cls([[int(entry) for entry in row] for _, row in rows], start=start)

    @classmethod
    def from_npz(cls, path: Path | str, name: str = "masks", *, start: int | None = None) -> Trace:
        """Read the array called ``name`` from an NPZ file.

        Raises
        ------
        ValueError
            If there is no such file or array, or the file is not an NPZ file.
        """
        if not zipfile.is_zipfile(_existing(path)):
            raise ValueError(f"path must be an NPZ file, got {str(path)!r}")
        with np.load(path, allow_pickle=False) as arrays:
            if name not in arrays.files:
                known = ", ".join(arrays.files)
                raise ValueError(f"name must be one of {known}, got {name!r}")
            return cls(arrays[name], start=start)

    @property
    def n_rounds(self) -> int:
        """Number of recorded rounds."""
        return len(self.recorded)

    @property
    def n_clients(self) -> int:
        """N, all clients."""
        return int(self.recorded.shape[1])

    @property
    def independent(self) -> bool:
        """Whether every recorded round is the same, so that nothing is random."""
        return bool((self.recorded == self.recorded[0]).all())

    @cached_property
    def marginals(self) -> FloatArray:
        """(N,) share of rounds in which a client is present."""
        return np.asarray(self.recorded.mean(axis=0))

    @property
    def fixed_size(self) -> int | None:
        """The number of participants if it is the same in every round, otherwise None."""
        return same_number(self.recorded)

    @cached_property
    def _shares(self) -> tuple[Masks, FloatArray]:
        masks, counts = np.unique(self.recorded, axis=0, return_counts=True)
        return masks, counts / self.n_rounds

    def as_on_off(self) -> MarkovOnOff:
        """Fit an independent two-state chain to each client, as in Section IV-B of CA-Fed.

        The transition from the last round back to the first is counted as well, so each state is
        entered as often as it is left. Hence the fitted pi is the share of rounds in which the
        client is present, and nu is the second eigenvalue of the matrix of transition frequencies.
        Clients that are always present get nu = 0.

        Raises
        ------
        ValueError
            If a client alternates between presence and absence in every round, because its chain
            would be periodic.
        """
        leaves = (self.recorded & ~np.roll(self.recorded, -1, axis=0)).sum(axis=0)
        there = self.recorded.sum(axis=0)
        away = self.n_rounds - there
        nu = np.where(away > 0, 1 - leaves / there - leaves / np.maximum(away, 1), 0.0)
        return MarkovOnOff(self.marginals, nu)

    @property
    def n_states(self) -> int:
        """One state per recorded round."""
        return self.n_rounds

    @property
    def loop(self) -> Masks:
        """(M, N) who takes part in each round."""
        return self.recorded

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        """Play the record endlessly for ``replicas`` runs."""
        replicas = validation.whole_number("replicas", replicas, at_least=1)
        if self.start is None:
            now = rng.integers(0, self.n_rounds, size=replicas)
        else:
            now = np.full(replicas, self.start)
        while True:
            yield self.recorded[now]
            now = (now + 1) % self.n_rounds


def _existing(path: Path | str) -> Path:
    return existing_file("path must be an existing file", path, most_bytes=MOST_BYTES)
