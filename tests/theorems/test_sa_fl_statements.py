"""SA-FL's statements against a second transcription, and against the proofs' own algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAvg, Safari
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.participation import UniformSubset
from fltheory.problems import quadratic
from fltheory.theorems.sa_fl import statements as sa_fl

NAMED_REGIMES = {
    "i.i.d.",
    "unbiased sampling",
    "biased minority excluded",
    "sigma_G large",
    "long horizon",
    "noise-free",
    "q = 0",
    "q = 1",
    "K = 1",
    "m = 1",
}


def random_values(seed: int) -> dict[sp.Symbol, float]:
    rng = np.random.default_rng(seed)
    small, large = rng.uniform(0.01, 1.0, 8), rng.uniform(1.0, 10.0, 8)
    L = small[0] + large[0]
    values = {
        sa_fl.L: L,
        sa_fl.mu: small[0],
        sa_fl.sigma: large[1],
        sa_fl.sigma_s: large[2],
        sa_fl.sigma_G: large[3],
        sa_fl.eta_c: 0.01 * small[1],
        sa_fl.eta_s: 0.01 * small[2],
        sa_fl.q: small[3],
        sa_fl.K: float(rng.integers(1, 9)),
        sa_fl.m: float(rng.integers(1, 9)),
        sa_fl.R: float(rng.integers(1, 99)),
        sa_fl.Delta_0: large[4],
        sa_fl.D_0: large[5],
        sa_fl.G_1: large[6],
        sa_fl.G_2: large[7],
        sa_fl.G_3: small[4],
        sa_fl.G_4: small[5] - 0.5,
    }
    values[sa_fl.eta_bar] = values[sa_fl.eta_c] * values[sa_fl.K] * values[sa_fl.mu] / 2
    return values


def typed_again(v: dict[str, float], server_noise: float) -> dict[str, float]:
    """Every printed and derived formula in plain arithmetic, from the paper."""
    L, mu, K, m, R, q = v["L"], v["mu"], v["K"], v["m"], v["R"], v["q"]
    c, s, S, G = v["eta_c"], v["eta_s"], v["sigma"], v["sigma_G"]
    bar = c * K * mu / 2
    drift = 1 + (30 * L * bar / mu) * (1 + 2 * L * bar / mu)
    return {
        "bound 4": 2 * v["Delta_0"] / (R * s)
        + L * s * (1 - q) * server_noise**2
        + (80 * q * L**2 * s**2 / K) * (S**2 + 6 * K * G**2)
        + (8 * L * q * s / (m * K)) * S**2,
        "q 4": 1
        / (
            (4 * G**2 - 4 * v["G_2"] * (1 / (2 * K**2) - 2 * L * s**2 / K**2))
            / ((1 - L * s) * v["G_1"])
            + 1
        ),
        "step 4": 1 / (4 * math.sqrt(30 * L * K)),
        "step 4 derived": 1 / (2 * math.sqrt(30) * L * K),
        "(54)": (1 - q) * (1 - L * s) * v["G_1"] + q * (2 / K**2 - 8 * L * s / K**2) * v["G_2"],
        "bound 5": (1 - bar) ** R * v["D_0"] ** 2
        + (8 * q * c * K / mu) * G**2
        + (2 * q * c / (mu * m)) * S**2
        + (4 * q * L * (1 + K * c * L) / mu) * 5 * K * c**2 * (S**2 + 6 * K * G**2)
        + (1 - q) * (L + mu) / (2 * L * mu) * s * v["sigma_s"] ** 2,
        "noise 5": (2 * q * c / (mu * m)) * S**2,
        "q 5": 1
        / (
            1
            + ((4 * bar / mu**2) * drift * v["G_3"] - (4 / mu) * v["G_4"])
            / ((1 / (L + mu) - (L + mu) ** 2 * bar / (4 * L**2 * mu**2)) * v["G_3"])
        ),
    }


@pytest.mark.parametrize("seed", range(5))
def test_formulas_agree_with_a_second_transcription(seed: int) -> None:
    values = random_values(seed)
    named = {str(symbol): value for symbol, value in values.items()}
    later = typed_again(named, server_noise=named["sigma_s"])
    earlier = typed_again(named, server_noise=named["sigma"])
    four, four_derived = sa_fl.THEOREM_4, sa_fl.THEOREM_4_DERIVED
    expected = [
        (four.bound, later["bound 4"]),
        (four_derived.bound, later["bound 4"]),
        (sa_fl.SUBMISSION_4.bound, earlier["bound 4"]),
        (four.hypotheses[-1].condition.rhs, later["q 4"]),
        (sa_fl.SUBMISSION_4.hypotheses[-1].condition.rhs, later["q 4"]),
        (four.hypotheses[2].condition.rhs, later["step 4"]),
        (four_derived.hypotheses[2].condition.rhs, later["step 4 derived"]),
        (four_derived.hypotheses[-1].condition.rhs, later["(54)"]),
        (sa_fl.THEOREM_5.bound, later["bound 5"]),
        (sa_fl.THEOREM_5_DERIVED.bound, later["bound 5"] + later["noise 5"]),
        (sa_fl.THEOREM_5.hypotheses[-1].condition.rhs, later["q 5"]),
    ]
    for expression, value in expected:
        assert float(evaluate(expression, values)) == pytest.approx(value, rel=1e-12)


def test_reductions_of_trajectory_symbols() -> None:
    reductions = {
        (statement.id, statement.reading): {item.reduction for item in statement.round_symbols}
        for statement in theorems.registered()
        if isinstance(statement, theorems.Theorem) and statement.id.startswith("sa-fl")
    }
    assert reductions == {
        ("sa-fl/remark-5-bound-4", "printed"): set(),
        ("sa-fl/remark-5-bound-5", "printed"): set(),
        ("sa-fl-submission/4", "printed"): {"min"},
        ("sa-fl-submission/4", "derived"): {"mean"},
        ("sa-fl/4", "printed"): {"max"},
        ("sa-fl/4", "derived"): {"mean"},
        ("sa-fl/5", "printed"): {"every"},
        ("sa-fl/5", "derived"): {"every"},
        ("sa-fl-submission/4", "repaired"): set(),
        ("sa-fl/4", "repaired"): set(),
        ("sa-fl/5", "repaired"): set(),
    }


def test_condition_81_is_the_coefficient_of_the_one_round_inequality() -> None:
    """(78) to (80), with eta_c K = 2 etabar/mu and eta_s = (L+mu) etabar/(2 L mu)."""
    L, mu, q, K, bar = sa_fl.L, sa_fl.mu, sa_fl.q, sa_fl.K, sa_fl.eta_bar
    c, s = 2 * bar / (K * mu), (L + mu) * bar / (2 * L * mu)
    gradient_term = 4 * q * c**2 * K**2 * (1 + 15 * c * K * L * (1 + c * K * L))
    gradient_term += (1 - q) * s * (s - 2 / (L + mu))
    loss_term = 2 * q * c * K
    condition = sa_fl.THEOREM_5_DERIVED.hypotheses[-1].condition
    registered = condition.lhs - condition.rhs
    residual = (gradient_term * sa_fl.G_3 - loss_term * sa_fl.G_4) / bar - registered
    assert sp.simplify(residual) == 0


def test_bound_5_is_the_geometric_sum_of_the_one_round_residual() -> None:
    """The rest of (83), over etabar = eta_c K mu / 2 or 2 eta_s L mu / (L+mu)."""
    L, mu, q, K, m = sa_fl.L, sa_fl.mu, sa_fl.q, sa_fl.K, sa_fl.m
    c, s, S, G = sa_fl.eta_c, sa_fl.eta_s, sa_fl.sigma, sa_fl.sigma_G
    clients = 4 * q * c**2 * K**2 * G**2 + q * K * c**2 / m * S**2
    clients += 2 * q * c * K * L * (1 + K * c * L) * 5 * K * c**2 * (S**2 + 6 * K * G**2)
    server = (1 - q) * s**2 * sa_fl.sigma_s**2
    total = clients / (c * K * mu / 2) + server / (2 * s * L * mu / (L + mu))
    start = (1 - sa_fl.eta_bar) ** sa_fl.R * sa_fl.D_0**2
    assert sp.simplify(total + start - sa_fl.THEOREM_5.bound) == 0


def test_derived_step_limit_of_theorem_4_is_where_its_proof_needs_it() -> None:
    L, K, c = sa_fl.L, sa_fl.K, sa_fl.eta_c
    limit = sa_fl.THEOREM_4_DERIVED.hypotheses[2].condition.rhs
    assert sp.simplify((sp.Rational(1, 2) - 30 * L**2 * K**2 * c**2).subs(c, limit)) == sp.Rational(
        1, 4
    )


@pytest.mark.parametrize("identifier", ["sa-fl-submission/4", "sa-fl/4", "sa-fl/5"])
@pytest.mark.parametrize("reading", ["printed", "derived", "repaired"])
def test_regimes_meet_the_conditions_on_step_sizes(identifier: str, reading: str) -> None:
    theorem = theorems.get(identifier, reading)
    assert set(theorem.regimes) >= NAMED_REGIMES
    for regime in theorem.regimes.values():
        values = theorem_values(theorem, theorem.constants(regime.setting))
        for hypothesis in theorem.hypotheses:
            condition = hypothesis.condition
            left, right = (
                float(
                    evaluate(
                        side,
                        values | dict.fromkeys((sa_fl.G_1, sa_fl.G_2, sa_fl.G_3, sa_fl.G_4), 1.0),
                    )
                )
                for side in condition.args
            )
            if "step" in hypothesis.name and isinstance(condition, sp.Eq):
                assert left == pytest.approx(right, rel=1e-15)
            elif "step" in hypothesis.name:
                assert left <= right


def test_other_units_rescale_the_long_horizon() -> None:
    long, other = (
        theorems.get("sa-fl/4").regimes[name].setting for name in ("long horizon", "other units")
    )
    assert pytest.approx(100 * long.problem.L) == other.problem.L
    assert other.problem.sigma_G == pytest.approx(10 * long.problem.sigma_G)
    np.testing.assert_allclose(10 * other.x0, long.x0)
    np.testing.assert_allclose(10 * other.problem.optima, long.problem.optima, atol=1e-12)
    assert 100 * other.algorithm.assist_lr == pytest.approx(long.algorithm.assist_lr)


def setting_with(algorithm) -> Setting:
    problem = quadratic(4, 2, 2.0, 0.5, 1.0, sigma=0.3, server_sigma=0.2)
    return Setting(algorithm, problem, UniformSubset(4, 3), 7, [3.0, 4.0])


def test_constants_of_a_setting() -> None:
    where = setting_with(Safari(0.25, 0.01, 0.02, 5))
    constants = {**sa_fl.THEOREM_4.constants(where), **sa_fl.THEOREM_5.constants(where)}
    expected = {
        sa_fl.L: 2.0,
        sa_fl.mu: 0.5,
        sa_fl.sigma: 0.3,
        sa_fl.sigma_s: 0.2,
        sa_fl.sigma_G: 1.0,
        sa_fl.eta_c: 0.01,
        sa_fl.eta_s: 0.02,
        sa_fl.q: 0.25,
        sa_fl.K: 5,
        sa_fl.m: 3,
        sa_fl.R: 7,
        sa_fl.Delta_0: 0.5 * (2 * 9 + 0.5 * 16),
        sa_fl.D_0: 5.0,
    }
    assert {k: pytest.approx(v, rel=1e-12) for k, v in expected.items()} == constants


def test_one_noise_level_is_the_larger() -> None:
    constants = sa_fl.SUBMISSION_4.constants(setting_with(Safari(0.25, 0.01, 0.02, 5)))
    assert constants[sa_fl.sigma] == 0.3
    assert sa_fl.sigma_s not in constants


def test_fedavg_is_safari_without_server_rounds() -> None:
    constants = sa_fl.THEOREM_4.constants(setting_with(FedAvg(0.01, 4)))
    assert (constants[sa_fl.q], constants[sa_fl.eta_s]) == (1.0, pytest.approx(0.02))


def test_another_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"algorithm must be Safari, or FedAvg with server_lr=1"):
        sa_fl.THEOREM_4.constants(setting_with(FedAvg(0.01, 4, server_lr=2.0)))


def test_schedules_of_the_corollaries() -> None:
    def scheduled(claim, axis, value):
        regime = claim.regimes["i.i.d."].setting
        return claim.axes[axis].schedule(regime, value)

    rounds = scheduled(sa_fl.COROLLARY_1, 0, 400)
    assert (rounds.rounds, rounds.algorithm.assist_lr) == (400, 1 / 20)
    assert rounds.algorithm.client_lr == pytest.approx(2 / 20 / 2)
    steps = scheduled(sa_fl.COROLLARY_1, 1, 50)
    assert (steps.algorithm.local_steps, steps.rounds) == (50, 100_000)
    assert steps.algorithm.assist_lr == pytest.approx(1e5**-0.5)
    assert steps.problem.server_sigma**2 == pytest.approx(1.0 / (2 * 2 * 50))
    faster = scheduled(sa_fl.COROLLARY_1_DERIVED, 1, 50)
    assert faster.algorithm.assist_lr == pytest.approx(math.sqrt(2 * 50 / 1e5))
    contraction = scheduled(sa_fl.COROLLARY_2, 0, 1000).algorithm.client_lr * 2 / 2
    assert contraction == pytest.approx(1.05 * math.log(1000) / 1000)


@pytest.mark.parametrize("claim", [sa_fl.COROLLARY_1, sa_fl.COROLLARY_2], ids=lambda c: c.id)
def test_grids_span_three_decades(claim) -> None:
    setting = claim.regimes["i.i.d."].setting
    for axis in claim.axes:
        grid = axis.grid(setting)
        assert grid[-1] >= 1000 * grid[0] * (1 - 1e-12)
        assert list(grid) == sorted(grid)


def test_too_short_a_horizon_for_an_order_is_refused() -> None:
    short = setting_with(Safari(0.25, 0.01, 0.02, 5))
    with pytest.raises(ValueError, match="rounds must be at least 1000"):
        sa_fl.COROLLARY_2.axes[0].grid(short)
