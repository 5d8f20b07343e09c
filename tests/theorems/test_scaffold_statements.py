"""SCAFFOLD's theorems typed a second time, in plain arithmetic, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.algorithms import FedAvg, Scaffold, WarmStarted
from fltheory.claims.statement import unit_flags
from fltheory.derivations import derivation_check
from fltheory.derivations.derivation import StepOutcome
from fltheory.derivations.derivation_check import check_derivation, check_step
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import scaffold
from fltheory.theorems.scaffold import geometric_weights, rounds_that_count
from fltheory.verify import Outcome, check

N, S, K, T, ETA_L, ETA_G, SIGMA = 3, 2, 4, 25, 0.001, 2.0, 0.7
OPTIMA = np.array([[1.0, 0.0], [-2.0, 1.0], [0.5, 3.0]])
CURVATURE, X0 = np.array([1.0, 0.2]), np.array([2.0, -1.0])
SCAFFOLD = Scaffold(ETA_L, K, server_lr=ETA_G)


def setting(algorithm=SCAFFOLD, rounds: int = T, **changes) -> Setting:
    problem = QuadraticProblem(np.diag(CURVATURE), OPTIMA, sigma=SIGMA, **changes)
    return Setting(algorithm, problem, UniformSubset(N, S), rounds, X0)


X_STAR = OPTIMA.mean(axis=0)
STEP = K * ETA_L * ETA_G
DISTANCE = float(((X0 - X_STAR) ** 2).sum())
LAG = sum(float(((CURVATURE * (X_STAR - c)) ** 2).sum()) for c in OPTIMA) / N
NOISE = 12 * STEP * SIGMA**2 / (K * S) * (1 + S / ETA_G**2)
START = DISTANCE + 9 * N * STEP**2 / S * LAG
WEIGHT = sum((1 - 0.2 * STEP / 2) ** -(r + 1) for r in range(T))
EXCESS = 0.5 * float((CURVATURE * (X0 - X_STAR) ** 2).sum())
BOUNDS = {
    "scaffold/strongly-convex": (setting(), START / (STEP * WEIGHT) + NOISE),
    "scaffold/convex": (setting(), START / (STEP * T) + NOISE),
    "scaffold/nonconvex": (
        setting(WarmStarted(SCAFFOLD), T + 1),
        14 * EXCESS / (STEP * T) + 70 * STEP * SIGMA**2 / (K * S) * (1 + S / ETA_G**2),
    ),
}


@pytest.mark.parametrize("reading", ["printed", "derived"])
@pytest.mark.parametrize("identifier", BOUNDS)
def test_bounds_are_the_restated_ones(identifier: str, reading: str) -> None:
    where, bound = BOUNDS[identifier]
    theorem = theorems.get(identifier, reading)
    values = theorem_values(theorem, theorem.constants(where))
    assert float(evaluate(theorem.bound, values)) == pytest.approx(bound, rel=1e-12)


def test_limits_of_the_step() -> None:
    """81, 15 and 24 with the power 2/3, each just met and just missed."""
    for identifier, symbol, value, name in (
        ("scaffold/convex", scaffold.h, 1 / 81, "small effective step"),
        ("scaffold/strongly-convex", scaffold.h, 2 / 45 / 0.2, "mu h at most S/(15N)"),
        ("scaffold/nonconvex", scaffold.h, (2 / 3) ** (2 / 3) / 24, "small effective step"),
    ):
        where, _ = BOUNDS[identifier]
        theorem = theorems.get(identifier)
        values = theorem_values(theorem, theorem.constants(where))
        condition = next(item.condition for item in theorem.hypotheses if item.name == name)
        for factor, met in ((1 - 1e-9, True), (1 + 1e-9, False)):
            changed = {**values, symbol: factor * value}
            left, right = evaluate(condition.lhs, changed), evaluate(condition.rhs, changed)
            assert (left <= right) == met


def test_weights_are_geometric() -> None:
    weights = geometric_weights(setting())
    assert weights.shape == (T,)
    assert weights[1:] / weights[:-1] == pytest.approx(np.full(T - 1, 1 / (1 - 0.2 * STEP / 2)))


def test_a_warm_start_does_not_count_as_a_round() -> None:
    assert rounds_that_count(setting(WarmStarted(SCAFFOLD), 4)).tolist() == [0, 1, 1, 1]
    assert rounds_that_count(setting(rounds=3)).tolist() == [1, 1, 1]
    values = scaffold.NONCONVEX.constants(setting(WarmStarted(SCAFFOLD), 4))
    assert (values[scaffold.T], values[scaffold.cold]) == (3, 0)


@pytest.mark.parametrize("statement", scaffold.STATEMENTS, ids=lambda s: f"{s.id} {s.reading}")
def test_units_fit(statement) -> None:
    assert unit_flags(statement) == ()


@pytest.mark.parametrize(
    "derivation", [scaffold.strongly_convex_proof(), scaffold.convex_proof()], ids=["mu", "mu = 0"]
)
def test_the_bound_follows_from_the_recursions(derivation) -> None:
    assert {result.outcome for result in check_derivation(derivation)} == {StepOutcome.FOLLOWS}


def test_derivations_end_at_the_registered_bounds() -> None:
    for theorem in (scaffold.STRONGLY_CONVEX_DERIVED, scaffold.CONVEX_DERIVED):
        claim = theorem.derivation.steps[-1].claim
        assert sp.expand(claim.claimed.rhs - theorem.bound) == 0


@pytest.mark.parametrize(
    ("index", "wrong"),
    [
        (3, lambda limit: sp.Le(27 * limit.lhs / 81, 1)),
        (5, lambda limit: sp.Le(limit.lhs, 3 * limit.rhs / 2)),
    ],
    ids=["1/27 for 1/81", "S/(10N) for S/(15N)"],
)
def test_larger_steps_do_not_give_the_round(index: int, wrong, monkeypatch) -> None:
    """With these limits the coefficient of e, or of C, changes sign: the certificate breaks."""
    monkeypatch.setattr(derivation_check, "_POINTS", 20)
    step = scaffold.strongly_convex_proof().steps[0]
    given = list(step.claim.given)
    given[index] = wrong(given[index])
    changed = replace(step, claim=replace(step.claim, given=tuple(given)))
    assert check_step(changed).outcome is not StepOutcome.FOLLOWS


@pytest.mark.parametrize("rounds", [20, pytest.param(60, marks=pytest.mark.soundness)])
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 4),
    steps=st.integers(1, 8),
    server_lr=st.floats(1.0, 20.0),
    share=st.floats(0.01, 1.0),
    noise=st.floats(0.0, 5.0),
)
def test_derived_readings_are_never_refuted(
    rounds: int, seed: int, size: int, steps: int, server_lr: float, share: float, noise: float
) -> None:
    """Random clients of unlike Hessians, h anywhere below its limit."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(4, 2, 2))
    hessians = roots @ np.swapaxes(roots, 1, 2) + 10 ** rng.uniform(-3, 0) * np.eye(2)
    problem = QuadraticProblem(hessians, rng.normal(size=(4, 2)), sigma=noise)
    start = problem.x_star + 10 ** rng.uniform(-2, 2) * rng.normal(size=2)
    for identifier, limit, warm in (
        ("scaffold/strongly-convex", 1 / 81, False),
        ("scaffold/convex", 1 / 81, False),
        ("scaffold/nonconvex", (size / 4) ** (2 / 3) / 24, True),
    ):
        step = share * (1 - 1e-9) * limit / problem.L
        algorithm = Scaffold(step / (steps * server_lr), steps, server_lr=server_lr)
        where = Setting(
            WarmStarted(algorithm) if warm else algorithm,
            problem,
            UniformSubset(4, size),
            rounds,
            start,
        )
        verdict = check(theorems.get(identifier, "derived"), where)
        assert verdict.outcome is Outcome.HOLDS, (identifier, verdict.ratio)
        assert verdict.ratio < 0.5


def test_a_setting_of_another_kind_is_named() -> None:
    with pytest.raises(ValueError, match=r"algorithm must be Scaffold or Warm.* got FedAvg"):
        scaffold.STRONGLY_CONVEX.constants(setting(FedAvg(0.1, 1)))
    with pytest.raises(ValueError, match="algorithm must be Scaffold, with controls that start"):
        scaffold.STRONGLY_CONVEX.constants(setting(WarmStarted(SCAFFOLD)))
    with pytest.raises(ValueError, match=r"target_weights must be equal .* got \[0\.5"):
        scaffold.STRONGLY_CONVEX.constants(setting(target_weights=[0.5, 0.25, 0.25]))


def test_size_that_varies_is_taken_in_the_mean() -> None:
    where = replace_participation(setting(), Bernoulli([0.5, 1.0, 0.25]))
    values = scaffold.STRONGLY_CONVEX.constants(where)
    assert values[scaffold.S] == pytest.approx(1.75)
    assert (values[scaffold.unlike], values[scaffold.memory]) == (1.0, 0.0)
    assert math.isfinite(values[scaffold.C_0])


def replace_participation(where: Setting, participation) -> Setting:
    return Setting(where.algorithm, where.problem, participation, where.rounds, where.x0)
