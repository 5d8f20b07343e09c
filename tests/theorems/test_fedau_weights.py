"""Theorem 3 and the lines of its proof, typed once more."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAU, WeightedFedAvg
from fltheory.engines import Setting
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.participation import Bernoulli, MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.theorems.fedau.weights import counted, last_line
from fltheory.theorems.registry import readings
from fltheory.verify import Outcome, check

P, K, T = np.array([0.2, 0.6]), 4, 50


def setting(algorithm=None, participation=None, rounds: int = T) -> Setting:
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0]])
    algorithm = algorithm or FedAU(0.1, 1, cutoff=K)
    return Setting(algorithm, problem, participation or Bernoulli(P), rounds, [0.0])


def test_the_bound_sums_the_last_line_over_rounds() -> None:
    statement = theorems.get("fedau/3", "derived")
    total = ((P - 1) ** 2).mean()
    for t in range(1, T):
        total += (2 * K * (1 - P) / t + (1 - P) ** (2 * K)).mean()
    bias = ((1 - P) ** (2 * K)).mean() / T  # round 0 is counted in the bias as well
    values = theorem_values(statement, statement.constants(setting()))
    assert float(evaluate(statement.bound, values)) == pytest.approx(total / T + bias, rel=1e-12)


def test_the_truth_is_the_mean_exact_error() -> None:
    verdict = check(theorems.get("fedau/3", "derived"), setting())
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == pytest.approx(weight_error(P, K, T).values.mean(), rel=1e-12)


def test_the_printed_order() -> None:
    claim = theorems.get("fedau/3")
    for axis in claim.axes:
        order = evaluate(axis.order, claim.theorem.constants(setting()))
        expected = K * np.log(T) / T + ((1 - P) ** (2 * K)).mean()
        assert float(order) == pytest.approx(expected, rel=1e-12)
    rounds, cutoffs = (axis.schedule for axis in claim.axes)
    assert rounds(setting(), 7).rounds == 7
    assert cutoffs(setting(), 9).algorithm.cutoff == 9


def test_lines_of_the_proof() -> None:
    """p = 1/2, K = 2: E S = 3/2, Var S = 1/4."""
    t = np.array([1.0, 3.0, 4.0])
    found = counted(np.array([0.5]), 2, t)
    np.testing.assert_allclose(found, [[1 / 16 + 1 / 16, 1 / 16 + 1 / 16, 1 / 32 + 1 / 16]])
    np.testing.assert_allclose(last_line(np.array([0.5]), 2, t), [2 / t + 1 / 16])


@pytest.mark.parametrize("identifier", ["fedau/3-rounds", "fedau/3-step"])
@pytest.mark.parametrize("reading", ["printed", "derived"])
def test_the_worst_round_and_client(identifier: str, reading: str) -> None:
    if reading not in readings(identifier):
        return
    errors = weight_error(P, K, T).values
    first = K if reading == "derived" else 1
    line = last_line if identifier == "fedau/3-rounds" else counted
    ratios = [errors[:, t] / line(P, K, np.array([float(t)]))[:, 0] for t in range(first, T)]
    verdict = check(theorems.get(identifier, reading), setting())
    assert verdict.truth == pytest.approx(np.max(ratios), rel=1e-12)
    assert verdict.outcome is (Outcome.REFUTED if np.max(ratios) > 1 else Outcome.HOLDS)


def test_one_round_is_too_few() -> None:
    verdict = check(theorems.get("fedau/3", "derived"), setting(rounds=1))
    assert [failed.name for failed in verdict.failed] == ["two rounds"]


def test_dependent_rounds_are_outside() -> None:
    verdict = check(theorems.get("fedau/3", "derived"), setting(None, MarkovOnOff(P, 0.9)))
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert verdict.truth > 0


def test_constant_weights_are_refused() -> None:
    constant = WeightedFedAvg((0.5, 0.5), 0.1, 1)
    with pytest.raises(ValueError, match="algorithm must be FedAU to have a cut-off"):
        check(theorems.get("fedau/3", "derived"), setting(constant))
