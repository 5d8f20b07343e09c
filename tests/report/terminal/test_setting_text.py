"""Settings in a few lines."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import MarkovOnOff
from fltheory.report.terminal.refutation_text import brief, setting_lines


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (np.array([1.0, 0.25]), "(1, 0.25)"),
        (np.eye(3), "3 x 3 numbers, 0 to 1"),
        (np.array([]), "()"),
        ((1, 2.5, "a"), "(1, 2.5, 'a')"),
        (tuple(range(9)), "(0, 1, 2, 3, 4, ... 9 in all)"),
        (None, "None"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert brief(value) == text


def test_objects_show_their_fields() -> None:
    assert brief(FedAvg(0.1, 5)).startswith("FedAvg(client_lr = 0.1, local_steps = 5")
    process = MarkovOnOff([0.5, 0.25], [0.5, 0.0])
    assert brief(process) == "MarkovOnOff(availability = (0.5, 0.25), correlation = (0.5, 0))"


def test_long_texts_are_cut() -> None:
    assert len(brief("a" * 500)) == 200


def test_every_registered_setting_is_short() -> None:
    for statement in theorems.registered():
        for regime in statement.regimes.values():
            lines = setting_lines(regime.setting)
            if isinstance(regime.setting, Setting):
                assert list(lines) == ["algorithm", "problem", "participation", "rounds", "start"]
            assert all(len(line) < 600 and "\n" not in line for line in lines.values())
