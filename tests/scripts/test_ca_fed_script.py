"""docs/scripts/ca_fed.py: run, resumed, interrupted."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from docs.scripts import ca_fed

QUICK_KEYS = ((0, "Unbiased"), (0, "CA-Fed"))


@pytest.fixture
def quick_experiment(monkeypatch, processors) -> None:
    """Measure two methods in a moment, whatever is asked for."""
    plan = partial(
        ca_fed.SyntheticPlan,
        train_size=10,
        test_size=10,
        client_lrs=(0.1,),
        server_lrs=(1.0,),
    )
    monkeypatch.setattr(ca_fed, "keys", lambda seeds: QUICK_KEYS)
    monkeypatch.setattr(ca_fed, "SyntheticPlan", plan)
    # Others look in the module for the class of what they are sent.
    processors(1)


def test_the_experiment_is_run_and_resumed(
    fltheory_command, quick_experiment, monkeypatch, tmp_path: Path
) -> None:
    out, page = tmp_path / "ca-fed.json", tmp_path / "docs" / "ca-fed.md"
    options = ("ca_fed.py", "--rounds", "4", "--out", str(out), "--page", str(page))
    status, printed, _ = fltheory_command(*options)
    assert status == 0
    assert all(part in printed for part in ("Unbiased", "CA-Fed", "76.22", f"written to {out}"))
    assert "--seeds 10 --rounds 4" in page.read_text()
    assert len(json.loads(out.read_text())["measured"]) == 2
    written = out.stat().st_mtime_ns
    # What was a new folder is one no more.
    again = printed.replace(f" (new folder {page.parent})", "")
    assert fltheory_command(*options)[:2] == (0, again)
    assert out.stat().st_mtime_ns == written
    status, _, err = fltheory_command(*options[:2], "5", *options[3:])
    assert status == 2
    assert "out must hold results of the plan" in err


def test_an_interrupted_experiment_says_what_is_kept(
    fltheory_command, quick_experiment, monkeypatch, tmp_path: Path
) -> None:
    def one_then_interrupt(key, plan):
        if key != QUICK_KEYS[0]:
            raise KeyboardInterrupt
        return measure(key, plan)

    measure = ca_fed.measure
    monkeypatch.setattr(ca_fed, "measure", one_then_interrupt)
    path = tmp_path / "out.json"
    status, _, err = fltheory_command("ca_fed.py", "--rounds", "4", "--out", str(path))
    assert status == 130
    said = (
        f"fltheory: interrupted, 1 measured rows are in {path}; rerun the same command to resume\n"
    )
    assert err == said
