"""Lines that fit a terminal: broken at spaces, not in the middle of words as terminals break them.

One word that is longer than the terminal stays whole, and so does a command that is there to
be pasted. What goes to a file or a pipe is left alone.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import Any

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b\x07]*(\x1b\\|\x07)")
_COMMAND = "fltheory "
_LEAST = 20


def narrowed(text: str, width: int) -> str:
    r"""Return a line as several that are at most so wide; what follows is indented like the first.

    Examples
    --------
    >>> print(narrowed("  the bound holds in every round", 20))
      the bound holds in
      every round
    >>> narrowed("written to a_folder/of_a_long_name.svg", 20)
    'written to\na_folder/of_a_long_name.svg'
    >>> narrowed("fltheory explain sa-fl/5 --corrected", 20)
    'fltheory explain sa-fl/5 --corrected'
    """
    # Styled lines come from tables, which know how wide the terminal is.
    if len(text) <= width or _STYLE.search(text) or text.lstrip().startswith(_COMMAND):
        return text
    indent = text[: min(len(text) - len(text.lstrip()), width // 2)]
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(lines)


class NarrowLines:
    """A terminal's stream that breaks long lines at spaces."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the lines that are whole now; what is begun waits for its end, or a flush."""
        *lines, self._begun = (self._begun + text).split("\n")
        width = max(_LEAST, shutil.get_terminal_size().columns)
        self._stream.write("".join(f"{narrowed(line, width)}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Write also what is begun."""
        begun, self._begun = self._begun, ""
        self._stream.write(begun)
        self._stream.flush()
