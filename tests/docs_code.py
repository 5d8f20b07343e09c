"""Run the code of a Markdown page in order: Python, and `fltheory` commands.

A Python block with a title belongs to the file of that name. A text block directly after code is
its output, in which ``...`` stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fltheory.cli import main

_FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CHECKER = doctest.OutputChecker()
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Fence:
    """A fenced block: its language, its file, its text and the output shown."""

    language: str
    title: str
    text: str
    shown: str | None


def fences(page: str) -> list[Fence]:
    """Return the page's code blocks, each with the text block directly after it."""
    found = list(_FENCE.finditer(page))
    blocks = []
    for index, match in enumerate(found):
        following = found[index + 1] if index + 1 < len(found) else None
        shown = None
        if following is not None and following[1] == "text":
            between = page[match.end() : following.start()]
            shown = following[3] if not between.strip() else None
        blocks.append(Fence(match[1], match[2] or "", match[3], shown))
    return blocks


def files_of(page: str) -> dict[str, str]:
    """Return the text of each file made up of the page's titled blocks."""
    files: dict[str, list[str]] = {}
    for fence in fences(page):
        if fence.title:
            files.setdefault(fence.title, []).append(fence.text)
    return {name: "\n\n".join(part.strip("\n") for part in parts) for name, parts in files.items()}


def run_page(page: str, folder: Path) -> list[str]:
    """Run a page in a folder; return the outputs that differ from those shown."""
    for name, text in files_of(page).items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    wrong = []
    # As when Python runs a file in the folder.
    with contextlib.chdir(folder), patch.object(sys, "path", [str(folder), *sys.path]):
        for fence in fences(page):
            if fence.title or fence.language not in {"python", "sh"}:
                continue
            put_out = _python(fence.text, namespace) if fence.language == "python" else ""
            if fence.language == "sh":
                put_out = "".join(map(_command, fence.text.strip().splitlines()))
            if fence.shown is not None and not _CHECKER.check_output(fence.shown, put_out, _FLAGS):
                wrong.append(f"{fence.text}\nshould give\n{fence.shown}\nbut gave\n{put_out}")
    return wrong


def _python(code: str, namespace: dict[str, Any]) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, "<page>", "exec"), namespace)
    return stream.getvalue()


def _command(line: str) -> str:
    program, *arguments = shlex.split(line)
    assert program == "fltheory", f"a page's commands must be fltheory's, got {line}"
    stream = io.StringIO()
    with (
        patch.object(sys, "argv", [program, *arguments]),
        contextlib.redirect_stdout(stream),
        contextlib.suppress(SystemExit),
    ):
        main()
    return stream.getvalue()
