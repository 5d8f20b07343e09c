"""Checkpoints are there whole or not at all, and are read as weights only."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.checkpoint import (  # noqa: E402
    Checkpoint,
    read_checkpoint,
    write_checkpoint,
)


def checkpoint() -> Checkpoint:
    generator = torch.Generator().manual_seed(3)
    curve = torch.tensor([[1.0, 50.0, 0.25]], dtype=torch.float64)
    return Checkpoint(
        "abc", 7, {"x": torch.arange(3.0)}, generator.get_state(), curve, {"data": "digits"}
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "run.pt"
    assert read_checkpoint(file, "abc") is None
    write_checkpoint(file, checkpoint())
    found = read_checkpoint(file, "abc")
    assert found is not None
    assert (found.settings, found.done, found.about) == ("abc", 7, {"data": "digits"})
    for name in ("randomness", "curve"):
        assert torch.equal(getattr(found, name), getattr(checkpoint(), name))
    assert torch.equal(found.state["x"], torch.arange(3.0))
    assert [path.name for path in file.parent.iterdir()] == ["run.pt"]


def test_a_failed_write_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.pt"
    write_checkpoint(file, checkpoint())
    before = file.read_bytes()

    def fails(fields: Any, file: IO[bytes]) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", fails)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(file, checkpoint())
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_is_a_line_and_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.pt"
    write_checkpoint(file, checkpoint())
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"must be a file that can be written, .* File exists"):
        write_checkpoint(file / "run.pt", checkpoint())

    def full(fields: Any, file: IO[bytes]) -> None:
        file.write(b"half")
        raise RuntimeError("[enforce fail] write failed\nand where in the library")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(ValueError, match=r"run.pt must be .*, got \[enforce fail\] write failed$"):
        write_checkpoint(file, checkpoint())
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harm-was-done"),)


@pytest.mark.parametrize("damage", ["cut short", "text", "another format", "code"])
def test_damaged_and_foreign_files(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "run.pt"
    write_checkpoint(file, checkpoint())
    if damage == "cut short":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage == "text":
        file.write_text("no checkpoint")
    else:
        torch.save({"format": 0} if damage == "another format" else Harmful(), file)
    with pytest.raises(ValueError, match=r"run.pt must be a checkpoint that train wrote") as error:
        read_checkpoint(file, "abc")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "harm-was-done").exists()


def test_of_another_run(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "run.pt", checkpoint())
    with pytest.raises(ValueError, match="must belong to the run xyz, got one of abc"):
        read_checkpoint(tmp_path / "run.pt", "xyz")
