"""Statements side by side: which speak of a setting, in which order, and what is provable."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory import theorems
from fltheory.algorithms import FedAvg, Scaffold
from fltheory.engines import Setting, exact
from fltheory.participation import Bernoulli, Cyclic, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.verify import check, compare

SETTING = theorems.get("sa-fl/5").regimes["q = 0"].setting


def test_answers_are_the_verdicts_of_each_statement_alone() -> None:
    found = compare(SETTING, theorems.registered("sa-fl/4", "sa-fl/5", "scaffold"))
    assert {answer.statement.id for answer in found.silent} == {
        one.id for one in theorems.registered("scaffold")
    }
    assert all("algorithm must be Scaffold" in answer.reason for answer in found.silent)
    assert len(found.answers) == len(theorems.registered("sa-fl/4", "sa-fl/5"))
    for answer in found.answers:
        alone = check(answer.statement, SETTING)
        assert (answer.verdict.outcome, answer.verdict.bound) == (alone.outcome, alone.bound)


def test_what_holds_comes_first_and_the_tightest_of_it() -> None:
    found = compare(SETTING, theorems.registered("sa-fl", "lemmas/separation"))
    outcomes = [answer.verdict.outcome.name for answer in found.answers]
    order = ("HOLDS", "REFUTED", "UNDECIDED", "INAPPLICABLE")
    assert outcomes == sorted(outcomes, key=order.index)
    for outcome in set(outcomes):
        looseness = [a.looseness for a in found.answers if a.verdict.outcome.name == outcome]
        assert looseness == sorted(looseness)
    holds = [a.looseness for a in found.answers if a.verdict.outcome.name == "HOLDS"]
    assert len(holds) > 1
    assert min(holds) >= 1


def test_by_default_every_inequality_about_a_run_is_asked() -> None:
    found = compare(SETTING)
    names = {answer.statement.name for answer in (*found.answers, *found.silent)}
    assert {"sa-fl/4 (printed)", "ca-fed/2 (printed)", "scaffold/convex (derived)"} <= names
    assert not {name for name in names if name.startswith(("pac/", "lemmas/", "sa-fl/corollary"))}


def test_orders_alone_are_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="must include an inequality"):
        compare(SETTING, theorems.registered("sa-fl/corollary-1"))


def test_gradient_descent_s_provable_bound_is_its_rate() -> None:
    """One client: ``max(|1 - eta L|, |1 - eta mu|)^(2R)`` times the start, and nothing besides."""
    problem = QuadraticProblem(np.diag([1.0, 0.25]), [[0.0, 0.0]])
    setting = Setting(FedAvg(1.5, 1), problem, UniformSubset(1, 1), 7, [3.0, 4.0])
    found = compare(setting, theorems.registered("sa-fl/5"))
    assert found.provable == pytest.approx(25 * 0.625**14, rel=1e-6)


def test_what_is_provable_is_no_less_than_the_truth() -> None:
    found = compare(SETTING, theorems.registered("sa-fl/5"))
    truth = exact(SETTING).squared_distance[-1]
    assert found.provable is not None
    assert truth < found.provable < 100 * truth


def test_unequal_target_weights_are_not_covered() -> None:
    """The mean of these clients' losses is another function than F, with another minimiser."""
    problem = QuadraticProblem([[1.0]], [[0.0], [4.0]], target_weights=[0.75, 0.25])
    setting = Setting(FedAvg(0.5, 1), problem, UniformSubset(2, 2), 50, [1.0])
    found = compare(setting, theorems.registered("sa-fl/5"))
    assert exact(setting).squared_distance[-1] == pytest.approx(1.0, rel=1e-6)
    assert found.provable is None
    assert "target weights must be equal" in found.why_not_provable


@pytest.mark.parametrize(
    ("algorithm", "participation", "reason"),
    [
        (Scaffold(0.1, 2), UniformSubset(2, 1), "local_steps must be 1"),
        (FedAvg(0.1, 1), Cyclic([2, 2], [0, 1]), "participation must be UniformSubset"),
    ],
)
def test_where_nothing_is_provable_it_says_why(algorithm, participation, reason: str) -> None:
    problem = QuadraticProblem([[[1.0]], [[2.0]]], [[0.0], [1.0]])
    found = compare(
        Setting(algorithm, problem, participation, 3, [1.0]), theorems.registered("scaffold")
    )
    assert found.provable is None
    assert reason in found.why_not_provable


def test_weighted_averaging_over_independent_clients_is_bounded_too() -> None:
    """Present with probability one: the same clients as a draw of all of them."""
    problem = QuadraticProblem([[[1.0]], [[2.0]]], [[0.0], [1.0]])
    asked = theorems.registered("scaffold/convex")
    everybody = (
        compare(Setting(FedAvg(0.1, 1), problem, who, 3, [1.0]), asked).provable
        for who in (UniformSubset(2, 2), Bernoulli([1.0, 1.0]))
    )
    drawn, there = everybody
    assert drawn is not None
    # At one rate alone, that of the least floor, where the other searches among eight.
    assert drawn <= there * (1 + 1e-6)
    assert there < 1
