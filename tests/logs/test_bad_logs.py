"""Logs that are wrong in one place, drawn: each is refused, in one line, and nothing is guessed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fltheory.logs import read_log

Rng = np.random.Generator
Rows = list[list[str]]


def stays(rng: Rng) -> Rows:
    """Return a good log of intervals: seven clients or more, of several stays each."""
    rows = []
    for client in range(int(rng.integers(7, 12))):
        edges = np.sort(rng.choice(500, 2 * int(rng.integers(2, 6)), replace=False))
        rows += [[f"c{client}", *map(str, edges[at : at + 2])] for at in range(0, edges.size, 2)]
    return rows


def text(rows: Rows, header: str = "client,from,to", mark: str = ",") -> str:
    return "\n".join([header.replace(",", mark), *(mark.join(row) for row in rows)]) + "\n"


def changed(column: int, value: str) -> Callable[[Rng], str]:
    def bad(rng: Rng) -> str:
        rows = stays(rng)
        rows[int(rng.integers(len(rows)))][column] = value
        return text(rows)

    return bad


def with_times(told: Callable[[int], str]) -> Callable[[Rng], str]:
    return lambda rng: text([[c, told(int(a)), told(int(b))] for c, a, b in stays(rng)])


def matrix(rng: Rng) -> Rows:
    masks = rng.random((30, 4)) < 0.5
    return [[str(r), *map(str, row.astype(int).tolist())] for r, row in enumerate(masks)]


def matrix_with(column: int, value: str) -> Callable[[Rng], str]:
    def bad(rng: Rng) -> str:
        rows = matrix(rng)
        rows[int(rng.integers(2, 30))][column] = value
        return text(rows, "round,a,b,c,d")

    return bad


def date(form: str) -> Callable[[int], str]:
    return lambda t: time.strftime(form, time.gmtime(1_789_000_000 + 3600 * t))


def overlapping(rng: Rng) -> str:
    rows = stays(rng)
    client, begin, end = rows[int(rng.integers(len(rows)))]
    return text([*rows, [client, str(int(begin) - 1), str(int(end) + 1)]])


def still_there_and_back(rng: Rng) -> str:
    rows = stays(rng)
    rows[0][2] = ""
    return text(rows)


def events(rng: Rng) -> Rows:
    return [["c0", "0", "1"], *([f"c{k}", str(t), str(t % 2)] for k in (0, 1) for t in range(1, 9))]


def out_of_order(rng: Rng) -> str:
    rows = events(rng)
    at = int(rng.integers(1, 7))
    rows[at], rows[at + 1] = rows[at + 1], rows[at]
    return text(rows, "client,time,present")


BAD: dict[str, Callable[[Rng], str]] = {
    "overlapping": overlapping,
    "still there and back": still_there_and_back,
    "from after to": changed(1, "900"),
    "no client": changed(0, ""),
    "no from": changed(1, ""),
    "a word": changed(2, "late"),
    "infinite": changed(2, "inf"),
    "a date among numbers": changed(1, "2026-09-14"),
    "dates": with_times(date("%Y-%m-%d %H:%M:%S")),
    "dates in UTC": with_times(date("%Y-%m-%d %H:%M:%S UTC")),
    "American dates": with_times(date("%m/%d/%Y %I:%M %p")),
    "seconds since 1970": with_times(lambda t: str(1_789_000_000 + t)),
    "milliseconds since 1970": with_times(lambda t: str(1_789_000_000_000 + t)),
    "hours in seconds": with_times(lambda t: str(3600 * t)),
    "decimal commas": lambda rng: text(
        [[c, f"{a},5", f"{b},5"] for c, a, b in stays(rng)], mark=";"
    ),
    "another column": lambda rng: text([[*row, "x"] for row in stays(rng)], "client,from,to,note"),
    "another header": lambda rng: text(stays(rng), "user,login,logout"),
    "a column twice": lambda rng: text(stays(rng), "client,from,from"),
    "a field too many": lambda rng: text(stays(rng)) + "c0,900,901,902\n",
    "a field too few": lambda rng: text([*stays(rng), ["c0", "900"]]),
    "a field of text too few": lambda rng: (
        text([[c, a, b, "x"] for c, a, b in stays(rng)], "client,from,to,note") + "c0,900,901\n"
    ),
    "a total below": lambda rng: text(stays(rng)) + "Total: 7\n",
    "fields between other marks": lambda rng: text(stays(rng), "client;from;to"),
    "a column without a name": lambda rng: text(
        [[str(n), *row] for n, row in enumerate(stays(rng))], ",client,from,to"
    ),
    "two files, with their marks of order": lambda rng: text(stays(rng)) + "\ufeffc1,900,901\n",
    "a bell": changed(0, "c\a0"),
    "microseconds since 1970": with_times(lambda t: str(1_789_000_000_000_000 + t)),
    "rounds said twice": lambda rng: "# rounds: 600\n# Rounds: 601\n" + text(stays(rng)),
    "rounds in the singular": lambda rng: "# round: 600\n" + text(stays(rng)),
    "no length by the option's name": lambda rng: "# round-length: 0\n" + text(stays(rng)),
    "ends of lines of the last century": lambda rng: text(stays(rng)).replace("\n", "\r"),
    "an open quotation": lambda rng: text(stays(rng)) + '"c0,900,901\n',
    "a zero byte": lambda rng: text(stays(rng)) + "c0,900,90\0\n",
    "beyond all rounds": changed(2, "1e15"),
    "rounds in words": lambda rng: "# rounds: many\n" + text(stays(rng)),
    "events out of order": out_of_order,
    "half there": lambda rng: text([*events(rng), ["c2", "3", "0.5"]], "client,time,present"),
    "a round twice": matrix_with(0, "1"),
    "a round that is none": matrix_with(0, "1.5"),
    "2 in a matrix": matrix_with(3, "2"),
    "nothing in a matrix": matrix_with(3, ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_log_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.csv"
    for seed in range(7):
        path.write_text(BAD[kind](np.random.default_rng([list(BAD).index(kind), seed])))
        begun = time.process_time()
        with pytest.raises(ValueError, match=r"log\.csv") as caught:
            read_log(path)
        assert "\n" not in str(caught.value)
        assert time.process_time() - begun < 20


def test_the_same_logs_without_the_fault_are_read(tmp_path: Path) -> None:
    path, rng = tmp_path / "log.csv", np.random.default_rng(0)
    for good in (text(stays(rng)), text(events(rng), "client,time,present")):
        path.write_text(good)
        assert read_log(path).n_rounds > 2
    path.write_text(text(matrix(rng), "round,a,b,c,d"))
    assert read_log(path).n_rounds == 30
    path.write_text("# round-length: 2\nclient,from,to\nc0,0,8\nc1,2,\n\n")
    assert read_log(path).present().astype(int).tolist() == [[1, 0], [1, 1], [1, 1], [1, 1]]
    path.write_text(BAD["dates in UTC"](rng))
    assert read_log(path, round_length=3600).n_rounds < 600
    path.write_text(BAD["another header"](rng))
    columns = {"client": "user", "from": "login", "to": "logout"}
    assert read_log(path, columns=columns).n_rounds > 2
