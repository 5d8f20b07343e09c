"""Witnesses: the float setting they stand for, and their way through JSON."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from fltheory.verify.certificates.certificate import setting_text
from tests.verify.witnesses import GROUPS


def test_setting_holds_the_same_numbers() -> None:
    setting = GROUPS.setting()
    assert np.diag(setting.problem.hessians).tolist() == [2.0, 0.5]
    assert setting.problem.optima.tolist() == [[0.75, 0], [-0.25, 0], [-0.25, 0], [-0.25, 0]]
    assert (setting.problem.sigma, setting.problem.server_sigma) == (0.5, 0.2)
    assert setting.participation.excluded == (0,)
    assert (setting.algorithm.q, setting.algorithm.local_steps) == (0.75, 3)
    assert (setting.rounds, setting.x0.tolist()) == (6, [0.0, 1.0])


def test_its_text_is_that_of_the_float_setting() -> None:
    """GROUPS has decimals alone, but for two numbers."""
    decimal = replace(GROUPS, assist_lr=Fraction(1, 8))
    assert decimal.setting_text() == setting_text(decimal.setting())
    assert GROUPS.setting_text()["algorithm"]["assist_lr"] == "1/7"


def test_three_lines_tell_all() -> None:
    text = "\n".join(replace(GROUPS, q=Fraction(1, 3)).lines)
    for part in ("diag(2, 1/2)", "(3/4, 0)", "m = 2 of 4", "[0] excluded", "R = 6", "q = 1/3"):
        assert part in text
