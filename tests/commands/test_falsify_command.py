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


def test_falsify_follows_an_order_over_its_decades(fltheory_command, tmp_path: Path) -> None:
    """The order of Theorem 1 of FedAU is its bound's, so that no setting leaves it."""
    options = ("--budget", "6", "--out", tmp_path / "found.toml")
    status, out, _ = fltheory_command("falsify", "fedau/1", *options)
    assert status == 0
    assert "fedau/1 (printed): no refutation found; 6 settings tried" in out
    assert "met every hypothesis at every value, with a bound of the claimed order" in out
    assert "found.toml: nothing was found" in out


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_what_refutes_an_order_is_kept_and_checked_again(fltheory_command, tmp_path: Path) -> None:
    theorems.load((own.FALSE_ORDER,))
    kept = tmp_path / "found.toml"
    status, _, err = fltheory_command("falsify", "own/false-order", "--out", tmp_path / "w.json")
    assert (status, "which has no certificate: no single run can break" in err) == (2, True)
    options = ("--budget", "30", "--out", kept)
    status, out, _ = fltheory_command("falsify", "own/false-order", *options)
    assert (status, "own/false-order (printed): REFUTED" in out) == (0, True)
    status, out, _ = fltheory_command("certify", str(kept))
    assert (status, "own/false-order (printed): REFUTED (float64" in out) == (0, True)


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
    # The second was not asked for by its name, and leaves the first alone.
    for name, kept_as in (("found.toml", "found.toml"), ("found.json", "found.2.toml")):
        place, kept = tmp_path / name, tmp_path / kept_as
        status, out, _ = fltheory_command("falsify", "own/false", "--budget", "80", "--out", place)
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
    assert "own/true" in (tmp_path / "found.toml").read_text()


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        ("printed", "no setting can be checked against 'psi, its cap, tau_max and the step sizes"),
        ("derived", "its bound has constants that are not known"),
    ],
)
def test_an_order_that_nothing_can_refute_says_why(fltheory_command, reading, why) -> None:
    status, _, err = fltheory_command("falsify", "fedar/1", "--reading", reading)
    assert (status, len(err.splitlines())) == (2, 1)
    assert why in err
    assert f"got fedar/1 ({reading})" in err
