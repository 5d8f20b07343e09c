"""docs/scripts/power.py: resumed, interrupted, written as a page."""

from __future__ import annotations

import json
from pathlib import Path

from docs.scripts import power
from docs.scripts.power import Judged


def power_options(path: Path, *more: str) -> tuple[str, ...]:
    return (
        "power.py",
        "sa-fl/5",
        "--every",
        "70",
        "--budget",
        "10",
        "--out",
        str(path),
        *more,
    )


def test_power_resumes_and_writes_its_page(fltheory_command, processors, tmp_path: Path) -> None:
    processors(1)
    path, page = tmp_path / "power.json", tmp_path / "power.md"
    status, out, _ = fltheory_command(*power_options(path, "--page", str(page)))
    assert status == 0
    assert out.startswith("3 mutants, ")
    assert "| sa-fl/5 | 3 |" in page.read_text()
    document = json.loads(path.read_text())
    document["judged"][0]["about"] = "as it was before"
    document["judged"].pop()
    path.write_text(json.dumps(document))
    assert fltheory_command(*power_options(path))[0] == 0
    resumed = json.loads(path.read_text())["judged"]
    assert len(resumed) == 3
    assert resumed[0]["about"] == "as it was before"
    status, _, err = fltheory_command(*power_options(path, "--seed", "5"))
    assert status == 2
    assert "out must hold results of the plan" in err


def test_an_interrupted_power_says_what_is_kept(
    fltheory_command, processors, monkeypatch, tmp_path: Path
) -> None:
    def one_then_interrupt(key, plan):
        if key[2]:
            raise KeyboardInterrupt
        return Judged(*key, "sign", "search", 50)

    processors(1)
    monkeypatch.setattr(power, "judged", one_then_interrupt)
    path = tmp_path / "power.json"
    status, _, err = fltheory_command(*power_options(path))
    assert status == 130
    assert err == (
        f"fltheory: interrupted, 1 judged mutants are in {path}; rerun the same command to resume\n"
    )
    assert len(json.loads(path.read_text())["judged"]) == 1
