"""Witnesses: the float setting they stand for, and their way through JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory.verify import Witness
from tests.verify.witnesses import GROUPS


def test_setting_holds_the_same_numbers() -> None:
    setting = GROUPS.setting()
    assert np.diag(setting.problem.hessians).tolist() == [2.0, 0.5]
    assert setting.problem.optima.tolist() == [[0.75, 0], [-0.25, 0], [-0.25, 0], [-0.25, 0]]
    assert (setting.problem.sigma, setting.problem.server_sigma) == (0.5, 0.2)
    assert setting.participation.excluded == (0,)
    assert (setting.algorithm.q, setting.algorithm.local_steps) == (0.75, 3)
    assert (setting.rounds, setting.x0.tolist()) == (6, [0.0, 1.0])


def test_json_round_trip_is_exact() -> None:
    assert Witness.from_json(json.loads(json.dumps(GROUPS.to_json()))) == GROUPS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("q", 0.75),
        ("q", "three quarters"),
        ("q", "1/0"),
        ("rounds", "6"),
        ("rounds", True),
        ("optima", ["1", "2"]),
        ("curvatures", "2"),
        ("excluded", ["0"]),
    ],
)
def test_a_damaged_field_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"witness field {field} must be"):
        Witness.from_json(GROUPS.to_json() | {field: value})


def test_a_missing_field_is_named() -> None:
    document = GROUPS.to_json()
    del document["x0"]
    with pytest.raises(ValueError, match="witness field x0 must be given"):
        Witness.from_json(document)


def test_three_lines_tell_all() -> None:
    text = "\n".join(replace(GROUPS, q=Fraction(1, 3)).lines)
    for part in ("diag(2, 1/2)", "(3/4, 0)", "m = 2 of 4", "[0] excluded", "R = 6", "q = 1/3"):
        assert part in text
