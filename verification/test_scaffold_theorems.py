"""SCAFFOLD's statements over their regimes, against the recorded verdicts and ratios.

Refutations, and truths where the theorems do not apply, are computed a second time from Algorithm
1, coordinate by coordinate, without engines or algorithms.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import Scaffold
from fltheory.claims.statement import Statement
from fltheory.engines import Setting, exact, stationary
from fltheory.participation import Bernoulli, MarkovOnOff
from fltheory.problems import quadratic
from fltheory.testing import each_cell
from fltheory.testing.cells import rows_of
from fltheory.testing.pytest_plugin import Recorder
from fltheory.theorems import Theorem, registered
from fltheory.theorems import scaffold as scaffold_theorems
from fltheory.verify import Outcome, check
from fltheory.verify.baseline import Baseline

PAPER = "scaffold"
UNEQUAL = ("excluded client", "Bernoulli", "rare client", "long stretches", "in rotation")


@each_cell(PAPER)
def test_verdict_and_ratio_are_as_recorded(
    statement: Statement, regime: str, as_recorded: Recorder
) -> None:
    as_recorded(statement, regime)


def test_a_derived_reading_holds_wherever_it_applies(recorded_verdicts: Baseline) -> None:
    rows = rows_of(PAPER, recorded_verdicts)
    outcomes = {rows[key].outcome for key in rows if key[1] == "derived"}
    assert outcomes == {"HOLDS", "INAPPLICABLE"}


def test_only_single_gradients_as_controls_refute_the_pseudo_code(
    recorded_verdicts: Baseline,
) -> None:
    refuted = {
        (theorem, regime)
        for (theorem, reading, regime), row in rows_of(PAPER, recorded_verdicts).items()
        if reading == "pseudo-code" and row.outcome == "REFUTED"
    }
    assert refuted == {(s.id, "one gradient as control") for s in registered(PAPER)}
    others = {
        row.outcome
        for key, row in rows_of(PAPER, recorded_verdicts).items()
        if key[1] != "pseudo-code"
    }
    assert others == {"HOLDS", "INAPPLICABLE"}


def test_no_theorem_is_said_to_apply_where_sampling_is_not_uniform(
    recorded_verdicts: Baseline,
) -> None:
    outcomes = {
        row.outcome
        for (_, _, regime), row in rows_of(PAPER, recorded_verdicts).items()
        if regime in UNEQUAL
    }
    assert outcomes == {"INAPPLICABLE"}


def moments_by_hand(
    curvature: float,
    gradients: np.ndarray,
    start: float,
    *,
    sets: list[tuple[float, tuple[int, ...]]],
    local_lr: float,
    steps: int,
    server_lr: float,
    variance: float,
    option: int,
    rounds: int,
) -> np.ndarray:
    """Return E[(x^r - x*)^2] for r < rounds, one coordinate, from Algorithm 1.

    ``f_i(x) = curvature/2 (x - x*)^2 + gradients_i (x - x*)``; the state is (x - x*, c_1, .., c_N).
    """
    n_clients = gradients.size
    size = n_clients + 1
    shrink = 1 - local_lr * curvature
    slope = shrink**steps - 1
    pull = -local_lr * sum(shrink**j for j in range(steps))
    moment = np.zeros((size + 1, size + 1))
    moment[0, 0], moment[0, -1], moment[-1, 0], moment[-1, -1] = start**2, start, start, 1.0
    maps = []
    for chance, members in sets:
        a = np.eye(size + 1)
        noise = np.zeros((size + 1, size + 1))
        share = server_lr / len(members)
        # Noise of step j reaches y_K multiplied by shrink^(K-1-j), and enters the mean gradient.
        effect = np.array([-local_lr * shrink ** (steps - 1 - j) for j in range(steps)])
        for i in members:
            change = np.zeros(size + 1)
            change[0], change[-1] = slope, pull * gradients[i]
            change[1:size] += pull / n_clients
            change[1 + i] -= pull
            a[0] += share * change
            if option == 1:
                control = np.zeros(size + 1)
                control[0], control[-1] = curvature, gradients[i]
                of_control = np.zeros(steps)
                noise[1 + i, 1 + i] += variance
            else:
                control = -change / (steps * local_lr)
                control[1:size] -= 1 / n_clients
                control[1 + i] += 1
                of_control = -effect / (steps * local_lr)
            a[1 + i] = control
            noise[0, 0] += variance * share**2 * (effect @ effect)
            noise[0, 1 + i] += variance * share * (effect @ of_control)
            noise[1 + i, 0] += variance * share * (effect @ of_control)
            noise[1 + i, 1 + i] += variance * (of_control @ of_control)
        maps.append((chance, a, noise))
    seen = []
    for _ in range(rounds):
        seen.append(moment[0, 0])
        moment = sum(chance * (a @ moment @ a.T + noise) for chance, a, noise in maps)
    return np.array(seen)


def excess_by_hand(regime: str, option: int, sets: list[tuple[float, tuple[int, ...]]]) -> tuple:
    """Return E[f(x^r) - f*] of a regime, summed over coordinates."""
    setting = scaffold_theorems.STRONGLY_CONVEX.regimes[regime].setting
    problem, algorithm = setting.problem, setting.algorithm
    total = np.zeros(setting.rounds)
    for axis in range(problem.dim):
        curvature = float(problem.hessians[axis, axis])
        total += (
            0.5
            * curvature
            * moments_by_hand(
                curvature,
                curvature * (problem.x_star - problem.optima)[:, axis],
                float(setting.x0[axis] - problem.x_star[axis]),
                sets=sets,
                local_lr=algorithm.client_lr,
                steps=algorithm.local_steps,
                server_lr=algorithm.server_lr,
                variance=problem.sigma**2 / problem.dim,
                option=option,
                rounds=setting.rounds,
            )
        )
    return setting, total


def test_one_gradient_as_control_by_hand() -> None:
    """With beta = mu = 1, sigma = 10, K = 300, S = 1 of N = 5, eta_g = 10 and x^0 = x*."""
    singles = [(1 / 5, (i,)) for i in range(5)]
    _, excess = excess_by_hand("one gradient as control", 1, singles)
    h = (1 - 1e-12) / 81
    bound = 12 * h * 100 / (300 * 1) * (1 + 1 / 10**2)
    weights = (1 - h / 2) ** -np.arange(1.0, 1501.0)
    truths = {"strongly-convex": np.average(excess, weights=weights), "convex": excess.mean()}
    for name, truth in truths.items():
        assert truth > 4 * bound
        theorem = theorems.get(f"scaffold/{name}", "pseudo-code")
        verdict = check(theorem, theorem.regimes["one gradient as control"].setting)
        assert verdict.outcome is Outcome.REFUTED
        assert verdict.truth == pytest.approx(truth, rel=1e-9)
        assert verdict.bound == pytest.approx(bound, rel=1e-9)


def test_controls_that_average_would_be_within_the_bound() -> None:
    """The same numbers with option II: the theorem's own noise term is not to blame."""
    theorem = theorems.get("scaffold/convex", "derived")
    setting = theorem.regimes["one gradient as control"].setting
    averaging = replace(setting.algorithm, option=2)
    verdict = check(
        theorem,
        Setting(averaging, setting.problem, setting.participation, setting.rounds, setting.x0),
    )
    assert verdict.outcome is Outcome.HOLDS


def test_one_gradient_as_control_by_hand_on_smooth_losses() -> None:
    """The warm start's round draws controls of variance sigma^2/K, then option I goes on."""
    theorem = theorems.get("scaffold/nonconvex")
    setting = theorem.regimes["one gradient as control"].setting
    scaffold = setting.algorithm.scaffold
    h = (1 - 1e-12) * (1 / 5) ** (2 / 3) / 24
    assert scaffold.client_lr * 300 * 10 == pytest.approx(h)
    bound = 70 * h * 100 / 300 * (1 + 1 / 100)
    verdict = check(theorem, setting)
    assert verdict.bound == pytest.approx(bound, rel=1e-9)
    cold = moments_by_hand(
        1.0,
        np.zeros(5),
        0.0,
        sets=[(1 / 5, (i,)) for i in range(5)],
        local_lr=scaffold.client_lr,
        steps=300,
        server_lr=10.0,
        variance=100.0,
        option=1,
        rounds=1500,
    )
    truth = cold.mean()
    # Controls of zero at first, not of variance sigma^2/K, for at most a few rounds each.
    assert verdict.truth == pytest.approx(truth, rel=0.02)
    assert verdict.truth > 1.5 * bound


def test_truth_beside_the_bound_by_hand() -> None:
    """An excluded client, exact gradients: pairs of the other five; the truth leaves the bound."""
    pairs = [(1 / 10, pair) for pair in combinations(range(1, 6), 2)]
    setting, excess = excess_by_hand("excluded client", 2, pairs)
    problem, h = setting.problem, (1 - 1e-12) / 81
    weights = (1 - 0.25 * h / 2) ** -np.arange(1.0, 1501.0)
    lag = float(((problem.optima - problem.x_star) ** 2 @ [1.0, 0.25**2]).mean())
    bound = (9.0 + 9 * 6 * h**2 / 2 * lag) / (h * weights.sum())
    theorem = theorems.get("scaffold/strongly-convex")
    verdict = check(theorem, setting)
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert verdict.truth == pytest.approx(np.average(excess, weights=weights), rel=1e-9)
    assert verdict.bound == pytest.approx(bound, rel=1e-9)
    assert verdict.ratio > 1


@pytest.mark.parametrize(
    "participation",
    [Bernoulli([0.0005, 1.0, 1.0]), MarkovOnOff([0.5, 0.1], 0.998)],
    ids=["rare", "long stretches"],
)
def test_what_remains_where_everybody_comes_now_and_then(participation) -> None:
    """Exact gradients: x* with c_i = grad f_i(x*) is a fixed point whoever takes part.

    The moments converge, and so to it: the bias is zero, only the bound is gone.
    """
    problem = quadratic(participation.n_clients, 1, L=1.0, mu=1.0, sigma_G=2.0)
    limit = stationary(Setting(Scaffold(1 / 324, 4), problem, participation, 1, problem.x_star))
    assert limit.squared_distance == pytest.approx(0.0, abs=1e-12)


def test_what_remains_where_a_client_is_excluded() -> None:
    """The corrected gradients vanish where the others' mean gradient does: f without client 0."""
    setting = theorems.get("scaffold/strongly-convex").regimes["excluded client"].setting
    problem = setting.problem
    of_others = problem.optima[1:].mean(axis=0)
    fast = replace(setting.algorithm, client_lr=20 * setting.algorithm.client_lr)
    run = exact(Setting(fast, problem, setting.participation, 1500, setting.x0))
    assert run.excess_loss[-1] == pytest.approx(float(problem.excess_loss(of_others)), rel=1e-9)
    assert run.excess_loss[-1] > 0.05


def test_a_planted_fault_is_found() -> None:
    """A bound five times too small is refuted on the noise-free regime of each theorem."""
    for name in ("strongly-convex", "convex"):
        theorem = theorems.get(f"scaffold/{name}", "derived")
        assert isinstance(theorem, Theorem)
        setting = theorem.regimes["noise-free"].setting
        assert check(theorem, setting).outcome is Outcome.HOLDS
        wrong = replace(theorem, bound=theorem.bound / 5)
        assert check(wrong, setting).outcome is Outcome.REFUTED


def test_leaving_out_a_hypothesis_shows() -> None:
    """Without 'drawn uniformly' the theorem is false, and so are the step limit's and eta_g's."""
    theorem = theorems.get("scaffold/strongly-convex", "derived")
    for name, left_out in (
        ("excluded client", {"clients drawn uniformly"}),
        ("too large a step", {"small effective step", "mu h at most S/(15N)"}),
        ("small server step", {"server step of at least one"}),
    ):
        kept = tuple(item for item in theorem.hypotheses if item.name not in left_out)
        setting = theorem.regimes[name].setting
        verdict = check(replace(theorem, hypotheses=kept), setting)
        assert verdict.outcome is not Outcome.HOLDS
        assert verdict.truth > verdict.bound
