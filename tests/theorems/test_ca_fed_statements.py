"""CA-Fed's Theorems 1 to 3 typed a second time, in plain arithmetic on a line."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import (
    AveragedIterate,
    FedAvg,
    Harmonic,
    Projected,
    Scheduled,
    WeightedFedAvg,
)
from fltheory.claims.statement import unit_flags
from fltheory.derivations.derivation import StepOutcome
from fltheory.derivations.derivation_check import check_derivation
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.participation import FiniteChain, MarkovOnOff, UniformSubset
from fltheory.problems import Ball, QuadraticProblem, RippledProblem, nonconvex
from fltheory.theorems.ca_fed import statements as ca_fed
from fltheory.verify import Outcome, check

CURVATURE, OPTIMA = (1.0, 0.5), (3.0, -4.0)
ALPHA, PI, WEIGHTS, NU = (0.6, 0.4), (0.8, 0.3), (0.5, 0.9), 0.6
SIGMA, STEPS, START, RADIUS, ROUNDS = 0.7, 3, 2.0, 12.0, 40
SCALE, OFFSET = 1.5, 20.0


def setting(**changes) -> Setting:
    steps = changes.get("steps", Harmonic(SCALE, offset=OFFSET))
    fedavg = WeightedFedAvg(WEIGHTS, 1.0, STEPS, server_lr=changes.get("server_lr", 1.0))
    projected = Projected(Scheduled(fedavg, steps), Ball([0.0], RADIUS))
    problem = QuadraticProblem(
        np.array(CURVATURE)[:, None, None],
        np.array(OPTIMA)[:, None],
        sigma=SIGMA,
        target_weights=ALPHA,
    )
    participation = MarkovOnOff(PI, NU, start=changes.get("start"))
    return Setting(
        AveragedIterate(projected, weights=steps), problem, participation, ROUNDS, [START]
    )


@dataclass(frozen=True)
class Line:
    """Everything the statements speak of, from the paper's definitions."""

    @staticmethod
    def loss(k: int, w: float) -> float:
        return 0.5 * CURVATURE[k] * (w - OPTIMA[k]) ** 2

    @staticmethod
    def minimiser(weights) -> float:
        return sum(a * h * c for a, h, c in zip(weights, CURVATURE, OPTIMA, strict=True)) / sum(
            a * h for a, h in zip(weights, CURVATURE, strict=True)
        )

    def mean(self, weights, w: float) -> float:
        return sum(weights[k] * self.loss(k, w) for k in range(2))

    @property
    def pi_q(self) -> float:
        return PI[0] * WEIGHTS[0] + PI[1] * WEIGHTS[1]

    @property
    def p(self) -> tuple[float, float]:
        return PI[0] * WEIGHTS[0] / self.pi_q, PI[1] * WEIGHTS[1] / self.pi_q

    @property
    def biased(self) -> float:
        return self.minimiser(self.p)

    @property
    def gamma(self) -> float:
        return max(self.loss(k, self.minimiser(ALPHA)) for k in range(2))

    @property
    def gamma_biased(self) -> float:
        return max(self.loss(k, self.biased) for k in range(2))

    @property
    def D(self) -> float:
        return max(CURVATURE[k] * (RADIUS + abs(OPTIMA[k])) for k in range(2))

    @property
    def H(self) -> float:
        ends = (-RADIUS, RADIUS, *OPTIMA)
        return max(abs(self.loss(k, w) - self.loss(k, self.biased)) for k in range(2) for w in ends)


LINE = Line()
LAMBDA, C_P = (1 + NU) / 2, max(PI[0], 1 - PI[0]) + max(PI[1], 1 - PI[1])
# sqrt(M - 1) ||U||_F ||U^-1||_F of four states: each client's eigenvectors, right times left, are
# sqrt(2) sqrt(pi^2 + (1 - pi)^2) long, and it has two.
CITED = math.sqrt(3) * math.prod(2 * math.sqrt(2) * math.hypot(p, 1 - p) for p in PI[:2])


def delay(t: int) -> int:
    wanted = math.ceil(math.log(2 * C_P * LINE.H * t) / math.log(1 / LAMBDA))
    return max(wanted, 0)


def eta(t: int) -> float:
    return SCALE / (t + OFFSET)


def printed_2(C_P: float = CITED) -> float:
    """Return the right side of (12); the sums run to two million, with the rest's integral."""
    last = 2_000_000
    t = np.arange(1, last + 1)
    steps = SCALE / (t + OFFSET)
    squares = float((steps**2).sum()) + SCALE**2 / (last + OFFSET + 0.5)
    inverse = math.pi**2 / 6
    wanted = np.ceil(np.log(2 * C_P * LINE.H * t) / math.log(1 / LAMBDA))
    shown = t - np.minimum(wanted, t)
    delayed = (SCALE / (shown + OFFSET)) ** 2
    logs = np.log(2 * C_P * LINE.H * t)
    phi = float((logs * delayed).sum()) + SCALE**2 * (logs[-1] + 1) / last
    L, E, M, Q, G2 = 1.0, STEPS, 4, sum(WEIGHTS), LINE.D**2 + SIGMA**2
    sigma_term = 0.5 * sum(SIGMA**2 * PI[k] * WEIGHTS[k] ** 2 * squares for k in range(2))
    upsilon = 2 / E * (START - LINE.minimiser(ALPHA)) ** 2 + 0.25 * M * Q * (squares + inverse)
    psi = 4 * L * (E * Q + 2) * LINE.gamma * squares
    psi += 2 / 3 * (E - 1) * (2 * E - 1) * G2 * squares
    whole = (sigma_term + upsilon) / LINE.pi_q + psi
    whole += 2 * E * LINE.D * math.sqrt(G2) * Q * phi / math.log(1 / LAMBDA)
    return whole / sum(eta(s) for s in range(1, ROUNDS + 1))


def derived_2() -> float:
    """Lemmas 2 and 3 and Steps 1 and 2, summed over the rounds of the run."""
    L, E, M, Q, G2 = 1.0, STEPS, 4, sum(WEIGHTS), LINE.D**2 + SIGMA**2
    whole = 2 / E * (START - LINE.biased) ** 2 / LINE.pi_q
    for t in range(1, ROUNDS + 1):
        noise = 2 * sum(SIGMA**2 * PI[k] * WEIGHTS[k] ** 2 for k in range(2)) * eta(t) ** 2
        whole += noise / LINE.pi_q
        whole += (4 * L * (E * Q + 2) * LINE.gamma) * eta(t) ** 2
        whole += 2 / 3 * (E - 1) * (2 * E - 1) * G2 * eta(t) ** 2
        cut = min(delay(t), t - 1)
        whole += 8 * E * LINE.D * math.sqrt(G2) * Q * cut * eta(t - cut) ** 2
        if delay(t) <= t - 1:
            whole += 4 * M * Q * LINE.H * eta(t) * C_P * LAMBDA ** delay(t) / LINE.pi_q
    return whole / sum(eta(s) for s in range(1, ROUNDS + 1))


def bound_of(identifier: str, reading: str = "printed") -> float:
    statement = theorems.get(identifier, reading)
    values = theorem_values(statement, statement.constants(setting()))
    return float(evaluate(statement.bound, values))


def test_theorem_2_is_the_papers() -> None:
    assert bound_of("ca-fed/2") == pytest.approx(printed_2(), rel=2e-7)
    assert bound_of("ca-fed/2", "any C_P") == pytest.approx(printed_2(C_P), rel=2e-7)
    assert bound_of("ca-fed/2", "derived") == pytest.approx(derived_2(), rel=1e-12)


def test_theorems_1_and_3_at_the_point_of_the_tightest_bound() -> None:
    kappa, p = 2.0, LINE.p
    grid = np.linspace(-10, 10, 2_000_001)
    excess = 0.5 * (0.6 * 1.0 + 0.4 * 0.5) * (grid - LINE.minimiser(ALPHA)) ** 2
    biased = 0.5 * (p[0] * 1.0 + p[1] * 0.5) * (grid - LINE.biased) ** 2
    worst = int(np.argmax(excess - 2 * kappa**2 * biased))
    chi2 = sum((a - b) ** 2 / b for a, b in zip(ALPHA, p, strict=True))
    distance = 0.5 * sum(abs(a - b) for a, b in zip(ALPHA, p, strict=True))
    first = 2 * kappa**2 * biased[worst] + 2 * kappa**4 * chi2 * LINE.gamma
    third = 2 * kappa**2 * biased[worst] + 8 * kappa**4 * distance**2 * LINE.gamma_biased
    assert bound_of("ca-fed/1") == pytest.approx(first, rel=1e-5)
    assert bound_of("ca-fed/3") == pytest.approx(third, rel=1e-5)
    truth, _ = ca_fed.THEOREM_1.quantity.value(setting())
    assert truth == pytest.approx(excess[worst], rel=1e-3)


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, Outcome.HOLDS), (1e-300, Outcome.UNDECIDED)])
def test_what_holds_has_to_hold_with_the_least_constant_that_a_paper_leaves_open(
    factor: float, outcome: Outcome
) -> None:
    """With a C_P of nearly nothing the logarithm is negative, and so is the bound."""
    printed = theorems.get("ca-fed/2")

    least = dict(printed.tightest)
    smallest = least[ca_fed.C_P]
    least[ca_fed.C_P] = theorems.symbol("C_P", number=lambda setting: smallest.on(setting) * factor)
    assert check(replace(printed, tightest=least), setting()).outcome is outcome


@pytest.mark.parametrize("seed", range(4))
def test_every_eigenbasis_has_a_larger_factor_than_the_least(seed: int) -> None:
    """Two clients of one correlation: pairs of eigenvectors of one eigenvalue mixed at random."""
    rng = np.random.default_rng(seed)
    pi = rng.uniform(0.1, 0.9, 2)
    chains = MarkovOnOff(pi, 0.25)
    basis = np.ones((1, 1))
    for p in pi:
        basis = np.kron(basis, np.array([[1, 1 - p], [1, -p]]))
    kept = chains.cited_factor
    bases = [basis]
    for _ in range(50):
        mixed = basis * rng.uniform(0.2, 5, 4)
        mixed[:, 1:3] = mixed[:, 1:3] @ rng.normal(size=(2, 2))
        bases.append(mixed)
    factors = [
        math.sqrt(3) * np.linalg.norm(each) * np.linalg.norm(np.linalg.inv(each)) for each in bases
    ]
    assert min(factors) >= kept.at_least
    scale = np.sqrt(np.linalg.norm(np.linalg.inv(basis), axis=1) / np.linalg.norm(basis, axis=0))
    written = basis * scale
    found = math.sqrt(3) * np.linalg.norm(written) * np.linalg.norm(np.linalg.inv(written))
    assert kept.of_eigenbasis == pytest.approx(found)
    assert chains.as_chain().cited_factor.of_eigenbasis >= kept.at_least


def test_other_constants() -> None:
    where, started = setting(), setting(start=(0.0, 0.0))
    assert ca_fed.D.on(where) == pytest.approx(LINE.D)
    assert ca_fed.H.on(where) == pytest.approx(LINE.H)
    assert ca_fed.r_min.on(where) == 4.0
    assert (ca_fed.M.on(where), ca_fed.tv_start.on(where), ca_fed.decay.on(where)) == (4, 0.0, 1.0)
    assert ca_fed.tv_start.on(started) == pytest.approx(1 - 0.2 * 0.7)


def test_bounds_on_a_ball_are_reached_and_not_passed() -> None:
    rng = np.random.default_rng(5)
    hessians = np.array([np.diag([2.0, 0.5]), [[1.0, 0.3], [0.3, 0.8]]])
    problem = QuadraticProblem(hessians, rng.normal(size=(2, 2)))
    steps = Harmonic(0.1, offset=1.0)
    projected = Projected(
        Scheduled(WeightedFedAvg((0.5, 0.5), 1.0, 1), steps), Ball([0.3, -0.2], 4.0)
    )
    s = ProjectedAveraging(
        Setting(
            AveragedIterate(projected, weights=steps),
            problem,
            MarkovOnOff([0.5, 0.5], 0.3),
            3,
            [0.0, 0.0],
        )
    )
    angle = np.linspace(0, 2 * np.pi, 20_001)
    edge = s.ball.centre + 4.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    gradients = [
        np.linalg.norm((edge - c) @ h, axis=1).max()
        for h, c in zip(hessians, problem.optima, strict=True)
    ]
    at_minimiser = problem.client_losses(s.objective.minimiser)
    changes = np.abs(problem.client_losses(edge) - at_minimiser).max()
    assert s.largest_gradient == pytest.approx(max(gradients), rel=1e-6)
    assert s.largest_loss_change == pytest.approx(max(changes, at_minimiser.max()), rel=1e-6)


FLAGGED = {
    "definition of upsilon": "S_0 has unit 1, S_2 has unit X^4/F^2",
    "definition of phi": "2*C_P*H has unit F",
}


def test_units_of_the_printed_bound() -> None:
    flags = {flag.place: str(flag) for flag in unit_flags(ca_fed.THEOREM_2)}
    assert set(flags) == set(FLAGGED)
    for place, part in FLAGGED.items():
        assert part in flags[place]


@pytest.mark.parametrize(
    ("identifier", "reading"),
    [
        ("ca-fed/1", "printed"),
        ("ca-fed/2", "derived"),
        ("ca-fed/3", "printed"),
        ("ca-fed/appendix-d", "printed"),
        ("ca-fed/appendix-d", "derived"),
        ("ca-fed/appendix-e", "derived"),
    ],
)
def test_units_of_the_others_fit(identifier: str, reading: str) -> None:
    assert unit_flags(theorems.get(identifier, reading)) == ()


def test_a_setting_of_another_kind_is_named() -> None:
    good = setting()
    parts = (good.participation, ROUNDS, [START])
    with pytest.raises(ValueError, match=r"algorithm must be AveragedIterate.* got FedAvg"):
        ProjectedAveraging(Setting(FedAvg(0.1, 1), good.problem, *parts))
    rippled = nonconvex(2, 1, L=1.0, sigma_G=0.3)
    assert isinstance(rippled, RippledProblem)
    with pytest.raises(ValueError, match="problem must be a QuadraticProblem"):
        ProjectedAveraging(Setting(good.algorithm, rippled, *parts))
    with pytest.raises(ValueError, match="participation must be MarkovOnOff or FiniteChain"):
        ProjectedAveraging(
            Setting(good.algorithm, good.problem, UniformSubset(2, 1), ROUNDS, [START])
        )


def test_states_of_a_general_chain() -> None:
    good = setting()
    chain = FiniteChain(
        [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [[1, 0], [0, 1], [1, 1]]
    )
    s = ProjectedAveraging(Setting(good.algorithm, good.problem, chain, ROUNDS, [START]))
    assert s.states == 3


@pytest.mark.parametrize("identifier", ["ca-fed/1", "ca-fed/3"])
@pytest.mark.parametrize("regime", ["equal weights", "two clients", "rare majority"])
@pytest.mark.parametrize(("reading", "spared"), [("printed", 0), ("sharper", 1)])
def test_the_looseness_is_the_largest_ratio_over_w(
    identifier: str, regime: str, reading: str, spared: int
) -> None:
    """Against thousands of points of W, half of them on its boundary."""
    claim = theorems.get(identifier, reading)
    setting = claim.regimes[regime].setting
    s = ProjectedAveraging(setting)
    problem, kappa = s.problem, s.problem.L / s.problem.mu
    bias = {
        "ca-fed/1": 2 * kappa ** (4 - spared) * s.chi_square * problem.Gamma,
        "ca-fed/3": 8 * kappa ** (4 - spared) * s.total_variation**2 * s.Gamma_B,
    }[identifier]
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(4000, problem.dim))
    steps *= s.ball.radius / np.linalg.norm(steps, axis=1, keepdims=True)
    steps[::2] *= rng.random((2000, 1)) ** (1 / problem.dim)
    points = s.ball.centre + steps
    above = [problem.excess_loss(w) for w in points]
    biased = [s.objective.excess_loss(w) for w in points]
    ratios = np.array(above) / (2 * kappa ** (2 - spared) * np.array(biased) + bias)
    largest = claim.quantity.looseness.largest_ratio(setting)
    assert ratios.max() <= largest * (1 + 1e-9)
    assert ratios.max() == pytest.approx(largest, rel=0.02)


def test_theorem_1_is_about_eight_times_too_large_at_its_tightest() -> None:
    """1/(2 kappa^2) at kappa = 2 far away, where the bias counts for nothing."""
    claim = theorems.get("ca-fed/1")
    verdict = check(claim, claim.regimes["equal weights"].setting)
    assert verdict.detail == "largest truth/bound over W 0.12"
    assert verdict.ratio < 0.003


@pytest.mark.parametrize(("p", "ratio"), [("2/5", 0.980), ("9/20", 0.995), ("49/100", 0.9998)])
def test_theorem_1_is_attained_in_the_limit(p: str, ratio: float) -> None:
    """In fractions: F_k = (w -+ 1)^2/2, alpha = 1/2, at w = 2 w_B*, where both sides are known."""
    x = Fraction(p)
    w_b = x - (1 - x)
    w = 2 * w_b
    excess, biased = w**2 / 2, (w - w_b) ** 2 / 2
    half, gamma = Fraction(1, 2), Fraction(1, 2)
    chi_square = (half - x) ** 2 / x + (half - (1 - x)) ** 2 / (1 - x)
    assert float(excess / (2 * biased + 2 * chi_square * gamma)) == pytest.approx(ratio, abs=6e-4)
    if p == "49/100":
        for reading in ("printed", "sharper"):
            claim = theorems.get("ca-fed/1", reading)
            verdict = check(claim, claim.regimes["nearly attained"].setting)
            assert verdict.outcome is Outcome.HOLDS
            assert verdict.truth == pytest.approx(float(excess), rel=1e-12)
            assert verdict.ratio == pytest.approx(1 - (1 - 2 * x) ** 2 / 2, abs=1e-6)


def test_the_proof_shows_the_kappa_that_is_not_needed() -> None:
    """The other one is needed: far from clients of curvatures 1 and 1/10, 2 is not enough.

    alpha = (.99, .01) and p = (.01, .99), so that F bends nearly ten times as much as F_B.
    """
    for identifier in ("ca-fed/1", "ca-fed/3"):
        results = check_derivation(theorems.get(identifier).derivation)
        (shorter,) = [one for one in results if "not needed" in one.step.text]
        assert shorter.outcome is StepOutcome.FOLLOWS
    often, rarely, w = Fraction(99, 100), Fraction(1, 100), Fraction(1000)
    first, second = w**2 / 2, (w - 1) ** 2 / 20
    excess = often * first + rarely * second - 1
    biased = rarely * first + often * second
    bias = 2 * 10**3 * ((often - rarely) ** 2 / rarely + (often - rarely) ** 2 / often) / 20
    assert excess > 2 * biased + bias
    assert excess <= 2 * 10 * biased


def test_rounding_at_the_tightest_point_is_small_and_not_nothing() -> None:
    """64 roundings times kappa (N + d) of the loss, and nothing more of the point's own."""
    setting = theorems.get("ca-fed/1").regimes["equal weights"].setting
    value, error = theorems.get("ca-fed/1").quantity.value(setting)
    assert value > 0
    kappa_times_sums = 2 * (4 + 2)
    assert error == pytest.approx(64 * 2.0**-52 * kappa_times_sums * value, rel=1e-3)
