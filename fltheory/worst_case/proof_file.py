"""Proofs as files: what certificates of every kind have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProofFile:
    """A proof as the text of its file.

    Attributes
    ----------
    text : str
        JSON, all numbers fractions.
    """

    text: str

    def write(self, path: Path) -> None:
        """Write it to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")


def text_of_kind(path: Path, is_kind: Callable[[str], bool], most_characters: int) -> str | None:
    """Return the text of a file that holds a proof of a kind; None if it holds something else."""
    if not path.is_file() or path.stat().st_size > most_characters:
        return None
    text = path.read_bytes().decode("utf-8", errors="replace")
    return text if is_kind(text) else None
