"""Runs made ready: streams of a seed, images in use, the server's part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.algorithms import Safari, Scheduled, ServerMomentum  # noqa: E402
from fltheory.hardware.datasets import load  # noqa: E402
from fltheory.hardware.training.prepared import prepared  # noqa: E402
from fltheory.hardware.training.settings import run_settings  # noqa: E402
from tests.hardware.training.small_experiment import FOUR_CLASSES, SERVER, run_table  # noqa: E402

SAFARI = {"name": "SAFARI", "q": 0.5}


def ready(seed: int = 0, **changes: Any) -> Any:
    return prepared(run_settings(run_table(**changes)), seed)


def places(made: Any) -> list[list[int]]:
    sizes = np.cumsum(made.clients.pools.host_sizes)[:-1]
    return [sorted(part.tolist()) for part in np.split(made.clients.pools.places.numpy(), sizes)]


def test_a_seed_shares_what_settings_share() -> None:
    one, other = ready(), ready(algorithm=SAFARI, server=SERVER, training={"client_lr": 0.2})
    assert places(one) == places(other)
    assert torch.equal(one.start, other.start)
    assert torch.equal(one.clients.randomness, other.clients.randomness)
    assert one.participants_rng.random() == other.participants_rng.random()
    different = ready(1)
    assert places(one) != places(different)
    assert not torch.equal(one.start, different.start)
    assert one.branches_rng.random() != different.branches_rng.random()


def test_start() -> None:
    assert not ready(model={"start": "zero"}).start.any()
    before = torch.random.get_rng_state()
    bound = 1 / 8
    start = ready().start
    assert start.shape == (1, 650)
    assert 0.9 * bound < start.abs().max() <= bound
    assert torch.equal(torch.random.get_rng_state(), before)


def test_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function: compiled.append(function) or function)
    ready()
    assert not compiled
    ready(model={"compiled": True})
    assert len(compiled) == 1


def test_pixels() -> None:
    train = ready(data={"pixels": "standard"}).clients.inputs
    assert train.mean().item() == pytest.approx(0.0, abs=1e-5)
    assert train.std().item() == pytest.approx(1.0, abs=1e-5)
    assert ready().clients.inputs.max().item() == 1.0


def test_images_in_use() -> None:
    everything = {place for part in places(ready()) for place in part}
    assert len(everything) == len(load("digits").train)
    some = {place for part in places(ready(data={"training_fraction": 0.25})) for place in part}
    assert len(some) == round(0.25 * len(everything))
    held_out = ready(algorithm=SAFARI, server={**SERVER, "held_out": True})
    server = set(held_out.clients._server_pool.places.tolist())
    left = {place for part in places(held_out) for place in part}
    assert len(server) == 100
    assert server | left == everything
    assert not server & left


def test_algorithm_gets_its_steps() -> None:
    made = ready(algorithm=SAFARI, server=SERVER)
    longest = max(len(part) for part in places(made))
    assert made.algorithm == Safari(0.5, 0.1, 0.1, -(-longest // 32))
    own = ready(training={"local_epochs": None, "local_steps": 3}).algorithm
    assert own.local_steps == 3
    assert isinstance(ready(training={"step_sizes": "harmonic"}).algorithm, Scheduled)
    moving = ready(training={"momentum": 0.9}).algorithm
    assert isinstance(moving, ServerMomentum)
    assert moving.momentum == 0.9


def test_labels_are_those_of_the_deal() -> None:
    made = ready(
        partition={"kind": "label swap", "n_clients": 8, "pairs": 2}, participation=FOUR_CLASSES
    )
    assert (made.test_labels.numpy() != load("digits").test.labels).any()
    assert (made.clients.targets.numpy() != load("digits").train.labels).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": SAFARI, "server": {**SERVER, "samples": 10**6}}, "server.samples must be"),
        ({"model": {"name": "mlp"}}, "model.name must be one of 'logistic'"),
        (
            {"data": {"training_fraction": 0.002}},
            "partition must give every client at least one image",
        ),
    ],
)
def test_refusals(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ready(**changes)


def test_absent_device() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ValueError, match="device must be available, got 'cuda'"):
        prepared(run_settings(run_table()), 0, device="cuda")
