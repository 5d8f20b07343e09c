"""All runs of an experiment: each once, shared between tables, differences seed by seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.algorithms import FedAvg  # noqa: E402
from fltheory.hardware.training import measure  # noqa: E402
from fltheory.hardware.training.experiment import experiment  # noqa: E402
from fltheory.hardware.training.run import train  # noqa: E402
from tests.hardware.datasets.written_files import write_idx  # noqa: E402
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


def test_runs_of_other_code_are_run_again_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = experiment(document())
    notices: list[str] = []
    (first,) = measure([table], tmp_path, notice=notices.append)
    (again,) = measure([table], tmp_path, notice=notices.append)
    assert notices == []
    kept = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(kept) == 8
    monkeypatch.setattr("fltheory.hardware.training.run.fingerprint", lambda: "0123456789ab")
    (anew,) = measure([table], tmp_path, notice=notices.append)
    assert notices == [
        f"8 of 8 runs in {tmp_path} were made by other code, another torch or NumPy, or from "
        "other images: they are run again, and the old files are kept"
    ]
    now = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(now) == 16
    assert {name: now[name] for name in kept} == kept
    for key, run in first.runs.items():
        for other in (again.runs[key], anew.runs[key]):
            assert torch.equal(other.model, run.model)
            np.testing.assert_array_equal(other.curve.accuracy, run.curve.accuracy)
    measure([table], tmp_path, notice=notices.append)
    assert len(notices) == 1


def test_runs_on_other_images_are_run_again(tmp_path: Path) -> None:
    """Unless published checksums say which images they are, a run is known by them, too."""
    out, notices = tmp_path / "out", list[str]()
    folders = [tmp_path / name for name in ("these", "same", "others")]
    for folder in folders:
        folder.mkdir()
        write_idx(folder)
    labels = folders[2] / "t10k-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\0")
    table = experiment(
        document(
            data={"name": "mnist", "published": False},
            partition={"kind": "dirichlet", "n_clients": 2, "concentration": 100.0},
            participation={"kind": "uniform", "size": 1},
            seeds=[0],
            columns=[{"label": "it"}],
            rows=[{"label": "FedAvg", "paper": [50]}],
        )
    )
    for folder, files, noticed in zip(folders, (1, 1, 2), (0, 0, 1), strict=True):
        measure([table], out, folder=folder, notice=notices.append)
        assert (len(list(out.iterdir())), len(notices)) == (files, noticed)


def test_what_does_not_fit_the_data_is_refused_before_the_first_run(tmp_path: Path) -> None:
    """FedAvg would be trained before SAFARI's row is looked at."""
    document_of_both = document(seeds=[0])
    document_of_both["rows"][1]["set"]["server"]["samples"] = 10**6
    seen: list[object] = []
    with pytest.raises(ValueError, match=r"server\.samples must be at most the 1442 training"):
        measure(
            [experiment(document_of_both)], tmp_path / "out", progress=lambda *at: seen.append(at)
        )
    assert (seen, list(tmp_path.iterdir())) == ([], [])


def test_the_processor_by_its_number(tmp_path: Path) -> None:
    small = document(seeds=[0], columns=[{"label": "it"}], rows=[{"label": "FedAvg"}])
    (measured,) = measure([experiment(small)], tmp_path, device="cpu:0")
    assert [run.about["device"] for run in measured.runs.values()] == ["cpu"]


def test_a_changed_algorithm_changes_the_figures_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault that fingerprints are against: figures of the code as it was."""
    table = experiment(document(rows=document()["rows"][:1]))
    cell = table.rows[0][1][0]
    (before,) = measure([table], tmp_path)
    plain = FedAvg.round

    def doubled(self, state, *others, **options):  # type: ignore[no-untyped-def]
        after = plain(self, state, *others, **options)
        return {**after, "x": 2 * after["x"] - state["x"]}

    monkeypatch.setattr(FedAvg, "round", doubled)
    monkeypatch.setattr("fltheory.hardware.training.run.fingerprint", lambda: "0123456789ab")
    (after,) = measure([table], tmp_path)
    assert (before.values(cell) != after.values(cell)).all()


def test_a_file_of_other_code_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = experiment(document()).runs[0]
    file = tmp_path / "run.pt"
    train(run, 0, file=file)
    before = file.read_bytes()
    monkeypatch.setattr("fltheory.hardware.training.run.fingerprint", lambda: "0123456789ab")
    with pytest.raises(
        ValueError, match=r"run.pt must belong to the run .*-0123456789ab, got"
    ) as error:
        train(run, 0, file=file)
    assert "settings, code, torch or NumPy version, or images differ" in str(error.value)
    assert "\n" not in str(error.value)
    assert file.read_bytes() == before
