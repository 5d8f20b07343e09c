"""The page on stale updates is what the experiment gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from docs.scripts.shapley import (
    SCENARIOS,
    Contribution,
    Measured,
    _ranges,
    measured_scenarios,
    relative_values,
    shapley_figure,
    shapley_page,
)
from fltheory.report.figures.figure_axes import write_figure

PAGE = Path(__file__).parents[2] / "docs" / "fedar-shapley.md"


@pytest.fixture(scope="module")
def found() -> Measured:
    return measured_scenarios()


def test_the_page_is_current(found: Measured) -> None:
    """What `python docs/scripts/shapley.py --check` says."""
    assert PAGE.read_text(encoding="utf-8") == shapley_page(found, "fedar-shapley.svg")


def test_what_the_page_concludes(found: Measured) -> None:
    """Worth more after a round unless steps are noisy; harm in the end where steps are long."""
    for name in SCENARIOS:
        for aggregate in ("mean", "sum"):
            values = relative_values(found[name, aggregate])
            assert (values[1] < values[0]) == (name == "long, noisy steps")
            assert (values[-1] < 0) == name.startswith("long")
            assert values.max() > 0


def test_values_are_relative_to_all_being_fresh() -> None:
    series = [Contribution(0, np.array([3.0, 1.0])), Contribution(1, np.array([3.0, -2.0]))]
    assert relative_values(series).tolist() == [0.25, -0.5]


def test_ranges() -> None:
    assert _ranges(np.array([0, 1, 2, 5, 7, 8])) == "0 to 2 and 5 and 7 to 8"


def test_the_figure_is_written_the_same_again(found: Measured, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        write_figure(lambda: shapley_figure(found), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
