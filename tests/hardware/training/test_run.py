"""Runs: the same numbers after a break, the last good round kept, algorithms that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.checkpoint import read_checkpoint  # noqa: E402
from fltheory.hardware.training.run import (  # noqa: E402
    Finished,
    identity,
    train,
)
from fltheory.hardware.training.settings import run_settings  # noqa: E402
from tests.hardware.training.small_experiment import FOUR_CLASSES, SERVER, run_table  # noqa: E402

SAFARI = {"name": "SAFARI", "q": 0.5}
MARKOV = {"kind": "four classes", **FOUR_CLASSES}
CASES: dict[str, dict[str, Any]] = {
    "FedAvg": {},
    "SAFARI": {"algorithm": SAFARI, "server": SERVER},
    "SCAFFOLD": {"algorithm": {"name": "SCAFFOLD"}, "training": {"step_sizes": "harmonic"}},
    "MIFA": {"algorithm": {"name": "MIFA", "start": "zero"}, "training": {"evaluate_every": 2}},
    "a network": {"model": {"name": "fedau-cnn"}, "training": {"rounds": 5}},
    "CA-Fed": {
        "algorithm": {"name": "CA-Fed"},
        "participation": MARKOV,
        "training": {"momentum": 0.5, "loss_batch_size": 10, "sampling": "replacement"},
    },
}


class Stop(Exception):  # noqa: N818
    """Stands for whatever ends a process."""


def stops_after(rounds: int) -> Any:
    def round_done(done: int) -> None:
        if done == rounds:
            raise Stop

    return round_done


def same(one: Finished, other: Finished) -> bool:
    curves = zip(
        (one.curve.rounds, one.curve.accuracy, one.curve.loss),
        (other.curve.rounds, other.curve.accuracy, other.curve.loss),
        strict=True,
    )
    return torch.equal(one.model, other.model) and all(np.array_equal(a, b) for a, b in curves)


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_is_broken_off_twice_ends_the_same(name: str, tmp_path: Path) -> None:
    settings = run_settings(run_table(**CASES[name]))
    file = tmp_path / "run.pt"
    for rounds in (2, 4):
        with pytest.raises(Stop):
            train(settings, 3, file=file, round_done=stops_after(rounds))
        kept = read_checkpoint(file, identity(settings, 3))
        assert kept is not None
        assert kept.done == rounds
    whole = train(settings, 3)
    assert same(train(settings, 3, file=file), whole)
    assert not same(train(settings, 4), whole)


def test_after_a_kill_it_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    """A kill writes nothing more: what the second of two checkpoints held is put back."""
    settings = run_settings(run_table(**CASES["SAFARI"]))
    file = tmp_path / "run.pt"
    seen = []

    def round_done(done: int) -> None:
        if file.exists():
            seen.append((done, file.read_bytes()))
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        train(settings, 0, file=file, checkpoint_every=2, round_done=round_done)
    done, left = seen[-1]
    file.write_bytes(left)
    kept = read_checkpoint(file, identity(settings, 0))
    assert kept is not None
    assert (done, kept.done) == (5, 4)
    rounds: list[int] = []
    assert same(train(settings, 0, file=file, round_done=rounds.append), train(settings, 0))
    assert rounds == [5, 6]


def test_a_finished_run_is_read_and_not_run_again(tmp_path: Path) -> None:
    settings = run_settings(run_table())
    first = train(settings, 0, file=tmp_path / "run.pt")
    rounds: list[int] = []
    again = train(settings, 0, file=tmp_path / "run.pt", round_done=rounds.append)
    assert rounds == [6]
    assert same(first, again)
    assert first.about == again.about
    assert first.about["data"] == "digits"
    assert first.about["device"] == "cpu"


def test_evaluations() -> None:
    curve = train(run_settings(run_table(training={"evaluate_every": 4})), 0).curve
    assert curve.rounds.tolist() == [0, 4, 6]
    every = train(run_settings(run_table()), 0).curve
    assert every.rounds.tolist() == [0, 1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(curve.accuracy, every.accuracy[[0, 4, 6]])


def test_algorithms_that_must_agree() -> None:
    """Nobody is absent and all are equal in size: many methods are FedAvg there."""
    alone = {"kind": "uniform", "size": 8}
    equal = {"equal": True}
    common = {"participation": alone, "partition": equal}
    fedavg = train(run_settings(run_table(**common)), 0).model
    for algorithm in (
        {**SAFARI, "q": 1.0},
        {"name": "average all"},
        {"name": "FedAvg-IS"},
        {"name": "FedAU"},
        {"name": "FedVARP"},
        {"name": "MIFA"},
        {"name": "FedAR", "growth": 0.1, "largest": 2.0},
        {"name": "Unbiased"},
        {"name": "AdaFed"},
    ):
        table = run_table(**common, server=SERVER)
        table["algorithm"] = algorithm
        other = train(run_settings(table), 0).model
        torch.testing.assert_close(other, fedavg, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_model_that_is_no_number_any_more(tmp_path: Path) -> None:
    settings = run_settings(
        run_table(training={"client_lr": 10.0, "weight_decay": 100.0, "rounds": 40})
    )
    file = tmp_path / "run.pt"
    with pytest.raises(ValueError, match=r"must stay finite, got .* in round") as error:
        train(settings, 0, file=file, checkpoint_every=1000)
    message = str(error.value)
    assert "\n" not in message
    assert "of FedAvg, seed 0, with client_lr = 10" in message
    kept = read_checkpoint(file, identity(settings, 0))
    assert kept is not None
    assert f"the checkpoint of round {kept.done} is in {file}" in message
    assert f"in round {kept.done + 1} of" in message
    assert torch.isfinite(kept.state["x"]).all()
    with pytest.raises(ValueError, match="nothing was kept"):
        train(settings, 0)
