"""Commands on a statement of one's own: each does its work, or says in one line why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fltheory import theorems
from tests.worst_case.audits.own_theorem import MINE

pytestmark = pytest.mark.usefixtures("own_theorems_forgotten")
Command = Callable[..., tuple[int, str, str]]


def test_the_templates_theorem_is_proved_and_its_proof_certified(
    fltheory_command: Command, tmp_path: Path
) -> None:
    theorems.load([MINE])
    path = tmp_path / "proof.json"
    status, out, _ = fltheory_command("prove", "my/1", "--q", "1", "--out", str(path))
    assert status == 0
    assert out.startswith("my/1 (printed): PROVED at these parameters, for every client loss\n")
    assert "gradient noise sigma = 1" in out
    assert "m = 10 of 10 eligible clients, 0 excluded, K = 1, eta_c = 1/8\n" in out
    status, out, _ = fltheory_command("certify", str(path))
    assert (status, "with noise" in out) == (0, True)


def test_a_hypothesis_that_fails_on_the_round_is_named(fltheory_command: Command) -> None:
    theorems.load([MINE])
    status, out, _ = fltheory_command("prove", "my/1", "--local-steps", "2")
    assert status == 0
    assert out.startswith("my/1 (printed): INAPPLICABLE: one local step fails\n")


def test_power_plants_faults_in_it(fltheory_command: Command, tmp_path: Path) -> None:
    theorems.load([MINE])
    out = str(tmp_path / "power.json")
    options = ("--every", "60", "--budget", "5", "--out", out)
    status, text, err = fltheory_command("power.py", "my/1", *options)
    assert (status, "mutants, " in text) == (0, True), err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("map", "my/1"), "theorem must have a regime or a family to be mapped, got my/1"),
        (("verify", "my"), "theorems must have a regime to be verified, got my/1, which have none"),
        (("falsify", "my/1"), "settings must be given for my/1, which has no regimes"),
        (
            ("falsify", "my/1", "--repairs"),
            "theorem must have a recorded refutation to be corrected, got my/1",
        ),
        (("prove", "my/1"), "the value of D_0 must be a formula in numbers of a setting for my/1"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    fltheory_command: Command, command: tuple[str, ...], message: str
) -> None:
    start = next(one for one in MINE.meanings if str(one) == "D_0")
    unnamed = {start: theorems.symbol("D_0", "||x_0 - x*||", number=lambda setting: 1.0)}
    theorems.load([replace(MINE, regimes={}, family=None, read_as=unnamed)])
    status, out, err = fltheory_command(*command)
    assert (status, out) == (2, "")
    assert err.startswith(f"fltheory: {message}")
    assert err.count("\n") == 1
