"""Families of settings and their parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import Family, Parameter

PARAMETERS = (
    Parameter("step", 0.01, 1.0, 0.1, "client step size"),
    Parameter("rounds", 1, 1000, 100, "rounds", whole=True),
    Parameter("shift", -2, 2, 0, "start", logarithmic=False),
)


def make(step: float, rounds: float, shift: float) -> Setting:
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]])
    return Setting(FedAvg(step, 1), problem, UniformSubset(2, 1), int(rounds), [shift])


FAMILY = Family(make, PARAMETERS)


def test_what_is_not_given_is_at_its_default() -> None:
    setting = FAMILY.setting(step=0.5)
    assert isinstance(setting.algorithm, FedAvg)
    assert (setting.algorithm.client_lr, setting.rounds, setting.x0.tolist()) == (0.5, 100, [0.0])


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
@given(seed=st.integers(0, 10_000), value=st.floats(-1e4, 1e4))
def test_values_stay_in_range(parameter: Parameter, seed: int, value: float) -> None:
    rng = np.random.default_rng(seed)
    inside = parameter.inside(value)
    for one in (parameter.drawn(rng), inside, parameter.nudged(inside, rng)):
        assert parameter.low <= one <= parameter.high
        assert not parameter.whole or one == round(one)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
@given(start=st.floats(-1e4, 1e4), choices=st.lists(st.integers(0, 5), min_size=30, max_size=30))
def test_simplifying_ends(parameter: Parameter, start: float, choices: list[int]) -> None:
    """Whichever simpler value is taken, after a few steps there is none."""
    value = parameter.inside(start)
    for steps, choice in enumerate(choices):
        options = parameter.simpler(value)[:-1]
        if not options:
            assert steps <= 4
            return
        value = options[choice % len(options)]
    pytest.fail("still simpler after 30 steps")


def test_an_axis_covers_the_range() -> None:
    for parameter in PARAMETERS:
        axis = parameter.axis
        assert (axis[0], axis[-1]) == (parameter.low, parameter.high)
        assert list(axis) == sorted(axis)
    assert PARAMETERS[0].axis[6] == 0.1


def test_one_draw_in_five_is_an_end() -> None:
    """The share of 2,000 draws misses [0.15, 0.25] with probability 4e-8 (Chernoff)."""
    rng = np.random.default_rng(0)
    drawn = [PARAMETERS[0].drawn(rng) for _ in range(2000)]
    assert 0.15 < np.mean([value in (0.01, 1.0) for value in drawn]) < 0.25


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"default of x must lie in \[1, 2\], got 3"):
        Parameter("x", 1, 2, 3, "")
    with pytest.raises(ValueError, match=r"low of x must be above 0 on .* got 0"):
        Parameter("x", 0, 2, 1, "")
    with pytest.raises(ValueError, match=r"high of x must be a finite number"):
        Parameter("x", 1, float("inf"), 1, "")
    with pytest.raises(ValueError, match=r"parameters must have distinct names"):
        Family(make, (PARAMETERS[0], PARAMETERS[0]))
    with pytest.raises(ValueError, match=r"parameter must be one of step, rounds, shift, got 'q'"):
        FAMILY.setting(q=1.0)
