"""Availability logs as files: three forms of CSV, also compressed by gzip, and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedIOBase
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.files.csv_text import csv_text, read_text
from fltheory.files.read_file import existing_file
from fltheory.files.whole_file import write_whole
from fltheory.logs.availability_log import AvailabilityLog, Rounds
from fltheory.validation import FloatArray

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 2 * 1024**3
"""The most bytes that a log may have after unpacking."""

MOST_LINES = 30_000_000
"""The most lines that are read: pandas takes 20 seconds, and 3 GB of memory, for that number."""

MOST_COLUMNS = 100_000
"""The most that are read: pandas takes 25 microseconds for each, however short."""

MOST_ROUNDS = 20_000_000
"""More rounds than these are taken for times whose rounds have not been said."""

EVENTS = ("client", "time", "present")
INTERVALS = ("client", "from", "to")
_FORMS = "client,time,present; client,from,to; or round and a column per client"
_TRUE, _FALSE = ("1", "1.0", "true", "True"), ("0", "0.0", "false", "False")
# Below the header, it would be a client with this name.
_REMARK = re.compile(rb"\n#[^,\r\n]*(?=[\r\n]|\Z)")
_SAID = re.compile(rb"^[^\S\n]*#[^\S\n]*([\w-]+)[^\S\n]*:([^\n]*)", re.MULTILINE)
_CLOCK = ("start", "rounds", "round_length")
_IN_UTC = re.compile(r"\s*(UTC|GMT)\s*$")
_FIRST_OF_HEADER = re.compile(rb"^[^\S\n]*[^\s#]", re.MULTILINE)
# Size of a part that is read at a time; the header must end within the first part.
_PART = 8 * 1024**2
# Times too large to be numbers of rounds (seconds since 1970 from 1973 on, milliseconds and so on),
# and whole minutes.
_SINCE_1970 = {1e17: "nano", 1e14: "micro", 1e11: "milli", 1e8: ""}
_A_MINUTE, _SEVERAL = 60, 8
# A time this close to a round's beginning, in rounds, is its beginning: 0.3/0.1 is 3 then.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Clock:
    """How times are mapped to rounds; None means that a value follows from the log."""

    start: float | None
    rounds: int | None
    round_length: float | None

    @property
    def length(self) -> float:
        """The length of a round, which is 1 by default."""
        return 1.0 if self.round_length is None else self.round_length


@checks_kinds
def read_log(
    path: Path | str,
    *,
    round_length: float | None = None,
    start: float | None = None,
    rounds: int | None = None,
    columns: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES,
    most_lines: int = MOST_LINES,
) -> AvailabilityLog:
    r"""Read who was online from a file: CSV with a header, plain or gzipped, or Parquet.

    The header says which form it is:

    ``client,time,present``
        An event: the client is online (1) or away (0) from this time until its next event, or the
        end of the log. Before its first event, a client is away. A client's events are in order.
    ``client,from,to``
        A stay, up to but not including ``to``. Stays may be in any order but must not overlap. If
        ``to`` is empty, the client is still online at the end of the log; if both are empty, it was
        never online.
    ``round,ann,bob,...``
        One row per round, in order and without gaps, with 1 for each client online.

    Round r, from 0, begins at ``start + r round_length``, and a client takes part in it if it is
    online at that moment. Times are numbers or ISO 8601 dates; dates are in seconds, and in UTC
    unless they say otherwise. Fields are separated by commas, semicolons or tabs. Lines
    ``# start: 0``, ``# rounds: 100`` and ``# round_length: 60`` in front of the header have the
    same meaning as the arguments with these names; arguments take precedence.

    Parameters
    ----------
    path : Path
    round_length : float
        How long a round lasts, in the log's unit of time. It is 1 by default, but must be given for
        dates, for times since 1970, and if all times are multiples of a minute or more.
    start : float, optional
        The start of round 0; the log's first time by default.
    rounds : int, optional
        Number of rounds. By default, these are all rounds that start before the last ``to``, or not
        after the last event.
    columns : mapping, optional
        The file's names for the columns, ``{"client": "user_id", ...}``; other columns are ignored.
    most_bytes, most_lines : int
        Limits on the size of the unpacked file.

    Raises
    ------
    ValueError
        If there is no such file, if it has none of these forms (the message names the line, if
        there is one), if there are fewer than two rounds, or if nobody is ever online.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("client,from,to\nann,0,90\nbob,60,180\n")
    ...     read_log(file, round_length=60).present().astype(int).tolist()
    [[1, 0], [1, 1], [0, 1]]
    """
    path = validation.path("path", path)
    most_bytes = validation.whole_number("most_bytes", most_bytes, at_least=1, at_most=2**63)
    most_lines = validation.whole_number("most_lines", most_lines, at_least=1, at_most=2**63)
    table, said, header_line = _table(path, most_bytes, most_lines)
    try:
        table = _chosen(table, columns)
        clock = _clock(said, round_length, start, rounds)
        log = _reader(table, header_line)(table, clock)
        if log.n_rounds < 2:
            raise ValueError("a log must have at least two rounds, got one; see round_length")
        if not log.who.size:
            raise ValueError(
                f"at least one client must be online in at least one round, got {log} with none"
            )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return log


@checks_kinds
def write_log(path: Path | str, log: AvailabilityLog) -> None:
    """Write a log as ``client,from,to``, in rounds; a name that ends in ``.gz`` is compressed.

    `read_log` returns the same log again: clients in their order, including those never online, and
    all rounds.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "log.csv")
    >>> write_log(path, AvailabilityLog.from_masks([[True, False], [True, False], [False, False]]))
    >>> read_log(path).n_rounds
    3
    >>> folder.cleanup()
    """
    path = validation.path("path", path)
    away = np.flatnonzero(log.rounds_present == 0)
    who = np.concatenate((log.who, away)).tolist()
    nothing = [None] * away.size
    stays = zip(who, log.first.tolist() + nothing, log.stop.tolist() + nothing, strict=True)
    rows = ((log.clients[client], *stay) for client, *stay in sorted(stays, key=itemgetter(0)))
    text = f"# start: 0\n# rounds: {log.n_rounds}\n" + csv_text([INTERVALS, *rows])
    # The compressed file contains no time, so that the same log gives the same file.
    write_whole(path, gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text)


def _chosen(table: pd.DataFrame, columns: Mapping[str, str] | None) -> pd.DataFrame:
    """Return the named columns under the names of the form."""
    if columns is None:
        return table
    if set(columns) not in (set(EVENTS), set(INTERVALS)):
        raise ValueError(
            "columns must name client,time,present or client,from,to, as in "
            f"client=user,from=login,to=logout, got {','.join(columns)}"
        )
    wrong = [name for name in columns.values() if name not in table.columns]
    if wrong:
        raise ValueError(
            f"columns must be among {', '.join(table.columns)}; got {', '.join(wrong)}"
        )
    return table[list(columns.values())].set_axis(list(columns), axis=1)


def _table(
    path: Path, most_bytes: int, most_lines: int
) -> tuple[pd.DataFrame, dict[str, str], int]:
    """Return a file's table, the settings in the lines before it, and its header's line number."""
    existing_file("path must be an existing file", path)
    if path.stat().st_size > most_bytes:
        raise ValueError(f"{path}: a log must have at most {most_bytes} bytes; see most_bytes")
    with path.open("rb") as file:
        beginning = file.read(4)
        file.seek(0)
        if beginning == b"PAR1":
            return _parquet(path, most_lines), {}, 0
        if beginning[:2] != b"\x1f\x8b":
            content, begin = _content(path, file, most_bytes, most_lines)
        else:
            try:
                with gzip.open(file) as stream:
                    content, begin = _content(path, stream, most_bytes, most_lines)
            except (OSError, EOFError, zlib.error) as error:
                raise ValueError(f"{path} must be a complete gzip file, got: {error}") from error
    remark = _REMARK.search(content, begin)
    if remark:
        line = content.count(b"\n", 0, remark.start()) + 2
        text = remark[0][1:].decode("utf-8", "replace")
        raise ValueError(
            f"{path}: line {line}: a line with # must come before the header, got {text!r}"
        )
    header_line = content.count(b"\n", 0, begin) + 1
    return _csv(path, content, begin, header_line), _said(path, content[:begin]), header_line


def _said(path: Path, front: bytes) -> dict[str, str]:
    """Return the settings of rounds in the lines before a header, by name."""
    said = dict[str, str]()
    for found in _SAID.findall(front):
        written, value = (part.strip().decode("utf-8", "replace") for part in found)
        name = written.lower().replace("-", "_")
        if name in _CLOCK and said.setdefault(name, value) != value:
            raise ValueError(f"{path}: # {name} must be given once, got {said[name]} and {value}")
        meant = get_close_matches(name, _CLOCK, 1, 0.8)
        if meant and name not in _CLOCK:
            raise ValueError(
                f"{path}: # {written} is not a header line: did you mean # {meant[0]}?"
            )
    return said


def _content(
    path: Path, stream: BufferedIOBase, most_bytes: int, most_lines: int
) -> tuple[bytes, int]:
    """Return a file's content, and the start of its header.

    Content over a limit is refused as early as possible, as a megabyte may unpack to gigabytes.
    """
    part = stream.read(_PART).removeprefix(b"\xef\xbb\xbf")
    begin = _header_begin(path, part)
    parts, sums = [], {"bytes": 0, "lines": 0}
    while part:
        if b"\0" in part:
            raise ValueError(f"{path} must be text, got a zero byte")
        lines = part.count(b"\n")
        if not lines and len(part) == _PART:
            raise ValueError(f"{path}: a line must have at most {_PART} bytes, got more")
        sums["bytes"] += len(part)
        sums["lines"] += lines
        for what, most in (("bytes", most_bytes), ("lines", most_lines)):
            if sums[what] > most:
                raise ValueError(
                    f"{path}: a log must have at most {most} {what}, unpacked, "
                    f"got more; see most_{what}"
                )
        parts.append(part)
        part = stream.read(_PART)
    return b"".join(parts), begin


def _header_begin(path: Path, beginning: bytes) -> int:
    """Return the start of the first line that is neither empty nor starts with #."""
    found = _FIRST_OF_HEADER.search(beginning)
    if len(beginning) >= _PART and (not found or beginning.find(b"\n", found.end()) < 0):
        raise ValueError(
            f"{path} must have its header, {_FORMS}, in its first {_PART} bytes, got none there"
        )
    if not found:
        raise ValueError(f"{path} must have a header, {_FORMS}; got an empty file")
    return found.start()


def _parquet(path: Path, most_lines: int) -> pd.DataFrame:
    import pandas as pd

    try:
        from pyarrow.parquet import read_metadata

        rows = read_metadata(path).num_rows
        if rows <= most_lines:
            return pd.read_parquet(path).reset_index(drop=True).rename(columns=str)
    except ImportError as error:
        raise ValueError(f"{path}: Parquet needs pyarrow (pip install pyarrow), or CSV") from error
    except Exception as error:  # pyarrow's errors have no common class
        raise ValueError(f"{path} must be a Parquet file, got: {error}") from error
    raise ValueError(
        f"{path}: a log must have at most {most_lines} rows, got {rows}; see most_lines"
    )


def _csv(path: Path, content: bytes, begin: int, header_line: int) -> pd.DataFrame:
    import pandas as pd

    stream = io.BytesIO(content)
    stream.seek(begin)
    header = stream.readline()
    separator = next((mark for mark in b",;\t" if mark in header), ord(","))
    names = _header(path, header, chr(separator))
    fields = f"{path}: line {{}}: a row must have {len(names)} fields, like the header, got {{}}"
    in_first = header_line + 1, stream.readline().count(separator) + 1
    if in_first[1] > MOST_COLUMNS:
        # pandas would make a column of each.
        raise ValueError(fields.format(*in_first))
    stream.seek(begin)
    with warnings.catch_warnings():
        # If the first row has a field too many, pandas only warns.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            # Blank lines are kept, so that row numbers are line numbers.
            table = pd.read_csv(
                stream,
                header=None,
                sep=chr(separator),
                dtype={"client": str},
                skiprows=1,
                names=names,
                keep_default_na=False,
                skipinitialspace=True,
                skip_blank_lines=False,
                low_memory=False,
                index_col=False,
            )
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be text in UTF-8, got: {error}") from error
        except pd.errors.ParserWarning as error:
            raise ValueError(fields.format(*in_first)) from error
        except pd.errors.ParserError as error:
            if found := re.search(r"in line (\d+), saw (\d+)", str(error)):
                line = int(found[1]) + header_line - 1
                raise ValueError(fields.format(line, found[2])) from error
            raise ValueError(
                f"{path}: quotation marks must be closed, got a file that ends within a pair"
            ) from error
    # A missing field is read as an empty one.
    if (suspects := np.flatnonzero(table.iloc[:, -1] == "")).size:
        stream.seek(begin)
        stream.readline()
        lines = io.TextIOWrapper(stream, "utf-8", newline="")
        rows = csv.reader(lines, delimiter=chr(separator), skipinitialspace=True)
        if short := _short_row(rows, set(suspects.tolist()), len(names)):
            raise ValueError(fields.format(short[0] + header_line, short[1]))
    return table


def _short_row(rows: Any, suspects: set[int], fields: int) -> tuple[int, object] | None:
    """Return the line and number of fields of the first suspect row that is too short, or None."""
    try:
        for place, row in enumerate(rows):
            if place in suspects and any(row) and len(row) < fields:
                return rows.line_num, len(row)
    except csv.Error:
        return rows.line_num, f"one of more than {csv.field_size_limit()} characters"
    return None


def _header(path: Path, line: bytes, separator: str) -> list[str]:
    """Return the names of columns."""
    if (count := line.count(separator.encode()) + 1) > MOST_COLUMNS:
        raise ValueError(
            f"{path}: a log must have at most {MOST_COLUMNS} columns, got {count}; "
            "client,from,to is a form for any number of clients"
        )
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if "\r" in text:
        raise ValueError(f"{path}: lines must end in \\n or \\r\\n, got \\r alone")
    read = csv.reader([text], delimiter=separator, skipinitialspace=True)
    try:
        names = [name.strip() for name in next(read)]
    except csv.Error as error:
        raise ValueError(f"{path}: the header must be one line, got: {error}") from error
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{path}: columns must have a name each, got {twice!r} twice")
    return names


def _clock(
    said: dict[str, str], round_length: float | None, start: float | None, rounds: int | None
) -> _Clock:
    """Return the mapping of times to rounds from arguments, or from the lines before the header."""
    if round_length is None:
        round_length = _number_said(said, "round_length")
    if start is None:
        start = _number_said(said, "start")
    if rounds is None and (count := _number_said(said, "rounds")) is not None:
        rounds = int(count) if count.is_integer() else count
    if start is not None:
        start = validation.real_number("start", start, "finite", np.isfinite)
    if rounds is not None:
        rounds = validation.whole_number("rounds", rounds, at_least=2, at_most=2**63)
        if rounds > MOST_ROUNDS:
            raise ValueError(f"rounds must be at most {MOST_ROUNDS}, got {rounds:.6g}")
    if round_length is not None:
        round_length = validation.real_number(
            "round_length", round_length, "positive and finite", lambda number: 0 < number < np.inf
        )
    return _Clock(start, rounds, round_length)


def _check_length(clock: _Clock, times: FloatArray, column: pd.Series) -> None:
    """Require the length of a round if 1 is unlikely to be meant."""
    if clock.round_length is not None:
        return
    first, last = float(times.min()), float(times.max())
    if not np.isfinite(_as_numbers(column)).any():
        raise ValueError(
            "round_length must be given, in seconds, if times are dates, e.g. 3600 for rounds "
            f"of an hour; the log spans {(last - first) / 86400:.3g} days"
        )
    if since := next((least for least in _SINCE_1970 if first >= least), None):
        hour = round(3600 * since / 1e8)
        raise ValueError(
            f"round_length must be given if times look like {_SINCE_1970[since]}seconds since "
            f"1970, e.g. {hour} for rounds of an hour; got times from {first:.15g} to {last:.15g}"
        )
    several = np.unique(times)
    whole = several.size >= _SEVERAL and (several == np.round(several)).all()
    common = int(np.gcd.reduce(several.astype(np.int64))) if whole else 1
    if common >= _A_MINUTE:
        raise ValueError(
            f"round_length must be given if all times are multiples of {common}: {common} if "
            "rounds begin at these times, or 1"
        )


def _number_said(said: dict[str, str], name: str) -> Any:
    if name not in said:
        return None
    try:
        return float(said[name])
    except ValueError:
        raise ValueError(f"# {name} must be a number, got {said[name]!r}") from None


Reader = Callable[["pd.DataFrame", _Clock], AvailabilityLog]


def _reader(table: pd.DataFrame, header_line: int) -> Reader:
    """Return the reader for a table with this header."""
    columns = table.columns.tolist()
    lines = _Lines(header_line)
    if "" in columns:
        at = columns.index("") + 1
        raise ValueError(f"{lines.header}: columns must have a name each, got none for column {at}")
    for form, reader in ((EVENTS, _events), (INTERVALS, _intervals)):
        if set(columns) == set(form):
            return lambda table, clock: reader(_without_blanks(table), clock, lines)
    if "round" in columns and "client" not in columns:
        return lambda table, clock: _matrix(_without_blanks(table), clock, lines)
    for form in (EVENTS, INTERVALS):
        if set(form) <= set(columns):
            extra = ", ".join(name for name in columns if name not in form)
            raise ValueError(
                f"{lines.header}: columns must be {','.join(form)}, got {extra} as well"
            )
    got = ",".join(columns[:6]) + (",..." if len(columns) > 6 else "")
    raise ValueError(
        f"{lines.header}: columns must be {_FORMS}; got {got}: if they have other names, "
        "--columns client=user,from=login,to=logout says which is which"
    )


@dataclass(frozen=True)
class _Lines:
    """The position of a row in its file; a Parquet file has only rows."""

    header_line: int

    @property
    def header(self) -> str:
        return f"line {self.header_line}" if self.header_line else "columns"

    def __call__(self, row: int) -> str:
        return f"line {row + self.header_line + 1}" if self.header_line else f"row {row + 1}"


def _without_blanks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that are not empty, with their original numbers."""
    first = table.iloc[:, 0]
    suspect = first.isna() | (first == "")
    if not suspect.any():
        return table
    blank = suspect & (table.isna() | (table == "")).all(axis=1)
    return table[~blank]


def _codes(table: pd.DataFrame, lines: _Lines) -> tuple[Rounds, list[str]]:
    """Return each row's client as a number, and the names in order of appearance."""
    import pandas as pd

    names = table["client"].astype(str).str.strip()
    empty = np.flatnonzero((table["client"].isna() | (names == "")).to_numpy())
    if empty.size:
        raise ValueError(f"{lines(table.index[empty[0]])}: client must be a name, got none")
    codes, clients = pd.factorize(names)
    return codes.astype(np.int64), [read_text(str(name)) for name in clients]


def _times(column: pd.Series, lines: _Lines) -> FloatArray:
    """Return times as numbers, and dates as seconds since 1970; NaN for empty fields."""
    numbers: FloatArray = _as_numbers(column)
    nothing = (column.isna() | (column == "")).to_numpy()
    bad = np.flatnonzero(~np.isfinite(numbers) & ~nothing)
    said_in_words = column.dtype.kind not in "iuf"
    if said_in_words and bad.size and bad.size == np.count_nonzero(~nothing):
        numbers = _seconds(column.where(~nothing))
        bad = np.flatnonzero(~np.isfinite(numbers) & ~nothing)
    if bad.size:
        place, value = lines(column.index[bad[0]]), column.iloc[bad[0]]
        good = np.flatnonzero(np.isfinite(numbers))
        is_date = said_in_words and np.isfinite(_seconds(column.iloc[bad[:1]])).all()
        if good.size and is_date:
            other = lines(column.index[good[0]])
            raise ValueError(
                f"{place}: {column.name} must be numbers throughout or dates throughout, got "
                f"{str(value)!r} and, in {other}, {str(column.iloc[good[0]])!r}"
            )
        raise ValueError(
            f"{place}: {column.name} must be a number or a date, got {str(value)!r}; write dates "
            "like 2026-09-14 13:45:00 (pandas.to_datetime reads most other forms)"
        )
    return numbers


def _seconds(column: pd.Series) -> FloatArray:
    """Return dates as seconds since 1970; NaN if a text is not a date."""
    import pandas as pd

    # pandas would read these as the current time.
    of_reading = column.astype(str).str.strip().str.lower().isin(("now", "today"))
    if column.dtype.kind != "M":
        column = column.astype(str).str.replace(_IN_UTC, "", regex=True)
    try:
        dates = pd.to_datetime(column.mask(of_reading), format="ISO8601", utc=True, errors="coerce")
        since = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    except pd.errors.OutOfBoundsDatetime as error:
        reason = str(error).partition(",")[0]
        raise ValueError(
            f"{column.name} must be dates of the years from 1678 to 2261, got: {reason}"
        ) from error
    return np.asarray(since, dtype=np.float64)


def _as_numbers(column: pd.Series) -> FloatArray:
    import pandas as pd

    if column.dtype.kind == "M":
        return np.full(len(column), np.nan)
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64)
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _no_gap(times: FloatArray, column: pd.Series, lines: _Lines) -> None:
    missing = np.flatnonzero(np.isnan(times))
    if missing.size:
        raise ValueError(
            f"{lines(column.index[missing[0]])}: {column.name} must be given, got none"
        )


def _zeros_and_ones(column: pd.Series, lines: _Lines) -> NDArray[np.bool_]:
    if column.dtype.kind == "b":
        return column.to_numpy(dtype=bool)
    if column.dtype.kind in "iuf":
        values = column.to_numpy()
        bad = np.flatnonzero((values != 0) & (values != 1))
        there = values == 1
    else:
        text = column.astype(str).str.strip()
        there = text.isin(_TRUE).to_numpy()
        bad = np.flatnonzero(~there & ~text.isin(_FALSE).to_numpy())
    if bad.size:
        place, value = lines(column.index[bad[0]]), column.iloc[bad[0]]
        value = "nothing" if value in ("", None) or value != value else repr(str(value))
        raise ValueError(f"{place}: {column.name} must be 0 or 1, got {value}")
    return there


def _events(table: pd.DataFrame, clock: _Clock, lines: _Lines) -> AvailabilityLog:
    _some_rows(table)
    codes, clients = _codes(table, lines)
    times = _times(table["time"], lines)
    _no_gap(times, table["time"], lines)
    there = _zeros_and_ones(table["present"], lines)
    # A client's events keep the file's order, which is then checked.
    order = np.argsort(codes, kind="stable")
    codes, times, there, rows = codes[order], times[order], there[order], table.index[order]
    same = codes[1:] == codes[:-1]
    bad = np.flatnonzero(same & (times[1:] <= times[:-1]))
    if bad.size:
        at = bad[0]
        raise ValueError(
            f"{lines(rows[at + 1])}: time of a client must be after its previous one, which is "
            f"{times[at]:.15g} in {lines(rows[at])}; got {times[at + 1]:.15g} for "
            f"{clients[codes[at]]!r}"
        )
    _check_length(clock, times, table["time"])
    until = np.append(np.where(same, times[1:], np.inf), np.inf)
    start = times.min() if clock.start is None else clock.start
    rounds = clock.rounds
    if rounds is None:
        rounds = _round_number(times.max(), start, clock, after=True)
    return _log_of(clients, codes[there], times[there], until[there], start, rounds, clock)


def _intervals(table: pd.DataFrame, clock: _Clock, lines: _Lines) -> AvailabilityLog:
    _some_rows(table)
    codes, clients = _codes(table, lines)
    begin, end = (_times(table[name], lines) for name in ("from", "to"))
    never = np.isnan(begin) & np.isnan(end)
    _no_gap(np.where(never, 0.0, begin), table["from"], lines)
    end = np.where(np.isnan(end) & ~never, np.inf, end)
    bad = np.flatnonzero(begin >= end)
    if bad.size:
        at = bad[0]
        raise ValueError(
            f"{lines(table.index[at])}: from must be before to, "
            f"got {begin[at]:.15g} and {end[at]:.15g}"
        )
    if never.all():
        raise ValueError("at least one client must be online at some time, got no stays")
    order = np.lexsort((begin, codes))
    order = order[~never[order]]
    codes, begin, end, rows = codes[order], begin[order], end[order], table.index[order]
    bad = np.flatnonzero((codes[1:] == codes[:-1]) & (begin[1:] < end[:-1]))
    if bad.size:
        at = bad[0]
        raise ValueError(
            f"{lines(max(rows[at], rows[at + 1]))}: stays of a client must not overlap, got two of "
            f"{clients[codes[at]]!r}, the other in {lines(min(rows[at], rows[at + 1]))}"
        )
    known = np.isfinite(end)
    _check_length(clock, np.concatenate([begin, end[known]]), table["from"])
    start = begin.min() if clock.start is None else clock.start
    rounds = clock.rounds
    if rounds is None:
        # Clients that are still online were last seen when their stay began.
        rounds = max(
            _round_number(times.max(), start, clock, after=after)
            for times, after in ((end[known], False), (begin[~known], True))
            if times.size
        )
    return _log_of(clients, codes, begin, end, start, rounds, clock)


def _matrix(table: pd.DataFrame, clock: _Clock, lines: _Lines) -> AvailabilityLog:
    _some_rows(table)
    if clock.start is not None or clock.rounds is not None or clock.length != 1:
        raise ValueError(
            "start, rounds and round_length must be left out if the log has a column round, got "
            f"{clock.start}, {clock.rounds} and {clock.round_length}"
        )
    column = table["round"]
    rounds = _as_numbers(column)
    bad = np.flatnonzero(~(np.isfinite(rounds) & (rounds == np.round(rounds))))
    if bad.size:
        value = column.iloc[bad[0]]
        raise ValueError(
            f"{lines(table.index[bad[0]])}: round must be a whole number, got {str(value)!r}"
        )
    bad = np.flatnonzero(np.diff(rounds) != 1)
    if bad.size:
        at = bad[0]
        raise ValueError(
            f"{lines(table.index[at + 1])}: rounds must be consecutive, got {rounds[at + 1]:.15g} "
            f"after {rounds[at]:.15g}"
        )
    columns = [name for name in table.columns if name != "round"]
    if not columns:
        raise ValueError(
            f"{lines.header}: there must be a column 'round' and one column per client, got no "
            "client columns"
        )
    masks = np.column_stack([_zeros_and_ones(table[name], lines) for name in columns])
    return AvailabilityLog.from_masks(masks, list(map(read_text, columns)))


def _some_rows(table: pd.DataFrame) -> None:
    if not len(table):
        raise ValueError("a log must have rows below its header, got none")


def _round_number(time: float, start: float, clock: _Clock, *, after: bool) -> int:
    """Return how many rounds start before a time, or not after it."""
    with np.errstate(over="ignore"):
        place = (time - start) / clock.length
    count = np.floor(place + _ROUNDING) + 1 if after else np.ceil(place - _ROUNDING)
    if count > MOST_ROUNDS:
        raise ValueError(
            f"a log must have at most {MOST_ROUNDS} rounds, got {count:.6g} of length "
            f"{clock.length:.6g}; see round_length"
        )
    if count < 1:
        raise ValueError(f"start must be before the log's last time, {time:.15g}, got {start:.15g}")
    return int(count)


def _log_of(
    clients: list[str],
    who: Rounds,
    begin: FloatArray,
    end: FloatArray,
    start: float,
    rounds: int,
    clock: _Clock,
) -> AvailabilityLog:
    """Return the log of stays given in time; a round belongs to a stay if its start does."""

    def first_round_from(times: FloatArray) -> FloatArray:
        places = (times - start) / clock.length
        return np.asarray(np.ceil(places - _ROUNDING))

    first, stop = first_round_from(begin), first_round_from(end)
    within = first < stop
    lost = int(np.count_nonzero(~within))
    first, stop = (np.clip(round_, 0, rounds) for round_ in (first, stop))
    within &= first < stop
    who, first, stop = who[within], first[within].astype(np.int64), stop[within].astype(np.int64)
    # Stays in adjacent rounds are merged.
    opens = np.ones(who.size, dtype=bool)
    opens[1:] = (who[1:] != who[:-1]) | (first[1:] > stop[:-1])
    closes = np.append(opens[1:], True)[: who.size]
    return AvailabilityLog(
        clients, rounds, who[opens], first[opens], stop[closes], between_rounds=lost
    )
