"""The experiment's table, page and file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from docs.scripts.ca_fed import (
    CHOICES,
    MEASURED,
    Figures,
    MeasuredMethod,
    SyntheticPlan,
    experiment_page,
    experiment_summary,
    experiment_tables,
)


def measured(seed: int, method: str, average: float, kept: float | None = None) -> MeasuredMethod:
    row = Figures(80.0 + seed, average, 79.0 + seed, average / 2, 0.5, 0.1, kept, kept)
    return MeasuredMethod(
        seed,
        method,
        81.0,
        dict.fromkeys(CHOICES, (0.01, 0.1 + seed)),
        dict.fromkeys(CHOICES, row),
    )


RESULTS = [
    measured(0, "Unbiased", 70.0),
    measured(1, "Unbiased", 74.0),
    measured(1, "CA-Fed", 75.0, 60.0),
    measured(0, "CA-Fed", 73.0, 50.0),
]


def test_page_rows_by_hand() -> None:
    """Means 72 and 74; over two seeds the error of a mean is half the distance.

    The differences are 3 and 1: 2 +- 1. The logged averages are half as large, and so are their
    differences. The paper's figures are those of Table I.
    """
    lines = experiment_page(RESULTS, SyntheticPlan(), "make it").splitlines()
    assert "Made by `make it`; do not edit." in lines
    first = next(line for line in lines if line.startswith("| Unbiased"))
    second = next(line for line in lines if line.startswith("| CA-Fed"))
    assert [part.strip() for part in first.strip("|").split("|")] == [
        "Unbiased", "80.50 +- 0.50", "78.94", "72.00 +- 2.00", "36.00 +- 1.00", "75.32",
        "0.50 +- 0.00", "0.48", "0.10 +- 0.00", "", "", "", "0.01, 0.1",
    ]  # fmt: skip
    assert [part.strip() for part in second.strip("|").split("|")][3:] == [
        "74.00 +- 1.00", "37.00 +- 0.50", "76.22", "0.50 +- 0.00", "0.28", "0.10 +- 0.00",
        "+2.00 +- 1.00", "+1.00 +- 0.50", "55%, 55%", "0.01, 0.1",
    ]  # fmt: skip


def test_remarks_by_hand() -> None:
    """Gaps of Unbiased are 80 - 70 and 81 - 74; of the logged points 79 - 35 and 80 - 37."""
    page = experiment_page(RESULTS, SyntheticPlan(), "make it")
    assert (
        "tuned for the maximum, 8.50 +- 1.50 over all rounds and 43.50 +- 0.50 over the logged "
        "points" in page
    )
    leads = [
        line for line in page.splitlines() if "CA-Fed's time-average minus Unbiased's, over" in line
    ]
    assert ["+2.00 +- 1.00" in leads[0], "+1.00 +- 0.50" in leads[1]] == [True, True]


def test_one_seed_has_no_error() -> None:
    page = experiment_page(RESULTS[:1], SyntheticPlan(), "make it")
    assert "| Unbiased | 80.00 | 78.94 | 70.00 |" in page


def test_tables_and_summary() -> None:
    stream = io.StringIO()
    for table in experiment_tables(RESULTS):
        Console(file=stream, width=200).print(table)
    assert stream.getvalue().count("76.22") == len(CHOICES)
    assert experiment_summary(RESULTS, SyntheticPlan()).startswith(
        "There are 2 seeds; each has its own data set and 3 runs"
    )


def test_the_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "out.json"
    assert MEASURED.read(path, SyntheticPlan()) == []
    MEASURED.write(path, RESULTS, SyntheticPlan())
    assert MEASURED.read(path, SyntheticPlan()) == RESULTS
    with pytest.raises(ValueError, match="out must hold results of the plan"):
        MEASURED.read(path, SyntheticPlan(10))
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ValueError, match="out must be a file that experiment wrote"):
        MEASURED.read(path, SyntheticPlan())
