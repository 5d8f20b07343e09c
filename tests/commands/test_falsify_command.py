"""fltheory falsify: effort, orders, certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.engines import read_setting
from fltheory.verify import Outcome, check
from tests.theorems import own


def test_falsify_states_its_effort(fltheory_command) -> None:
    options = ("--reading", "derived", "--budget", "30")
    status, out, _ = fltheory_command("falsify", "sa-fl/5", *options)
    assert status == 0
    assert "no refutation found; 30 settings tried" in out


def test_falsify_follows_an_order_over_three_decades(fltheory_command) -> None:
    status, out, _ = fltheory_command("falsify", "sa-fl/corollary-2", "--budget", "250")
    assert status == 0
    assert "sa-fl/corollary-2 (printed): BROKEN" in out
    assert "250 settings tried over three decades" in out
    options = ("--reading", "derived", "--budget", "20")
    assert (
        "says nothing on any of them"
        in fltheory_command("falsify", "sa-fl/corollary-2", *options)[1]
    )
    status, _, err = fltheory_command("falsify", "sa-fl/corollary-2", "--out", "x.json")
    assert status == 2
    assert "an order has no certificate" in err


def test_falsify_writes_a_certificate(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    status, out, _ = fltheory_command("falsify", "sa-fl/4", "--budget", "1500", "--out", path)
    assert status == 0
    assert "certified: checked in fractions" in out
    assert fltheory_command("certify", str(path))[0] == 0


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_witness_is_kept_as_a_setting(fltheory_command, tmp_path: Path) -> None:
    """Where asked for, and where it cannot be certified; on it the theorem is refuted again."""
    theorems.load(own.STATEMENTS)
    for name in ("found.toml", "found.json"):
        place = tmp_path / name
        kept = place.with_suffix(".toml")
        status, out, _ = fltheory_command("falsify", "own/false", "--budget", "200", "--out", place)
        assert (status, "own/false (printed): REFUTED" in out) == (0, True)
        assert ("not certified: " in out) == (name == "found.json")
        assert f"written to {kept}" in out
        assert not (tmp_path / "found.json").exists()
        verdict = check(own.FALSE, read_setting(kept))
        assert verdict.outcome is Outcome.REFUTED
        status, out, _ = fltheory_command("certify", str(kept))
        assert (status, out.splitlines()[0]) == (
            0,
            "own/false (printed): REFUTED (float64 evidence)",
        )
        kept.write_text(kept.read_text().replace("own/false", "own/true"))
        status, out, _ = fltheory_command("certify", str(kept))
        assert (status, "own/true (printed): HOLDS" in out) == (1, True)
        kept.unlink()


def test_an_order_that_is_not_about_safari_says_what_else_there_is(fltheory_command) -> None:
    status, _, err = fltheory_command("falsify", "fedar/1")
    assert status == 2
    assert "must be about SAFARI where it claims an order" in err
    assert "see fltheory verify fedar/1" in err
