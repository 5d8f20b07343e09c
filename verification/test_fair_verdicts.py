"""Every refutation gives its reason, weight and repair, which is not refuted there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.refutation import Refutation
from fltheory.theorems.ca_fed.statements import C_P, D_0, D_B, H, eta_s
from fltheory.theorems.sa_fl.statements import FAULTS as SAFARI_FAULTS
from fltheory.verify import Outcome, check
from fltheory.verify.baseline import Baseline
from fltheory.verify.certificates.certificate import setting_from_text
from fltheory.verify.search.search import oddities
from tests.drawn import a_tenth

HERE = Path(__file__).parent
CERTIFICATES = {
    path.name: json.loads(path.read_text())
    for folder in ("witnesses", "certificates")
    for path in sorted((HERE / folder).glob("*.json"))
}
FAULTS = [
    (statement, fault) for statement in theorems.registered() for fault in statement.refutations
]


def test_every_refuted_regime_and_certificate_has_its_reason(recorded_verdicts: Baseline) -> None:
    """Of printed readings and of any other that is refuted; and no reason is given for nothing."""
    refuted = {key for key, row in recorded_verdicts.items() if row.outcome == "REFUTED"}
    refuted |= {(one["theorem"], one["reading"], name) for name, one in CERTIFICATES.items()}
    explained = {
        (statement.id, statement.reading, where)
        for statement, fault in FAULTS
        for where in (*fault.regimes, *fault.certificates)
    }
    assert explained == refuted


@pytest.mark.parametrize(
    ("statement", "fault"),
    [pair for pair in FAULTS if pair[1].reading],
    ids=lambda item: getattr(item, "id", None) or getattr(item, "change", ""),
)
def test_the_reading_that_mends_a_fault_is_not_refuted_there(
    statement: Statement, fault: Refutation, recorded_verdicts: Baseline
) -> None:
    mended = theorems.get(statement.id, fault.reading)
    name = mended.id, mended.reading
    kinds = {type(regime.setting) for regime in mended.regimes.values()}
    for regime in fault.regimes:
        row = recorded_verdicts.get((mended.id, mended.reading, regime))
        own = {key[2]: one.outcome for key, one in recorded_verdicts.items() if key[:2] == name}
        if row is not None:
            assert row.outcome != "REFUTED", (mended.id, regime)
        elif type(statement.regimes[regime].setting) not in kinds:
            # It is about single sizes where the printed one has all, so its own regimes are used.
            assert set(own.values()) <= {"HOLDS", "INAPPLICABLE"}
            assert "HOLDS" in own.values()
        else:
            verdict = check(mended, statement.regimes[regime].setting)
            assert verdict.outcome is not Outcome.REFUTED, (mended.id, regime)


SHOWN = [
    ("sa-fl/4", "long horizon", "minima in place of maxima in G_1 and G_2"),
    ("sa-fl/4", "sa-fl-4.json", "minima in place of maxima in G_1 and G_2"),
    ("sa-fl/5", "other units", "1/(L mu) in place of 1/(L+mu) in the condition on q"),
    ("sa-fl/5", "sa-fl-5.json", "1/(L mu) in place of 1/(L+mu) in the condition on q"),
]


@pytest.mark.parametrize("shown", a_tenth(SHOWN, name=" ".join), ids=" ".join)
def test_one_fault_of_safari_is_at_work_and_one_change_mends_it(
    shown: tuple[str, str, str],
) -> None:
    """That change makes it inapplicable; with all other faults mended it is still refuted."""
    identifier, setting, fault = shown
    if setting in CERTIFICATES:
        where = setting_from_text(CERTIFICATES[setting]["setting"])
    else:
        where = theorems.get(identifier).regimes[setting].setting
    faults = SAFARI_FAULTS[identifier]
    for mend in faults.mends:
        alone = mend.about == fault
        mended, others_mended = faults.build(**mend.changes), faults.without(mend)
        wanted = Outcome.INAPPLICABLE if alone else Outcome.REFUTED
        assert check(mended, where).outcome is wanted, mend.about
        wanted = Outcome.REFUTED if alone else Outcome.INAPPLICABLE
        assert check(others_mended, where).outcome is wanted, mend.about


@pytest.mark.soundness
def test_one_fault_of_corollary_2_is_at_work_and_one_change_mends_it() -> None:
    """It is Theorem 5's: with 1/(L mu) it is inapplicable, with all other mends still refuted."""
    printed = theorems.get("sa-fl/corollary-2")
    where = printed.regimes["minority excluded, L = 20"].setting
    faults = SAFARI_FAULTS["sa-fl/5"]
    for mend in faults.mends:
        alone = mend.about == "1/(L mu) in place of 1/(L+mu) in the condition on q"
        for theorem, is_mended in (
            (faults.build(**mend.changes), alone),
            (faults.without(mend), not alone),
        ):
            outcome = check(replace(printed, theorem=theorem, derivation=None), where).outcome
            assert outcome is (Outcome.INAPPLICABLE if is_mended else Outcome.REFUTED), mend.about


@pytest.mark.parametrize("name", sorted(CERTIFICATES))
def test_every_certificate_is_of_a_natural_setting(name: str) -> None:
    assert oddities(setting_from_text(CERTIFICATES[name]["setting"])) == ()


@pytest.mark.parametrize(
    ("statement", "fault"), FAULTS, ids=lambda item: getattr(item, "id", None) or item.weight.label
)
def test_every_fault_has_a_natural_witness_or_says_that_none_is_known(
    statement: Statement, fault: Refutation
) -> None:
    assert fault.natural_witness
    if fault.natural in fault.regimes:
        setting = statement.regimes[fault.natural].setting
        assert not isinstance(setting, Setting) or oddities(setting) == ()
    else:
        assert fault.certificates or fault.natural.startswith("none found in ")


def _faults_of_ca_fed() -> dict[str, Statement]:
    """Return Theorem 2 with a single fault repaired, keyed by the certificate that shows it."""
    printed = theorems.get("ca-fed/2")

    def changed(changes: dict[sp.Symbol, sp.Expr]) -> Statement:
        definitions = {s: e.xreplace(changes) for s, e in printed.definitions.items()}
        return replace(printed, definitions=definitions, derivation=None)

    whole_step = Hypothesis("no server step size", sp.Eq(eta_s, 1, evaluate=False), "(20)")
    return {
        "ca-fed-2-start.json": changed({D_0: D_B}),
        "ca-fed-2-units.json": changed({H: sp.Max(H, 1 / (2 * C_P))}),
        "ca-fed-2-server-step.json": replace(
            printed, hypotheses=(*printed.hypotheses, whole_step), derivation=None
        ),
    }


@pytest.mark.parametrize(
    "name", a_tenth(["ca-fed-2-start", "ca-fed-2-units", "ca-fed-2-server-step"])
)
def test_one_fault_of_ca_fed_is_at_work_and_one_change_mends_it(name: str) -> None:
    where = setting_from_text(CERTIFICATES[f"{name}.json"]["setting"])
    for shown_by, mended in _faults_of_ca_fed().items():
        outcome = check(mended, where).outcome
        if shown_by != f"{name}.json":
            assert outcome is Outcome.REFUTED, shown_by
        else:
            assert outcome in (Outcome.HOLDS, Outcome.INAPPLICABLE)
    if name == "ca-fed-2-server-step":
        fedavg = replace(where.algorithm.algorithm.algorithm.algorithm, server_lr=1.0)
        scheduled = replace(where.algorithm.algorithm.algorithm, algorithm=fedavg)
        projected = replace(where.algorithm.algorithm, algorithm=scheduled)
        whole = replace(where.algorithm, algorithm=projected)
        where = replace(where, algorithm=whole, rounds=100)
        assert check(theorems.get("ca-fed/2"), where).outcome is Outcome.HOLDS


def test_remarks_and_steps_are_not_counted_as_refuted_theorems(recorded_verdicts: Baseline) -> None:
    """Counted by hand from the papers: see docs/findings.md for the list."""
    broken = {
        key[0]
        for key, row in recorded_verdicts.items()
        if key[1:2] == ("printed",) and row.outcome == "REFUTED"
    }
    broken |= {one["theorem"] for one in CERTIFICATES.values() if one["reading"] == "printed"}
    results = {name for name in broken if theorems.get(name).kind.is_result}
    assert results == {
        "sa-fl/4",
        "sa-fl/5",
        "sa-fl/corollary-1",
        "sa-fl/corollary-1-speedup",
        "sa-fl/corollary-2",
        "sa-fl-submission/corollary-1",
        "ca-fed/2",
        "ca-fed/lemma-2",
        "ca-fed/lemma-3",
        "pac/lemma-1",
        "pac/lemma-2",
        "fedawe/lemma-3",
        "fedawe/1",
    }
