"""Regimes are made when they are asked for, once; instances are coupled one by one."""

from __future__ import annotations

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.grammar.regime import coupled
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

PROBLEM = QuadraticProblem([[1.0]], [[-1.0], [1.0]])


def test_instances_are_coupled_when_a_setting_is_asked_for() -> None:
    made: list[int] = []

    def instance(steps: int) -> int:
        made.append(steps)
        return steps

    def couple(steps: int) -> Setting:
        return Setting(FedAvg(0.5 / steps, steps), PROBLEM, UniformSubset(2, 1), 3, [0.0])

    regimes = coupled(
        {"one": ("K = 1", lambda: instance(1)), "two": ("", lambda: instance(2))}, couple
    )
    assert made == []
    assert regimes["one"].about == "K = 1"
    setting = regimes["two"].setting
    assert setting.algorithm == FedAvg(0.25, 2)
    assert regimes["two"].setting is setting
    assert made == [2]
