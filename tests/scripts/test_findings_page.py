"""The list that the page of findings opens with."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from fltheory.theorems import DirectionClaim, get
from fltheory.verify import check_regimes
from tests.fewer_regimes import with_regimes

markdown = pytest.importorskip("markdown")
findings = import_module("docs.scripts.findings")


@pytest.mark.parametrize(
    ("identifier", "regime", "claim", "broken", "seen"),
    [
        (
            "pac/lemma-2",
            "apart",
            "is, as a function of n_T, of the order of\n\n$$\\frac{1}{n_{T}}$$",
            "decays more slowly than claimed",
            "slope -0.50",
        ),
        (
            "fedar/number-of-clients",
            "noisy gradients",
            "rises and falls with N",
            "changes in the opposite direction",
            "N = 2, 4, 8",
        ),
    ],
)
def test_refuted_orders_and_directions_have_a_section(
    identifier: str, regime: str, claim: str, broken: str, seen: str
) -> None:
    statement = get(identifier)
    if isinstance(statement, DirectionClaim):  # the paper's psi is lost: with our own it is decided
        known = tuple(item for item in statement.theorem.hypotheses if item.is_known)
        statement = replace(statement, theorem=replace(statement.theorem, hypotheses=known))
    in_one = with_regimes(statement, {regime: statement.regimes[regime]})
    text = "\n".join(findings._lines_of_regimes(statement, check_regimes([in_one])))
    assert text.startswith(f"## {identifier}, printed")
    assert all(part in text for part in (claim, broken, seen, statement.note))
    assert not list(findings._lines_of_regimes(statement, ()))
