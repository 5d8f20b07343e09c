"""What local steps do to a client's model, against the steps themselves."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.engines.clients.pulls import Pulls
from fltheory.problems.base import GradientSplit

HESSIANS = np.array([np.diag([2.0, 0.5]), [[1.0, 0.3], [0.3, 0.4]]])
PULL = np.array([[1.0, -2.0], [0.5, 0.25]])
MEAN = HESSIANS.mean(axis=0)
STEPS, LR = 3, 0.8


def stepped(hessian: np.ndarray, x: np.ndarray, pull: np.ndarray) -> np.ndarray:
    for _ in range(STEPS):
        x = x - LR * (hessian @ x + pull)
    return x


@pytest.mark.parametrize("by_server", [False, True])
@pytest.mark.parametrize("rest", [0.0, 0.7])
def test_pulls_are_those_of_the_steps(by_server: bool, rest: float) -> None:
    """Columns of M are what the steps take off unit vectors; the pull is what they make of 0.

    A bounded rest, and noise, that enter step k are multiplied by (1 - lr A)^(K-1-k) after it.
    """
    found = Pulls.of(GradientSplit(HESSIANS, PULL, MEAN, rest), STEPS, LR, by_server=by_server)
    hessians = MEAN[None] if by_server else HESSIANS
    none = np.zeros(2)
    for i, hessian in enumerate(hessians):
        taken = np.eye(2) - np.array([stepped(hessian, unit, none) for unit in np.eye(2)])
        least, largest = np.linalg.eigvalsh(taken)
        assert found.least[i] == pytest.approx(least)
        assert found.largest[i] == pytest.approx(largest)
        steady = 0.0 if by_server else np.linalg.norm(stepped(hessian, none, PULL[i]))
        after = [np.linalg.matrix_power(np.eye(2) - LR * hessian, k) for k in range(STEPS)]
        reach = LR * sum(np.linalg.norm(power, 2) for power in after)
        assert found.push[i] == pytest.approx(steady + rest * reach)
    norms = [
        [np.linalg.norm(np.linalg.matrix_power(np.eye(2) - LR * h, k), 2) for k in range(STEPS)]
        for h in hessians
    ]
    assert found.noise == pytest.approx(LR * max(sum(each) for each in norms))
    assert found.spread == pytest.approx(LR * max(np.linalg.norm(each) for each in norms))
