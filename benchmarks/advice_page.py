"""The parts of docs/how-to/advise.md made by `fltheory advise`: its sentences and its table.

    PYTHONPATH=. python benchmarks/advice_page.py

makes the log of docs/examples/time_zones_log.py, computes the advice, and rewrites the page and its
figure. A test compares the page with the result.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path

from fltheory.advice import Advice, advise
from fltheory.report import write_figure
from fltheory.report.figures.advice_figure import advice_figure
from fltheory.report.terminal.advice_report import advice_table, sentences

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "how-to" / "advise.md"


def made_advice() -> Advice:
    """Return the advice for the made-up log."""
    made = runpy.run_path(str(DOCS / "examples" / "time_zones_log.py"))
    return advise(made["time_zones_log"]())


def parts_of(advice: Advice) -> dict[str, str]:
    """Return the new text between the page's marks, by their names."""
    table = advice_table(advice)
    rows = [[str(cell) for cell in column.cells] for column in table.columns]
    header = [str(column.header) for column in table.columns]
    lines = [header, ["---", "---", *["---:"] * (len(header) - 2)], *zip(*rows, strict=True)]
    return {
        "sentences": "\n>\n".join(f"> {sentence}" for sentence in sentences(advice)),
        "table": "\n".join(f"| {' | '.join(line)} |" for line in lines),
    }


def parts_in(page: str) -> dict[str, str]:
    """Return the present text between the page's marks."""
    return {
        name: page.partition(f"<!-- begin {name} -->\n\n")[2].partition(f"\n\n<!-- end {name} -->")[
            0
        ]
        for name in ("sentences", "table")
    }


def with_parts(page: str, parts: Mapping[str, str]) -> str:
    """Return the page with the given parts replaced."""
    for name, text in parts_in(page).items():
        mark = f"<!-- begin {name} -->\n\n"
        page = page.replace(mark + text, mark + parts.get(name, text))
    return page


if __name__ == "__main__":
    found = made_advice()
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_parts(page, parts_of(found)), encoding="utf-8")
    write_figure(advice_figure(found), PAGE.with_suffix(".svg"))
