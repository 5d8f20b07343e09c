"""The search of a family, on a theorem whose truth is known in closed form."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fltheory.engines import Setting
from fltheory.verify import Outcome, check, falsify, map_region
from fltheory.verify.region_map import default_axis
from fltheory.verify.search.family_search import FamilySearch, FamilyWitness
from tests.theorems import own


def test_a_false_factor_is_refuted_by_a_simple_setting() -> None:
    """Steps between 1 and 2 contract by ``eta - 1``, which the printed factor calls 1/10."""
    found = falsify(own.FALSE, budget=60)
    assert isinstance(found.witness, FamilyWitness)
    values = found.witness.values
    assert 1.1 < values["step"] < 2
    assert values["distance"] == 1
    assert check(own.FALSE, found.witness.setting()).outcome is Outcome.REFUTED
    text = str(found)
    assert text.startswith("own/false (printed): REFUTED; 60 settings tried")
    truth, bound = (values["step"] - 1) ** (2 * values["rounds"]), 0.1 ** (2 * values["rounds"])
    assert f"truth {truth:.6g} > bound {bound:.6g} (float64 evidence)" in text


def test_a_true_factor_is_not_refuted_and_the_effort_is_told() -> None:
    found = falsify(own.TRUE, budget=80, seed=1)
    assert found.witness is None
    assert found.settings_tried == 80
    assert 0 < found.settings_applicable < 80
    assert 0.9 < found.best_ratio <= 1
    assert isinstance(found.best, FamilyWitness)
    assert "against" in found.best.lines[1]


def test_the_same_seed_gives_the_same_search() -> None:
    first, again, other = (falsify(own.TRUE, budget=30, seed=s).best for s in (3, 3, 4))
    assert first is not None
    assert again is not None
    assert other is not None
    assert dict(first.values) == dict(again.values) != dict(other.values)


def test_settings_that_cannot_be_made_count_as_tried() -> None:
    search = FamilySearch(own.TRUE, own.FAMILY, 10, 0)
    assert search._judged({"step": 0.05, "rounds": 1, "distance": 1}) is None
    search._take(None)
    assert (search.applicable, search.best, search.best_ratio) == (0, None, -math.inf)


def test_a_check_that_fails_names_the_setting() -> None:
    def domain(setting: Setting) -> Setting:
        raise ValueError("algorithm must be another one")

    search = FamilySearch(replace(own.TRUE, domain=domain), own.FAMILY, 10, 0)
    with pytest.raises(
        ValueError, match=r"another one \(in the family's setting with step = 0.5, rounds = 2, "
    ):
        search._judged({"step": 0.5, "rounds": 2, "distance": 1})


def test_progress_is_told_and_arguments_are_checked() -> None:
    seen: list[int] = []
    falsify(own.TRUE, budget=5, progress=lambda done, total, name: seen.append(done))
    assert seen == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match=r"budget must be a whole number of at least 1, got 0"):
        falsify(own.TRUE, budget=0)


def test_a_family_is_mapped_over_its_own_parameters() -> None:
    x, y = (default_axis(own.FAMILY, name) for name in ("step", "rounds"))
    region = map_region(own.FALSE, own.FAMILY, x, y)
    for row in region.verdicts:
        for step, verdict in zip(x.values, row, strict=True):
            expected = Outcome.HOLDS if step <= 1.1 else Outcome.REFUTED
            assert verdict.outcome is (Outcome.INAPPLICABLE if step >= 2 else expected)
    assert not np.isnan(region.looseness[:, 0]).any()
    with pytest.raises(ValueError, match=r"parameter must be one of step, rounds, distance"):
        default_axis(own.FAMILY, "q")
