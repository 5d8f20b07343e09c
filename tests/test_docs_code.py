"""The code on the pages of the documentation runs and puts out what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs_code import fences, files_of, run_page

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [
    path
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")])
    if any(fence.language in {"python", "sh"} for fence in fences(path.read_text("utf-8")))
]

NEED = {"mnist.md": "torch", "flower.md": "flwr"}


pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")


def test_the_pages_with_code_are_found() -> None:
    assert {"tutorial.md", "add-an-algorithm.md", "refutation.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    if page.name in NEED:
        pytest.importorskip(NEED[page.name])
    assert not run_page(page.read_text("utf-8"), tmp_path)


def test_the_tutorial_shows_the_whole_example_file() -> None:
    shown = files_of((DOCS / "tutorial.md").read_text("utf-8"))["fedavg_li_2020.py"]
    kept = (DOCS / "examples" / "fedavg_li_2020.py").read_text("utf-8")
    assert _without_blank_lines(shown) == _without_blank_lines(kept)


def _without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = "```python\nprint(2 + 2)\n```\n\n```text\n5\n```\n"
    (wrong,) = run_page(page, tmp_path)
    assert "should give\n5" in wrong
    assert wrong.endswith("but gave\n4\n")
    assert not run_page(page.replace("5", "4"), tmp_path)
