"""The table of docs/gallery-of-faults.md."""

from __future__ import annotations

from collections.abc import Mapping

from tests.testing.gallery import GALLERY
from tests.testing.gallery.fault import Fault


def table() -> str:
    """Return a table for each algorithm: its faults, and where such a thing was reported."""
    return "\n".join(_of(name, it.faults) for name, it in GALLERY.items())


def _of(name: str, faults: Mapping[str, Fault]) -> str:
    rows = [f"| {fault.says} | {_link(fault.seen)} |" for fault in faults.values()]
    return "\n".join([f"## {name}", "", "| fault | reported |", "|---|---|", *rows, ""])


def _link(seen: str) -> str:
    if not seen:
        return ""
    repository, number = seen.split("#")
    return f"[{seen}](https://github.com/{repository}/issues/{number})"
