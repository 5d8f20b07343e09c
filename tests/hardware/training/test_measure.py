"""All runs of an experiment: each once, shared between tables, differences seed by seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training import experiment, measure, train  # noqa: E402
from tests.hardware.training.small_experiment import document  # noqa: E402


def test_figures_of_cells(tmp_path: Path) -> None:
    table = experiment(document())
    seen: list[tuple[int, int, str]] = []
    (measured,) = measure([table], tmp_path, progress=lambda *done: seen.append(done))
    assert len(list(tmp_path.iterdir())) == 8
    assert seen[-1] == (48, 48, "run 8 of 8: SAFARI, seed 1")
    assert [done for done, _, _ in seen] == list(range(1, 49))
    cell = table.rows[1][1][0]
    fedavg, safari = table.rows[0][1][0].settings, cell.settings
    for figure, pick in (("last", -1), (None, -1), ("best", None)):
        expected = []
        for seed in table.seeds:
            curves = [train(run, seed).curve.accuracy for run in (safari, fedavg)]
            expected.append(
                curves[0][-1] - curves[1][-1] if pick else curves[0].max() - curves[1].max()
            )
        np.testing.assert_array_equal(measured.values(cell, figure), expected)


def test_tables_share_runs(tmp_path: Path) -> None:
    table = experiment(document())
    one_row = document(rows=document()["rows"][:1])
    seen: list[tuple[int, int, str]] = []
    both = measure([table, experiment(one_row)], tmp_path, progress=lambda *done: seen.append(done))
    assert seen[-1][1] == 48
    cell = table.rows[0][1][0]
    np.testing.assert_array_equal(both[0].values(cell), both[1].values(cell))
