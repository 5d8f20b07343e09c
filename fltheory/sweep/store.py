"""A store of rows: one SQLite file, which stays consistent if killed at any moment."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from types import TracebackType
from typing import get_type_hints

from fltheory import validation
from fltheory.files.read_file import json_in
from fltheory.sweep.cell import Row
from fltheory.validation import shown

APPLICATION = 0x666C7477
"""The application id of this package's SQLite files."""

FORMAT = 2
"""The version of the table, which an SQLite file has as its user version."""

_TYPES = {"str": "TEXT", "int": "INTEGER", "float": "REAL"}
_KINDS = get_type_hints(Row)
_COLUMNS = tuple(_KINDS)
_OPENING_SECONDS = 3.0
_WRITING_SECONDS = 60.0
_NAMES = ", ".join(_COLUMNS)
_ADD = (
    f"INSERT OR IGNORE INTO cells ({_NAMES}, written) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))}, datetime('now'))"
)


class StoreError(ValueError):
    """The error that a store cannot be read or written, with a one-line reason."""


class Store:
    """A file with one row per cell; several processes may write to it at once.

    Parameters
    ----------
    path : Path or str
    create : bool
        Whether to create the file if there is none.

    Raises
    ------
    StoreError
        If the file does not exist, is not a store, is damaged, has a different version, or stays
        locked by other processes for seconds. Nothing is then written to it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(Path(folder.name, "sweep.db"), create=True) as store:
    ...     len(store)
    0
    >>> folder.cleanup()
    """

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self.path = validation.path("store", path)
        with self._in_a_line():
            if self.path.is_dir() or not (create or self.path.is_file()):
                kind = "a folder" if self.path.is_dir() else "which does not exist"
                raise StoreError(
                    f"store must be a file of fltheory sweep, got {str(path)!r}, {kind}"
                )
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=_OPENING_SECONDS, isolation_level=None
            )
        try:
            with self._in_a_line():
                self._open(create)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def __contains__(self, key: str) -> bool:
        with self._in_a_line():
            found = self._connection.execute("SELECT 1 FROM cells WHERE key = ?", (key,))
            return found.fetchone() is not None

    def __len__(self) -> int:
        with self._in_a_line():
            return int(self._connection.execute("SELECT count(*) FROM cells").fetchone()[0])

    def add(self, rows: Sequence[Row]) -> None:
        """Store all rows or none; if a cell is already stored, its row is left unchanged."""
        with self._in_a_line():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_ADD, [astuple(row) for row in rows])
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self) -> Iterator[tuple[Row, str]]:
        """Yield every row and the time when it was written, in the order of their keys."""
        with self._in_a_line():
            asked = f"SELECT {_NAMES}, written FROM cells ORDER BY key"
            for *values, written in self._connection.execute(asked):
                yield self._row(values), written

    def __getitem__(self, key: str) -> Row:
        """Return the row of a stored cell."""
        with self._in_a_line():
            asked = f"SELECT {_NAMES} FROM cells WHERE key = ?"
            return self._row(self._connection.execute(asked, (key,)).fetchone())

    def _row(self, values: Sequence[object]) -> Row:
        """Return a row after checking its entries, as SQLite accepts any type in any column.

        Raises
        ------
        StoreError
            If an entry has the wrong type, a setting is not a JSON object, or a result is not JSON.
        """
        for (name, kind), value in zip(_KINDS.items(), values, strict=True):
            if not isinstance(value, kind):
                raise StoreError(
                    f"{self.path}: {name} of row {shown(values[0])} must be as fltheory sweep "
                    f"wrote it, got {shown(value)}"
                )
        row = Row(*values)  # type: ignore[arg-type]
        try:
            if not isinstance(json_in("setting", row.setting), dict):
                raise ValueError(f"setting must be a table, got {shown(row.setting)}")
            if row.result:
                json_in("result", row.result)
        except ValueError as error:
            raise StoreError(f"{self.path}: row {shown(row.key)}: {error}") from error
        return row

    def outcomes(self, keys: Container[str]) -> Counter[str]:
        """Return the number of rows of these cells with each outcome."""
        return self._counted("outcome", keys)

    def versions(self, keys: Container[str]) -> Counter[str]:
        """Return the number of rows of these cells made with each set of versions."""
        return self._counted("versions", keys)

    def _counted(self, column: str, keys: Container[str]) -> Counter[str]:
        with self._in_a_line():
            found = self._connection.execute(f"SELECT key, {column} FROM cells")
            return Counter(value for key, value in found if key in keys)

    def _open(self, create: bool) -> None:
        ask = self._connection.execute
        (application,), (found,) = (
            ask(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        empty = not ask("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if create and empty and not application:
            self._make()
            application, found = APPLICATION, FORMAT
        if application != APPLICATION:
            raise StoreError(f"store must be a file of fltheory sweep, got {str(self.path)!r}")
        if found != FORMAT:
            raise StoreError(
                f"store must be of version {FORMAT}, got version {found} in {str(self.path)!r}: "
                "another fltheory wrote it"
            )
        (state,) = ask("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise StoreError(
                f"{self.path} is damaged ({' '.join(state.split())}); nothing was written"
            )
        # A commit survives any end of the process without waiting for the disk. If the machine
        # fails, the last commits may be lost, and their cells are checked again.
        if create:
            ask("PRAGMA journal_mode = WAL")
        ask("PRAGMA synchronous = NORMAL")
        ask(f"PRAGMA busy_timeout = {round(1000 * _WRITING_SECONDS)}")

    def _make(self) -> None:
        """Create the table and mark the file as a store, in one transaction."""
        columns = []
        for field in fields(Row):
            kind, _, optional = str(field.type).partition(" | ")
            columns.append(f"{field.name} {_TYPES[kind]}{'' if optional else ' NOT NULL'}")
        columns[0] += " PRIMARY KEY"
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        # Another sweep may have created it first.
        run(f"CREATE TABLE IF NOT EXISTS cells ({', '.join(columns)}, written TEXT NOT NULL)")
        run(f"PRAGMA application_id = {APPLICATION}")
        run(f"PRAGMA user_version = {FORMAT}")
        run("COMMIT")

    @contextmanager
    def _in_a_line(self) -> Iterator[None]:
        """Turn errors of SQLite and the system into a one-line StoreError."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path}: {_MEANINGS.get(str(error), error)}") from error
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror or error}") from error


_MEANINGS: dict[str, str] = {
    "file is not a database": "not a file of fltheory sweep; nothing was written",
    "database disk image is malformed": "the store is damaged; nothing was written",
    "database is locked": "the store is locked by another program",
    "database or disk is full": "the disk is full; what was written before is kept",
    "unable to open database file": "no file can be written there",
    "attempt to write a readonly database": "the store is write-protected",
}
