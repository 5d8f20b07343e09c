"""Availability logs as files: three forms of CSV, also compressed by gzip, and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
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
"""The largest file that is read, once it is unpacked."""

MOST_ROUNDS = 20_000_000
"""More rounds than these are taken for times whose rounds have not been said."""

EVENTS = ("client", "time", "present")
INTERVALS = ("client", "from", "to")
_FORMS = "client,time,present; client,from,to; or round and a column a client"
_SAID = ("start", "rounds", "round_length")
_TRUE, _FALSE = ("1", "1.0", "true", "True"), ("0", "0.0", "false", "False")
# Below the header it would be a client of this name.
_REMARK = re.compile(rb"(?<=\n)#[^,\r\n]*(?=[\r\n]|\Z)")
# A time this close to a round's beginning, in rounds, is its beginning: 0.3/0.1 is 3 then.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Clock:
    """How times become rounds: what was said of it, None where it follows from the log."""

    start: float | None
    rounds: int | None
    round_length: float


@checks_kinds
def read_log(
    path: Path | str,
    *,
    round_length: float | None = None,
    start: float | None = None,
    rounds: int | None = None,
    most_bytes: int = MOST_BYTES,
) -> AvailabilityLog:
    r"""Read who was there from a file: CSV with a header, the same through gzip, or Parquet.

    The header says which form it is:

    ``client,time,present``
        An event: the client is there (1) or away (0) from this time until its next event, or the
        end of the log. Before its first event a client is away. A client's events are in order.
    ``client,from,to``
        A stay, without the moment ``to``; in any order, not overlapping. Both empty: a client
        that was never there.
    ``round,ann,bob,...``
        A row a round, in order and without gaps, 1 for whoever was there.

    Round r, from 0, begins at ``start + r round_length``, and a client takes part in it if it is
    there at that moment. Times are numbers, or dates of ISO 8601, in seconds then, UTC unless
    they say otherwise. Lines ``# start: 0``, ``# rounds: 100`` and ``# round_length: 60`` in
    front of the header say what the arguments of these names do, which come before them.

    Parameters
    ----------
    path : Path
    round_length : float, default 1
        How long a round lasts, in the log's unit of time.
    start : float, optional
        When round 0 begins; the log's first time by default.
    rounds : int, optional
        How many rounds there are; by default those that begin before the last ``to``, or not
        after the last event.
    most_bytes : int
        The largest file, once unpacked.

    Raises
    ------
    ValueError
        If there is no such file, or for whatever in it is in none of the forms; with the line,
        where there is one. Also for fewer than two rounds, and where nobody is ever there.

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
    limit = validation.whole_number("most_bytes", most_bytes, at_least=1, at_most=2**63)
    table, said, header_line = _table(path, limit)
    try:
        clock = _clock(said, round_length, start, rounds)
        log = _reader(table, header_line)(table, clock)
        if log.n_rounds < 2:
            raise ValueError("a log must have at least two rounds, got one; see round_length")
        if not log.who.size:
            raise ValueError(f"somebody must be there in some round, got {log} with nobody")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return log


@checks_kinds
def write_log(path: Path | str, log: AvailabilityLog) -> None:
    """Write a log as ``client,from,to``, in rounds; a name that ends in ``.gz`` is compressed.

    `read_log` gives the same log again: clients in their order, those never there, all rounds.

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
    # No time in the compressed file, so that the same log makes the same file.
    write_whole(path, gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text)


def _table(path: Path, most_bytes: int) -> tuple[pd.DataFrame, dict[str, str], int]:
    """Return a file's table, what the lines in front of it say, and the line of its header."""
    existing_file("path must be an existing file", path)
    if path.stat().st_size > most_bytes:
        raise ValueError(f"{path}: a log must have at most {most_bytes} bytes; see most_bytes")
    with path.open("rb") as file:
        beginning = file.read(4)
        if beginning == b"PAR1":
            return _parquet(path), {}, 0
        file.seek(0)
        content = file.read()
    if beginning[:2] == b"\x1f\x8b":
        content = _unpacked(path, content, most_bytes)
    said, header_line, begin = _front(path, content)
    remark = _REMARK.search(content, begin)
    if remark:
        line = content.count(b"\n", 0, remark.start()) + 1
        text = remark[0].decode("utf-8", "replace")
        raise ValueError(
            f"{path}: line {line}: a line with # must stand in front of the header, got {text!r}"
        )
    return _csv(path, io.BytesIO(content[begin:]), header_line), said, header_line


def _unpacked(path: Path, content: bytes, most_bytes: int) -> bytes:
    """Return what gzip compressed, up to a limit: a small file may hold terabytes."""
    parts, size = [], 0
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            while part := stream.read(1 << 22):
                if b"\0" in part:
                    raise ValueError(f"{path} must be text, got a byte that is zero")
                size += len(part)
                if size > most_bytes:
                    raise ValueError(
                        f"{path}: a log must have at most {most_bytes} bytes once it is unpacked, "
                        f"got more; see most_bytes"
                    )
                parts.append(part)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} must be a whole gzip file, got: {error}") from error
    return b"".join(parts)


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_parquet(path).reset_index(drop=True).rename(columns=str)
    except ImportError as error:
        raise ValueError(f"{path}: Parquet needs pyarrow (pip install pyarrow), or CSV") from error
    except Exception as error:  # what pyarrow raises has no common class
        raise ValueError(f"{path} must be a Parquet file, got: {error}") from error


def _front(path: Path, content: bytes) -> tuple[dict[str, str], int, int]:
    """Return what the lines with # say, the header's line from 1, and where it begins."""
    said: dict[str, str] = {}
    begin = 3 if content.startswith(b"\xef\xbb\xbf") else 0
    line = 1
    while begin < len(content):
        end = content.find(b"\n", begin)
        end = len(content) if end < 0 else end
        text = content[begin:end].strip()
        if text and not text.startswith(b"#"):
            return said, line, begin
        match = re.fullmatch(r"#\s*(\w+)\s*:\s*(.*)", text.decode("utf-8", "replace"))
        if match and match[1].lower() in _SAID:
            said[match[1].lower()] = match[2]
        begin, line = end + 1, line + 1
    raise ValueError(f"{path} must have a header, {_FORMS}; got an empty file")


def _csv(path: Path, content: io.BytesIO, header_line: int) -> pd.DataFrame:
    import pandas as pd

    with warnings.catch_warnings():
        # Where the first row has a field too many, pandas only warns.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            # Blank lines stay, so that a row's number is its line's.
            table = pd.read_csv(
                content,
                header=None,
                dtype={"client": str},
                skiprows=1,
                names=_header(path, content),
                keep_default_na=False,
                skipinitialspace=True,
                skip_blank_lines=False,
                low_memory=False,
                index_col=False,
            )
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be text in UTF-8, got: {error}") from error
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise ValueError(f"{path}: {_too_long_line(content, header_line)}") from error
    return table


def _header(path: Path, content: io.BytesIO) -> list[str]:
    """Return the names of columns; the file is at its beginning again afterwards."""
    line = content.readline().decode("utf-8", "replace")
    content.seek(0)
    try:
        names = [name.strip() for name in next(csv.reader([line], skipinitialspace=True))]
    except csv.Error as error:
        raise ValueError(f"{path}: the header must be one line, got: {error}") from error
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{path}: columns must have a name each, got {twice!r} twice")
    return names


def _too_long_line(content: io.BytesIO, header_line: int) -> str:
    content.seek(0)
    rows = csv.reader(io.TextIOWrapper(content, "utf-8", "replace", newline=""))
    width = len(next(rows))
    for row in rows:
        if len(row) > width:
            line = rows.line_num + header_line - 1
            return f"line {line}: a row must have {width} fields as the header, got {len(row)}"
    return "quotation marks must be closed, got a file that ends within a pair of them"


def _clock(
    said: dict[str, str], round_length: float | None, start: float | None, rounds: int | None
) -> _Clock:
    """Return what is known of rounds: from the arguments, else from the lines in front."""
    if round_length is None:
        round_length = _number_said(said, "round_length", 1.0)
    if start is None:
        start = _number_said(said, "start", None)
    if rounds is None and "rounds" in said:
        count = _number_said(said, "rounds", None)
        rounds = int(count) if float(count).is_integer() else count
    if start is not None:
        start = validation.real_number("start", start, "finite", np.isfinite)
    if rounds is not None:
        rounds = validation.whole_number("rounds", rounds, at_least=2, at_most=2**63)
        if rounds > MOST_ROUNDS:
            raise ValueError(f"rounds must be at most {MOST_ROUNDS}, got {rounds:.6g}")
    length = validation.real_number(
        "round_length", round_length, "positive and finite", lambda number: 0 < number < np.inf
    )
    return _Clock(start, rounds, length)


def _number_said(said: dict[str, str], name: str, default: float | None) -> Any:
    if name not in said:
        return default
    try:
        return float(said[name])
    except ValueError:
        raise ValueError(f"# {name} must be a number, got {said[name]!r}") from None


Reader = Callable[["pd.DataFrame", _Clock], AvailabilityLog]


def _reader(table: pd.DataFrame, header_line: int) -> Reader:
    """Return what reads a table of this header."""
    columns = table.columns.tolist()
    lines = _Lines(header_line)
    for form, reader in ((EVENTS, _events), (INTERVALS, _intervals)):
        if set(columns) == set(form):
            return lambda table, clock: reader(_without_blanks(table), clock, lines)
    if "round" in columns and "client" not in columns:
        return lambda table, clock: _matrix(_without_blanks(table), clock, lines)
    for form in (EVENTS, INTERVALS):
        if set(form) <= set(columns):
            extra = ", ".join(name for name in columns if name not in form)
            raise ValueError(
                f"{lines.header}: columns must be {','.join(form)}, got {extra} besides"
            )
    got = ",".join(columns[:6]) + (",..." if len(columns) > 6 else "")
    raise ValueError(f"{lines.header}: columns must be {_FORMS}; got {got}")


@dataclass(frozen=True)
class _Lines:
    """Where a row stands in its file; a Parquet file has rows only."""

    header_line: int

    @property
    def header(self) -> str:
        return f"line {self.header_line}" if self.header_line else "columns"

    def __call__(self, row: int) -> str:
        return f"line {row + self.header_line + 1}" if self.header_line else f"row {row + 1}"


def _without_blanks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that say something, each with the number that it had."""
    first = table.iloc[:, 0]
    suspect = first.isna() | (first == "")
    if not suspect.any():
        return table
    blank = suspect & (table.isna() | (table == "")).all(axis=1)
    return table[~blank]


def _codes(table: pd.DataFrame, lines: _Lines) -> tuple[Rounds, list[str]]:
    """Return each row's client as a number, and the names in the order in which they come."""
    import pandas as pd

    names = table["client"].astype(str).str.strip()
    empty = np.flatnonzero((table["client"].isna() | (names == "")).to_numpy())
    if empty.size:
        raise ValueError(f"{lines(table.index[empty[0]])}: client must be a name, got none")
    codes, clients = pd.factorize(names)
    return codes.astype(np.int64), [read_text(str(name)) for name in clients]


def _times(column: pd.Series, lines: _Lines) -> FloatArray:
    """Return times as numbers, dates as seconds since 1970; NaN where nothing stands."""
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
        raise ValueError(f"{place}: {column.name} must be a number or a date, got {str(value)!r}")
    return numbers


def _seconds(column: pd.Series) -> FloatArray:
    """Return dates as seconds since 1970, NaN where a text is no date."""
    import pandas as pd

    # pandas takes these for the moment of reading.
    of_reading = column.astype(str).str.strip().str.lower().isin(("now", "today"))
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
    # A client's events keep the order of the file, which is checked.
    order = np.argsort(codes, kind="stable")
    codes, times, there, rows = codes[order], times[order], there[order], table.index[order]
    same = codes[1:] == codes[:-1]
    bad = np.flatnonzero(same & (times[1:] <= times[:-1]))
    if bad.size:
        at = bad[0]
        raise ValueError(
            f"{lines(rows[at + 1])}: time of a client must be after its last, which is "
            f"{times[at]:.15g} in {lines(rows[at])}; got {times[at + 1]:.15g} "
            f"for {clients[codes[at]]!r}"
        )
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
    for times, name in ((begin, "from"), (end, "to")):
        _no_gap(np.where(never, 0.0, times), table[name], lines)
    bad = np.flatnonzero(begin >= end)
    if bad.size:
        at = bad[0]
        raise ValueError(
            f"{lines(table.index[at])}: from must be before to, "
            f"got {begin[at]:.15g} and {end[at]:.15g}"
        )
    if never.all():
        raise ValueError("somebody must be there at some time, got nobody with a stay")
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
    start = begin.min() if clock.start is None else clock.start
    rounds = clock.rounds
    if rounds is None:
        rounds = _round_number(end.max(), start, clock, after=False)
    return _log_of(clients, codes, begin, end, start, rounds, clock)


def _matrix(table: pd.DataFrame, clock: _Clock, lines: _Lines) -> AvailabilityLog:
    _some_rows(table)
    if clock.start is not None or clock.rounds is not None or clock.round_length != 1:
        raise ValueError(
            f"start, rounds and round_length must be left out where the log has a column round, "
            f"got {clock.start}, {clock.rounds} and {clock.round_length}"
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
            f"{lines(table.index[at + 1])}: rounds must follow one another, "
            f"got {rounds[at + 1]:.15g} after {rounds[at]:.15g}"
        )
    columns = [name for name in table.columns if name != "round"]
    if not columns:
        raise ValueError(f"{lines.header}: columns must be round and one a client, got none")
    masks = np.column_stack([_zeros_and_ones(table[name], lines) for name in columns])
    return AvailabilityLog.from_masks(masks, list(map(read_text, columns)))


def _some_rows(table: pd.DataFrame) -> None:
    if not len(table):
        raise ValueError("a log must have rows below its header, got none")


def _round_number(time: float, start: float, clock: _Clock, *, after: bool) -> int:
    """Return how many rounds begin before a time, or not after it."""
    with np.errstate(over="ignore"):
        place = (time - start) / clock.round_length
    count = np.floor(place + _ROUNDING) + 1 if after else np.ceil(place - _ROUNDING)
    if count > MOST_ROUNDS:
        raise ValueError(
            f"a log must have at most {MOST_ROUNDS} rounds, got {count:.6g} of length "
            f"{clock.round_length:.6g}; see round_length"
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
    """Return the log of stays in time: a round is in a stay if its beginning is."""

    def first_round_from(times: FloatArray) -> FloatArray:
        places = (times - start) / clock.round_length
        return np.asarray(np.ceil(places - _ROUNDING))

    first, stop = first_round_from(begin), first_round_from(end)
    within = first < stop
    lost = int(np.count_nonzero(~within))
    first, stop = (np.clip(round_, 0, rounds) for round_ in (first, stop))
    within &= first < stop
    who, first, stop = who[within], first[within].astype(np.int64), stop[within].astype(np.int64)
    # Stays that touch in rounds are one.
    opens = np.ones(who.size, dtype=bool)
    opens[1:] = (who[1:] != who[:-1]) | (first[1:] > stop[:-1])
    closes = np.append(opens[1:], True)[: who.size]
    return AvailabilityLog(
        clients, rounds, who[opens], first[opens], stop[closes], between_rounds=lost
    )
