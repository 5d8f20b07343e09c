"""fltheory map: table, figure, bad axes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fltheory import verify
from fltheory.verify import MapAxis, region_map


def test_map_shows_a_table_and_writes_a_figure(fltheory_command, monkeypatch, tmp_path) -> None:
    """After 300 rounds the derived Theorem 5 applies at q = 0.05, and not at 0.5 or above."""
    few = {"q": MapAxis("q", (0.05, 0.9)), "rounds": MapAxis("rounds", (1.0, 300.0))}
    monkeypatch.setattr(region_map, "default_axis", lambda setting, name: few[name])
    path = tmp_path / "map.svg"
    status, out, _ = fltheory_command(
        "map", "sa-fl/5", "--reading", "derived", "--figure", str(path)
    )
    assert status == 0
    assert "sa-fl/5 (derived): applies on 75.0% of the cells" in out
    assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize("statement", ["fedau/1", "ca-fed/2", "scaffold/strongly-convex"])
def test_a_map_of_any_statement_needs_no_options(
    fltheory_command, monkeypatch, statement: str
) -> None:
    whole = region_map.default_axis

    def shortened(setting, name: str) -> MapAxis:
        return MapAxis(name, whole(setting, name).values[:2])

    monkeypatch.setattr(region_map, "default_axis", shortened)
    status, out, _ = fltheory_command("map", statement)
    assert status == 0
    reading = "derived" if statement == "fedau/1" else "printed"
    assert f"{statement} ({reading}): applies" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--x", "colour"), "parameter must be one of"),
        (("--x", "rounds"), "y must differ from x"),
        (("--regime", "calm"), "regime must be one of i.i.d."),
        (("--points", "1"), "points must be a whole number"),
        (("--set", "q"), "--set must be name=value, got 'q'"),
        (("--y", "step", "--set", "rounds=half"), "--set rounds must be a number, got 'half'"),
        (("--set", "rounds=nan"), "--set rounds must be a number, got 'nan'"),
        (("--x", "step", "--set", "q=2"), "q must"),
        (("--set", "colour=2"), "parameter must be one of"),
        (("--set", "rounds=5"), "--set rounds must be left out: it is on an axis"),
    ],
)
def test_bad_maps_are_one_line(fltheory_command, options, message) -> None:
    status, _, err = fltheory_command("map", "sa-fl/5", *options)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


def test_other_parameters_are_set_and_the_values_counted(fltheory_command, monkeypatch) -> None:
    """With one parameter set, the cells are those of a setting (or a family) that has it."""
    asked = []

    def noted(theorem, start, x, y, **_):
        asked.append((start, x, y))
        return whole(theorem, start, x, y)

    whole = verify.map_region
    monkeypatch.setattr(verify, "map_region", noted)
    few = ("--points", "2", "--set")
    assert fltheory_command("map", "sa-fl/5", *few, "problem.sigma=3")[0] == 0
    assert fltheory_command("map", "fedawe/lemma-2", *few, "rounds=5")[0] == 0
    (setting, *axes), (family, *others) = asked
    assert setting.problem.sigma == 3
    assert family.setting().rounds == 5
    assert [len(axis.values) for axis in (*axes, *others)] == [2, 2, 2, 2]


def test_a_former_option_says_the_new_one(tmp_path) -> None:
    figure = tmp_path / "map.svg"
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "fltheory",
            "map",
            "fedawe/lemma-2",
            "--points=2",
            f"--out={figure}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fltheory map --out is now fltheory map --figure" in ran.stderr
    assert figure.is_file()
