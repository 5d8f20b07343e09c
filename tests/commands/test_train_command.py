"""`fltheory train`, as a user calls it, with kills and bad input."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training import measure, read_experiment  # noqa: E402
from tests.bad_input.files import EXPERIMENT, LOG  # noqa: E402

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "experiments" / "digits.toml"


@pytest.fixture
def train_command(fltheory_command):
    return lambda *arguments: fltheory_command("train", *arguments)


def test_digits_show_the_effect(train_command, tmp_path: Path) -> None:
    """With s = 4 of ten classes never seen, FedAvg cannot pass 64 %; SAFARI does, by far."""
    page = tmp_path / "page.md"
    status, out, err = train_command(
        DIGITS, "--out", tmp_path / "out", "--set", "seeds=[0]", "--page", page
    )
    assert (status, err) == (0, "")
    rows = {
        line.split("│")[1].strip(): line.split("│")[2:5] for line in out.splitlines() if "│" in line
    }
    fedavg, safari = (
        [float(entry) for entry in rows[name]] for name in ("FedAvg", "SAFARI, q = 0.8")
    )
    assert fedavg[0] > fedavg[1] > fedavg[2]
    assert fedavg[2] < 64
    assert safari[2] > fedavg[2] + 5
    assert f"written to {page}" in out
    assert f"Made by `fltheory train {DIGITS} --set seeds=[0] --page {page}`" in page.read_text()


def test_the_page_is_not_written_over_the_log_that_the_experiment_names(
    train_command, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    text = EXPERIMENT.replace("n_clients = 10", "n_clients = 2")
    who = 'kind = "log"\nfile = "log.csv"'
    Path("e.toml").write_text(text.replace('kind = "uniform"\nsize = 5', who))
    status, out, err = train_command("e.toml", "--page", "log.csv", "--out", "runs")
    assert (status, out) == (2, "")
    assert "page must be another file than 'log.csv', which is read" in err
    assert (Path("log.csv").read_text(), Path("runs").exists()) == (LOG, False)


KILLED = """
import os, signal, sys
from fltheory.cli import main
from fltheory.hardware.training import run

write, left = run.write_checkpoint, [int(sys.argv.pop(1))]

def write_and_die(*arguments):
    write(*arguments)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

run.write_checkpoint = write_and_die
main()
"""


def killed_after(checkpoints: int, out: Path, arguments: list[str]) -> None:
    """Run the command in a process of its own, which is killed once it has written so many."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(checkpoints), "train", *arguments, "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert killed.returncode == -signal.SIGKILL


def test_after_a_kill_the_same_command_ends_with_the_same_numbers(tmp_path: Path) -> None:
    changes = ["seeds=[0]", "training.rounds=12"]
    arguments = [str(DIGITS), "--checkpoint-every", "2"]
    for change in changes:
        arguments += ["--set", change]
    killed_after(8, tmp_path / "killed", arguments)
    left = [torch.load(file, weights_only=True) for file in (tmp_path / "killed").glob("*.pt")]
    assert any(0 < checkpoint["done"] < 12 for checkpoint in left)
    table = read_experiment(DIGITS, changes)
    (resumed,) = measure([table], tmp_path / "killed")
    (whole,) = measure([table], tmp_path / "whole")
    assert len(whole.runs) == 6
    for key, finished in whole.runs.items():
        again = resumed.runs[key]
        assert torch.equal(again.model, finished.model)
        assert again.curve.accuracy.tolist() == finished.curve.accuracy.tolist()
        assert again.curve.loss.tolist() == finished.curve.loss.tolist()


def test_an_interrupt_says_how_to_go_on(monkeypatch, train_command, tmp_path: Path) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fltheory.hardware.training.measure", interrupted)
    status, out, err = train_command(DIGITS, "--out", tmp_path)
    assert (status, out) == (130, "")
    said = (
        f"fltheory: interrupted, checkpoints are in {tmp_path}; rerun the same command to resume\n"
    )
    assert err == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.toml"], "file must be an existing file, got 'no.toml'"),
        (
            [DIGITS, "--set", "training.epochs=2"],
            "digits.toml: training has local_epochs, got 'epochs'",
        ),
        ([DIGITS, "--set", "x"], "set must be key=value in TOML, got 'x'"),
        (
            [DIGITS, "--checkpoint-every", "0"],
            "checkpoint_every must be a whole number of at least",
        ),
        ([DIGITS, "--device", "gpu"], "device must be cpu, cuda or cuda:N, got 'gpu'"),
        (
            [DIGITS, "--set", 'data.name="mnist"', "--data", "nowhere"],
            "data must be an existing folder",
        ),
        (
            [DIGITS, "--set", "training.client_lr=1e38"],
            "model must stay finite, got NaN in round 1",
        ),
        (
            [DIGITS, "--set", "data.training_fraction=0.001"],
            "partition must give every client at least one image, got none for client 0 where 1 "
            "of 1442",
        ),
        (
            [DIGITS, "--set", "partition.n_clients=9"],
            r"p times n_clients must be at least 10, so that every class has a client, got 1 \* 9",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_line(
    train_command, tmp_path: Path, arguments: list[object], message: str
) -> None:
    status, out, err = train_command(*arguments, "--out", tmp_path)
    assert (status, out) == (2, "")
    assert re.search(message, err)
    assert err.count("\n") == 1


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_made(train_command, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").write_text("kept")
    status, shown, err = train_command(DIGITS, "--out", tmp_path / out)
    assert (status, shown) == (2, "")
    assert err.startswith("fltheory: out must be a folder, or a name where one can be made, got ")
    assert err.count("\n") == 1
    assert (tmp_path / "file").read_text() == "kept"


def test_a_model_that_is_no_number_any_more(train_command, tmp_path: Path) -> None:
    """Figures of the rounds before it are kept, and the line says where."""
    changes = ["seeds=[0]", "training.rounds=60", "training.client_lr=10.0"]
    options = [part for change in changes for part in ("--set", change)]
    decay = ["--set", "training.weight_decay=100.0"]
    status, shown, err = train_command(DIGITS, *options, *decay, "--out", tmp_path)
    assert (status, shown) == (2, "")
    found = re.search(r"must stay finite, got (?:NaN|infinity) in round (\d+) of FedAvg", err)
    assert found
    assert err.count("\n") == 1
    (kept,) = tmp_path.glob("*.pt")
    checkpoint = torch.load(kept, weights_only=True)
    assert checkpoint["done"] == int(found[1]) - 1 >= 1
    assert torch.isfinite(checkpoint["state"]["x"]).all()
    assert f"the checkpoint of round {checkpoint['done']} is in {kept}" in err


def test_cuda_asked_for_and_absent(train_command, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    status, out, err = train_command(DIGITS, "--device", "cuda", "--out", tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("fltheory: device must be available, got 'cuda' where torch sees")
    assert err.count("\n") == 1


def test_a_damaged_checkpoint(train_command, tmp_path: Path) -> None:
    options = [DIGITS, "--set", "training.rounds=1", "--set", "seeds=[0]", "--out", tmp_path]
    assert train_command(*options)[0] == 0
    for file in tmp_path.glob("*.pt"):
        file.write_bytes(file.read_bytes()[:100])
    status, _, err = train_command(*options)
    assert status == 2
    assert "must be a checkpoint that train wrote, got a damaged or foreign file" in err
    assert err.count("\n") == 1
