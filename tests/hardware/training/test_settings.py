"""What a run's tables may say, and what is answered to the rest."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.settings import (  # noqa: E402
    ServerSettings,
    run_settings,
)
from tests.hardware.training.small_experiment import SERVER, run_table  # noqa: E402

SAFARI = {"name": "SAFARI", "q": 0.5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": None}, "a run must have data, got model, partition"),
        ({"servers": SERVER}, "a run has server, got 'servers'"),
        ({"data": {"name": "imagenet"}}, "data.name must be one of 'digits', 'mnist'"),
        ({"data": {"pixel": "unit"}}, "data has pixels, got 'pixel'"),
        ({"data": {"training_fraction": 0}}, "data.training_fraction must be a finite number"),
        ({"model": {"name": 3}}, "model.name must be one of 'logistic', .*, got 3"),
        ({"model": {"start": "one"}}, "model.start must be one of 'torch', 'zero'"),
        ({"model": {"compiled": "yes"}}, "model.compiled must be true or false, got 'yes'"),
        ({"partition": {"kind": "random"}}, "partition.kind must be one of evenly, classes"),
        ({"partition": {"classes_per_client": 0}}, "partition.classes_per_client must be a whole"),
        ({"participation": {"size": 7}}, "participation.size must be at most the 6 eligible"),
        ({"participation": {"size": 2.5}}, "participation.size must be a whole number"),
        ({"algorithm": {"name": "FedSGD"}}, "algorithm.name must be one of fedavg, "),
        ({"algorithm": {"q": 0.5}}, "algorithm has server_lr, got 'q'"),
        ({"algorithm": {"name": "SAFARI"}, "server": SERVER}, "algorithm must have q, got nothing"),
        ({"algorithm": {**SAFARI, "q": 2}, "server": SERVER}, "algorithm.q must be a probability"),
        ({"algorithm": SAFARI}, r"algorithm.name must not be SAFARI without a table \[server\]"),
        ({"algorithm": {"name": "CA-Fed"}}, "algorithm.name must not be CA-Fed unless"),
        ({"training": {"rounds": 0}}, "training.rounds must be a whole number of at least 1"),
        ({"training": {"rounds": None}}, "training must have rounds, got client_lr"),
        ({"training": {"local_steps": 3}}, "training.local_steps or local_epochs must be given"),
        ({"training": {"local_epochs": None}}, "training.local_steps or local_epochs must"),
        ({"training": {"client_lr": "fast"}}, "training.client_lr must be a finite number above"),
        ({"training": {"momentum": 1}}, r"training.momentum must be in \[0, 1\), got 1"),
        (
            {"training": {"momentum": 0.9, "step_sizes": "harmonic"}},
            "training.momentum must be 0 unless step sizes are constant",
        ),
        (
            {"algorithm": SAFARI, "server": {**SERVER, "epochs": 1}},
            "server.steps or epochs must be given, and not both",
        ),
        ({"server": {**SERVER, "held_out": 1}}, "server.held_out must be true or false"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_in_a_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message) as error:
        run_settings(run_table(**changes))
    assert "\n" not in str(error.value)


def test_keys_tell_runs_apart() -> None:
    def key(seed: int = 0, **changes: Any) -> str:
        return run_settings(run_table(**changes)).key(seed)

    others = [key(1), key(training={"client_lr": 0.2}), key(data={"pixels": "standard"})]
    assert key() == key()
    assert len({key(), *others}) == 4


def test_server_is_left_out_where_it_plays_no_part() -> None:
    plain = run_settings(run_table())
    assert run_settings(run_table(server=SERVER)).key(0) == plain.key(0)
    held_out = run_settings(run_table(server={**SERVER, "held_out": True}))
    assert held_out.server is not None
    assert held_out.key(0) != plain.key(0)
    assert run_settings(run_table(algorithm=SAFARI, server=SERVER)).server is not None


def test_steps_in_a_round_of_the_server() -> None:
    assert ServerSettings(100, 0.1, 32, steps=5).steps_a_round == 5
    assert ServerSettings(100, 0.1, 32, epochs=2).steps_a_round == 8
