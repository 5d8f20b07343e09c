"""The atlas on its regimes, and its truths computed a second time by plain loops."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import Constant, FedAWE, Harmonic, LocalSgd
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Equal, StepOutcome
from fltheory.derivations.derivation_check import check_derivation, check_step
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.evidence.truths import Sampling
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.testing import each_cell
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems import atlas
from fltheory.theorems.atlas import fedavg_li
from fltheory.theorems.atlas.client_models import client_models
from fltheory.verify import Outcome, check

PAPERS = ("fedavg-li", "local-gd", "proxskip", "fedprox", "fednova", "fedawe")


@each_cell(*PAPERS)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(statement, regime)


def setting_of(name: str, regime: str, reading: str = "printed"):
    return theorems.get(name, reading).regimes[regime].setting


def test_li_theorem_2_by_every_sequence_of_draws() -> None:
    """Exact gradients; 10 multisets of two of four clients, four averages."""
    setting = setting_of("fedavg-li/2", "exact gradients")
    problem, p = setting.problem, np.array([0.5, 0.25, 0.125, 0.125])
    draws = []
    for pair in product(range(4), repeat=2):
        weights = np.bincount(pair, minlength=4) / 2
        draws.append((p[pair[0]] * p[pair[1]], weights))
    chances = np.array([1.0])
    models = np.tile(setting.x0, (1, 4, 1))
    gradients, first = [], 0.0
    for t in range(20):
        slopes = np.einsum("kab,skb->ska", problem.hessians, models - problem.optima)
        gradients.append(chances @ (slopes**2).sum(axis=2))
        models = models - 2 / (0.25 * (32 + t)) * slopes
        if t == 0:
            first = float(((p @ models[0] - problem.x_star) ** 2).sum())
        if (t + 1) % 5 == 0:
            models = np.concatenate(
                [np.repeat(np.einsum("j,sjd->sd", w, models)[:, None], 4, axis=1) for _, w in draws]
            )
            chances = np.concatenate([chance * chances for chance, _ in draws])
    G = math.sqrt(max(float(row.max()) for row in gradients[1:]))
    away = models[:, 0] - problem.x_star
    truth = float(chances @ np.einsum("sa,ab,sb->s", away, problem.mean_hessian, away)) / 2
    gamma_ = float(sum(p * [loss(problem, k) for k in range(4)]))
    B = 6 * gamma_ + 8 * 16 * G**2
    bound = 4 / (32 + 20 - 1) * (2 * (B + 2 * 25 * G**2) / 0.25 + 0.25 * 32 / 2 * first)
    verdict = check(theorems.get("fedavg-li/2"), setting)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == pytest.approx(truth, rel=1e-9)
    assert verdict.bound == pytest.approx(bound, rel=1e-9)


def loss(problem, k: int) -> float:
    away = problem.x_star - problem.optima[k]
    return float(away @ problem.hessians[k] @ away) / 2


def test_theorem_1_of_li_is_attained() -> None:
    """N = E = T = 1 at curvature L = mu: F(w_1) = L/2 ||w_1 - w*||^2, and the bound is the same."""
    verdict = check(theorems.get("fedavg-li/1"), setting_of("fedavg-li/1", "one client, one step"))
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == verdict.bound == pytest.approx(0.5 * (1 - 2 / 8) ** 2)


@pytest.mark.parametrize(("sampled", "outcome"), [("steps", "HOLDS"), ("average", "INAPPLICABLE")])
def test_theorem_1_of_li_is_about_averages_by_p(sampled, outcome: str) -> None:
    """Drawing everybody averages equally: the run ends elsewhere, of which nothing is claimed."""
    p = (0.9, 0.05, 0.05)
    problem = QuadraticProblem([[1.0]], [[0.0], [1.0], [-3.0]], target_weights=p)
    method = LocalSgd(Harmonic(2.0, offset=7.0), 1, p, sampled=sampled)
    setting = Setting(method, problem, UniformSubset(3, 3), 100, [1.0])
    verdict = check(theorems.get("fedavg-li/1"), setting)
    assert verdict.outcome.name == outcome
    # The plain mean of the optima is -2/3; the minimiser is -0.1.
    elsewhere = (2 / 3 - 0.1) ** 2 / 2
    assert (verdict.truth > elsewhere / 2) == (sampled == "average")


def test_scaled_gradients_by_hand() -> None:
    """Equal clients at distance one along the first axis, curvatures 1 and 1/4 in turn.

    The first has p = 1/2, so nu = 2: its gradient 1 becomes 2, whose square is nu^2.
    """
    verdict = check(
        theorems.get("fedavg-li/3-scaling"), setting_of("fedavg-li/3-scaling", "equal clients")
    )
    assert verdict.outcome is Outcome.REFUTED
    assert (verdict.truth, verdict.bound) == (4, 2)


@pytest.mark.parametrize("regime", ["usual", "two local steps", "uneven weights"])
def test_where_constant_steps_end_by_a_plain_loop(regime: str) -> None:
    """FedAvg itself until it moves no more, in extended precision."""
    setting = setting_of("fedavg-li/4", regime, "with constants")
    problem, p = setting.problem, np.longdouble(setting.problem.alpha)
    lr, E = np.longdouble(setting.algorithm.step_sizes.value), setting.algorithm.local_steps
    w = np.longdouble(problem.x_star)
    for _ in range(int(60 / (0.25 * float(lr) * E))):
        models = np.tile(w, (4, 1))
        for _ in range(E):
            slopes = np.einsum("kab,kb->ka", problem.hessians, models - problem.optima)
            models = models - lr * slopes
        w = p @ models
    away = float(np.linalg.norm((w - problem.x_star).astype(float)))
    verdict = check(theorems.get("fedavg-li/4", "with constants"), setting)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.bound == pytest.approx(4 * away, rel=1e-9)
    curved = np.einsum("kab,kb->ka", problem.hessians, problem.x_star - problem.optima)
    pull = p @ np.einsum("kab,kb->ka", problem.hessians, curved)
    assert verdict.truth == pytest.approx(float((E - 1) * lr * np.linalg.norm(pull.astype(float))))


def test_what_constant_steps_leave_of_the_first_order_follows() -> None:
    (step,) = theorems.get("fedavg-li/4", "with constants").derivation.steps
    assert check_step(step).outcome is StepOutcome.FOLLOWS
    more = sp.Le(step.claim.claimed.lhs * 2, step.claim.claimed.rhs)
    wrong = replace(step, claim=replace(step.claim, claimed=more))
    assert check_step(wrong).outcome is not StepOutcome.FOLLOWS


def test_an_order_too_large_for_constant_steps_does_not_hold() -> None:
    """||w~* - w*|| = Omega((E-1) sqrt(eta)) ||w*|| is false: the distance is of order eta."""
    theorem = theorems.get("fedavg-li/4")
    (axis,) = theorem.axes
    wrong = replace(theorem, axes=(replace(axis, order=sp.sqrt(fedavg_li.eta)),))
    assert check(theorem, setting_of("fedavg-li/4", "usual")).outcome is Outcome.HOLDS
    assert check(wrong, setting_of("fedavg-li/4", "usual")).outcome is Outcome.UNDECIDED


def test_pulls_that_cancel_but_for_rounding_are_none() -> None:
    """Equal clients of a curvature that no float hits: v is 1e-22 where its terms are 1e-7."""
    p, h = (0.25,) * 4, 0.00072699
    optima = [[6.36688736, 0.0], [0.0, 1.30469003], [-1.30469003, 0.65234502], [0.0, -1.30469003]]
    problem = QuadraticProblem([np.diag([h, h])] * 4, optima)
    setting = Setting(LocalSgd(Constant(0.005), 2, p), problem, UniformSubset(4, 4), 1, [0.0, 0.0])
    assert fedavg_li.v.number(setting) == 0
    verdict = check(theorems.get("fedavg-li/4"), setting)
    assert verdict.outcome is Outcome.INAPPLICABLE


def test_one_step_size_for_every_number_of_local_steps_does_not_do() -> None:
    """As E grows the clients reach their own minimisers, and FedAvg ends at the mean of those."""
    limit_distance = fedavg_li.D.number
    setting = fedavg_li.setting_at(local_steps=4000, step=0.1)
    problem = setting.problem
    ends_at = problem.optima.mean(axis=0) - problem.x_star
    assert limit_distance(setting) == pytest.approx(np.linalg.norm(ends_at), rel=1e-9)


@pytest.mark.parametrize("reading", ["printed", "derived"])
def test_local_gradient_descent_by_a_plain_loop(reading: str) -> None:
    setting = setting_of("local-gd/lemma-2", "usual", reading)
    problem, lr = setting.problem, 1 / 20
    models, spread = np.tile(setting.x0, (4, 1)), []
    for t in range(40):
        mean = models.mean(axis=0)
        spread.append(float(((models - mean) ** 2).sum(axis=1).mean()))
        models = models - lr * np.einsum("kab,kb->ka", problem.hessians, models - problem.optima)
        # Algorithm 1 averages in the step from t = t_p, p = 1, 2, ..; the analysis, in the step to
        # t_p.
        in_time = (t + 1) % 5 == 0
        if in_time if reading == "derived" else t > 0 and t % 5 == 0:
            models = np.tile(models.mean(axis=0), (4, 1))
    moments = client_models(setting)
    np.testing.assert_allclose([moments.spread(t) for t in range(40)], spread, atol=1e-12)
    truth = check(theorems.get("local-gd/lemma-2", reading), setting).truth
    assert min(abs(truth - sum(spread[t : t + 5])) for t in range(0, 40, 5)) < 1e-12


@pytest.mark.parametrize("name", ["local-gd/1", "local-gd/corollary-1"])
def test_the_last_steps_of_local_gradient_descent_follow(name: str) -> None:
    """And they do not if what they claim is 1% more."""
    derivation = theorems.get(name).derivation
    assert [one.outcome for one in check_derivation(derivation)] == [StepOutcome.FOLLOWS] * 2
    for step in derivation.steps:
        claim, more = step.claim, sp.Rational(101, 100)
        if isinstance(claim, Equal):
            wrong = replace(claim, left=more * claim.left)
        else:
            wrong = replace(claim, claimed=sp.Le(more * claim.claimed.lhs, claim.claimed.rhs))
        found = check_step(replace(step, claim=wrong)).outcome
        assert found is not StepOutcome.FOLLOWS


def test_communication_by_hand() -> None:
    """Equal clients, D = 1, gamma = 1/4, T = 40, H = 5: epsilon = 4/(T/4), and 16/epsilon = T."""
    verdict = check(
        theorems.get("local-gd/communication"),
        setting_of("local-gd/communication", "equal clients"),
    )
    assert verdict.outcome is Outcome.REFUTED
    assert (verdict.truth, verdict.bound) == (40, 8)


def test_proxskip_by_every_coin() -> None:
    """Eight steps, 256 sequences of coins, in the lifted space as the paper writes it."""
    theorem = theorems.get("proxskip/6")
    setting = theorem.family.setting(rounds=8)
    problem, lr, p = setting.problem, 1.0, 0.25
    h_star = np.einsum("kab,kb->ka", problem.hessians, problem.x_star - problem.optima)

    def psi(models: np.ndarray, controls: np.ndarray) -> float:
        return ((models - problem.x_star) ** 2).sum() + (lr / p) ** 2 * (
            (controls - h_star) ** 2
        ).sum()

    start = np.tile(setting.x0, (4, 1))
    truth = 0.0
    for coins in product([True, False], repeat=8):
        models, controls = start, np.zeros((4, 2))
        for coin in coins:
            slopes = np.einsum("kab,kb->ka", problem.hessians, models - problem.optima)
            moved = models - lr * (slopes - controls)
            models = np.tile((moved - lr / p * controls).mean(axis=0), (4, 1)) if coin else moved
            controls = controls + p / lr * (models - moved)
        truth += float(np.prod([p if coin else 1 - p for coin in coins])) * psi(models, controls)
    bound = max(0.75**8, (1 - p**2) ** 8) * psi(start, np.zeros((4, 2)))
    verdict = check(theorem, setting)
    assert verdict.truth == pytest.approx(truth, rel=1e-9)
    assert verdict.bound == pytest.approx(bound, rel=1e-9)


def test_a_round_of_fedprox_by_every_draw() -> None:
    setting = setting_of("fedprox/4", "clients a little apart")
    problem, mu, lr = setting.problem, 20.0, 1 / 21
    models = np.tile(setting.x0, (12, 1))
    for _ in range(20):
        slopes = np.einsum("kab,kb->ka", problem.hessians, models - problem.optima)
        models = models - lr * (slopes + mu * (models - setting.x0))
    losses = []
    for drawn in combinations(range(12), 10):
        away = models[list(drawn)].mean(axis=0) - problem.x_star
        losses.append(away @ problem.mean_hessian @ away / 2)
    gradients = np.einsum("kab,kb->ka", problem.hessians, setting.x0 - problem.optima)
    left = np.einsum("kab,kb->ka", problem.hessians, models - problem.optima)
    left = left + mu * (models - setting.x0)
    gamma = (np.linalg.norm(left, axis=1) / np.linalg.norm(gradients, axis=1)).max()
    g = np.linalg.norm(gradients.mean(axis=0))
    B, K = math.sqrt((gradients**2).sum(axis=1).mean()) / g, 10
    rho = (
        1 / mu
        - gamma * B / mu
        - B * (1 + gamma) * math.sqrt(2) / (mu * math.sqrt(K))
        - B * (1 + gamma) / mu**2
        - (1 + gamma) ** 2 * B**2 / (2 * mu**2)
        - B**2 * (1 + gamma) ** 2 / (mu**2 * K) * (2 * math.sqrt(2 * K) + 2)
    )
    before = setting.x0 - problem.x_star
    verdict = check(theorems.get("fedprox/4"), setting)
    assert verdict.truth == pytest.approx(np.mean(losses), rel=1e-9)
    assert verdict.bound == pytest.approx(
        before @ problem.mean_hessian @ before / 2 - rho * g**2, rel=1e-9
    )


def test_fednova_by_hand() -> None:
    """Weights 1/4 for importances 1/2, 1/4, 1/8, 1/8: chi^2 = 1/4 + 0 + 1/16 + 1/16 = 3/8."""
    setting = setting_of("fednova/2", "usual")
    gradients = (setting.x0 - setting.problem.optima) * [1.0, 0.25]
    mean = gradients.mean(axis=0)
    spread = ((gradients - mean) ** 2).sum(axis=1).mean()
    verdict = check(theorems.get("fednova/2"), setting)
    assert verdict.bound == pytest.approx(2 * (mean @ mean) + 2 * 3 / 8 * spread, rel=1e-12)
    # F's gradient one away from x* along the first axis, of curvature 1
    assert verdict.truth == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("regime", ["usual", "one slow client"])
def test_fednova_by_a_plain_recursion(regime: str) -> None:
    """Curvatures are along the axes: a mean and a variance of the model for each of them."""
    claim = theorems.get("fednova/1")
    setting = claim.axes[0].schedule(claim.regimes[regime].setting, 1000)
    problem, w = setting.problem, np.array([0.5, 0.25, 0.125, 0.125])
    tau = np.array(setting.algorithm.local_steps)
    lr, total = math.sqrt(4 / (tau.mean() * 1000)), w @ tau
    curved = np.array([[0.5, 0.125], [0.125, 0.5]] * 2)
    kept = (1 - lr * curved) ** tau[:, None]
    share = (w * total / tau)[:, None]
    # The noise of tau steps: lr^2 sigma^2/2 sum_k (1 - lr h)^(2k) in each of two coordinates.
    noise = lr**2 / 2 * (1 - kept**2) / (1 - (1 - lr * curved) ** 2)
    slope = 1 - (share * (1 - kept)).sum(axis=0)
    pull = (share * (1 - kept) * (problem.optima - problem.x_star)).sum(axis=0)
    mean, variance = setting.x0 - problem.x_star, np.zeros(2)
    squares = []
    for _ in range(1000):
        squares.append(((w @ curved) ** 2 * (mean**2 + variance)).sum())
        mean = slope * mean + pull
        variance = slope**2 * variance + (share**2 * noise).sum(axis=0)
    found = claim.theorem.compared(setting, Sampling())
    A = 4 * total * (w**2 / tau).sum()
    order = (tau.mean() / total + A) / math.sqrt(4 * tau.mean() * 1000)
    assert found.truth == pytest.approx(min(squares), rel=1e-9)
    assert claim.orders_along(claim.axes[0], [claim.theorem.constants(setting)]) == [
        pytest.approx(order, rel=1e-12)
    ]


def test_fedawe_lemmas_by_every_path() -> None:
    """Availability that swaps: all paths of six rounds of two clients, in fractions."""
    theorem = theorems.get("fedawe/lemma-2")
    setting = theorem.family.setting(least=0.1, other=0.9, rounds=6)
    rows = [[Fraction(1, 10), Fraction(9, 10), Fraction(9, 10)]]
    rows.append([Fraction(9, 10), Fraction(1, 10), Fraction(9, 10)])
    largest = [Fraction(0), Fraction(0)]
    for client in range(3):
        for t in range(7):
            moments = [Fraction(0), Fraction(0)]
            for path in product([False, True], repeat=t):
                chance, last = Fraction(1), -1
                for r, here in enumerate(path):
                    p = rows[r % 2][client]
                    chance *= p if here else 1 - p
                    last = r if here else last
                moments = [m + chance * (t - last) ** n for n, m in enumerate(moments, 1)]
            largest = list(map(max, largest, moments))
    for name, truth in zip(("fedawe/lemma-2", "fedawe/lemma-2-squares"), largest, strict=True):
        verdict = check(theorems.get(name), setting)
        assert verdict.truth == pytest.approx(float(truth), rel=1e-12)
    mixing = np.zeros((3, 3))
    for here in product([0, 1], repeat=3):
        chance = np.prod(
            [p if one else 1 - p for p, one in zip([0.1, 0.9, 0.9], here, strict=True)]
        )
        gossip = np.eye(3)
        members = np.flatnonzero(here)
        if members.size:
            gossip[np.ix_(members, members)] = 1 / members.size
        mixing += chance * gossip @ gossip
    verdict = check(theorems.get("fedawe/lemma-4"), setting)
    assert verdict.truth == pytest.approx(np.sort(np.linalg.eigvals(mixing).real)[-2], abs=1e-12)


POINT_CLAIMS = [one for one in atlas.STATEMENTS if isinstance(one, PointClaim)]


@pytest.mark.parametrize("claim", POINT_CLAIMS, ids=lambda one: one.name)
def test_a_truth_in_floats_says_how_far_off_it_is(claim: PointClaim) -> None:
    """By enclosing it, which accounts for every rounding."""
    enclosed = 0
    for regime in claim.regimes.values():
        value, error = claim.quantity.value(regime.setting)
        assert error > 0 or value == 0
        with suppress(NotEnclosedError, ValueError):
            sides = claim.enclosed(regime.setting)
            enclosed += 1
            assert abs(value - sides.truth) <= error + sides.truth_error
    assert enclosed or claim.id == "fedawe/corollary-1"


def clients_on_all_sides(seed: int, count: int, dim: int) -> QuadraticProblem:
    rng = np.random.default_rng(seed)
    hessians = []
    for _ in range(count):
        turn, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
        made = turn @ np.diag(np.exp(rng.uniform(-3, 0, dim))) @ turn.T
        hessians.append((made + made.T) / 2)
    return QuadraticProblem(hessians, rng.standard_normal((count, dim)))


@pytest.mark.parametrize("seed", range(4))
def test_rounding_refutes_nothing(seed: int) -> None:
    """From the optimum the first step goes nowhere: both sides of (4) are zero at t = 0.

    Twelve clients in four dimensions are too many to enclose.
    """
    problem = clients_on_all_sides(seed, 12, 4)
    method = LocalSgd(Constant(1 / (25 * problem.L)), 5, (1 / 12,) * 12, first_average=6)
    setting = Setting(method, problem, UniformSubset(12, 12), 40, problem.x_star)
    verdict = check(theorems.get("local-gd/lemma-1"), setting)
    assert verdict.evidence.grade.name == "FLOAT64"
    assert verdict.outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("seed", range(6))
def test_a_first_step_from_the_optimum_goes_nowhere(seed: int) -> None:
    """Its squared length is zero, which floats round to either side."""
    problem = clients_on_all_sides(seed, 3, 2)
    kappa = problem.L / problem.mu
    method = LocalSgd(Harmonic(2 / problem.mu, offset=8 * kappa - 1), 1, (1 / 3,) * 3)
    setting = Setting(method, problem, UniformSubset(3, 3), 1, problem.x_star)
    compared = theorems.get("fedavg-li/1").compared(setting, Sampling())
    # T = 1, E = 1: B is 6 L Gamma, with Gamma = F*, and the distance is none.
    bound = kappa / (8 * kappa) * 2 * 6 * problem.L * problem.F_star / problem.mu
    assert compared.bound == pytest.approx(bound, rel=1e-9)


def test_gossip_needs_somebody_to_gossip_with() -> None:
    setting = Setting(
        FedAWE(0.1, 2), QuadraticProblem([[1.0]], [[0.0]]), Bernoulli([0.5]), 4, [1.0]
    )
    with pytest.raises(ValueError, match="problem must have at least two clients"):
        check(theorems.get("fedawe/lemma-4"), setting)


@pytest.mark.parametrize(
    ("name", "reading", "factor"),
    [
        ("fedavg-li/1", "printed", 1e-4),
        ("fedavg-li/3", "from w_1", 1e-3),
        ("fedavg-li/4", "with constants", 0.4),
        ("local-gd/lemma-1", "printed", 0.9),
        ("local-gd/1", "derived", 1e-2),
        ("proxskip/6", "printed", 0.3),
        ("fednova/2", "printed", 0.2),
        ("fedawe/lemma-2", "printed", 0.9),
    ],
)
def test_a_planted_fault_is_found(name: str, reading: str, factor: float) -> None:
    """A bound below the truth of some regime is refuted there."""
    theorem = theorems.get(name, reading)
    wrong = replace(theorem, bound=theorem.bound * factor, refutations=())
    outcomes = {check(wrong, regime.setting).outcome for regime in theorem.regimes.values()}
    assert Outcome.REFUTED in outcomes
