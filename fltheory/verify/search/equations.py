"""Equations between step sizes, kept while a search changes numbers.

A theorem may tie step sizes together, as ``eta_c K = 4 eta_s L/(L + mu)``. A random change of any
of these numbers breaks the equation, and random changes seldom meet it again. So one number of the
algorithm is solved for. Which one is whatever number moves the quotient of both sides: most
equations are monomials in it, so that one step in logarithms solves them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import sympy as sp

from fltheory.claims.statement import Basis
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.verify.search.setting_numbers import (
    AnySetting,
    SettingNumber,
    numbers_of,
    with_numbers,
)

_S = TypeVar("_S", bound=AnySetting)
_STEPS = 4
_MET = 1e-14
_PROBE = 1.125


def with_equations_met(basis: Basis, setting: _S, rng: np.random.Generator) -> _S:
    """Return the setting with its algorithm's numbers moved until the equations hold.

    Parameters
    ----------
    basis : Basis
        Whose hypotheses are meant; those that are no equations, or need a run, are left alone.
    setting : Setting, or LearningSetting
    rng : numpy Generator
        Chooses the number that is solved for.

    Raises
    ------
    ValueError
        If the statement does not speak of such a setting.
    """
    for equation in _equations(basis):
        logarithm = _log_quotient(basis, equation, setting)
        if abs(logarithm) <= _MET or not math.isfinite(logarithm):
            continue
        candidates = list(_step_sizes(setting))
        order = rng.permutation(len(candidates))
        solved = (_solved(basis, equation, setting, candidates[i]) for i in order)
        setting = next((one for one in solved if one is not None), setting)
    return setting


def _equations(basis: Basis) -> Iterator[sp.Rel]:
    of_run = {item.symbol for item in basis.round_symbols}
    for hypothesis in basis.hypotheses:
        condition = hypothesis.condition
        is_equation = isinstance(condition, sp.Eq) and hypothesis.is_known
        if is_equation and not of_run & condition.free_symbols:
            yield condition


def _log_quotient(basis: Basis, equation: sp.Rel, setting: AnySetting) -> float:
    """Return log(left/right); NaN where one of them is not positive."""
    values = theorem_values(basis, basis.constants(setting))
    left, right = float(evaluate(equation.lhs, values)), float(evaluate(equation.rhs, values))
    return math.log(left / right) if left > 0 and right > 0 else math.nan


def _step_sizes(setting: AnySetting) -> Iterator[SettingNumber]:
    for number in numbers_of(setting):
        if number.path.startswith("algorithm.") and isinstance(number.value, float):
            yield number


def _solved(basis: Basis, equation: sp.Rel, setting: _S, number: SettingNumber) -> _S | None:
    """Return the setting with the equation solved for a number; None if it does not depend on it.

    Secant steps in logarithms: the first is exact where both sides are powers of the number.
    """
    before, at = _PROBE * number.value, number.value
    if at <= 0:
        return None
    try:
        changed = with_numbers(setting, {number.place: before})
        gap_before = _log_quotient(basis, equation, changed)
        gap = _log_quotient(basis, equation, setting)
        for _ in range(_STEPS):
            if abs(gap) <= _MET:
                break
            if gap == gap_before:
                return None
            step = gap * math.log(at / before) / (gap - gap_before)
            before, gap_before, at = at, gap, at * math.exp(-step)
            changed = with_numbers(setting, {number.place: at})
            gap = _log_quotient(basis, equation, changed)
    except (ValueError, OverflowError):
        return None
    return changed if abs(gap) < 1e-9 else None
