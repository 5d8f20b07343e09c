"""Files of sizes: every fault is a line that says where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fltheory.logs import AvailabilityLog
from fltheory.weights.sizes_file import read_sizes

LOG = AvailabilityLog.from_masks([[1, 0, 1], [0, 1, 1]], ["ann", "bob", "cid, jr"])


def test_sizes_come_in_the_order_of_the_clients(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text('\ufeffclient,size\n"cid, jr",2.5e3\n\nann, 10\nbob,0.5\n', encoding="utf-8")
    log, sizes = read_sizes(path, LOG)
    assert (log.clients, sizes.tolist()) == (LOG.clients, [10.0, 0.5, 2500.0])


def test_clients_that_are_not_in_the_log_were_never_seen(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("client;size\neve;7\nbob;1\n cid, jr;3\nann;2\nfay;4\n")
    log, sizes = read_sizes(path, LOG)
    assert log.clients == ("ann", "bob", "cid, jr", "eve", "fay")
    assert log.present().astype(int).tolist() == [[1, 0, 1, 0, 0], [0, 1, 1, 0, 0]]
    assert sizes.tolist() == [2.0, 1.0, 3.0, 7.0, 4.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the header must be client,size, got ''"),
        ("name,n\nann,1\n", "line 1: the header must be client,size, got 'name,n'"),
        ("client,size\neve,1\n,2\n", "line 3: client must be a name, got none"),
        ("client,size\nann,1\n", "must have a size, got none for 'bob', 'cid, jr'"),
        ("client,size\n", "must have a size, got none for 'ann', 'bob', 'cid, jr'"),
        ("client,size\nann,0\n", "line 2: size must be a positive number, got '0'"),
        ("client,size\nann,-3\n", "line 2: size must be a positive number, got '-3'"),
        ("client,size\nann,nan\n", "line 2: size must be a positive number, got 'nan'"),
        ("client,size\nann,inf\n", "line 2: size must be a positive number, got 'inf'"),
        ("client,size\nann,many\n", "line 2: size must be a positive number, got 'many'"),
        ("client,size\nann,1\nann,1\n", "line 3: client 'ann' must appear once"),
        ("client,size\nann,1,2\n", "line 2: a line must be client,size, got 'ann,1,2'"),
    ],
)
def test_faults_have_a_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_sizes(path, LOG)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sizes must be an existing file"):
        read_sizes(tmp_path / "none.csv", LOG)
    path = tmp_path / "sizes.csv"
    path.write_bytes(b"client,size\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        read_sizes(path, LOG)
