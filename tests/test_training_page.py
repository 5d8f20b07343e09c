"""What docs/training.md says of the measured tables stands in the page that the command made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "sa-fl-mnist.md").read_text(encoding="utf-8")
TEXT = (DOCS / "training.md").read_text(encoding="utf-8")


def test_its_figures_are_the_pages() -> None:
    (section,) = re.findall(
        r"## SA-FL's MNIST tables, run again\n(.*?)\n## ", TEXT, flags=re.DOTALL
    )
    figures = re.findall(r"\d+\.\d\d", section)
    assert len(figures) >= 20
    papers = {"0.22", "0.74", "77.82", "86.34", "0.92", "57.09", "0.04"}  # Table 8
    shares = {"58.25", "60.20"}  # test_papers_images
    by_seed = {"72.97", "73.98", "80.58", "81.35", "81.18", "86.66", "88.96"}
    by_branch = {"87.99", "0.56", "47.97", "5.69", "88.73", "0.46", "79.38", "3.64"}
    between = {"0.16", "1.39"}  # Table 10's figures of SAFARI and means by branch
    elsewhere = papers | shares | by_seed | by_branch | between
    assert not [figure for figure in figures if figure not in PAGE and figure not in elsewhere]


def test_ca_feds_figures_are_its_pages() -> None:
    page = (DOCS / "ca-fed-mnist.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"## CA-Fed's MNIST column\n(.*?)\n## ", TEXT, flags=re.DOTALL)
    figures = re.findall(r"\d+\.\d\d", section)
    assert len(figures) >= 8
    differences = {"0.16", "0.34", "0.18", "1.37"}  # seed by seed, and the paper's
    elsewhere = differences | {"2.32", "7.37"}  # docs/ca-fed-experiment.md
    assert not [figure for figure in figures if figure not in page and figure not in elsewhere]
    *_, unbiased, _, _, ca_fed = (
        [float(entry.split()[0]) for entry in row.split("|")[2:6]]
        for row in page.splitlines()
        if "±" in row and row.startswith("|")
    )
    assert ca_fed[1] - unbiased[1] == pytest.approx((-0.16 + 0.34 - 0.18) / 3, abs=0.011)
    assert ca_fed[3] - unbiased[3] == pytest.approx(-0.03)


def test_the_page_is_of_files_that_are_there() -> None:
    (command,) = re.findall(r"Made by `(fltheory train .*?)`", PAGE)
    files = [word for word in command.split() if word.endswith(".toml")]
    assert len(files) >= 4
    assert all((DOCS.parent / file).is_file() for file in files)
    for row in re.findall(r"^\| `(.*?)`", TEXT, flags=re.MULTILINE):
        if row.endswith(".toml"):
            assert (DOCS.parent / "experiments" / row).is_file()
