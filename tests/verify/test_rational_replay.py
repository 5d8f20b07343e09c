"""The exact replay against the engines, and against a case done by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from fltheory import theorems
from fltheory.verify import check
from fltheory.verify.extremal_instances import is_about_safari
from fltheory.verify.rational_replay import replay
from tests.verify.witnesses import GROUPS, ONE_ROUND

STATEMENTS = [
    s for s in theorems.registered() if isinstance(s, theorems.Theorem) and is_about_safari(s)
]


@pytest.mark.parametrize("theorem", STATEMENTS, ids=lambda s: f"{s.id}-{s.reading}")
def test_replay_agrees_with_the_engines(theorem: theorems.Theorem) -> None:
    exact, verdict = replay(theorem, GROUPS), check(theorem, GROUPS.setting())
    assert float(exact.truth) == pytest.approx(verdict.truth, rel=1e-12)
    assert float(exact.bound) == pytest.approx(verdict.bound, rel=1e-12)
    decided = {item.name: item.holds for item in verdict.hypotheses}
    assert {**exact.hypotheses, "coupled step sizes": False} == decided


def test_one_round_by_hand() -> None:
    exact = replay(theorems.get("sa-fl/5"), ONE_ROUND)
    assert (exact.truth, exact.bound) == (Fraction(1, 10), 0)
    assert all(exact.hypotheses.values())
    assert exact.refutes


def test_the_condition_on_q_is_decided_at_its_exact_limit() -> None:
    limit = Fraction(499, 499 + 362)
    at, above = (replace(ONE_ROUND, q=q) for q in (limit, limit + Fraction(1, 10**40)))
    assert replay(theorems.get("sa-fl/5"), at).refutes
    assert not replay(theorems.get("sa-fl/5"), above).refutes


def test_the_derived_reading_is_not_refuted_by_it() -> None:
    exact = replay(theorems.get("sa-fl/5", "derived"), ONE_ROUND)
    assert not exact.hypotheses["small client step"]


def test_irrational_norms_are_refused() -> None:
    diagonal = replace(GROUPS, x0=(Fraction(1), Fraction(1)))
    with pytest.raises(ValueError, match="norms in a witness must be fractions"):
        replay(theorems.get("sa-fl/5"), diagonal)
