"""The rows of a store as a table: the differing parts of cells, and their results."""

from __future__ import annotations

import io
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fltheory.argument_kinds import checks_kinds
from fltheory.files.csv_text import csv_text
from fltheory.files.tables import check_names
from fltheory.files.whole_file import write_whole
from fltheory.sweep.cell import Row
from fltheory.sweep.store import Store

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("statement", "reading")
_OPTIONS = ("seed", "replicas")
_FOUND = tuple(
    field.name
    for field in fields(Row)
    if field.name
    not in ("key", "kind", "setting", "versions", "seconds", "result", *_NAMES, *_OPTIONS)
)
_CLOCK = ("seconds", "written")
# Longer signs come before their prefixes.
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Condition:
    """A condition on a row: a column, a sign, and a number or a text."""

    column: str
    sign: str
    value: float | str

    @classmethod
    def read(cls, text: str) -> Condition:
        """Read a condition, e.g. ``algorithm.client_lr<=0.1`` or ``outcome!=HOLDS``.

        Raises
        ------
        ValueError
            If it has no comparison sign, or nothing before it.
        """
        found = re.fullmatch(rf"\s*(.+?)\s*({'|'.join(_SIGNS)})\s*(.*?)\s*", text)
        if found is None:
            raise ValueError(
                f"condition must be a column, one of {' '.join(_SIGNS)}, and a value, got {text!r}"
            )
        return cls(found[1], found[2], _number_or_text(found[3]))

    def check(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Raise ValueError if the condition compares text with numbers in the rows."""
        values = [value for value in map(self._value, entries) if value is not None]
        if values and not any(map(self._compares, values)):
            kind = "a text" if isinstance(values[0], str) else "a number"
            raise ValueError(
                f"condition on {self.column} must have {kind}, e.g. {values[0]}, got {self.value!r}"
            )

    def holds(self, entry: Mapping[str, Any]) -> bool:
        """Return whether a row meets the condition; rows without the value do not."""
        value = self._value(entry)
        return self._compares(value) and bool(_SIGNS[self.sign](value, self.value))

    def _value(self, entry: Mapping[str, Any]) -> Any:
        value = entry.get(self.column)
        return _number_or_text(value) if isinstance(value, str) else value

    def _compares(self, value: Any) -> bool:
        """Return whether a value can be compared with the condition's; NaN cannot."""
        known = value is not None and self.value == self.value
        return known and isinstance(value, str) == isinstance(self.value, str)


@checks_kinds
def read_results(
    path: str | Path, *, where: Sequence[str] = (), clock: bool = False
) -> pd.DataFrame:
    """Return the rows of a store as a table, one row per cell, sorted by statement and setting.

    The kind of cell, and parts of the setting, are left out if they are the same in all rows. An
    uninterrupted sweep and one that was killed and resumed give the same table.

    Parameters
    ----------
    path : Path or str
        Path of the store.
    where : sequence of str
        Conditions that every row must meet, e.g. ``algorithm.client_lr<=0.1`` or
        ``outcome=REFUTED``.
    clock : bool
        Whether to add the time that each cell took, and when it was written.

    Raises
    ------
    ValueError
        If there is no such store, or a condition names a missing column or compares text with a
        number.

    Examples
    --------
    An empty store; see `sweep` for one with rows:

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(Path(folder.name, "sweep.db"), create=True) as store:
    ...     len(read_results(store.path))
    0
    >>> folder.cleanup()
    """
    import pandas as pd

    with Store(path) as store:
        entries = [_entry(row, written) for row, written in store.rows()]
    paths = dict.fromkeys(name for entry in entries for name in entry)
    conditions = [Condition.read(text) for text in where]
    check_names("a store", [condition.column for condition in conditions], tuple(paths) or _NAMES)
    for condition in conditions:
        condition.check(entries)
    chosen = [e for e in entries if all(condition.holds(e) for condition in conditions)]
    fixed = ("kind", *_NAMES, *_OPTIONS, *_FOUND, "versions", *_CLOCK, "key")
    varying = sorted(name for name in paths if name not in fixed and _differs(name, chosen))
    kind = ["kind"] if _differs("kind", chosen) else []
    order = [*kind, *_NAMES, *varying, *_OPTIONS]
    chosen.sort(key=lambda entry: [*(_rank(entry.get(name)) for name in order), entry["key"]])
    columns = [*order, *_FOUND, "versions", *(_CLOCK if clock else ())]
    return pd.DataFrame([[entry.get(name) for name in columns] for entry in chosen], None, columns)


def write_results(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically, as CSV or Parquet according to the file's suffix.

    Raises
    ------
    ValueError
        For Parquet without pyarrow.
    """
    if path.suffix == ".csv":
        cells = table.astype(object).where(table.notna(), None)
        write_whole(path, csv_text([table.columns, *cells.itertuples(index=False, name=None)]))
        return
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ValueError(
            "out must end in .csv: Parquet needs pyarrow (pip install pyarrow)"
        ) from error
    content = io.BytesIO()
    table.to_parquet(content, index=False)
    write_whole(path, content.getvalue())


def _entry(row: Row, written: str) -> dict[str, Any]:
    """Return a row as a mapping from columns to values, with the setting split into columns."""
    values = {field.name: getattr(row, field.name) for field in fields(Row)}
    del values["result"]
    setting = json.loads(values.pop("setting"))
    return {**dict(_leaves(setting)), **values, "written": written}


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", json.dumps(value) if isinstance(value, list) else value


def _differs(name: str, entries: Sequence[Mapping[str, Any]]) -> bool:
    return len({repr(entry.get(name)) for entry in entries}) > 1


def _rank(value: Any) -> tuple[int, Any]:
    """Return a sort key for values that may be missing, numbers or text."""
    if value is None:
        return 0, 0
    return (2, value) if isinstance(value, str) else (1, value)


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
