"""FedAU's Theorems 1 and 2 and Corollary 4 typed a second time, in plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAU, FedAvg, WeightedFedAvg
from fltheory.claims.statement import unit_flags
from fltheory.engines import Setting, stationary
from fltheory.engines.fedau_weights.weight_error import weight_error
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, UniformSubset
from fltheory.problems import LogCoshProblem, QuadraticProblem
from fltheory.theorems.fedau import statements as fedau
from fltheory.verify import Outcome, check

P, N, STEPS, T, L = (0.9, 0.5), 2, 3, 40, 2.0
SIGMA, GAMMA, ETA, K, START = 0.5, 0.004, 1.25, 4, 1.5
OPTIMA = (-1.0, 3.0)


def setting(algorithm=None, participation=None, problem=None, rounds: int = T) -> Setting:
    return Setting(
        algorithm or FedAU(GAMMA, STEPS, cutoff=K, server_lr=ETA),
        problem or QuadraticProblem([[L]], [[c] for c in OPTIMA], sigma=SIGMA),
        participation or Bernoulli(P),
        rounds,
        [START],
    )


def known() -> WeightedFedAvg:
    return WeightedFedAvg((1 / 1.8, 1.0), GAMMA, STEPS, server_lr=ETA)


def bowl() -> LogCoshProblem:
    return LogCoshProblem([[-4.0], [4.0]], curvature=L, width=3.0, x_star=[1.0], sigma=SIGMA)


def bound_of(statement, of: Setting) -> float:
    return float(evaluate(statement.bound, theorem_values(statement, statement.constants(of))))


def derived(F_0: float, Q: float, W: float, psi: float) -> float:
    """Lemma B.3.3 summed over rounds and divided by the coefficient 1/16 of the gradient."""
    delta2 = 16.0  # grad F_n - grad f = +-2 L
    free = F_0 / (GAMMA * ETA * STEPS * T)
    free += 3 / 2 * (15 * L**2 * STEPS * GAMMA**2 * SIGMA**2 + 27 / 8 * delta2) * W
    free += 5 / 2 * GAMMA**2 * L**2 * STEPS * (SIGMA**2 + 6 * STEPS * delta2)
    free += GAMMA * ETA * L / N * (17 / 16 * SIGMA**2 + 27 / 8 * STEPS * delta2) * Q
    return 16 * (free + 81 / 16 * psi * W)


def test_option_1_with_known_statistics() -> None:
    """F_0 = L (x_0 - 1)^2/2 with L = 2; omega = 1/p has Q = 1/N sum 1/p and no error."""
    statement = theorems.get("fedau/2-option-1", "derived")
    Q = (1 / 0.9 + 1 / 0.5) / 2
    expected = derived(0.25, Q, 0.0, 0.0)
    assert bound_of(statement, setting(known())) == pytest.approx(expected, rel=1e-12)


def test_option_2_with_fedau() -> None:
    """A gradient of F is at most L w = 6 in the bowl; Q is at most mean p K^2."""
    statement = theorems.get("fedau/2-option-2", "derived")
    W = float(weight_error(P, K, T).values.mean())
    at_start = L * 9 * math.log(math.cosh(0.5 / 3))
    expected = derived(at_start, 0.7 * K**2, W, 36.0)
    assert bound_of(statement, setting(problem=bowl())) == pytest.approx(expected, rel=1e-12)


def test_the_terms_of_the_bound_have_names() -> None:
    statement = theorems.get("fedau/2-option-2", "derived")
    of = setting(problem=bowl())
    values = theorem_values(statement, statement.constants(of))
    terms = {str(symbol): values[symbol] for symbol in statement.definitions}
    assert sum(terms.values()) == pytest.approx(bound_of(statement, of), rel=1e-12)
    W = float(weight_error(P, K, T).values.mean())
    alone = (81 * (36 + 16) + 360 * GAMMA**2 * L**2 * STEPS * SIGMA**2) * W
    assert terms["A_weights"] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("identifier", ["fedau/2-option-1", "fedau/2-option-2"])
def test_printed_orders(identifier: str) -> None:
    claim = theorems.get(identifier)
    W = float(weight_error(P, K, T).values.mean())
    of, Q, delta2 = setting(problem=bowl()), 0.7 * K**2, 16.0
    psi = 36.0 if identifier.endswith("2") else 0.0
    expected = L * 9 * math.log(math.cosh(0.5 / 3)) / (GAMMA * ETA * STEPS * T)
    expected += (psi + delta2 + GAMMA**2 * L**2 * STEPS * SIGMA**2) * W
    expected += GAMMA * ETA * L * Q * (STEPS * delta2 + SIGMA**2) / N
    expected += GAMMA**2 * L**2 * STEPS * (STEPS * delta2 + SIGMA**2)
    order = evaluate(claim.axes[0].order, claim.theorem.constants(of))
    assert float(order) == pytest.approx(expected, rel=1e-12)


def test_theorem_1_by_hand() -> None:
    """The weights 2 and 1 give h the shares 1.8 and 0.5 over P = 2.3."""
    statement = theorems.get("fedau/1", "derived")
    of = setting(WeightedFedAvg((1.0, 0.5), GAMMA, STEPS, server_lr=ETA))
    total, Q = 0.9 * 2 + 0.5 * 1, (0.9 * 4 + 0.5 * 1) / 2
    lowest = (1.8 * OPTIMA[0] + 0.5 * OPTIMA[1]) / total
    delta2 = (L * max(abs(c - lowest) for c in OPTIMA)) ** 2
    expected = 40 * GAMMA**2 * L**2 * STEPS * (SIGMA**2 + 6 * STEPS * delta2)
    expected += GAMMA * ETA * L * Q / total * (17 * SIGMA**2 + 54 * STEPS * delta2)
    assert bound_of(statement, of) == pytest.approx(expected, rel=1e-12)
    value, error = statement.quantity.value(of)
    limit = stationary(Setting(of.algorithm, of.problem, of.participation, 1, of.problem.x_star))
    around_h = limit.squared_distance + (lowest - 1) ** 2 - 2 * (lowest - 1) * (limit.mean[0] - 1)
    assert value == pytest.approx(L**2 * around_h, rel=1e-9)
    assert 0 < error < 1e-10 * value


def test_theorem_1_is_lemma_b33_for_h_with_weights_that_sum_to_one() -> None:
    """gamma eta' <= N/(27LIQ') with eta' = eta P/N, Q' = N^2 Q/P^2."""
    N_, P_, Q_, L_, I_ = sp.symbols("N P Q L STEPS", positive=True)
    printed = N_ / (27 * L_ * I_ * (N_**2 * Q_ / P_**2))
    assert sp.simplify(printed * N_ / P_ - P_ / (27 * L_ * I_ * Q_)) == 0
    spread = (P_ / N_) * (N_**2 * Q_ / P_**2) / N_
    assert sp.simplify(spread - Q_ / P_) == 0


@pytest.mark.parametrize("rounds", [2, 30, 2000])
@pytest.mark.parametrize(("reading", "half"), [("printed", 2), ("derived", 4)])
def test_corollary_4_has_its_step_sizes(rounds: int, reading: str, half: int) -> None:
    claim = theorems.get("fedau/corollary-4", reading)
    scheduled = claim.axes[0].schedule(setting(problem=bowl()), rounds)
    cutoff = max(1, round(math.log(rounds) / (2 * math.log(2))))
    assert scheduled.algorithm.cutoff == cutoff
    gamma = min(1 / (L * STEPS * math.sqrt(rounds)), 1 / (4 * math.sqrt(15) * L * STEPS))
    assert scheduled.algorithm.client_lr == pytest.approx(gamma, rel=1e-12)
    Q = 0.7 * max(1, min(cutoff, rounds - 1)) ** 2
    F_0 = L * 9 * math.log(math.cosh(0.5 / 3))
    product = min(
        math.sqrt(F_0 * N / (Q * (STEPS * 16 + SIGMA**2) * L * STEPS * rounds)),
        1 / (half * L * STEPS),
        N / (27 * L * STEPS * Q),
    )
    algorithm = scheduled.algorithm
    assert algorithm.client_lr * algorithm.server_lr == pytest.approx(product, rel=1e-12)
    assert algorithm.client_lr * algorithm.server_lr <= product
    order = evaluate(claim.axes[0].order, claim.theorem.constants(scheduled))
    psi = 36.0
    R = 1 / (2 * math.log(2))
    expected = SIGMA * math.sqrt(L * F_0 * Q / (N * STEPS * rounds))
    expected += 4 * math.sqrt(L * F_0 * Q / (N * rounds))
    logarithms = R * math.log(rounds) ** 2 + (1 if reading == "derived" else 0)
    noise = SIGMA**2 / (STEPS if reading == "derived" else rounds)
    expected += (psi + 16 + SIGMA**2 / (STEPS * rounds)) * logarithms / rounds
    expected += (L * F_0 * (1 + Q / N) + 16 + noise) / rounds
    assert float(order) == pytest.approx(expected, rel=1e-12)


def test_weights_that_are_nearly_optimal_need_no_bounded_gradient() -> None:
    often = Bernoulli([0.95, 0.97])
    equal = WeightedFedAvg((0.5, 0.5), GAMMA, STEPS, server_lr=ETA)
    where = setting(equal, often)
    assert fedau.Psi_G.on(where) == 0.0
    assert fedau.G.on(where) == math.inf
    assert fedau.e_max.on(where) == pytest.approx((0.05**2 + 0.03**2) / 2)
    assert fedau.Psi_G.on(setting()) == math.inf


FLAGS = [s for s in theorems.registered() if s.id.startswith("fedau")]


@pytest.mark.parametrize("statement", FLAGS, ids=[f"{s.id}-{s.reading}" for s in FLAGS])
def test_units_fit_everywhere(statement) -> None:
    assert unit_flags(statement) == ()


@pytest.mark.parametrize(
    "participation",
    [MarkovOnOff(P, 0.9), Cyclic([10, 10], [0, 3], active=[9, 5])],
)
@pytest.mark.parametrize("identifier", ["fedau/2-option-1", "fedau/2-option-2"])
def test_dependent_rounds_are_outside_of_theorem_2(identifier: str, participation) -> None:
    statement = theorems.get(identifier, "derived")
    verdict = check(statement, setting(known(), participation, rounds=8))
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert "participation independent of the past" in {check.name for check in verdict.failed}
    assert np.isfinite(verdict.truth)


def test_the_printed_limits_of_option_1_leave_no_room() -> None:
    """At gamma and gamma eta on the printed limits, the derived reading does not apply."""
    equal = WeightedFedAvg((0.5, 0.5), 1 / (4 * math.sqrt(15) * L * STEPS), STEPS)
    often = Bernoulli([8 / 9 + 1e-13, 8 / 9 + 1e-13])
    Q = 8 / 9
    at_limit = replace(equal, server_lr=2 / (27 * L * STEPS * Q) / equal.client_lr * (1 - 1e-12))
    run = setting(at_limit, often, rounds=5)
    printed = fedau.OPTION_1_PRINTED.theorem
    assert check(printed, run).outcome is not Outcome.INAPPLICABLE
    failed = check(fedau.OPTION_1_DERIVED, run).failed
    assert [check.name for check in failed] == ["small server steps"]
    values = printed.constants(run)
    bracket = 81 / 16 * values[fedau.e_max] + 15 * L**2 * STEPS**2 * at_limit.client_lr**2
    bracket += 27 / 8 * at_limit.client_lr * at_limit.server_lr * L * STEPS * Q / N - 1 / 4
    assert bracket == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize(
    ("identifier", "algorithm", "participation", "message"),
    [
        ("fedau/2-option-1", FedAvg(0.1, 2), None, "algorithm must be FedAU or WeightedFedAvg"),
        ("fedau/2-option-2", None, UniformSubset(2, 1), "participation must be Bernoulli"),
        ("fedau/1", None, None, "algorithm must be WeightedFedAvg to have constant weights"),
    ],
)
def test_other_settings_are_refused(identifier, algorithm, participation, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(theorems.get(identifier, "derived"), setting(algorithm, participation))
