"""What is assumed of a training: by hand, and as the rules for a setting have it."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.participation import MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.weights import Training, for_setting


def test_by_hand() -> None:
    """E = 3: eta = 1/8; T = 2: squares sum to 1/32, 1/t^2 to 5/4, steps to 1/4."""
    found = Training(2, 3, noise=2.0, dissimilarity=0.7, condition=5.0).trade_off(
        [0.5, 1.0], [0.25, 0.75]
    )
    assert found.a == pytest.approx([4 / 32 * 0.5, 4 / 32])
    assert found.b == pytest.approx(2 / 3 + (1 / 32 + 5 / 4) / 4)
    assert found.bias == pytest.approx(25 * 0.7 / 4)


def test_they_are_the_rules_for_a_setting() -> None:
    """Clients on a line with L = 1 whose optima are one from x*, begun one from it."""
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0]], sigma=1.0)
    chains = MarkovOnOff([0.5, 0.9], 0.3)
    steps = [1 / 4] * 50
    other = for_setting(problem, chains, steps, local_steps=1, x0=[1.0], chain="clients")
    found = Training(50).trade_off([0.5, 0.9], [0.5, 0.5])
    np.testing.assert_allclose(found.a, other.a)
    assert (found.b, found.bias) == pytest.approx((other.b, other.bias))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"local_steps": 0}, "local_steps must be a whole number"),
        ({"noise": -1.0}, "noise must be"),
        ({"noise": 1e300}, "noise must be at least 0 and at most 1e\\+100"),
        ({"condition": 1e300}, "condition must be at least 1 and at most"),
        ({"dissimilarity": 0.0}, "dissimilarity must be"),
        ({"condition": 0.5}, "condition must be .*at least 1"),
    ],
)
def test_bad_arguments(changes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**changes)


def test_the_least_rounds_and_local_steps_are_one() -> None:
    assert Training(rounds=1, local_steps=1).step == pytest.approx(1 / 4)
    for name in ("rounds", "local_steps"):
        with pytest.raises(ValueError, match=f"{name} must be .* at least 1, got 0"):
            Training(**{name: 0})
