"""docs/scripts/bias.py: the page and its figure are written and checked."""

from __future__ import annotations

from pathlib import Path

from docs.scripts import bias
from docs.scripts.bias import BiasEntry, BiasEvidence, LimitBias


def test_the_page_is_written_and_checked(fltheory_command, monkeypatch, tmp_path: Path) -> None:
    """The table takes long: here every algorithm's limit is off by a tenth."""
    tenth = LimitBias(0.1, 1e-12, BiasEvidence.EXACT)
    cells = [BiasEntry(*names, tenth) for names, _ in bias._tasks()]
    monkeypatch.setattr(bias, "bias_table", lambda *args, **kwargs: iter(cells))
    out, figure = tmp_path / "bias.md", tmp_path / "bias.svg"
    options = ("bias.py", "--out", out, "--figure", figure)
    status, printed, _ = fltheory_command(*options, "--check")
    assert (status, printed) == (
        1,
        f"{out} is not what the algorithms give: run python docs/scripts/bias.py\n",
    )
    assert not list(tmp_path.iterdir())
    assert fltheory_command(*options) == (0, f"written to {out}\n", "")
    assert fltheory_command(*options, "--check") == (0, "", "")
    assert "bias.svg" in out.read_text()
    assert figure.stat().st_size > 1000
