"""Verdicts on hand-made theorems whose truth has a closed form.

FedAvg with K = 1 on one client with loss (h/2) x^2 and step size e contracts by
(1 - e h)^2 per round: E||x_R||^2 = (1 - e h)^(2R) x_0^2, plus the noise's geometric sum.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import FedAvg, Safari
from fltheory.claims.comparison import Comparison
from fltheory.claims.rate_axis import AxisReading, slope_ends, slope_of_last_decade
from fltheory.engines import Setting
from fltheory.evidence.verdict import Evidence, Grade
from fltheory.grammar.symbols import symbol
from fltheory.participation import FiniteChain, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem, nonconvex
from fltheory.theorems import (
    BoundedQuantity,
    Hypothesis,
    RateAxis,
    RateClaim,
    RoundRange,
    RoundSymbol,
    Theorem,
)
from fltheory.verify import Outcome, check

c = symbol("c", number=lambda setting: 2.0, nonnegative=True)
s = symbol("s", number="client_lr", nonnegative=True)
g = sp.Symbol("g", nonnegative=True)
R = symbol("R", number="rounds", nonnegative=True)
WIDE = symbol("w", number=lambda setting: math.inf, extended_nonnegative=True)
CURVATURE, STEP, ROUNDS, START = 0.5, 0.25, 12, 3.0
DECAY = 1 - STEP * CURVATURE
TRUTH = DECAY ** (2 * ROUNDS) * START**2


def line(sigma: float = 0.0, step: float = STEP, rounds: int = ROUNDS) -> Setting:
    problem = QuadraticProblem([[CURVATURE]], [[0.0]], sigma=sigma)
    return Setting(FedAvg(step, 1), problem, UniformSubset(1, 1), rounds, [START])


def theorem(bound: float | sp.Expr, *hypotheses: sp.Basic, **changes) -> Theorem:
    made = Theorem(
        id="hand/made",
        reading="printed",
        title="a bound on the squared distance",
        source="this test",
        quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "text", "latex"),
        bound=sp.sympify(bound),
        hypotheses=tuple(
            Hypothesis(f"condition {index}", condition, "here", any_sign=True)
            for index, condition in enumerate(hypotheses)
        ),
    )
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("bound", "outcome"),
    [(1.01 * TRUTH, Outcome.HOLDS), (0.99 * TRUTH, Outcome.REFUTED), (TRUTH, Outcome.UNDECIDED)],
)
def test_truth_against_bound(bound: float, outcome: Outcome) -> None:
    verdict = check(theorem(bound), line())
    assert verdict.outcome is outcome
    assert verdict.truth == pytest.approx(TRUTH, rel=1e-12)
    assert verdict.bound == pytest.approx(bound, rel=1e-14)
    assert verdict.ratio == pytest.approx(TRUTH / bound)
    assert verdict.evidence.grade is Grade.FLOAT64
    assert 0 < verdict.evidence.error < 1e-9 * TRUTH
    assert verdict.evidence.error_probability == 0


@pytest.mark.parametrize(
    ("condition", "holds", "margin"),
    [
        (sp.Le(c, 3, evaluate=False), True, 1),
        (sp.Le(c, 2, evaluate=False), True, 0),
        (sp.Lt(c, 2, evaluate=False), False, -np.finfo(float).tiny),
        (sp.Le(c, sp.Rational(1, 2), evaluate=False), False, -1.5),
        (sp.Ge(c, sp.Rational(1, 2), evaluate=False), True, 1.5),
        (sp.Gt(c, 2, evaluate=False), False, -np.finfo(float).tiny),
        (sp.Lt(WIDE, sp.oo, evaluate=False), False, -math.inf),
        (sp.Eq(3 * s, sp.Rational(3, 4)), True, None),
        (sp.Eq(s, sp.Rational(1, 4) + sp.Float(1e-12)), False, None),
        (sp.Le(1, c / (s - sp.Rational(1, 4))), True, math.inf),
        (sp.Le(1, (c - 2) / (s - sp.Rational(1, 4))), False, math.nan),
    ],
    ids=str,
)
def test_hypotheses_and_their_margins(condition, holds, margin) -> None:
    verdict = check(theorem(2 * TRUTH, sp.Le(s, 1), condition), line())
    assert verdict.outcome is (Outcome.HOLDS if holds else Outcome.INAPPLICABLE)
    found = verdict.hypotheses[1]
    assert found.holds is holds
    assert verdict.failed == (() if holds else (found,))
    if margin is not None:
        assert found.margin == pytest.approx(margin, nan_ok=True)
    if not holds:
        assert "condition 1" in found.failure
        assert ("undefined" in found.failure) == math.isnan(found.margin)
        at_its_limit = found.margin == -np.finfo(float).tiny
        assert ("both sides are equal, " in found.failure) == at_its_limit


@pytest.mark.parametrize(
    ("condition", "sides"),
    [
        (sp.Le(c, 3, evaluate=False), "2 <= 3"),
        (sp.Ge(c, sp.Rational(1, 2), evaluate=False), "2 >= 0.5"),
        (sp.Gt(c, 2, evaluate=False), "2 > 2"),
        (sp.Lt(WIDE, sp.oo, evaluate=False), "inf < inf"),
        (sp.Eq(3 * s, sp.Rational(3, 4)), "0.75 = 0.75"),
        (sp.Le(c + sp.Float(1e-9), 2), "2.000000001 <= 2"),
        (sp.Le(1, (c - 2) / (s - sp.Rational(1, 4))), "undefined"),
    ],
    ids=str,
)
def test_hypotheses_keep_both_sides(condition, sides) -> None:
    verdict = check(theorem(2 * TRUTH, condition), line())
    assert verdict.hypotheses[0].sides == sides


def test_an_inapplicable_theorem_never_holds_nor_is_refuted() -> None:
    for bound in (0.5 * TRUTH, 2 * TRUTH):
        verdict = check(theorem(bound, sp.Le(c, 1)), line())
        assert verdict.outcome is Outcome.INAPPLICABLE
        assert verdict.ratio == pytest.approx(TRUTH / bound)


def with_gradient(condition: sp.Basic, reduction: str) -> Theorem:
    symbol = RoundSymbol(g, "squared_gradient", reduction, RoundRange(0, -1), "gradient")
    return theorem(2 * TRUTH, condition, round_symbols=(symbol,))


FIRST = (CURVATURE * START) ** 2
LAST = FIRST * DECAY ** (2 * (ROUNDS - 1))


@pytest.mark.parametrize(
    ("reduction", "value"),
    [
        ("max", FIRST),
        ("min", LAST),
        ("mean", FIRST * (1 - DECAY ** (2 * ROUNDS)) / (1 - DECAY**2) / ROUNDS),
    ],
)
def test_symbols_of_the_trajectory(reduction: str, value: float) -> None:
    below = check(with_gradient(sp.Le(g, value * 1.001), reduction), line())
    above = check(with_gradient(sp.Le(g, value * 0.999), reduction), line())
    assert (below.outcome, above.outcome) == (Outcome.HOLDS, Outcome.INAPPLICABLE)
    assert above.failed[0].margin == pytest.approx(-0.001 * value, rel=1e-6)


def test_a_condition_on_every_round_names_the_worst() -> None:
    verdict = check(with_gradient(sp.Ge(g, 2 * LAST), "every"), line())
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert verdict.failed[0].at_round == ROUNDS - 1
    assert verdict.failed[0].margin == pytest.approx(-LAST)
    assert verdict.failed[0].left == pytest.approx(LAST)
    assert verdict.failed[0].right == pytest.approx(2 * LAST)
    assert verdict.failed[0].sides.endswith(f" in round {ROUNDS - 1}")
    assert check(with_gradient(sp.Ge(g, LAST / 2), "every"), line()).outcome is Outcome.HOLDS


def test_a_condition_at_its_limit_within_rounding_is_undecided() -> None:
    verdict = check(with_gradient(sp.Le(g, LAST), "min"), line())
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.hypotheses[0].holds is None


def test_a_diverging_run_refutes_any_bound() -> None:
    verdict = check(theorem(1e300), line(step=1e6, rounds=400))
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == math.inf


def rippled() -> Setting:
    problem = nonconvex(3, 2, L=1.0, sigma_G=0.5, sigma=1.0)
    return Setting(FedAvg(0.1, 2), problem, UniformSubset(3, 2), 15, [1.0, 1.0])


def test_sampled_verdicts_state_their_error_probability() -> None:
    loose = check(theorem(100), rippled(), replicas=200, error_probability=1e-6)
    strict = check(theorem(100), rippled(), replicas=200, error_probability=1e-12)
    assert loose.outcome is Outcome.HOLDS
    assert loose.evidence.grade is Grade.STATISTICAL
    assert (loose.evidence.error_probability, loose.evidence.replicas) == (1e-6, 200)
    assert strict.evidence.error > loose.evidence.error > 0
    near = check(theorem(loose.truth * 1.001), rippled(), replicas=200)
    assert near.outcome is Outcome.UNDECIDED
    assert check(theorem(0.01), rippled(), replicas=200).outcome is Outcome.REFUTED


def rate(power: float, truth_power: float, bound: sp.Expr = 1 / (10**9 * R)) -> RateClaim:
    """E||x_R||^2 at step size a/R for one round from R^-p: decays exactly as R^-2p.

    Its bound is one that the truth leaves, unless another is given.
    """

    def schedule(setting: Setting, value: int) -> Setting:
        start = START * value ** (truth_power / 2)
        return Setting(setting.algorithm, setting.problem, setting.participation, value, [start])

    axis = RateAxis(R, R ** sp.Rational(str(power)), lambda setting: (1, 10, 100, 1000), schedule)
    slow = replace(
        theorem(bound),
        quantity=BoundedQuantity("squared_distance", "max", RoundRange(0, 0), "text", "latex"),
    )
    return RateClaim(
        id="hand/rate",
        reading="printed",
        title="order",
        source="this test",
        theorem=slow,
        axes=(axis,),
    )


@pytest.mark.parametrize("bound", [sp.Rational(1, 10**9), 10**9 / R, sp.nan])
def test_an_order_is_refuted_by_a_bound_that_decays_as_claimed_and_is_left(bound: sp.Expr) -> None:
    """Not by a bound that is flat, by one that the truth stays below, nor by an unknown one."""
    verdict = check(rate(-1.0, -0.5, bound), line())
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.ratio == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("truth_power", "outcome"),
    [
        (-1.0, Outcome.HOLDS),
        (-1.2, Outcome.HOLDS),
        (-0.9, Outcome.UNDECIDED),
        (-0.7, Outcome.REFUTED),
        (0.0, Outcome.REFUTED),
    ],
)
def test_claimed_orders(truth_power: float, outcome: Outcome) -> None:
    verdict = check(rate(-1.0, truth_power), line())
    assert verdict.outcome is outcome
    assert verdict.is_rate
    assert verdict.truth == pytest.approx(truth_power, abs=1e-9)
    assert verdict.bound == pytest.approx(-1.0)
    assert verdict.ratio == pytest.approx(truth_power + 1, abs=1e-9)
    assert "1 .. 1000" in verdict.evidence.scope


def test_a_claim_of_two_orders_is_refuted_by_one() -> None:
    good, bad = rate(-1.0, -1.0), rate(-1.0, 0.0)
    both = replace(good, axes=(*good.axes, *bad.axes))
    assert check(both, line()).outcome is Outcome.REFUTED


def test_hypotheses_of_a_claim_must_hold_at_every_value() -> None:
    claim = rate(-1.0, -1.0)
    axis = replace(claim.axes[0], hypotheses=(Hypothesis("late", sp.Ge(R, 5), "here"),))
    verdict = check(replace(claim, axes=(axis,)), line())
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert verdict.failed[0].margin == -4


def test_fedavg_is_checked_as_safari_at_q_one() -> None:
    statement = theorems.get("sa-fl/5", reading="derived")
    regime = statement.regimes["q = 1, i.i.d."].setting
    safari = regime.algorithm
    assert isinstance(safari, Safari)
    fedavg = FedAvg(safari.client_lr, safari.local_steps)
    plain = Setting(fedavg, regime.problem, regime.participation, regime.rounds, regime.x0)
    assert check(statement, plain).truth == pytest.approx(check(statement, regime).truth, rel=1e-12)


def test_a_theorem_about_another_algorithm_is_refused() -> None:
    setting = replace_algorithm(theorems.get("sa-fl/5").regimes["i.i.d."].setting)
    with pytest.raises(ValueError, match="algorithm must be Safari"):
        check(theorems.get("sa-fl/5"), setting)


def test_a_theorem_about_independent_rounds_is_refused_to_chains() -> None:
    """Of fixed size, so that nothing else tells the chain from uniform sampling."""
    setting = theorems.get("sa-fl/5").regimes["i.i.d."].setting
    cycle = 0.5 * np.eye(10) + 0.5 * np.roll(np.eye(10), 1, axis=1)
    chain = FiniteChain(cycle, np.eye(setting.problem.n_clients))
    assert chain.fixed_size == 1
    dependent = Setting(setting.algorithm, setting.problem, chain, setting.rounds, setting.x0)
    with pytest.raises(ValueError, match=r"independent across rounds .* FiniteChain\(10 states"):
        check(theorems.get("sa-fl/5"), dependent)


@pytest.mark.parametrize(
    ("n_clients", "grade"), [(1, Grade.FLOAT64), (13, Grade.STATISTICAL)], ids=["few", "too many"]
)
def test_truth_is_exact_along_a_chain_of_few_states(n_clients: int, grade: Grade) -> None:
    setting = line()
    problem = QuadraticProblem([[CURVATURE]], np.zeros((n_clients, 1)))
    chain = MarkovOnOff([0.5] * n_clients, 0.5)
    dependent = Setting(setting.algorithm, problem, chain, setting.rounds, setting.x0)
    assert check(theorem(2 * START**2), dependent).evidence.grade is grade


def replace_algorithm(setting: Setting) -> Setting:
    other = FedAvg(0.1, 1, server_lr=0.5)
    return Setting(other, setting.problem, setting.participation, setting.rounds, setting.x0)


def test_slope_of_the_last_decade_is_that_of_its_power() -> None:
    grid = [1, 10, 20, 100]
    values = [5.0, *(3 * R**-0.5 for R in grid[1:])]
    assert slope_of_last_decade(grid, values) == pytest.approx(-0.5)
    apart = slope_of_last_decade(grid, [np.array([value, -1.0]) for value in values])
    np.testing.assert_allclose(apart, [-0.5, math.nan])


def test_one_value_has_no_slope() -> None:
    assert math.isnan(slope_of_last_decade([1, 100], [1.0, 2.0]))
    assert np.isnan(slope_of_last_decade([1, 100], [np.ones(3), np.ones(3)])).all()


def sampled(truth: float, lower: float, upper: float) -> Comparison:
    evidence = Evidence(Grade.STATISTICAL, upper - truth, 1e-9, 100, ends=(lower, upper))
    return Comparison(truth, 1.0, evidence, ())


def test_a_sampled_slope_lies_between_those_of_all_corners() -> None:
    """Least-squares slopes through all 2^4 choices of ends, one by one; the first is too early."""
    grid = (2, 10, 20, 50, 100)
    truths = [5.0, 1.0, 0.6, 0.4, 0.2]
    sides = [sampled(v, v * (1 - 0.05 * k), v * (1 + 0.1 * k)) for k, v in enumerate(truths, 1)]
    logs = np.log(grid[1:])
    slopes = [
        np.polyfit(logs, np.log(corner), 1)[0]
        for corner in product(*(side.interval for side in sides[1:]))
    ]
    assert slope_ends(grid, sides) == pytest.approx((min(slopes), max(slopes)), rel=1e-9)


@pytest.mark.parametrize(
    ("width", "outcome"),
    [(0.01, Outcome.HOLDS), (0.5, Outcome.UNDECIDED), (0.999, Outcome.UNDECIDED)],
)
def test_a_sampled_order_is_judged_by_the_ends_of_its_slope(width: float, outcome) -> None:
    """1/R, claimed and true; to within a half the slope is between -1.5 and -0.5."""
    grid = (100, 1000)
    sides = tuple(sampled(1 / n, (1 - width) / n, (1 + width) / n) for n in grid)
    axis = RateAxis(R, 1 / R, lambda setting: grid, lambda setting, value: setting)
    slope = slope_ends(grid, sides)
    reading = AxisReading(axis, grid, sides, (1.0, 0.1), -1.0, math.nan, -1.0, slope)
    assert reading.outcome is outcome
    assert bool(reading.unseen) == (outcome is Outcome.UNDECIDED)


def test_a_slope_through_a_truth_that_may_be_zero_or_anything_has_no_ends() -> None:
    sides = [sampled(1.0, 0.5, math.inf), sampled(0.1, 0.0, 0.2)]
    assert slope_ends((100, 1000), sides) == (-math.inf, math.inf)


def test_a_theorem_may_be_given_by_its_id() -> None:
    setting = theorems.get("sa-fl/5").regimes["q = 0"].setting
    assert check("sa-fl/5", setting) == check(theorems.get("sa-fl/5"), setting)
    with pytest.raises(ValueError, match=r"id must be a registered theorem .*got 'sa-fl/6'"):
        check("sa-fl/6", setting)
    with pytest.raises(ValueError, match=r"theorem must be a statement, e.g. .*, got 5"):
        check(5, setting)
