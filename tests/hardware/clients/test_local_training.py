"""How clients and the server train is refused where it makes no sense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is an optional extra: pip install 'fltheory[torch]'")

from fltheory.hardware.clients.batches import LocalTraining, ServerData


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": 0}, "^batch_size must be a whole number"),
        ({"loss_batch_size": 2.5}, "^loss_batch_size must be a whole number"),
        ({"sampling": "shuffled"}, "^sampling must be one of"),
        ({"epochs": 0}, "^epochs must be a whole number"),
        ({"weight_decay": -0.1}, "^weight_decay must be"),
    ],
)
def test_local_training_refuses(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalTraining(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 3}, "^server lr must be given for 3 steps per round, got none"),
        ({"steps": 3, "lr": 0.0}, "^server lr must be"),
        ({"steps": 0}, "^server steps must be a whole number"),
        ({"batch_size": 0}, "^server batch_size must be a whole number"),
    ],
)
def test_server_data_refuses(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ServerData(np.arange(3), **given)


def test_one_step_of_the_server_needs_no_step_size() -> None:
    assert ServerData(np.arange(3)).lr is None
