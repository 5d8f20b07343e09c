"""What should stand in a refuted statement's place, and which change brought in what."""

from __future__ import annotations

import re

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.report.latex import _GREEK
from fltheory.report.terminal.explanation import meanings_in_use
from fltheory.theorems.correction import correction, left_part, parts_of
from fltheory.theorems.sa_fl import statements as sa_fl

GREEK = set(_GREEK.split())
RESULTS = [s.id for s in theorems.registered() if s.reading == "printed" and s.refutations]


def test_theorem_5_marks_each_change_where_it_is() -> None:
    found = correction("sa-fl/5")
    q, mu, m = sa_fl.q, sa_fl.mu, sa_fl.m
    brought_in = {
        sp.Le(sa_fl.eta_c, 1 / (16 * sa_fl.L * sa_fl.K)): "1",
        4 * q * sa_fl.eta_c * sa_fl.sigma**2 / (mu * m): "2",
        4 * q * sa_fl.sigma_G**2 / mu**2: "3",
    }
    marks = {part: found.marks(part) for part in parts_of(found.corrected)}
    assert {part: mark for part, mark in marks.items() if mark} == brought_in
    assert [h.name for h in found.left_out] == [
        "positive denominator in 'few client rounds'",
        "few client rounds",
    ]
    assert [change.kind for change in found.changes] == [
        "missing hypothesis",
        "gap",
        "misprint",
    ]


@pytest.mark.parametrize("identifier", RESULTS)
def test_every_refuted_statement_has_a_correction(identifier: str) -> None:
    found = correction(identifier)
    assert found.corrected.reading != "printed"
    assert not found.corrected.refutations
    assert len(found.changes) >= 1
    assert all(change.kind for change in found.changes)


def test_what_the_proof_asks_for_besides_has_a_star() -> None:
    """CA-Fed's derived reading has a stationary start, which none of the three faults is about."""
    found = correction("ca-fed/2")
    stationary = next(h for h in found.corrected.hypotheses if h.name == "stationary start")
    assert found.marks(stationary.condition) == "*"
    assert [change.kind for change in found.changes].count("misprint") == 2


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        ("ca-fed/1", "theorem must have a recorded refutation to be corrected, got ca-fed/1"),
        ("sa-fl/9", "id must be a registered theorem"),
    ],
)
def test_what_has_no_correction_is_refused(identifier: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        correction(identifier)


def test_a_changed_left_side_is_marked() -> None:
    """Theorem 4's sum over r = 0 .. R-1 in place of 1 .. R is its second change; Theorem 5's stays.

    In (3) and (4) the left side is all that changes, by its one change.
    """
    for identifier, mark in (("sa-fl/4", "2"), ("sa-fl/5", ""), ("pac/1-sum", "1")):
        found = correction(identifier)
        (assertion,) = found.corrected.assertions
        assert found.marks(left_part(assertion)) == mark


# What every reader knows: expectations, clients' losses, models, bound indices; "a" is an article.
NOTATION = {*"EPFdRxwrtknijfaO", "sum_", "w_", "dp_k", "x_r", "x_R", "wbar_T"}


@pytest.mark.parametrize("identifier", RESULTS)
def test_every_symbol_of_a_corrected_statement_is_defined(identifier: str) -> None:
    """In its left sides, conditions in words and formulas: told, defined, or plain notation."""
    statement = correction(identifier).corrected
    told = {str(symbol) for symbol, _ in meanings_in_use(statement, as_stated=True)}
    told |= {str(symbol) for symbol in statement.basis.definitions}
    conditions = statement.conditions
    stated = [h.stated for h in conditions]
    formulas = [a.right for a in statement.assertions]
    formulas += [h.condition for h in conditions if not h.stated]
    formulas += statement.basis.definitions.values()
    used = {str(symbol) for formula in formulas for symbol in formula.free_symbols}
    for text in (*stated, *(a.left for a in statement.assertions)):
        for name in re.findall(r"[A-Za-z]\w*", text):
            if len(name) == 1 or "_" in name or name in GREEK:
                used.add(name)
    missing = {name for name in used if not {name, re.sub(r"_[hijknrR]$", "", name)} & told}
    assert missing <= NOTATION


@pytest.mark.parametrize("identifier", RESULTS)
def test_a_condition_in_a_note_is_in_the_list(identifier: str) -> None:
    """A note's `symbol <= ...` is about a symbol that some condition has, or that is defined."""
    statement = correction(identifier).corrected
    conditions = statement.conditions
    asked = {str(symbol) for h in conditions for symbol in h.condition.free_symbols}
    asked |= {name for h in conditions for name in re.findall(r"\w+", h.stated)}
    known = {str(symbol) for symbol in statement.basis.definitions}
    named = re.findall(r"(?<![\w/*^+-] )\b([A-Za-z]\w*) (?:<=|>=|<|>) ", statement.note)
    meanings = {str(symbol) for symbol in statement.basis.meanings}
    assert {name for name in named if name in meanings} <= asked | known


@pytest.mark.parametrize("identifier", RESULTS)
def test_a_left_side_is_a_formula_and_no_prose(identifier: str) -> None:
    for assertion in correction(identifier).corrected.assertions:
        assert assertion.left_latex
        assert r"\text{" not in assertion.left_latex
