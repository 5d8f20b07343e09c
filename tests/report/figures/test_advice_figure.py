"""Advice, drawn: a bar an algorithm and a curve for those that settle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fltheory.advice import advise
from fltheory.logs import AvailabilityLog
from fltheory.report import write_figure
from fltheory.report.figures.advice_figure import advice_figure


def test_biases_and_errors_are_those_of_the_advice(tmp_path: Path) -> None:
    masks = np.random.default_rng(1).random((40, 4)) < [0.9, 0.5, 0.2, 0]
    found = advise(AvailabilityLog.from_masks(masks))
    left, right = advice_figure(found).axes
    titles = [label.get_text() for label in left.get_yticklabels()]
    assert titles == [advice.title for advice in found.algorithms]
    dots = left.lines[0].get_xdata()
    assert dots == pytest.approx(
        [advice.process.unrelated for advice in found.algorithms if advice.process is not None]
    )
    assert right.lines[0].get_ydata()[-1] == pytest.approx(found.algorithms[0].errors[-1])
    write_figure(advice_figure(found), tmp_path / "advice.svg")
    assert "<svg" in (tmp_path / "advice.svg").read_text()
