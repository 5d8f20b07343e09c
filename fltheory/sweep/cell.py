"""A cell of a sweep: one statement on one setting, as text, and the row that checking it gives."""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from fltheory import __version__
from fltheory.engines import Setting
from fltheory.engines.setting_file import setting_of
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Verdict
from fltheory.parallel import one_blas_thread
from fltheory.theorems.registry import get, load, loaded_files

IMPOSSIBLE = "IMPOSSIBLE"
"""The outcome where there is no such setting, or the statement does not speak of it."""

ERROR_PROBABILITY = 1e-9
"""Allowed for all sampled intervals of a cell together."""

_PACKAGES = ("numpy", "scipy", "sympy", "python-flint")
# A thread of its own is what some executors give a cell; the precision of balls is the process's.
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True)
class Cell:
    """One statement on one setting; its content is its identity.

    Attributes
    ----------
    statement, reading : str
    setting : dict
        As `fltheory.engines.setting_file` reads it.
    seed, replicas : int
        Of what is sampled.
    files : str
        A digest of the files of one's own theorems that are loaded, empty without any.
    """

    statement: str
    reading: str
    setting: Mapping[str, Any]
    seed: int = 0
    replicas: int = 2000
    files: str = ""

    @property
    def key(self) -> str:
        """A digest of the content, by which a store knows the cell."""
        content = [self.statement, self.reading, self.setting, self.seed, self.replicas, self.files]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Row:
    """What a cell gave, as a store keeps it.

    Attributes
    ----------
    key, statement, reading : str
    setting : str
        JSON.
    seed, replicas : int
    outcome : str
        Name of an `Outcome`, or `IMPOSSIBLE`.
    evidence : str
        Name of its grade.
    truth, bound, ratio, error : float or None
        Both sides, how they compare, and half the width of the interval around the truth; None
        where undefined.
    why : str
        Which hypotheses fail, or why there is no verdict.
    detail : str
    versions : str
        Of this package, Python and the packages that compute.
    seconds : float
        What it took; that of the setting is the first statement's.
    """

    key: str
    statement: str
    reading: str
    setting: str
    seed: int
    replicas: int
    outcome: str
    evidence: str
    truth: float | None
    bound: float | None
    ratio: float | None
    error: float | None
    why: str
    detail: str
    versions: str
    seconds: float


@dataclass(frozen=True)
class Task:
    """Cells on one setting, which share its truth, and the files that they need."""

    cells: tuple[Cell, ...]
    files: tuple[tuple[str, str], ...] = ()


def rows_of(task: Task) -> list[Row]:
    """Check the cells of a task; wherever it runs, with one thread of linear algebra.

    An error that is neither bad input nor arithmetic is not caught: it says nothing of a cell.
    """
    with _ONE_AT_A_TIME, one_blas_thread():
        _load(task.files)
        setting: Setting | ValueError | None = None
        rows = []
        for cell in task.cells:
            begun = time.perf_counter()
            if setting is None:
                setting = _setting(cell.setting)
            found = _verdict(cell, setting)
            rows.append(_row(cell, found, time.perf_counter() - begun))
        return rows


def digest(files: Sequence[tuple[str, str]]) -> str:
    """Return what tells files by their content, empty for none."""
    return hashlib.sha256(json.dumps(list(files)).encode()).hexdigest()[:16] if files else ""


@lru_cache(maxsize=1)
def versions() -> str:
    """Return the versions that a row is made with."""
    packages = " ".join(f"{package} {version(package)}" for package in _PACKAGES)
    return f"fltheory {__version__} python {platform.python_version()} {packages}"


def _load(files: Sequence[tuple[str, str]]) -> None:
    """Register the theorems of files that this process does not have yet."""
    for stem, text in files:
        if loaded_files().get(stem) != text:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{stem}.py"
                path.write_text(text, encoding="utf-8")
                load(path)


def _setting(document: Mapping[str, Any]) -> Setting | ValueError:
    try:
        return setting_of(document)
    except (ValueError, ArithmeticError, TypeError) as error:
        return ValueError(str(error))


def _verdict(cell: Cell, setting: Setting | ValueError) -> Verdict | str:
    """Return the verdict, or why there is none."""
    if isinstance(setting, ValueError):
        return str(setting)
    try:
        sampling = Sampling(cell.replicas, cell.seed, ERROR_PROBABILITY)
        return get(cell.statement, cell.reading).verdict(setting, sampling)
    except (ValueError, ArithmeticError) as error:
        return str(error)


def _row(cell: Cell, found: Verdict | str, seconds: float) -> Row:
    content = (
        cell.key,
        cell.statement,
        cell.reading,
        json.dumps(cell.setting, sort_keys=True),
        cell.seed,
        cell.replicas,
    )
    if isinstance(found, str):
        return Row(*content, IMPOSSIBLE, "", None, None, None, None, found, "", versions(), seconds)
    return Row(
        *content,
        found.outcome.name,
        found.evidence.grade.name,
        _number(found.truth),
        _number(found.bound),
        _number(found.ratio),
        _number(found.evidence.error),
        "; ".join(check.failure for check in found.failed),
        found.detail,
        versions(),
        seconds,
    )


def _number(value: float) -> float | None:
    """Return a float, None for NaN, which SQL does not have."""
    value = float(value)
    return None if value != value else value
