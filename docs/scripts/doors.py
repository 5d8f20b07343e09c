"""Write the three doors of README.md and docs/index.md: a command each, with its output.

Run ``python docs/scripts/doors.py`` in a checkout; a test compares the result. Omitted lines are
shown as ``...``, and sentences are wrapped at 100 columns.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BEGIN, END = "<!-- begin doors -->\n\n", "<!-- end doors -->"
PAGES = {"README.md": "](docs/", "docs/index.md": "]("}
_WIDTH = 100


@dataclass(frozen=True)
class Door:
    """A kind of reader, the command, the lines of its output to keep, and further links."""

    heading: str
    command: str
    kept: str
    further: str

    def shown(self) -> str:
        """Run the command, and return its output."""
        answer = subprocess.run(
            [sys.executable, "-m", *shlex.split(self.command)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,  # conformance exits with 1 if it finds a fault
        )
        lines: list[str] = []
        for line in re.sub(r"(?<=runs, ).* in run", "...", answer.stdout).splitlines():
            if re.search(self.kept, line):
                lines += [line.rstrip()] if line[:1] in "│ " else textwrap.wrap(line, _WIDTH)
            elif lines[-1:] != ["..."]:
                lines.append("...")
        return "\n".join(lines)

    def text(self, output: str) -> str:
        """Return the door in Markdown, with links as in the README."""
        block = f"```console\n$ {self.command}\n{output}\n```"
        return f"### {self.heading}\n\n{block}\n\n{self.further}\n"


DOORS = (
    Door(
        "A theorem: is it true as printed?",
        "fltheory verify sa-fl/5 --reading printed",
        "REFUTED|q small|cells:|refuted: ",
        "A *cell* is one reading of a statement on one test setting. Your own theorem is a file:\n"
        "`fltheory new theorem my_theorem.py` writes one to "
        "start from, and\n"
        "[the tutorial](docs/tutorial.md) takes it to a verdict, a search for a "
        "refutation and a map.",
    ),
    Door(
        "An implementation: does it do what its paper says?",
        "fltheory conformance docs/examples/scaffold.py:run scaffold --first",
        "^scaffold:|^likely cause|^  (client .: |round .: clients? |after |  *actual)",
        "[The file](docs/examples/scaffold.py) is SCAFFOLD with one slip. Wrap [your own "
        "code](docs/how-to/conformance.md),\n"
        "in any framework, in such a function. [Seven libraries](docs/others-code.md) "
        "were checked that way.",
    ),
    Door(
        "A log: who was online, and what does it cost?",
        "fltheory advise docs/examples/log.csv",
        "^Use |^Plain |never appear|^assumed",
        "The log is [made up](docs/examples/time_zones_log.py): 20 phones, hourly "
        "rounds for two weeks. Errors are\n"
        "relative to the initial distance from the optimum. [How to read "
        "it](docs/how-to/advise.md), [formats of\n"
        "logs](docs/how-to/logs.md).",
    ),
)


def doors_on(page: str) -> list[str]:
    """Return the doors on a page, with links converted to those of the README."""
    text = (ROOT / page).read_text("utf-8").split(BEGIN)[1].split(f"\n{END}")[0]
    return re.split(r"\n(?=### )", text.replace(PAGES[page], PAGES["README.md"]))


def main() -> None:
    """Run the commands and write the pages."""
    text = "\n".join(door.text(door.shown()) for door in DOORS)
    for page, links in PAGES.items():
        path = ROOT / page
        before, rest = path.read_text("utf-8").split(BEGIN)
        after = rest.split(END)[1]
        linked = text.replace(PAGES["README.md"], links)
        path.write_text(f"{before}{BEGIN}{linked}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
