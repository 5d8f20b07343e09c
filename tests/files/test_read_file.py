"""Files that somebody else wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fltheory.files.read_file import MOST_LEVELS, existing_file, json_of, levels, text_of, toml_of


def test_a_document_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("x = [1, [2]]", encoding="utf-8-sig")
    assert toml_of("it must exist", file) == {"x": [1, [2]]}
    file.write_text('{"x": 1}')
    assert json_of("it must exist", file) == {"x": 1}


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", "loop", "x" * 300, "missing", "."):
        with pytest.raises(ValueError, match=r"^it must exist, got '.*'"):
            existing_file("it must exist", tmp_path / name)


def test_sizes_and_letters_are_limited(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        text_of("it must exist", file)
    with pytest.raises(ValueError, match="at most 3 bytes, got 4"):
        text_of("it must exist", file, most_bytes=3)


@pytest.mark.parametrize("depth", [MOST_LEVELS + 1, 100_000])
def test_depth_is_limited(tmp_path: Path, depth: int) -> None:
    file = tmp_path / "a"
    file.write_text("[" * depth + "]" * depth)
    with pytest.raises(ValueError, match="nested at most 100 levels"):
        json_of("it must exist", file)
    file.write_text("[" * (MOST_LEVELS - 1) + "]" * (MOST_LEVELS - 1))
    assert levels(json_of("it must exist", file), 1000) == MOST_LEVELS - 1


def test_a_long_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text(".".join(["a"] * 20_000) + " = 1")
    with pytest.raises(ValueError, match="keys with fewer dotted parts"):
        toml_of("it must exist", file)
