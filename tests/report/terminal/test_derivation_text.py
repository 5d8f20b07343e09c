"""What a reader sees of a proof's steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.derivations.derivation import Derivation, Equal, FiniteLimit, Implied, Step
from fltheory.grammar.symbols import symbol
from fltheory.report.terminal.explanation import derivation_text

x = sp.Symbol("x", positive=True)
n = sp.Symbol("n", positive=True, integer=True)
STEPS = (
    Step("one", "x is x", Equal(x, x)),
    Step("two", "x is 2x", Equal(x, 2 * x)),
    Step("three", "x is at most 1/2", Implied(sp.Le(x, sp.Rational(1, 2)))),
    Step("four", "n is bounded", FiniteLimit(sp.sympify(n), (n,))),
    Step("five", "2^x is at least 1", Implied(sp.Ge(2**x, 1, evaluate=False))),
)


@pytest.fixture(scope="module")
def text() -> str:
    derivation = Derivation(STEPS, ("a lemma",), {x: "a length"})
    statement = replace(theorems.get("sa-fl/5"), derivation=derivation)
    return derivation_text(statement)


@pytest.mark.parametrize(
    "part",
    [
        "sa-fl/5, printed reading\n",
        "  one: FOLLOWS, it follows, checked symbolically\n    claim: x is x\n  two",
        "  two: DIFFERS, the two sides are not equal\n    claim: x is 2x\n"
        "    left side minus right side: -x\n    at x = ",
        "  three: FAILS, it does not follow: a counterexample satisfies everything that is given\n",
        "    larger side minus smaller side: -",
        "  four: FAILS",
        "    limit: oo\n",
        "  five: UNSHOWN, it is neither proved nor refuted\n",
        "Used without a check\n  a lemma\n",
        "Symbols of the steps\n  x: a length\n",
        "  hypothesis 'few client rounds': in 1/(L + mu) - etabar*(L + mu)**2/(4*L**2*mu**2): "
        "1/(L + mu) has unit X^2/F, -etabar*(L + mu)**2/(4*L**2*mu**2) has unit X^4/F^2\n",
        "5 steps: 1 FOLLOWS, 1 DIFFERS, 2 FAILS, 1 UNSHOWN; unit flags: 1",
    ],
)
def test_parts_of_the_text(text: str, part: str) -> None:
    assert part in text


def test_a_statement_without_steps_and_units_says_so() -> None:
    without_unit = symbol("c", "a constant", number="1", positive=True)
    bare = replace(theorems.get("sa-fl/5"), derivation=None, symbols=(without_unit,))
    text = derivation_text(bare)
    assert "none are recorded" in text
    assert "not checked: the statement gives none" in text
    assert text.endswith("0 steps; unit flags: 0")


def test_one_step_is_one() -> None:
    text = derivation_text(theorems.get("fedavg-li/4", "with constants"))
    assert text.endswith("1 step: 1 FOLLOWS; unit flags: 0")


def test_a_corollary_is_checked_for_its_own_conditions() -> None:
    text = derivation_text(theorems.get("sa-fl/corollary-2", "derived"))
    assert "all fit" in text
    assert text.endswith("2 steps: 2 FOLLOWS; unit flags: 0")
