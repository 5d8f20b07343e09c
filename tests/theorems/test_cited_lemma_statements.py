"""The cited lemmas as data: bounds typed a second time, units, the unrolled constant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg
from fltheory.claims.statement import unit_flags
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import cited_lemmas

ETA, K, SIGMA = 0.01, 5, 0.6
SETTING = Setting(
    FedAvg(ETA, K),
    QuadraticProblem(np.diag([2.0, 0.5]), [[1.0, 0.0], [-1.0, 2.0]], sigma=SIGMA),
    UniformSubset(2, 1),
    1,
    [3.0, 1.0],
)
# x* = (0, 1), grad F(x) = (6, 0), grad F_i(x*) = (-+2, +-0.5).
SIGMA_G, GRADIENT = math.sqrt(4.25), 6.0


def bound_of(identifier: str, reading: str) -> float:
    claim = theorems.get(identifier, reading)
    return float(evaluate(claim.bound, theorem_values(claim, claim.constants(SETTING))))


def test_drift_bounds() -> None:
    printed = 5 * K * ETA**2 * (SIGMA**2 + 6 * K * SIGMA_G**2) + 30 * K**2 * ETA**2 * GRADIENT**2
    assert bound_of("lemmas/bounded-drift", "printed") == pytest.approx(printed, rel=1e-12)
    c = 4 / 5 * ((5 / 4) ** 5 - 1)
    derived = c * (K * ETA**2 * SIGMA**2 + 6 * K**2 * ETA**2 * (SIGMA_G**2 + GRADIENT**2))
    assert bound_of("lemmas/bounded-drift", "derived") == pytest.approx(derived, rel=1e-12)
    powers = [1.02**k for k in range(K)]
    tight = ETA**2 * SIGMA**2 * sum(p * p for p in powers)
    tight += 2 * ETA**2 * sum(powers) ** 2 * (SIGMA_G**2 + GRADIENT**2)
    assert bound_of("lemmas/bounded-drift", "tight") == pytest.approx(tight, rel=1e-12)
    truth, error = cited_lemmas.DRIFT.quantity.value(SETTING)
    worst = ETA**2 * (SIGMA**2 * sum(p * p for p in powers))
    worst += ETA**2 * (SIGMA_G + GRADIENT) ** 2 * sum(powers) ** 2
    assert truth == pytest.approx(worst, rel=1e-12)
    assert 0 < error < 1e-10 * truth


def test_other_bounds() -> None:
    assert bound_of("lemmas/perturbed-strong-convexity", "printed") == 2.0
    assert bound_of("lemmas/perturbed-strong-convexity", "tight") == 1.25
    needed, _ = cited_lemmas.PERTURBED_CONVEXITY.quantity.value(SETTING)
    assert needed == pytest.approx(max(4 / 3.5, 0.25 / 0.5))
    values = cited_lemmas.MARTINGALE.constants(SETTING)
    size = values[cited_lemmas.exact_sum] ** 2
    common = size + K * SIGMA**2
    assert bound_of("lemmas/separation-in-61", "printed") == pytest.approx(common)
    assert bound_of("lemmas/martingale-separation", "printed") == pytest.approx(2 * common)
    least = (1 + math.sqrt(4 / 5)) * common
    assert bound_of("lemmas/martingale-separation", "tight") == pytest.approx(least)


def test_the_unrolled_constant_bounds_its_recursion() -> None:
    """e_{k+1} = (1 + 1/(2K-1) + 6 K L^2 eta^2) e_k + 1 at eta = 1/(8LK), from e_0 = 0."""
    before = 0.0
    for steps in range(2, 2000):
        growth = 1 + 1 / (2 * steps - 1) + 6 / (64 * steps)
        drift = (growth**steps - 1) / (growth - 1)
        constant = cited_lemmas.unrolled_constant(steps)
        assert drift <= constant * steps
        assert before < constant < math.e - 1
        before = constant


@pytest.mark.parametrize("claim", cited_lemmas.STATEMENTS, ids=lambda s: f"{s.id} {s.reading}")
def test_units_fit(claim) -> None:
    assert unit_flags(claim) == ()
