"""Batches against the exact engine, and against fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from fltheory import theorems
from fltheory.engines import exact
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome
from fltheory.theorems import Hypothesis, RoundRange, RoundSymbol, Theorem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.verify.certificates.certificate import certificate
from fltheory.verify.safari.instances import (
    InstanceBatch,
    assess,
    coupling_of,
    decoded,
    drawn,
    is_about_safari,
)
from tests.verify.witnesses import GROUPS, ONE_ROUND

INEQUALITIES = [s for s in theorems.registered() if isinstance(s, Theorem) and is_about_safari(s)]
BOTH = InstanceBatch([GROUPS, ONE_ROUND])


def name(theorem: Theorem) -> str:
    return f"{theorem.id}-{theorem.reading}"


@pytest.mark.parametrize("theorem", INEQUALITIES, ids=name)
def test_constants_are_those_of_the_settings(theorem: Theorem) -> None:
    for index, instance in enumerate(BOTH.instances):
        for symbol, value in theorem.constants(instance.setting()).items():
            assert BOTH.constants[symbol][index] == pytest.approx(value, rel=1e-12), symbol


@pytest.mark.parametrize("theorem", INEQUALITIES, ids=name)
def test_series_are_those_of_the_exact_engine(theorem: Theorem) -> None:
    for index, instance in enumerate(BOTH.instances):
        setting = instance.setting()
        trajectory = exact(
            setting,
            observe=theorem.observe(setting),
        )
        for field in {item.field for item in theorem.round_symbols} | {theorem.quantity.field}:
            column = BOTH.series[field][: instance.rounds + 1, index]
            scale = np.abs(trajectory[field]).max()
            np.testing.assert_allclose(column, trajectory[field], rtol=1e-9, atol=1e-12 * scale)


@pytest.mark.parametrize("theorem", INEQUALITIES, ids=name)
@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.soundness)])
def test_verdicts_are_those_of_the_exact_engine(theorem: Theorem, count: int) -> None:
    """On random instances: the same ratio, and the same hypotheses as far as it can tell."""
    rng = np.random.default_rng(11)
    coupling = coupling_of(theorem)
    drawn_ones = (decoded(coupling, drawn(rng)) for _ in range(count))
    instances = [replace(w, rounds=min(w.rounds, 30)) for w in drawn_ones if w is not None]
    assessed = assess(theorem, InstanceBatch(instances))
    outcomes = set()
    for index, instance in enumerate(instances):
        comparison = theorem.compared(instance.setting(), Sampling())
        outcomes.add(comparison.outcome)
        if comparison.bound > 0 and np.isfinite(comparison.truth):
            ratio = comparison.truth / comparison.bound
            room = 1e-9 * ratio + comparison.evidence.error / comparison.bound
            assert abs(assessed.ratio[index] - ratio) <= room
        if comparison.outcome in (Outcome.HOLDS, Outcome.REFUTED):
            assert assessed.violation[index] == 0
        if comparison.outcome is Outcome.INAPPLICABLE:
            assert assessed.violation[index] > 0
    assert Outcome.INAPPLICABLE in outcomes
    assert len(outcomes) > 1


def test_a_batch_agrees_with_fractions() -> None:
    """The second instance breaks a bound of 0, which its certificate says."""
    theorem = theorems.get("sa-fl/5")
    assert certificate(theorem, ONE_ROUND)["statement"]["bound"] == str(theorem.bound)
    assessed = assess(theorem, BOTH)
    assert assessed.violation[1] == 0
    assert assessed.ratio[1] == np.inf


@pytest.mark.parametrize(
    ("reduction", "rounds", "expected"),
    [
        ("last", RoundRange(0, 0), [6, 1]),
        ("mean", RoundRange(1, 0), [3.5, 1]),
        ("mean", RoundRange(0, -1), [2.5, 0]),
        ("max", RoundRange(0, -1), [5, 0]),
        ("min", RoundRange(1, 0), [1, 1]),
    ],
)
def test_each_instance_is_reduced_over_its_own_rounds(reduction, rounds, expected) -> None:
    batch = InstanceBatch([GROUPS, ONE_ROUND])
    batch.__dict__["series"] = {"round": np.arange(7.0)[:, None] * np.ones(2)}
    assert batch.reduced("round", rounds, reduction).tolist() == expected


def holds(condition, round_symbols=()) -> list[bool]:
    theorem = replace(
        theorems.get("sa-fl/5"),
        hypotheses=(Hypothesis("the one", condition, "here"),),
        round_symbols=tuple(round_symbols),
    )
    return (assess(theorem, BOTH).violation == 0).tolist()


def test_relations() -> None:
    """K is 3 and 1, m is 2 and 1, q is 3/4 and 1/10; 0/0 meets no condition."""
    K, q = sa_fl.K, sa_fl.q
    assert holds(sp.Le(K, 1, evaluate=False)) == [False, True]
    assert holds(sp.Lt(K, 1, evaluate=False)) == [False, False]
    assert holds(sp.Ge(K, 3, evaluate=False)) == [True, False]
    assert holds(sp.Gt(K, 3, evaluate=False)) == [False, False]
    assert holds(sp.Eq(q, sp.Rational(1, 10), evaluate=False)) == [False, True]
    assert holds(sp.Lt(q, sp.oo, evaluate=False)) == [True, True]
    assert holds(sp.Le(q, (K - 1) / (sa_fl.m - 1), evaluate=False)) == [True, False]


def test_a_condition_on_every_round_fails_with_one_round() -> None:
    """The distance of the one-round instance is 1, then q = 1/10."""
    each = RoundSymbol(sa_fl.G_3, "squared_distance", "every", RoundRange(0, 0), "")
    before = replace(each, rounds=RoundRange(0, -1))
    condition = sp.Ge(sa_fl.G_3, Fraction(1, 2))
    assert holds(condition, [each])[1] is False
    assert holds(condition, [before])[1] is True
