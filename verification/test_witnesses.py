"""Every stored witness, checked afresh in fractions by the independent checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.theorems import Theorem
from fltheory.verify import Outcome, check, read_certificate

FILES = sorted((Path(__file__).parent / "witnesses").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_witness_refutes_in_fractions_and_in_floats(path: Path) -> None:
    certified = read_certificate(path)
    assert certified.truth > certified.bound
    verdict = check(certified.theorem, certified.witness.setting())
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(float(certified.truth), rel=1e-9)


def test_every_printed_inequality_has_a_witness() -> None:
    refuted = {read_certificate(path).theorem.id for path in FILES}
    printed = {
        statement.id
        for statement in theorems.registered()
        if isinstance(statement, Theorem)
        and statement.reading == "printed"
        and statement.id.startswith("sa-fl")
    }
    assert refuted == printed
