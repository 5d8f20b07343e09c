"""Multipliers of the weights by Newton's method, against the equations of its docstring."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.weights.newton import _TOLERANCE, _Cubics, _eased, _solve
from fltheory.weights.trade_off import TradeOff

PROBLEM = TradeOff(
    np.array([0.9, 0.5, 0.2, 0.05]),
    np.array([0.4, 0.3, 0.2, 0.1]),
    a=np.array([1.0, 0.5, 2.0, 0.7]),
    b=0.3,
    bias=0.2,
    total=2.0,
)


def test_multipliers_solve_every_clients_cubic_and_the_three_equations() -> None:
    clients = _Cubics(PROBLEM, PROBLEM.bias)
    point, _ = _solve(clients, _eased(PROBLEM), _TOLERANCE)
    p = clients.importance(point)
    lagrange, theta, s = clients.multipliers(point)
    pi, alpha = PROBLEM.availability, PROBLEM.target_weights
    curvature = PROBLEM.a / pi**2
    left = curvature * p / s - PROBLEM.bias * alpha**2 / p**2
    np.testing.assert_allclose(left, lagrange - theta / pi, rtol=1e-9)
    assert p.sum() == pytest.approx(1, rel=1e-10)
    assert (p / pi).sum() == pytest.approx(PROBLEM.total * s, rel=1e-10)
    quadratic = 0.5 * float(curvature @ p**2) / s**2
    assert theta * PROBLEM.total + quadratic == pytest.approx(PROBLEM.b, rel=1e-10)


def test_a_point_is_found_again_from_its_multipliers() -> None:
    clients = _Cubics(PROBLEM, PROBLEM.bias)
    point = np.array([0.7, -0.4, 1.3])
    np.testing.assert_allclose(clients.point(clients.multipliers(point)), point, rtol=1e-12)
