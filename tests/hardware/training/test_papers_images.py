"""The papers' own images, where they are at hand: shortened experiments run from end to end.

Set FLTHEORY_DATA to a folder with ``mnist`` and ``cifar10`` to run these.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.datasets import DATA_FOLDER, load  # noqa: E402
from fltheory.hardware.training import measure, prepared, read_experiment, train  # noqa: E402

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get(DATA_FOLDER, ROOT / "data"))


def needs(name: str) -> None:
    if not (FOLDER / name).is_dir():
        pytest.skip(f"needs the images in {name} of the folder that {DATA_FOLDER} names")


def test_a_missing_class_costs_its_share_on_mnist(tmp_path: Path) -> None:
    """p = 1: with four classes never seen, nobody can pass what is left of the test images."""
    needs("mnist")
    table = read_experiment(
        ROOT / "experiments" / "sa-fl-table1.toml",
        ["seeds=[0]", "training.rounds=5", "data.training_fraction=0.1"],
    )
    (measured,) = measure([table], tmp_path)
    best = {label: [measured.values(cell)[0] for cell in cells] for label, cells in table.rows}
    assert best["s = 4"][3] < 66
    assert min(row[0] for row in best.values()) > 80


def test_what_is_left_of_mnist_where_four_clients_never_take_part() -> None:
    """The shares of test images of classes present that docs/training.md names."""
    needs("mnist")
    data = load("mnist", FOLDER / "mnist")
    counts = np.sort(np.bincount(data.test.labels))
    assert (counts[:6].sum(), counts[-6:].sum()) == (5795, 6196)
    table = read_experiment(ROOT / "experiments" / "sa-fl-table10.toml")
    (_, cells), *_ = table.rows
    shares = {}
    for label, cell in zip(table.columns, cells, strict=True):
        ready = [prepared(cell.settings, seed, folder=FOLDER / "mnist") for seed in (0, 1, 2)]
        present = [np.unique(data.train.labels[np.concatenate(run.parts[4:])]) for run in ready]
        shares[label] = [100 * np.isin(data.test.labels, kinds).mean() for kinds in present]
    np.testing.assert_allclose(shares["p = 1"], [60.20, 59.36, 59.18], atol=0.005)
    np.testing.assert_allclose(
        [min(shares["p = 2"]), max(shares["p = 2"])], [79.58, 80.98], atol=5e-3
    )
    assert shares["p = 5"] == [100, 100, 100]


def test_cifar_10_from_end_to_end(tmp_path: Path) -> None:
    needs("cifar10")
    table = read_experiment(
        ROOT / "experiments" / "fedar-cifar10.toml",
        [
            "seeds=[0]",
            "training.rounds=2",
            "training.batch_size=20",
            "data.training_fraction=0.02",
            "data.published=false",
        ],
    )
    (label, (cell, _)), *_ = table.rows
    assert label == "FedAR"
    run = train(cell.settings, 0, file=tmp_path / "run.pt")
    assert run.model.numel() == 62_006
    assert np.isfinite(run.curve.loss).all()
    assert run.curve.rounds.tolist() == [2]
    assert run.about["data"].startswith("CIFAR-10")
