"""Equations between step sizes: solved for one number of the algorithm, whichever moves them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.engines import Setting
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.symbols import symbol
from fltheory.verify.search.setting_search import with_equations_met

THEOREM = theorems.get("sa-fl/5", "derived")
SETTING = THEOREM.regimes["unbiased sampling"].setting


def with_steps(client_lr: float, assist_lr: float) -> Setting:
    algorithm = replace(SETTING.algorithm, client_lr=client_lr, assist_lr=assist_lr)
    return replace(SETTING, algorithm=algorithm)


@pytest.mark.parametrize("seed", range(3))
def test_the_coupling_of_theorem_5_is_solved(seed: int) -> None:
    """eta_c K = 4 eta_s L/(L + mu), with L = 1, mu = 1/4 and K = 5."""
    broken = with_steps(0.3, 0.001)
    solved = with_equations_met(THEOREM, broken, np.random.default_rng(seed)).algorithm
    assert solved.client_lr * 5 == pytest.approx(4 * solved.assist_lr / 1.25, rel=1e-13)
    assert solved.client_lr == 0.3 or solved.assist_lr == 0.001
    assert solved.q == SETTING.algorithm.q


def test_all_other_hypotheses_are_met_then() -> None:
    solved = with_equations_met(THEOREM, with_steps(0.3, 0.001), np.random.default_rng(1))
    checks = {check.name: check.holds for check in THEOREM.hypotheses_without_run(solved)}
    assert checks["coupled step sizes"] is True


def test_what_is_met_already_stays() -> None:
    assert with_equations_met(THEOREM, SETTING, np.random.default_rng(0)) is SETTING


def test_an_equation_that_is_no_power_of_the_number_is_solved_too() -> None:
    """eta exp(eta) = 1 at the omega constant, 0.567143290409783873 (OEIS A030178)."""
    eta = symbol("eta", number="client_lr", positive=True)
    lambert = replace(
        THEOREM,
        hypotheses=(Hypothesis("Lambert", sp.Eq(eta * sp.exp(eta), 1), "here"),),
        definitions={},
    )
    for seed in range(3):
        start = with_steps(0.5, 0.1)
        solved = with_equations_met(lambert, start, np.random.default_rng(seed))
        assert math.isclose(solved.algorithm.client_lr, 0.567143290409783873, rel_tol=1e-9)


def test_without_a_number_that_moves_it_the_setting_is_left_as_it_is() -> None:
    one = symbol("one", number="1", positive=True)
    never = replace(
        THEOREM,
        hypotheses=(Hypothesis("never", sp.Eq(one, 2, evaluate=False), "here"),),
        definitions={},
    )
    assert with_equations_met(never, SETTING, np.random.default_rng(0)) is SETTING
