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
from fltheory.hardware.training import measure, read_experiment  # noqa: E402
from fltheory.hardware.training.prepared import prepared  # noqa: E402
from fltheory.hardware.training.run import train  # noqa: E402

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get(DATA_FOLDER, ROOT / "data"))


def needs(name: str) -> None:
    if not (FOLDER / name).is_dir():
        pytest.skip(f"needs the images in {name} of the folder that {DATA_FOLDER} names")


@pytest.mark.soundness
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


def test_what_is_left_of_mnist_where_clients_never_take_part() -> None:
    """How many classes go missing, and the shares of test images, that docs/training.md names."""
    needs("mnist")
    data = load("mnist", FOLDER / "mnist")
    table = read_experiment(ROOT / "experiments" / "sa-fl-table8.toml")
    cells = dict(table.rows)

    def present(excluded: int, column: int) -> list[np.ndarray]:
        settings = cells[f"s = {excluded}, FedAvg"][column].settings
        runs = [prepared(settings, seed, folder=FOLDER / "mnist") for seed in table.seeds]
        return [np.unique(data.train.labels[np.concatenate(run.parts[excluded:])]) for run in runs]

    assert [10 - kinds.size for kinds in present(4, 2)] == [2, 2, 2, 1, 1]
    assert [10 - kinds.size for kinds in present(2, 2)] == [1, 0, 0, 0, 0]
    shares = [100 * np.isin(data.test.labels, kinds).mean() for kinds in present(4, 3)]
    np.testing.assert_allclose([min(shares), max(shares)], [58.25, 60.20], rtol=0, atol=0.005)


@pytest.mark.soundness
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
    assert run.curve.rounds.tolist() == [0, 2]
    assert run.about["data"].startswith("CIFAR-10")
