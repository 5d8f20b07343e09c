"""Cells, which are pieces of work identified by their content, and their rows in a store.

The cells of a sweep are checks of statements on settings; cells on one setting share its truth. The
cells of other commands are mutants, regimes and searches, distinguished by their kind.
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
# Some executors run each cell in its own thread, but limits on threads apply to the whole process.
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
        The subject of the work in a form for JSON; for a check, a setting as
        `fltheory.engines.setting_file` reads it.
    seed, replicas : int
        Seed and size of samples.
    files : str
        A digest of the loaded files of the user's own theorems; empty if there are none.
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
        """A digest of the content, which identifies the cell in a store."""
        content = [self.statement, self.reading, self.setting, self.seed, self.replicas, self.files]
        # The first stores had only this kind.
        content += [] if self.kind == CHECK else [self.kind]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Row:
    """A cell and its result, as kept in a store.

    Attributes
    ----------
    key, statement, reading : str
    setting : str
        JSON.
    seed, replicas : int
    outcome, evidence, truth, bound, ratio, error, why, detail
        As in `Record`, but with the evidence in capitals, and None for NaN, which SQL does not
        have.
    versions : str
        Versions of this package, Python and the packages used for computing.
    seconds : float
        Time taken. Time that the cells of one task share is counted for the first cell.
    kind, result : str
        As in `WorkCell` and `Record`.
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
    """Cells that are computed together in one process; each kind of work has a subclass.

    Attributes
    ----------
    cells : tuple of WorkCell
        The cells to compute, without those already in the store.
    files : tuple of pairs
        The files of the user's own theorems that the task needs.
    """

    cells: tuple[WorkCell, ...]
    files: Files

    @abstractmethod
    def rows(self) -> list[Row]:
        """Compute the cells, and return a row for each."""


def rows_of(task: Task) -> list[Row]:
    """Compute a task with one thread, after loading the files that it needs."""
    with _ONE_AT_A_TIME, one_thread():
        _load(task.files)
        return task.rows()


def own_files() -> Files:
    """Return the loaded files of the user's own theorems."""
    return tuple(sorted(loaded_files().items()))


def digest(files: Files) -> str:
    """Return a digest of the content of files; empty for no files."""
    return hashlib.sha256(json.dumps(list(files)).encode()).hexdigest()[:16] if files else ""


@lru_cache(maxsize=1)
def versions() -> str:
    """Return the versions with which a row is made."""
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

        Only input and arithmetic errors are caught, because other errors are not about the cell.
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
    """Return the verdict, or the reason why there is none."""
    if isinstance(setting, ValueError):
        return Record(IMPOSSIBLE, why=str(setting))
    try:
        sampling = Sampling(cell.replicas, cell.seed, ERROR_PROBABILITY)
        return record_of(get(cell.statement, cell.reading).verdict(setting, sampling))
    except (ValueError, ArithmeticError) as error:
        return Record(IMPOSSIBLE, why=str(error))
