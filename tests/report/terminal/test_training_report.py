"""Trained experiments beside the paper's figures: what a reader sees, from made-up curves."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fltheory.report.terminal.training_report import (
    training_page,
    training_summary,
    training_table,
)

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.experiment import experiment  # noqa: E402
from fltheory.hardware.training.measure import Measured  # noqa: E402
from fltheory.hardware.training.run import Curve, Finished  # noqa: E402
from tests.hardware.training.small_experiment import document  # noqa: E402

ABOUT = {"data": "digits", "torch": "2"}


def measured(**changes: Any) -> Measured:
    """Return accuracies 10 s + p + (5 for SAFARI) after the last round of seed s."""
    table = experiment(document(**changes))
    runs = {}
    for run in table.runs:
        for seed in table.seeds:
            p = run.table["partition"]["classes_per_client"]
            last = 10.0 * seed + p + (5 if run.method.name == "SAFARI" else 0)
            curve = Curve(np.array([1.0, 2.0]), np.array([last + 30, last]), np.ones(2))
            runs[run.key(seed)] = Finished(curve, torch.zeros(1), ABOUT)
    return Measured(table, runs)


def lines(results: Measured) -> list[list[str]]:
    stream = io.StringIO()
    Console(file=stream, width=120).print(training_table(results))
    rows = [line for line in stream.getvalue().splitlines() if "│" in line]
    return [[part.strip() for part in row.strip("│").split("│")] for row in rows]


def test_mean_and_deviation_over_seeds_beside_the_papers() -> None:
    deviation = f"{np.std([0, 10], ddof=1):.2f}"
    assert lines(measured()) == [
        ["FedAvg", f"10.00 ± {deviation} (50)", f"15.00 ± {deviation} (60.5 ± 1.0)"],
        ["SAFARI", "+5.00 ± 0.00 (20)", "+5.00 ± 0.00 (-)"],
    ]
    assert lines(measured(seeds=[2]))[0] == ["FedAvg", "25.00 (50)", "30.00 (60.5 ± 1.0)"]


def test_summary() -> None:
    """Gaps: 10 - 50, 15 - 60.5 and 5 - 20; the dash of the paper has none."""
    text = training_summary(measured())
    assert text.startswith("Each cell shows the test accuracy (%) after the last round, as mean ± ")
    assert "standard deviation over seeds 0, 1, with the paper's value in brackets." in text
    assert text.endswith("minus the paper's are -33.50 on average, and between -45.50 and -15.00.")
    alone = measured(rows=[{"label": "FedAvg"}])
    assert "paper" not in training_summary(alone)
    assert lines(alone)[0][1] == "10.00 ± 7.07"


def test_page() -> None:
    page = training_page([measured(notes=["Something is open."])], "fltheory train x.toml")
    assert page.startswith("# Experiments run again\n\nMade by `fltheory train x.toml`")
    assert "Ran with data digits; torch 2." in page
    assert "- Something is open." in page
    assert "## Paper, Table 0: FedAvg and SAFARI" in page
    assert "| FedAvg | 10.00 ± 7.07 (50) | 15.00 ± 7.07 (60.5 ± 1.0) |" in page
    assert "For the same runs, the highest test accuracy (%) of a run:" in page
    assert "| FedAvg | 40.00 ± 7.07 (50) | 45.00 ± 7.07 (60.5 ± 1.0) |" in page


def test_columns_with_figures_of_their_own() -> None:
    columns = [{"label": "best", "figure": "best"}, {"label": "spread", "figure": "deviation"}]
    results = measured(columns=columns, rows=[{"label": "FedAvg", "paper": [41, 0]}])
    assert lines(results)[0] == ["FedAvg", "40.00 ± 7.07 (41)", "0.00 ± 0.00 (0)"]
    page = training_page([results], "fltheory train x.toml")
    assert "the same runs" not in page
    assert "of one of these: the highest test accuracy (%) of a run; the standard dev" in page
