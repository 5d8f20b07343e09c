"""Maps whose points are cells of a store."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import nonconvex
from fltheory.sweep import Store
from fltheory.sweep.kept import KeptWork, map_into
from fltheory.sweep.store import StoreError
from fltheory.theorems.registry import registered
from fltheory.verify import MapAxis, map_region
from fltheory.verify.region_map import default_axis, default_axis_names

Q, ROUNDS = MapAxis("q", (0.05, 0.9)), MapAxis("rounds", (1.0, 30.0))


@pytest.fixture
def kept(tmp_path: Path):
    with Store(tmp_path / "store.db", create=True) as store:
        yield KeptWork(store, processes=1)


@pytest.mark.parametrize("name", [("sa-fl/5", "derived"), ("fedau/1", "derived")])
def test_a_map_into_a_store_is_the_map(kept: KeptWork, name: tuple[str, str]) -> None:
    theorem = theorems.get(*name)
    start = theorem.family or next(iter(theorem.regimes.values())).setting
    axes = []
    for axis in (default_axis(start, name) for name in default_axis_names(start)):
        axes.append(MapAxis(axis.name, axis.values[2:9:6]))
    plain, found = map_region(theorem, start, *axes), map_into(kept, theorem, start, *axes)
    assert found.summary == plain.summary
    np.testing.assert_array_equal(found.looseness, plain.looseness)
    for one, other in zip(sum(found.verdicts, ()), sum(plain.verdicts, ()), strict=True):
        assert (one.outcome, one.evidence.grade) == (other.outcome, other.evidence.grade)
        assert one.ratio == other.ratio or np.isnan(one.ratio)
        assert one.relation == other.relation
    assert len(kept.store) == 4


def test_what_cannot_be_known_again_is_refused(kept: KeptWork) -> None:
    theorem = theorems.get("sa-fl/5")
    start = theorem.regimes["q = 0"].setting
    with pytest.raises(ValueError, match="theorem must be registered to be kept"):
        map_into(kept, replace(theorem, note="another"), start, Q, ROUNDS)
    with pytest.raises(ValueError, match="y must differ from x"):
        map_into(kept, theorem, start, Q, Q)
    # Another algorithm than the statement's: a point without a verdict.
    other = Setting(
        FedAvg(0.1, 2), nonconvex(3, 2, L=1.0, sigma_G=0.5), UniformSubset(3, 2), 3, [1.0, 1.0]
    )
    with pytest.raises(ValueError, match="algorithm must be Scaffold"):
        map_into(kept, theorems.get("scaffold/convex"), other, MapAxis("client_lr", (0.1,)), ROUNDS)


def test_a_verdict_that_somebody_else_wrote_is_refused(kept: KeptWork) -> None:
    theorem = theorems.get("sa-fl/5")
    start = theorem.regimes["q = 0"].setting
    map_into(kept, theorem, start, Q, ROUNDS)
    connection = sqlite3.connect(kept.store.path)
    connection.execute("UPDATE cells SET outcome = 'MAYBE'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=r"of the store must be as fltheory wrote it, .*MAYBE"):
        map_into(kept, theorem, start, Q, ROUNDS)


def test_every_setting_that_is_mapped_by_default_can_be_kept() -> None:
    from fltheory.engines.setting_file import setting_document
    from fltheory.verify.region_map import starting_point

    mapped = 0
    for statement in registered():
        try:
            start = starting_point(statement)
        except ValueError:
            continue
        setting = start if isinstance(start, Setting) else start.setting()
        assert setting_document(setting)["problem"], statement.name
        mapped += 1
    assert mapped > 40
