"""What statements assert, and how two numbers compare."""

from __future__ import annotations

import operator

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.grammar.assertion import Assertion, Relation

INEQUALITIES = {
    Relation.AT_MOST: operator.le,
    Relation.BELOW: operator.lt,
    Relation.AT_LEAST: operator.ge,
    Relation.ABOVE: operator.gt,
}
SIGNS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt}


@pytest.mark.parametrize("relation", INEQUALITIES)
@given(st.integers(-2, 2), st.integers(-2, 2))
def test_numbers_compare_as_the_sign_says(relation: Relation, left: int, right: int) -> None:
    holds = relation.holds(left, right)
    assert holds is SIGNS[str(relation)](left, right)
    assert holds is not SIGNS[relation.contrary](left, right)


def test_lower_bounds_are_from_below() -> None:
    assert [r for r in Relation if r.is_from_below] == [Relation.AT_LEAST, Relation.ABOVE]


@pytest.mark.parametrize("relation", [Relation.OF_ORDER, Relation.GOES_WITH])
def test_two_numbers_decide_no_order(relation: Relation) -> None:
    with pytest.raises(KeyError):
        relation.holds(1, 2)


def test_an_assertion_in_a_line() -> None:
    R, m = sp.symbols("R m", positive=True)
    assert Assertion("error", "", Relation.AT_LEAST, 2 / R).text == "error >= 2/R"
    assert Assertion("error", "", Relation.OF_ORDER, 1 / m, m).text == "in m: error = O(1/m)"
    assert Assertion("error", "", Relation.GOES_WITH, R, R).text == "in R: error goes with R"


@pytest.mark.parametrize(
    ("identifier", "relations"),
    [
        ("pac/1", [Relation.ABOVE]),
        ("sa-fl/5", [Relation.AT_MOST]),
        ("ca-fed/3", [Relation.AT_MOST]),
        ("sa-fl/corollary-1", [Relation.OF_ORDER] * 2),
        ("fedar/average-inactivity", [Relation.GOES_WITH]),
        ("pac/2", [Relation.OF_ORDER]),
    ],
)
def test_what_the_papers_assert(identifier: str, relations: list[Relation]) -> None:
    """As printed: SA-FL's Theorem 1 bounds from below, FedAR's Remark speaks of growth."""
    assert [one.relation for one in theorems.get(identifier).assertions] == relations
