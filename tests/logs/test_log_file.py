"""Files of logs: what each form says, and what is said of those in none."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fltheory.logs import AvailabilityLog, read_log, write_log


@pytest.fixture
def read(tmp_path: Path):
    """Return a function that reads a text as a file, as (clients, who was there by client)."""

    def reading(text: str, **options):
        file = tmp_path / "log.csv"
        file.write_text(text, encoding="utf-8")
        log = read_log(file, **options)
        return log.clients, log.present().astype(int).T.tolist()

    return reading


# Ann is there in rounds 0 and 1, Bob in the rounds 1 and 3, Cid never.
THE_SAME = (("ann", "bob", "cid"), [[1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    "text",
    [
        "client,from,to\nann,0,2\nbob,1,2\nbob,3,4\ncid,,\n",
        "to,client,from\n2,ann,0\n4,bob,3\n2,bob,1\n,cid,\n",
        "# start: 0\n# rounds: 4\n\n client, from, to\nann, 0, 2\n\nbob,1,2\nbob,3,99\ncid,,",
        "\ufeffclient,from,to\r\nann,0,2\r\nbob,1,2\r\nbob,3,4\r\ncid,,\r\n",
        "client,from,to\nann,0,1\nann,1,2\nbob,1,2\nbob,3,4\ncid,,\n",
        "client,time,present\nann,0,1\nbob,0,0\ncid,0,0\nbob,1,1\nbob,2,0\nann,2,0\nbob,3,1\n",
        "client,time,present\nann,0,true\nann,2,false\nbob,1,True\nbob,2,False\nbob,3,1\ncid,1,0",
        "round,ann,bob,cid\n7,1,0,0\n8,1,1,0\n\n9,0,0,0\n10,0,1,0\n",
    ],
)
def test_the_forms_say_the_same(read, text: str) -> None:
    assert read(text) == THE_SAME


def test_a_round_is_in_a_stay_if_its_beginning_is(read, tmp_path: Path) -> None:
    # Rounds begin at 100, 110, 120 and 130.
    text = "client,from,to\nann,100,110\nbob,100.1,120.1\ncid,111,119\ndot,129,131\n"
    found = read(text, round_length=10)
    assert found[1] == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert read_log(tmp_path / "log.csv", round_length=10).between_rounds == 1
    assert read(text, round_length=10, start=110, rounds=3)[1][:2] == [[0, 0, 0], [1, 1, 0]]


def test_tenths_are_not_lost_to_rounding(read) -> None:
    """In floats 0.3/0.1 is below 3 and (0.7 - 0.1)/0.1 below 6, in decimals they are not."""
    found = read("client,from,to\nann,0.3,0.7\nbob,0,1\n", round_length=0.1)
    assert found[1][0] == [0, 0, 0, 1, 1, 1, 1, 0, 0, 0]


def test_dates_are_seconds(read) -> None:
    text = (
        "client,time,present\nann,2024-03-01T00:00:00Z,1\n"
        "ann,2024-03-01T02:00:00+01:00,0\nbob,2024-03-01 01:30,1\n"
    )
    assert read(text, round_length=1800)[1] == [[1, 1, 0, 0], [0, 0, 0, 1]]


def test_what_is_given_comes_before_what_the_file_says(read) -> None:
    text = "# rounds: 9\n# round_length: 5\nclient,from,to\nann,0,20\n"
    assert read(text)[1] == [[1, 1, 1, 1, 0, 0, 0, 0, 0]]
    assert read(text, rounds=3, round_length=10)[1] == [[1, 1, 0]]


def test_all_present_is_a_log(read) -> None:
    assert read("client,from,to\nann,0,3\nbob,0,3\n")[1] == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a header, client,time,present; .*got an empty file"),
        ("# rounds: 3\n", "got an empty file"),
        ("client,from,to\n", "a log must have rows below its header, got none"),
        ("client,from,to\n\n\n", "a log must have rows below its header, got none"),
        ("client,from,until\nann,0,3\n", "line 1: columns must be .*got client,from,until"),
        ("# x\nclient,from,to,why\nann,0,3,0\n", "line 2: columns .*client,from,to, got why as"),
        ("client,from,to,to\nann,0,3,0\n", "a name each, got 'to' twice"),
        ("round,ann,ann\n0,1,0\n1,1,0", "a name each, got 'ann' twice"),
        ("client,from,to\nann,0,3,1\nbob,0,3", "line 2: a row must have 3 fields, .*got 4"),
        ("client,from,to\nann,0,3\nbob,0,3,1\n", "line 3: a row must have 3 fields, .*got 4"),
        ('client,from,to\nann,0,3\n"bob,0,3\n', "quotation marks must be closed"),
        ("client,from,to\nann,0,3\n,0,3\n", "line 3: client must be a name, got none"),
        (
            "client,from,to\nann,0,3\n\nann,2,4\n",
            "line 4: .*not overlap, got two of 'ann', .*line 2",
        ),
        ("client,from,to\nann,2,4\nbob,0,3\nann,0,3\n", "line 4: .*'ann', the other in line 2"),
        ("# a\n# b\nclient,from,to\nann,3,3\n", "line 4: from must be before to, got 3 and 3"),
        ("client,from,to\nann,0,3\nann,6,5\n", "line 3: from must be before to, got 6 and 5"),
        ("client,from,to\nann,0,3\nbob,noon,5\n", "line 3: from .*number or a date, got 'noon'"),
        ("client,from,to\nann,0,inf\n", "line 2: to must be a number or a date, got 'inf'"),
        ("client,from,to\nann,0,3\nbob,,4\n", "line 3: from must be given, got none"),
        (
            "client,from,to\nann,2026-09-14,2026-09-15\n",
            "round_length must be given, in seconds, if times are dates",
        ),
        (
            "client,time,present\nann,1.8e9,1\nann,1.8001e9,0\n",
            "like seconds since 1970, e.g. 3600",
        ),
        ("client,time,present\nann,1.8e12,1\nann,1.8001e12,0\n", "milliseconds since 1970"),
        (
            "client,from,to\n" + "".join(f"c{n},{n * 3600},{n * 7200 + 3600}\n" for n in range(8)),
            "round_length must be given if all times are multiples of 3600",
        ),
        (
            "client,from,to\nann,09/14/2026 01:45 PM,09/14/2026 02:45 PM\n",
            r"number or a date, got '09/14/2026 01:45 PM'; write dates like 2026-09-14 13:45:00",
        ),
        ("client,from,to\nann,,\n", "at least one client must be online at some time"),
        ("client,from,to\nann,0,1\n", "at least two rounds, got one"),
        ("client,from,to\nann,0,1e12\n", "at most 20000000 rounds, got 1e.12 of length 1"),
        ("# rounds: many\nclient,from,to\nann,0,2\n", "# rounds must be a number, got 'many'"),
        ("# rounds: 2.5\nclient,from,to\nann,0,2\n", "rounds must be a whole number"),
        ("# rounds: inf\nclient,from,to\nann,0,2\n", "rounds must be a whole number"),
        ("# rounds: 1e18\nclient,from,to\nann,0,2\n", "rounds must be at most 20000000"),
        ("client,from,to\rann,0,2\r", "lines must end in"),
        ("# start: 9\nclient,from,to\nann,0,2\n", "start must be before the log's last time, 2"),
        ("client,time,present\nann,0,1\nann,2,0\nann,1,1\n", "line 4: time .*line 3; got 1 for"),
        ("client,time,present\nann,0,1\nbob,5,1\nann,0,0\n", "line 4: time .*which is 0 in line 2"),
        ("client,time,present\nann,0,1\nann,2,2\n", "line 3: present must be 0 or 1, got '2'"),
        ("client,time,present\nann,0,1\nann,2,\n", "line 3: present must be 0 or 1, got nothing"),
        ("client,time,present\nann,0,0\nann,3,0\n", "client must be online in at least one round"),
        ("client,time,present\nann,0,1\n", "at least two rounds, got one"),
        ("round,ann\n0,1\n2,1\n", "line 3: rounds must be consecutive, got 2 after 0"),
        ("round,ann\n1,1\n0,1\n", "line 3: rounds must be consecutive, got 0 after 1"),
        ("round,ann\n0,1\n1.5,1\n", "line 3: round must be a whole number, got '1.5'"),
        ("round,ann\n0,1\n1,here\n", "line 3: ann must be 0 or 1, got 'here'"),
        ("round,ann\n0,1\n1\n", "line 3: a row must have 2 fields, like the header, got 1"),
        ("round\n0\n1\n", "column 'round' and one column per client, got no client columns"),
        ("# start: 3\nround,ann\n0,1\n1,1\n", "start, rounds and round_length must be left out"),
    ],
)
def test_what_is_no_log_is_one_line_with_the_place(read, tmp_path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read(text)
    assert str(caught.value).startswith(str(tmp_path / "log.csv"))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must be an existing file, got .*, a folder"):
        read_log(tmp_path)
    with pytest.raises(ValueError, match="path must be an existing file"):
        read_log(tmp_path / "none.csv")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"client,from,to\nann\xff\xfe,0,3\n")
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        read_log(binary)


def test_gzip_is_unpacked_to_a_limit(tmp_path: Path) -> None:
    text = b"client,from,to\nann,0,3\n" + b"\n" * 10_000
    packed = tmp_path / "log"  # whatever its name
    packed.write_bytes(gzip.compress(text))
    assert read_log(packed, most_bytes=len(text)).n_rounds == 3
    with pytest.raises(ValueError, match=f"at most {len(text) - 1} bytes, unpacked, got more"):
        read_log(packed, most_bytes=len(text) - 1)
    with pytest.raises(
        ValueError, match=r"at most 10000 lines, unpacked, got more; see most_lines"
    ):
        read_log(packed, most_lines=10_000)
    plain = tmp_path / "log.csv"
    plain.write_bytes(text)
    with pytest.raises(ValueError, match="at most 100 bytes"):
        read_log(plain, most_bytes=100)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ValueError, match="must be a complete gzip file"):
        read_log(packed)


HEADER = b"client,time,present\n"
WIDE = b"," * 5_000_000 + b"\n"


@pytest.mark.parametrize(
    ("beginning", "repeated", "message"),
    [
        (b"", b"\n", "must have its header, .* in its first 8388608 bytes, got none there"),
        (b"", b"# x\n", "must have its header, .* in its first 8388608 bytes, got none there"),
        (b"", b" ", "must have its header, .* in its first 8388608 bytes, got none there"),
        (b"", b",", "must have its header, .* in its first 8388608 bytes, got none there"),
        (HEADER, b"\n", "at most 30000000 lines, unpacked, got more; see most_lines"),
        (HEADER, b"a,1,1\n", "at most 30000000 lines, unpacked, got more; see most_lines"),
        (HEADER + b'"', b"\n", "at most 30000000 lines, unpacked, got more; see most_lines"),
        (HEADER, b",", "a line must have at most 8388608 bytes, got more"),
        (WIDE, b"", "at most 100000 columns, got 5000001; client,from,to is"),
        (HEADER + WIDE, b"", "line 2: a row must have 3 fields, like the header, got 5000001"),
        (b"#\n" + HEADER + b"a,1,1\n" + WIDE, b"", "line 4: a row must have 3 .*, got 5000001"),
        (HEADER + b'"' + b"x" * 200_000, b"", "quotation marks must be closed"),
    ],
)
def test_a_small_file_that_holds_a_gigabyte_is_refused_at_once(
    tmp_path: Path, beginning: bytes, repeated: bytes, message: str
) -> None:
    packed = tmp_path / "log.csv.gz"
    piece = repeated * (2**22 // max(len(repeated), 1))
    packed.write_bytes(gzip.compress(beginning, 1) + 256 * gzip.compress(piece, 1))
    begun = process_time()
    with pytest.raises(ValueError, match=message):
        read_log(packed)
    assert process_time() - begun < 5


def test_what_stands_in_front_may_be_long(read) -> None:
    front = "# a note\n\n \t\r\n" * 10_000
    assert read(f"\ufeff{front} # rounds : 3 \n{front}client,from,to\nann,0,1")[1] == [[1, 0, 0]]
    with pytest.raises(ValueError, match="line 60003: client must be a name"):
        read(f"# rounds: 3\n{front}{front}client,from,to\n,0,1")


def test_parquet_is_read_or_said_to_need_pyarrow(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    if find_spec("pyarrow") is None:
        file.write_bytes(b"PAR1....PAR1")
        with pytest.raises(ValueError, match="Parquet needs pyarrow"):
            read_log(file)
        return
    import pandas as pd

    rows = pd.DataFrame({"client": ["ann", "bob"], "from": [0, 1], "to": [2, 4]})
    rows.to_parquet(file)
    assert read_log(file).present().astype(int).T.tolist() == [[1, 1, 0, 0], [0, 1, 1, 1]]
    rows.loc[1, "to"] = 1
    rows.to_parquet(file)
    with pytest.raises(ValueError, match="row 2: from must be before to, got 1 and 1"):
        read_log(file)
    file.write_bytes(b"PAR1....PAR1")
    with pytest.raises(ValueError, match="must be a Parquet file"):
        read_log(file)


def test_what_stands_in_front_may_be_written_in_capitals(read) -> None:
    assert read("# Rounds: 3\n#START: 0\nclient,from,to\nann,0,1\n")[1] == [[1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("client,from,to\nann,0,2\n# a note\n", r"line 3: a line with # must come before"),
        ("# start: 0\n\nclient,from,to\n#\nann,0,2", r"line 4: a line with # must come before"),
        (
            "client,round\nann,1\n",
            r"line 1: columns must be .*; got client,round: if they have other names, --columns",
        ),
        ("client,time,present\nann,0001-01-01,1\nbob,2020-01-01,1\n", r"years from 1678 to 2261"),
        (
            "client,time,present\nann,5,1\nbob,2020-01-01,1\n",
            r"line 3: time must be numbers throughout or dates throughout, got '2020-01-01' and, "
            r"in line 2, '5'",
        ),
        ("client,time,present\nann,5,1\nbob,soon,1\n", r"line 3: time must be a number or a date"),
    ],
)
def test_further_faults_are_told(read, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(text)


def test_a_name_may_begin_with_a_hash(read) -> None:
    assert read("client,from,to\n#1,0,2\n#2,,\n")[0] == ("#1", "#2")


NAMES = st.text(min_size=1, max_size=6).filter(
    lambda name: name == name.strip() and len(name.splitlines()) == 1 and "\0" not in name
)


@given(
    st.lists(NAMES.filter(lambda name: name.isprintable()), min_size=1, max_size=5, unique=True),
    st.integers(2, 12),
    st.booleans(),
    st.data(),
)
def test_what_is_written_is_read(tmp_path: Path, names, rounds: int, packed: bool, data) -> None:
    masks = data.draw(arrays(bool, (rounds, len(names))))
    masks[data.draw(st.integers(0, rounds - 1)), 0] = True  # a log shows somebody
    file = tmp_path / ("log.csv.gz" if packed else "log.csv")
    write_log(file, AvailabilityLog.from_masks(masks, names))
    log = read_log(file)
    assert log.clients == tuple(names)
    np.testing.assert_array_equal(log.present(), masks)


def test_the_same_log_makes_the_same_file(tmp_path: Path) -> None:
    log = AvailabilityLog.from_masks([[1, 0], [1, 1]], ["ann", "bob"])
    for name in ("one.csv.gz", "two.csv.gz"):
        write_log(tmp_path / name, log)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
