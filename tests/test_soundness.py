"""Stated bounds on rounding against fractions: a tenth of ``make soundness``."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import soundness as script
from fltheory.engines.trajectory import Trajectory
from tests.drawn import a_tenth


@pytest.mark.parametrize("seed", a_tenth(range(6), of=3))
def test_no_stated_bound_is_below_the_true_error(seed: int) -> None:
    """40 settings each, some 1,500 comparisons; every algorithm at least twice."""
    count = script.soundness(40, seed)
    assert count.below == 0
    assert count.loose == 0
    assert count.comparisons > 1000
    assert max(count.settings.values()) <= 0.15 * sum(count.settings.values())


def test_a_bound_that_leaves_something_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that forget all but one in ten thousand of what they stated."""
    honest = script.exact

    def boasting(given, arithmetic: str = "float64") -> Trajectory:
        run = honest(given, arithmetic=arithmetic)
        if arithmetic != "float64":
            return run
        errors = {name: 1e-4 * run.rounding_error[name] for name in script.FIELDS}
        values = {name: np.array(run[name]) for name in script.FIELDS}
        return Trajectory.of(values, rounding_error=errors)

    monkeypatch.setattr(script, "exact", boasting)
    assert script.soundness(40, 1).below > 0
