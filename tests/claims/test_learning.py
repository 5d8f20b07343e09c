"""Verdicts on statements about learnability, hand-made ones first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.at_point import LearningClaim
from fltheory.claims.decay import DecayClaim, DecayQuantity, Measurement, fitted_slope
from fltheory.claims.rate_axis import KnownDecay
from fltheory.evidence.verdict import Grade
from fltheory.grammar.assertion import Relation
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.symbols import symbol
from fltheory.learnability import FederatedSystem
from fltheory.theorems import Hypothesis
from fltheory.verify import Outcome, Sampling, check, check_regimes
from fltheory.verify.baseline import Baseline
from tests.fewer_regimes import with_regimes

x, n = symbol("x", positive=True), symbol("n", positive=True)
SYSTEM = FederatedSystem(3, 2, 1)


def claim(value, relation: str = "<=", bound=Fraction(1, 3), limit: int = 5) -> LearningClaim:
    """A number compared with x, if x is at most a limit."""
    return LearningClaim(
        id="toy",
        reading="printed",
        title="a number",
        source="here",
        quantity=PointQuantity(lambda system: value, "number"),
        relation=Relation(relation),
        bound=x,
        hypotheses=(Hypothesis("small", sp.Le(x, limit, evaluate=False), "here"),),
        read_as={x: symbol("x", number=lambda system: bound)},
    )


@pytest.mark.parametrize(
    ("value", "relation", "outcome"),
    [
        (Fraction(1, 3), "<=", Outcome.HOLDS),
        (Fraction(1, 3), "<", Outcome.REFUTED),
        (Fraction(1, 3), ">=", Outcome.HOLDS),
        (Fraction(1, 3), ">", Outcome.REFUTED),
        (Fraction(1, 3) - Fraction(1, 10**30), "<", Outcome.HOLDS),
        (Fraction(1, 3) + Fraction(1, 10**30), "<=", Outcome.REFUTED),
    ],
)
def test_fractions_are_compared_exactly(value: Fraction, relation: str, outcome: Outcome) -> None:
    verdict = check(claim(value, relation), SYSTEM)
    assert verdict.outcome is outcome
    assert verdict.evidence.grade is Grade.RATIONAL
    assert verdict.evidence.error == 0


@pytest.mark.parametrize(
    ("value", "error", "relation", "outcome"),
    [
        (0.5, 0.1, "<=", Outcome.REFUTED),
        (0.5, 0.2, "<=", Outcome.UNDECIDED),
        (0.1, 0.1, "<=", Outcome.HOLDS),
        (0.5, 0.1, ">", Outcome.HOLDS),
        (math.inf, 0.0, "<=", Outcome.REFUTED),
    ],
)
def test_floats_within_their_error(
    value: float, error: float, relation: str, outcome: Outcome
) -> None:
    verdict = check(claim((value, error), relation), SYSTEM)
    assert verdict.outcome is outcome
    assert verdict.evidence.grade is Grade.FLOAT64


def test_ratio_exceeds_one_where_a_bound_of_either_kind_is_broken() -> None:
    above, below = (check(claim(Fraction(1, 6), d), SYSTEM) for d in ("<=", ">="))
    assert (above.outcome, above.ratio) == (Outcome.HOLDS, 0.5)
    assert (below.outcome, below.ratio, below.contrary) == (Outcome.REFUTED, 2.0, "<")
    assert below.detail == "1/6 against 1/3"


def test_failed_hypothesis_leaves_it_inapplicable() -> None:
    verdict = check(claim(Fraction(1), limit=0), SYSTEM)
    assert verdict.outcome is Outcome.INAPPLICABLE
    assert [item.name for item in verdict.failed] == ["small"]


@dataclass(frozen=True)
class Sizes:
    sizes: tuple[int, ...] = (10, 100, 1000)


def decay(measure: Callable[[int], Measurement], *, sampled: bool = False) -> DecayClaim:
    """A claim of order 1/n."""
    return DecayClaim(
        id="toy",
        reading="printed",
        title="a decay",
        source="here",
        quantity=DecayQuantity(
            lambda system, size, replicas, rng: measure(size), lambda system: sampled, "error"
        ),
        variable=n,
        order=1 / n,
        hypotheses=(),
    )


@pytest.mark.parametrize(
    ("power", "outcome"),
    [
        (-1.0, Outcome.HOLDS),
        (-2.0, Outcome.HOLDS),
        (-0.96, Outcome.HOLDS),
        (-0.9, Outcome.UNDECIDED),
        (-0.7, Outcome.UNDECIDED),
        (0.0, Outcome.UNDECIDED),
    ],
)
def test_exact_slopes(power: float, outcome: Outcome) -> None:
    verdict = check(decay(lambda size: Measurement(3 * size**power)), Sizes())  # type: ignore[arg-type]
    assert verdict.outcome is outcome
    assert verdict.truth == pytest.approx(power, abs=1e-12)
    assert (verdict.bound, verdict.is_rate) == (pytest.approx(-1.0), True)
    assert (verdict.evidence.grade, verdict.evidence.error_probability) == (Grade.FLOAT64, 0.0)


@pytest.mark.parametrize(
    ("power", "relative", "outcome"),
    [
        (-1.2, 0.01, Outcome.HOLDS),
        (-1.0, 0.2, Outcome.UNDECIDED),
        (-0.5, 0.01, Outcome.UNDECIDED),
        (-0.7, 0.2, Outcome.UNDECIDED),
    ],
)
def test_sampled_slopes_are_judged_by_their_ends(
    power: float, relative: float, outcome: Outcome
) -> None:
    claimed = decay(lambda s: Measurement(s**power, relative * s**power), sampled=True)
    verdict = check(claimed, Sizes(), error_probability=1e-9)  # type: ignore[arg-type]
    assert verdict.outcome is outcome
    assert verdict.evidence.grade is Grade.STATISTICAL
    assert (verdict.evidence.error_probability, verdict.evidence.replicas) == (1e-9, 666)
    assert "(missed with probability 1e-09)" in verdict.detail


def test_a_standard_error_takes_two_replicas_a_size() -> None:
    claimed = decay(lambda s: Measurement(1 / s, 0.01 / s), sampled=True)
    assert check(claimed, Sizes(), replicas=2).evidence.replicas == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "outcome"), [(-0.7, Outcome.REFUTED), (0.0, Outcome.REFUTED), (-1.0, Outcome.HOLDS)]
)
def test_an_order_is_refuted_by_a_limit_that_is_known(known: float, outcome: Outcome) -> None:
    """The sizes that were tried decay as claimed: that the rest does not is known otherwise."""
    claim = decay(lambda size: Measurement(3 / size))
    limit = KnownDecay(known, "known by a limit")
    quantity = replace(claim.quantity, known_decay=lambda problem: limit)
    verdict = check(replace(claim, quantity=quantity), Sizes())  # type: ignore[arg-type]
    assert verdict.outcome is outcome
    assert verdict.detail.endswith("; known by a limit")


@pytest.mark.parametrize(
    ("relation", "value", "ratio", "refutes"),
    [
        ("<=", Fraction(1, 6), 0.5, False),
        ("<=", Fraction(2, 3), 2.0, True),
        (">", 0.1, 10 / 3, True),
    ],
)
def test_a_trial_is_how_far_a_number_is_from_its_bound(relation, value, ratio, refutes) -> None:
    """The bound is 1/3; what is claimed to be above it is farther, the smaller it is."""
    value = (value, 0.0) if isinstance(value, float) else value
    trial = claim(value, relation).trial(SYSTEM, Sampling())
    assert (trial.applies, trial.refutes) == (True, refutes)
    assert trial.ratio == pytest.approx(ratio)
    assert not claim(value, relation, limit=0).trial(SYSTEM, Sampling()).applies


def test_figures_of_too_many_samples_are_not_tried() -> None:
    with pytest.raises(ValueError, match="at most 20,000 samples in all"):
        claim(Fraction(1)).trial(FederatedSystem(200, 101, 1), Sampling())


def test_a_trial_of_a_decay_is_how_much_it_grows_over_what_is_claimed() -> None:
    """1/n is claimed: n^(-1/2) is 10^(1/2) times as large over it, a decade later."""
    slow = decay(lambda size: Measurement(size**-0.5))
    trial = slow.trial(Sizes(), Sampling())
    assert (trial.applies, trial.refutes) == (True, False)
    assert trial.ratio == pytest.approx(math.sqrt(10))
    limit = replace(slow.quantity, known_decay=lambda problem: KnownDecay(0.0, "stays"))
    stays = replace(slow, quantity=limit).trial(Sizes(), Sampling())
    assert (stays.refutes, stays.ratio) == (True, pytest.approx(10))
    unknown = decay(lambda size: Measurement(1 / size, 0.1), sampled=True)
    assert unknown.trial(Sizes(), Sampling()).applies
    assert math.isnan(unknown.trial(Sizes(), Sampling()).ratio)


def test_half_width_by_hand() -> None:
    """Sizes 1, e, e^2: weights -1/2, 0, 1/2; relative errors 0.1: 0.1/sqrt(2) per quantile."""
    found = fitted_slope([1, math.e, math.e**2], [Measurement(1.0, 0.1)] * 3, 10**6, 0.3173105)
    assert found.value == 0
    assert found.half_width == pytest.approx(0.1 / math.sqrt(2), rel=1e-4)


def test_slope_interval_covers_as_often_as_it_says() -> None:
    """400 intervals at 10%: fewer than 75 miss but with probability below 1e-6 (binomial)."""
    rng = np.random.default_rng(3)
    sizes = (10, 100, 1000, 10_000)
    missed = 0
    for _ in range(400):
        samples = [rng.exponential(1 / size, 200) for size in sizes]
        items = [Measurement(s.mean(), s.std(ddof=1) / math.sqrt(200)) for s in samples]
        found = fitted_slope(sizes, items, 200, 0.1)
        missed += abs(found.value + 1) > found.half_width
    assert 12 < missed < 75


def test_a_value_of_zero_has_no_slope() -> None:
    verdict = check(decay(lambda size: Measurement(0.0)), Sizes())  # type: ignore[arg-type]
    assert verdict.outcome is Outcome.UNDECIDED
    assert math.isnan(verdict.truth)


def test_settings_of_another_kind_are_refused() -> None:
    runs = theorems.get("sa-fl/5").regimes["q = 0"].setting
    with pytest.raises(ValueError, match="setting must be a learning problem"):
        check(claim(Fraction(1)), runs)
    with pytest.raises(ValueError, match="setting must be a Setting for sa-fl/5"):
        check(theorems.get("sa-fl/5"), SYSTEM)
    with pytest.raises(ValueError, match="setting must be a Setting for sa-fl/5"):
        theorems.get("sa-fl/5").trial(SYSTEM, Sampling())
    with pytest.raises(ValueError, match="setting must be a ServerAssistedSystem"):
        check(theorems.get("pac/2"), SYSTEM)
    with pytest.raises(ValueError, match="setting must be a FederatedSystem"):
        check(replace(theorems.get("pac/1")), theorems.get("pac/2").regimes["clients only"].setting)


@pytest.mark.parametrize(
    ("identifier", "reason"),
    [
        ("pac/lemma-1", "its truth is no fraction on this setting"),
        ("pac/2", "its slope is fitted to floats"),
        ("pac/1", ""),
    ],
)
def test_what_is_in_float64_says_why(
    identifier: str, reason: str, recorded_verdicts: Baseline
) -> None:
    statement = theorems.get(identifier)
    unsampled = {
        name: regime
        for name, regime in statement.regimes.items()
        if recorded_verdicts[identifier, "printed", name].evidence != "statistical"
    }
    cells = check_regimes([with_regimes(statement, unsampled)])
    said = {one.verdict.evidence.why_not_exact for one in cells}
    assert said == {reason}
