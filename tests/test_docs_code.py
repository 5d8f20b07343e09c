"""The code on the pages of the documentation runs and puts out what they show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fltheory.verify import MapAxis, region_map
from tests.docs_code import fences, files_of, run_page

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [
    path
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("how-to/*.md")])
    if any(fence.language in {"python", "sh"} for fence in fences(path.read_text("utf-8")))
]

# A search and a map take seconds: `make soundness` has them as they are shown, `make test` smaller.
SMALLER = {
    "refutation.md": {
        "verify.falsify(theorem)": "verify.falsify(theorem, 3500)",
        "10000 settings tried": "3500 settings tried",
    },
    "tutorial.md": {
        "falsify li/1 --budget 60": "falsify li/1 --budget 10",
        "60 settings tried; 60 of them met every hypothesis; largest truth/bound 0.3...": (
            "10 settings tried; 10 of them met every hypothesis; largest truth/bound 0..."
        ),
    },
}
NEED = {"mnist.md": "torch", "flower.md": "flwr"}


pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")


def test_the_pages_with_code_are_found() -> None:
    assert {"tutorial.md", "add-an-algorithm.md", "refutation.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.name in NEED:
        pytest.importorskip(NEED[page.name])
    text = page.read_text("utf-8")
    for shown, smaller in SMALLER.get(page.name, {}).items():
        assert text.count(shown) == 1
        text = text.replace(shown, smaller)
    whole = region_map.default_axis

    def every_fifth(*of: Any) -> MapAxis:
        axis = whole(*of)
        return replace(axis, values=axis.values[::5])

    monkeypatch.setattr(region_map, "default_axis", every_fifth)
    assert not run_page(text, tmp_path)


@pytest.mark.soundness
@pytest.mark.parametrize("name", SMALLER)
def test_the_code_of_a_page_runs_as_it_is_shown(name: str, tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == name)
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
