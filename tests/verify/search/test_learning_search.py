"""The search of claims on learnability: what regimes refute is found, what is proved survives."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

from fltheory import theorems
from fltheory.learnability.impossibility import impossibility
from fltheory.learnability.system import FederatedSystem, ServerAssistedSystem
from fltheory.verify import Outcome, Sampling, check, falsify
from fltheory.verify.search.falsification import Falsification

REFUTED = {
    ("pac/1-equivalence", "same data"),
    ("pac/1-guessing", "printed"),
    ("pac/1-sum", "printed"),
    ("pac/example", "printed"),
    ("pac/lemma-1", "printed"),
    ("pac/lemma-1", "any constant"),
    ("pac/lemma-1-errors", "printed"),
    ("pac/lemma-1-disagreements", "printed"),
    ("pac/2", "uniform in Q"),
    ("pac/lemma-2", "printed"),
}
SEARCHED = [
    one
    for one in theorems.registered("pac")
    # Theorem 3 has no quantity of which a limit is known, and the remark is Theorem 2's search.
    if one.id not in ("pac/3", "pac/remark-2")
]


@pytest.mark.parametrize("statement", SEARCHED, ids=lambda one: one.name)
def test_the_search_says_what_is_recorded(statement) -> None:
    found = falsify(statement, 20)
    assert (found.witness is not None) == ((statement.id, statement.reading) in REFUTED)
    assert 0 < found.settings_applicable <= found.settings_tried == 20


@cache
def unaided(identifier: str, reading: str) -> Falsification:
    """Search from those regimes alone on which the statement is not refuted."""
    statement = theorems.get(identifier, reading)
    sampling = Sampling(replicas=20)
    starts = {
        name: regime.setting
        for name, regime in statement.regimes.items()
        if statement.verdict(regime.setting, sampling).outcome is not Outcome.REFUTED
    }
    assert 0 < len(starts) < len(statement.regimes)
    return falsify(statement, 100, settings=starts)


@pytest.mark.parametrize(
    ("identifier", "reading"),
    [
        ("pac/1-equivalence", "same data"),
        ("pac/example", "printed"),
        ("pac/lemma-1", "printed"),
        ("pac/lemma-2", "printed"),
        ("pac/2", "uniform in Q"),
    ],
)
def test_it_needs_no_regime_that_refutes(identifier: str, reading: str) -> None:
    found = unaided(identifier, reading)
    assert found.witness is not None
    assert found.witness.setting() not in [
        regime.setting for regime in theorems.get(identifier, reading).regimes.values()
    ]
    verdict = check(theorems.get(identifier, reading), found.witness.setting(), replicas=20)
    assert verdict.outcome is Outcome.REFUTED


def test_what_choosing_samples_hides_is_counted_by_hand() -> None:
    """n >= 2 samples of each client: m clients without x_2 are rarer than (1 - omega)Mn samples."""
    found = unaided("pac/1-equivalence", "same data")
    assert found.witness is not None
    system = found.witness.setting()
    assert isinstance(system, FederatedSystem)
    assert system.n >= 2
    rare = Fraction(system.M - system.m, 2 * system.M)
    assert impossibility(system.M, system.n, system.m).rare_probability == rare
    assert found.witness.lines[-1].endswith("(rational evidence)")


def test_few_server_samples_are_what_theorem_2_fails_at() -> None:
    """With n_T fixed an error stays; a share of all samples, however small, is no witness."""
    found = unaided("pac/2", "uniform in Q")
    assert found.witness is not None
    system = found.witness.setting()
    assert isinstance(system, ServerAssistedSystem)
    assert system.split(system.sizes[0])[0] == system.split(system.sizes[-1])[0]
    assert "at least" in found.witness.lines[-1]
    assert found.best_ratio == pytest.approx(10)


def test_an_order_without_limits_is_not_searched() -> None:
    with pytest.raises(ValueError, match=r"got pac/3 \(printed\): an order in the number"):
        falsify("pac/3")
