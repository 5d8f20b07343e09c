"""CIFAR-10's tables, shortened, on made-up images: every row, every method, from end to end.

The images are noise in CIFAR-10's binary layout, so no figure means anything but that it is the
same after a break. Rounds, images and batches are few, and the model is the logistic one: the
tables' own models train in a single cell of each file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory import cli  # noqa: E402
from fltheory.hardware.training import measure, read_experiment  # noqa: E402
from fltheory.hardware.training.run import train  # noqa: E402
from fltheory.hardware.training.settings import run_settings  # noqa: E402

ROOT = Path(__file__).parents[3]
N_TRAIN, N_TEST = 10_000, 20
FEW = [
    "seeds=[0]",
    "data.published=false",
    "data.training_fraction=0.05",
    "training.rounds=2",
    "training.batch_size=10",
    "training.evaluate_every=1",
]
OFTEN_THE_SERVER = ["algorithm.q=0.3"]
"""Of the two rounds of seed 0 the second is then the server's."""
SERVER = ["server.samples=20", "server.batch_size=10"]
TABLES = {
    "sa-fl-table4": OFTEN_THE_SERVER,
    "sa-fl-table9": [*OFTEN_THE_SERVER, *SERVER],
    "sa-fl-table11": [*OFTEN_THE_SERVER, *SERVER],
    "fedar-cifar10": ["partition.n_clients=50"],
    "fedau-cifar10": ["partition.n_clients=10", "participation.mean=0.5"],
}
OWN_MODELS = {
    "sa-fl-table4": 1_756_426,
    "fedar-cifar10": 62_006,
    "fedau-cifar10": 551_786,
}


def shortened(name: str, *changes: str) -> tuple[Path, list[str]]:
    """Return an experiment file, and what is to be changed of it."""
    return ROOT / "experiments" / f"{name}.toml", [*FEW, *TABLES[name], *changes]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of noise, equally many of each class."""
    folder = tmp_path_factory.mktemp("cifar10")
    rng = np.random.default_rng(8)
    for name, n in (("data_batch_1.bin", N_TRAIN), ("test_batch.bin", N_TEST)):
        records = rng.integers(256, size=(n, 1 + 3 * 32 * 32), dtype=np.uint8)
        records[:, 0] = np.arange(n) % 10
        (folder / name).write_bytes(records.tobytes())
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_it_is_interrupted_and_goes_on_to_the_end(
    name: str,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, changes = shortened(name, 'model.name="logistic"')
    table = read_experiment(file, changes)

    def interrupted(done: float, total: float, doing: str) -> None:
        if done >= total // 2 + 1 and done % 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure([table], tmp_path, folder=images, progress=interrupted)
    kept = [torch.load(path, weights_only=True)["done"] for path in tmp_path.glob("*.pt")]
    assert sorted(kept)[:2] == [1, 2]
    broken_off = table.runs[len(kept) - 1]

    options = [option for change in changes for option in ("--set", change)]
    places = ["--data", str(images), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fltheory", "train", str(file), *places, *options])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    shown = capsys.readouterr().out
    assert not stop.value.code
    for label, cells in table.rows:
        (row,) = [line for line in shown.splitlines() if line.startswith(f"│ {label} ")]
        figures = [entry.strip() for entry in row.strip("│").split("│")][1:]
        for figure, cell in zip(figures, cells, strict=True):
            assert re.match(r"[+-]?\d+\.\d\d( |$)", figure)
            assert figure.endswith(f"({cell.paper})" if cell.paper else figure)

    (measured,) = measure([table], tmp_path, folder=images)
    assert len(measured.runs) == len(table.runs)
    whole = train(broken_off, 0, folder=images)
    again = measured.runs[broken_off.key(0)]
    assert torch.equal(again.model, whole.model)
    np.testing.assert_array_equal(again.curve.loss, whole.curve.loss)
    for cell in (cell for _, cells in table.rows for cell in cells if cell.settings.server):
        plain = {k: v for k, v in cell.settings.table.items() if k != "server"}
        fedavg = run_settings({**plain, "algorithm": {"name": "FedAvg"}})
        of_both = [measured.runs[run.key(0)].model for run in (cell.settings, fedavg)]
        assert not torch.equal(*of_both), "the server did nothing"


@pytest.mark.parametrize("name", OWN_MODELS)
def test_the_tables_own_model(name: str, images: Path) -> None:
    less = [*SERVER, "data.training_fraction=0.01"] if "sa-fl" in name else []
    file, changes = shortened(name, *less, "training.rounds=1")
    run = read_experiment(file, changes).runs[-1]
    finished = train(run, 0, folder=images)
    assert finished.model.numel() == OWN_MODELS[name]
    assert np.isfinite(finished.curve.loss).all()
    assert finished.about["data"] == "CIFAR-10 (not the published files)"
