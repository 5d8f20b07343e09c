"""docs/scripts/findings.py: the page is made and checked."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from fltheory.theorems import registered, registry
from tests.fewer_regimes import with_regimes

# Refuted on one regime of two, by a certificate, and by neither.
FEW = {
    "sa-fl/4": ("i.i.d.", "long horizon"),
    "sa-fl/5": ("i.i.d.",),
    "sa-fl-submission/4": ("q = 0",),
}


@pytest.fixture
def few_regimes(own_theorems_forgotten: None, quick_proofs: None) -> None:
    """Leave every reading one or two regimes: how many there are is not the point here."""
    for statement in (one for one in registered() if one.id in FEW):
        few = {name: statement.regimes[name] for name in FEW[statement.id]}
        registry._BY_NAME[statement.id, statement.reading] = with_regimes(statement, few)


def test_findings_are_made_and_checked(
    fltheory_command, certificate_file, monkeypatch, processors, tmp_path: Path, few_regimes
) -> None:
    processors(1)
    module = import_module("docs.scripts.findings")
    monkeypatch.setattr(module, "ids", lambda: tuple(FEW))
    page, verdicts = tmp_path / "findings.md", tmp_path / "verify.json"
    options = (str(certificate_file.parent), "--out", str(page), "--budget", "10")
    assert fltheory_command("findings.py", *options)[0] == 0
    assert fltheory_command("verify", *FEW, "--json", str(verdicts))[0] == 0
    with monkeypatch.context() as known:
        # Verdicts that are given are not made again.
        known.delattr("docs.scripts.findings.check_regime")
        known_too = ("--verdicts", str(verdicts))
        assert fltheory_command("findings.py", *options, *known_too, "--check")[0] == 0
    text = page.read_text()
    for part in (
        "sa-fl/5, printed",
        "one.json",
        "`E||x_R - x*||^2 >= 67/1000 = 0.067`",
        "| `sa-fl/5` |  | refuted, certified in `one.json` |",
        "| not searched, because a regime already refutes it |",
        "| no refutation found: 10 settings tried; ",
        "| `sa-fl/4` | 1 INAPPLICABLE, 1 REFUTED",
        "survives a search, which is not a proof: 10 settings tried",
        "- without 'eta_c <= 1/(16LK) as a further hypothesis', (75), (78): ",
    ):
        assert part in text
    page.write_text(text + "more")
    monkeypatch.setattr("docs.scripts.findings.findings", lambda *arguments, **options: text)
    assert fltheory_command("findings.py", *options, "--check")[0] == 1
    status, _, err = fltheory_command("findings.py", str(tmp_path / "empty"))
    assert status == 2
    assert "witnesses must be a folder with certificates" in err


def test_verdicts_must_be_on_every_regime(fltheory_command, certificate_file, tmp_path) -> None:
    verdicts = tmp_path / "verify.json"
    assert fltheory_command("verify", "fedar/assumption-7", "--json", verdicts)[0] == 0
    options = (str(certificate_file.parent), "--budget", "1", "--verdicts", verdicts)
    status, _, err = fltheory_command("findings.py", *options)
    assert status == 2
    assert "verdicts must be on every regime, got none on" in err
