"""fltheory findings: the page is made and checked."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path


def test_findings_are_made_and_checked(
    fltheory_command, certificate_file, monkeypatch, tmp_path: Path
) -> None:
    few = ("sa-fl/4", "sa-fl/5", "sa-fl/corollary-2")
    monkeypatch.setattr(import_module("fltheory.report.findings"), "ids", lambda: few)
    page = tmp_path / "findings.md"
    options = (str(certificate_file.parent), "--out", str(page), "--budget", "250")
    assert fltheory_command("findings", *options)[0] == 0
    assert fltheory_command("findings", *options, "--check")[0] == 0
    text = page.read_text()
    for part in (
        "sa-fl/5, printed",
        "one.json",
        "`E||x_R - x*||^2 = 1/10 = 0.1`",
        "- sa-fl/5: refuted, certified in `one.json`",
        "- sa-fl/4 (printed): 250 settings tried",
        "its regimes: 4 INAPPLICABLE",
        "survives the search, which is not a proof: 250 settings tried",
        "- eta_c <= 1/(8LK) as a further hypothesis, (75): not refuted without it",
    ):
        assert part in text
    page.write_text(text + "more")
    assert fltheory_command("findings", *options, "--check")[0] == 1
    status, _, err = fltheory_command("findings", str(tmp_path / "empty"))
    assert status == 2
    assert "witnesses must be a folder with certificates" in err
