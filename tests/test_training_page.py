"""What docs/training.md says of the measured tables stands in the page that the command made."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "sa-fl-mnist.md").read_text(encoding="utf-8")
TEXT = (DOCS / "training.md").read_text(encoding="utf-8")


def test_its_figures_are_the_pages() -> None:
    (section,) = re.findall(
        r"## SA-FL's MNIST tables, run again\n(.*?)\n## ", TEXT, flags=re.DOTALL
    )
    figures = re.findall(r"\d+\.\d\d", section)
    assert len(figures) >= 20
    elsewhere = {"0.74", "57.09", "0.04"}  # the paper's Table 8
    assert not [figure for figure in figures if figure not in PAGE and figure not in elsewhere]


def test_the_page_is_of_files_that_are_there() -> None:
    (command,) = re.findall(r"Made by `(fltheory train .*?)`", PAGE)
    files = [word for word in command.split() if word.endswith(".toml")]
    assert len(files) >= 4
    assert all((DOCS.parent / file).is_file() for file in files)
    for row in re.findall(r"^\| `(.*?)`", TEXT, flags=re.MULTILINE):
        if row.endswith(".toml"):
            assert (DOCS.parent / "experiments" / row).is_file()
