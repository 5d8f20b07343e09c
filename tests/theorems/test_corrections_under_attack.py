"""What stands in a refuted statement's place withstands a search; the benchmark's is far longer."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.theorems.correction import correction
from fltheory.verify import Sampling
from tests.drawn import a_tenth

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "attack_corrections.py"
attacked = runpy.run_path(str(BENCHMARK), run_name="attack")["attacked"]
CORRECTED = [s.id for s in theorems.registered() if s.reading == "printed" and s.refutations]
CHEAP = ("sa-fl/4", "sa-fl/5", "pac/1-guessing", "pac/1-sum", "pac/example", "pac/lemma-1")


@pytest.mark.parametrize("identifier", CHEAP)
def test_a_corrected_statement_is_not_broken(identifier: str) -> None:
    attack = attacked(correction(identifier).corrected, 30, 200)
    assert attack.applicable >= 1
    assert attack.broken_by == ""
    assert attack.largest_ratio <= 1


@pytest.mark.parametrize(
    "identifier", a_tenth([name for name in CORRECTED if name not in CHEAP], name=str)
)
def test_others_of_them_are_not_broken(identifier: str) -> None:
    assert attacked(correction(identifier).corrected, 3, 10).broken_by == ""


def test_a_correction_without_its_condition_is_broken() -> None:
    """Lemma 1 without m >= 2 d_H: one sample is enough of a witness."""
    corrected = correction("pac/lemma-1").corrected
    found = attacked(replace(corrected, hypotheses=()), 1000, 1000)
    assert found.broken_by


def test_the_upper_limit_on_steps_keeps_other_schedules_out() -> None:
    """Corollary 2, derived: with constant steps, or of order 1/sqrt(R), no R of all meets it."""
    derived = theorems.get("sa-fl/corollary-2", "derived")
    (axis,) = derived.axes
    setting = derived.regimes["unbiased sampling, L = 20"].setting
    limits = {"large enough step", "steps not of a larger order"}
    assert {h.name for h in axis.hypotheses} == limits
    assert [one.under for one in axis.of_families] == [
        "constant steps",
        "steps of order 1/sqrt(R)",
    ]
    for family in axis.of_families:
        along = derived.settings_along(family, setting)
        checks = [
            check
            for one in along
            for check in derived.theorem.hypotheses_without_run(one, axis.hypotheses)
            if check.name in limits
        ]
        assert not all(check.holds for check in checks), family.under


@pytest.mark.soundness
def test_constant_steps_break_corollary_2_without_a_limit_on_them() -> None:
    derived = theorems.get("sa-fl/corollary-2", "derived")
    (axis,) = derived.axes
    loose = replace(derived, axes=(replace(axis, hypotheses=()),), derivation=None)
    setting = derived.regimes["unbiased sampling, L = 20"].setting
    assert loose.trial(setting, Sampling()).refutes
    assert not derived.trial(setting, Sampling()).refutes
