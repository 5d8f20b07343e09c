"""A cell, that is a piece of work known by its content, and the row that a store keeps of it.

The cells of a sweep are checks of statements on settings, which share the setting's truth; those of
other commands are mutants, regimes and searches, each told by its kind.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from fltheory import __version__
from fltheory.engines import Setting
from fltheory.engines.setting_file import setting_of
from fltheory.evidence.truths import Sampling
from fltheory.long_work.parallel import one_thread
from fltheory.theorems.registry import get, load, loaded_files
from fltheory.verify.runs import Record, record_of

CHECK = "check"
"""The kind of a cell that checks a statement on a setting, as every sweep's do."""

_PACKAGES = ("numpy", "scipy", "sympy", "python-flint")
# A thread of its own is what some executors give a cell; limits on threads are the process's.
_ONE_AT_A_TIME = Lock()

Files: TypeAlias = tuple[tuple[str, str], ...]
"""Names and texts of files of one's own theorems."""


@dataclass(frozen=True)
class WorkCell:
    """A piece of work about one statement; its content is its identity.

    Attributes
    ----------
    statement, reading : str
    setting : dict
        Its subject, as JSON has it: for a check a setting, as `fltheory.engines.setting_file`
        reads it.
    seed, replicas : int
        Of what is sampled.
    files : str
        A digest of the files of one's own theorems that are loaded, empty without any.
    kind : str
        The kind of work.
    """

    statement: str
    reading: str
    setting: Mapping[str, Any]
    seed: int = 0
    replicas: int = 2000
    files: str = ""
    kind: str = CHECK

    @property
    def key(self) -> str:
        """A digest of the content, by which a store knows the cell."""
        content = [self.statement, self.reading, self.setting, self.seed, self.replicas, self.files]
        # The first stores knew no other kind.
        content += [] if self.kind == CHECK else [self.kind]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Row:
    """A cell and what it gave, as a store keeps it.

    Attributes
    ----------
    key, statement, reading : str
    setting : str
        JSON.
    seed, replicas : int
    outcome, evidence, truth, bound, ratio, error, why, detail
        As of `Record`, but the evidence in capitals, and None for NaN, which SQL does not have.
    versions : str
        Of this package, Python and the packages that compute.
    seconds : float
        Time taken; time that the cells of one task share counts for the first one.
    kind, result : str
        As of `WorkCell` and `Record`.
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
    kind: str = CHECK
    result: str = ""


def row_of(cell: WorkCell, found: Record, seconds: float) -> Row:
    """Return a cell's row."""
    setting = json.dumps(cell.setting, sort_keys=True)
    content = {**vars(cell), "key": cell.key, "setting": setting}
    del content["files"]
    kept: dict[str, Any] = {
        name: None if value != value else value for name, value in vars(found).items()
    }
    kept["evidence"] = found.evidence.upper()
    return Row(**content, **kept, versions=versions(), seconds=seconds)


@dataclass(frozen=True)
class Task(ABC):
    """Cells that are worked out in one go, in whatever process; each kind of work has its own.

    Attributes
    ----------
    cells : tuple of WorkCell
        Those that the store holds already are taken out before.
    files : tuple of pairs
        The files of one's own theorems that it needs.
    """

    cells: tuple[WorkCell, ...]
    files: Files

    @abstractmethod
    def rows(self) -> list[Row]:
        """Work the cells out, and return a row for each."""


def rows_of(task: Task) -> list[Row]:
    """Work a task out; wherever it runs, with one thread, and with the files that it needs."""
    with _ONE_AT_A_TIME, one_thread():
        _load(task.files)
        return task.rows()


def own_files() -> Files:
    """Return the files of one's own theorems that are loaded."""
    return tuple(sorted(loaded_files().items()))


def digest(files: Files) -> str:
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


IMPOSSIBLE = "IMPOSSIBLE"
"""The outcome if there is no such setting, or the statement does not cover it."""

ERROR_PROBABILITY = 1e-9
"""Allowed for all sampled intervals of a cell together."""


@dataclass(frozen=True)
class Checks(Task):
    """Cells on one setting, which share its truth."""

    def rows(self) -> list[Row]:
        """Check the cells.

        An error that is neither bad input nor arithmetic is not caught: it says nothing of a cell.
        """
        setting: Setting | ValueError | None = None
        rows = []
        for cell in self.cells:
            begun = time.perf_counter()
            if setting is None:
                setting = _setting(cell.setting)
            found = _found(cell, setting)
            rows.append(row_of(cell, found, time.perf_counter() - begun))
        return rows


def _setting(document: Mapping[str, Any]) -> Setting | ValueError:
    try:
        return setting_of(document)
    except (ValueError, ArithmeticError, TypeError) as error:
        return ValueError(str(error))


def _found(cell: WorkCell, setting: Setting | ValueError) -> Record:
    """Return the verdict, or why there is none."""
    if isinstance(setting, ValueError):
        return Record(IMPOSSIBLE, why=str(setting))
    try:
        sampling = Sampling(cell.replicas, cell.seed, ERROR_PROBABILITY)
        return record_of(get(cell.statement, cell.reading).verdict(setting, sampling))
    except (ValueError, ArithmeticError) as error:
        return Record(IMPOSSIBLE, why=str(error))
