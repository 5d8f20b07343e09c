"""Rounds from a log of who was online: which they are, what is refused, what names a run."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.prepared import prepared  # noqa: E402
from fltheory.hardware.training.run import (  # noqa: E402
    identity,
    train,
)
from fltheory.hardware.training.settings import RunSettings, run_settings  # noqa: E402
from fltheory.logs import AvailabilityLog, write_log  # noqa: E402
from tests.hardware.training.small_experiment import run_table  # noqa: E402

THERE = np.random.default_rng(1).random((10, 8)) < np.array([0.5] * 7 + [0.0])
ROUNDS = 6


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., RunSettings]:
    """Return a function that makes settings of a log, which is written first."""

    def made(
        there: np.ndarray = THERE,
        name: str = "log.csv",
        algorithm: str = "FedAvg",
        training: dict[str, Any] | None = None,
        **options: Any,
    ) -> RunSettings:
        file = tmp_path / name
        if there is not None:
            write_log(file, AvailabilityLog.from_masks(there))
        table = run_table(
            participation={"kind": "log", "file": str(file), **options}, training=training or {}
        )
        table["algorithm"] = {"name": algorithm}
        return run_settings(table)

    return made


def rounds_of(run: RunSettings, seed: int = 0) -> np.ndarray:
    """Return who takes part in the rounds that training asks for."""
    ready = prepared(run, seed)
    masks = ready.participation.masks(ready.participants_rng, 1)
    return np.array([next(masks)[0] for _ in range(run.training.rounds)])


def test_its_rounds_are_the_logs_whatever_the_seed(settings) -> None:
    for seed in (0, 1):
        np.testing.assert_array_equal(rounds_of(settings(), seed), THERE[:ROUNDS])
        np.testing.assert_array_equal(rounds_of(settings(first_round=3), seed), THERE[3:9])
    again = rounds_of(settings(first_round=8, repeat=True))
    np.testing.assert_array_equal(again, np.concatenate([THERE[8:], THERE])[:ROUNDS])


def test_a_log_of_who_was_drawn_trains_the_same_model(settings) -> None:
    """The clients of a run with its own kind of participation, of whom two are never there."""
    drawn = run_settings(run_table())
    there = rounds_of(drawn)
    assert there.any(axis=0).tolist() == [False] * 2 + [True] * 6
    recorded, whole = (train(run, 0) for run in (settings(there), drawn))
    assert torch.equal(recorded.model, whole.model)


def test_a_log_that_is_too_short_is_refused_unless_repeated(settings) -> None:
    long = {"rounds": 11}
    with pytest.raises(
        ValueError,
        match=r"participation.file must be a log of at least the 11 rounds of training from round "
        r"0 on, got 10 in '.*log.csv'; repeat = true lets it begin again",
    ):
        settings(training=long)
    with pytest.raises(ValueError, match="6 rounds of training from round 5 on, got 5 in"):
        settings(first_round=5)
    settings(training=long, repeat=True)
    settings(first_round=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"there": THERE[:, :7]}, r"as many clients as the partition has, 8, got 7 in '.*log.csv'"),
        ({"first_round": 10}, r"participation.first_round must be below the log's 10 rounds, got"),
        ({"repeat": 1}, r"participation.repeat must be true or false, got 1"),
        ({"there": None}, r"participation.file must be an existing file, got '.*log.csv'"),
        ({"size": 3}, r"participation has file, got 'size'"),
        ({"round_length": 0}, r"participation..*log.csv: round_length must be positive"),
        ({"algorithm": "FedAvg-IS"}, r"algorithm: availability must be .*, got 0 for client 7"),
    ],
)
def test_refusals(settings, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(**options)


def test_oracles_know_the_whole_log(settings) -> None:
    """CA-Fed is told shares and second eigenvalues of all ten rounds, also where six are played."""
    there = np.tile([[1, 1], [1, 0], [0, 0], [0, 1], [0, 1]], (2, 4)).astype(bool)
    run = settings(there, algorithm="CA-Fed")
    ca_fed: Any = prepared(run, 0).algorithm
    np.testing.assert_allclose(ca_fed.availability, [0.4, 0.6] * 4)
    # Even ones leave in 2 of 4 rounds and come in 2 of 6; odd ones the other way round.
    np.testing.assert_allclose(ca_fed.correlation, 1 - 2 / 4 - 2 / 6)


def test_a_run_is_known_by_what_the_log_says(settings, tmp_path: Path) -> None:
    run = settings()
    names = {identity(run, 0)}
    copy = tmp_path / "other.csv.gz"
    copy.write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    names.add(identity(settings(None, "other.csv.gz"), 0))
    matrix = tmp_path / "matrix.csv"
    rows = [f"{place},{','.join(map(str, who.astype(int)))}" for place, who in enumerate(THERE)]
    matrix.write_text("\n".join(["round,a,b,c,d,e,f,g,h", *rows]))
    names.add(identity(settings(None, "matrix.csv"), 0))
    assert len(names) == 1
    changed = THERE.copy()
    changed[9, 0] ^= True
    others = {identity(settings(changed), 0), identity(settings(first_round=1), 0)}
    assert len(names | others) == 3


def test_after_a_break_it_goes_on_with_the_logs_next_round(settings, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int) -> None:
        if done == 3:
            raise StopError

    run = settings(first_round=2)
    file = tmp_path / "run.pt"
    with pytest.raises(StopError):
        train(run, 0, file=file, round_done=stop)
    whole = train(run, 0)
    (tmp_path / "log.csv").rename(tmp_path / "moved.csv")
    moved = settings(None, "moved.csv", first_round=2)
    resumed = train(moved, 0, file=file)
    assert torch.equal(resumed.model, whole.model)
    changed = THERE.copy()
    changed[5] ^= True
    with pytest.raises(ValueError, match=r"run.pt must belong to the run .*, got one of"):
        train(settings(changed, first_round=2), 0, file=file)


def test_a_log_that_is_written_anew_is_read_anew(settings) -> None:
    settings()
    np.testing.assert_array_equal(rounds_of(settings(~THERE)), ~THERE[:ROUNDS])
