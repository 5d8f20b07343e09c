"""What a statement says of symbols that are none of its own is told when it is made."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.grammar.fields import NUMBERS_OF_SETTINGS
from fltheory.verify.certificates import certificate_checker

TEMPLATE = files("fltheory.commands").joinpath("templates/theorem.txt").read_text("utf-8")


@pytest.fixture
def template(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(TEMPLATE)
    (theorem,) = theorems.load(path)
    return theorem


def symbol(theorem, name: str) -> sp.Symbol:
    return next(one for one in theorem.meanings if one.name == name)


def test_numbers_are_those_that_the_checker_works_out() -> None:
    assert set(certificate_checker._NUMBERS) == NUMBERS_OF_SETTINGS


def test_the_reference_lists_every_number() -> None:
    listed = (theorems.Theorem.__doc__ or "").partition("Notes")[2]
    missing = {name for name in NUMBERS_OF_SETTINGS if f"``{name}``" not in listed}
    assert missing == set()


@pytest.mark.parametrize(
    ("line", "changed", "said"),
    [
        (
            'sigma: "sigma",',
            'sp.Symbol("sigm"): "sigma",',
            "got sigm, which is none (nearest: sigma)",
        ),
        ('D_0: "sqrt(', 'sp.Symbol("d0"): "sqrt(', "got d0, which is none (nearest: D_0)"),
        ('N: "n_clients",', 'sp.Symbol("N"): "n_clients",', "N of other assumptions than its N"),
        ('N: "n_clients",', 'N: "n_client",', "got 'n_client' for N (nearest: n_clients)"),
        ('N: "n_clients",', 'N: "n_clients +",', "must be formulas"),
        ('sigma: "noise', 'sp.Symbol("sigm"): "noise', "what sigma is, got none (nearest: sigm)"),
        ('sigma: "noise', 'sp.Symbol("sigma"): "noise', "sigma of other assumptions"),
    ],
)
@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_slip_is_one_line_with_its_place(
    line: str, changed: str, said: str, fltheory_command, tmp_path: Path
) -> None:
    assert TEMPLATE.count(line) == 1
    path = tmp_path / "mine.py"
    path.write_text(TEMPLATE.replace(line, changed))
    status, _, err = fltheory_command("--load", path, "verify", "my")
    where = TEMPLATE.splitlines().index("THEOREM = Theorem(") + 1
    assert (status, err.count("\n")) == (2, 1)
    assert said in " ".join(err.split())
    assert f"mine.py, line {where}: " in err


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_no_meanings_at_all_are_told_when_it_is_registered(template) -> None:
    plain = replace(template, id="my/2", meanings={})
    with pytest.raises(ValueError, match="must say what D_0, K, L, N, R, eta_c, m, mu, sigma is"):
        theorems.load([plain])


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_statements_may_share_a_mapping(template) -> None:
    more = {**template.quantities, sp.Symbol("sigm"): "rounds"}
    assert replace(template, quantities=more).quantities == more
    del more[symbol(template, "sigma")]
    with pytest.raises(ValueError, match=r"got sigm, which is none \(nearest: sigma\)"):
        replace(template, quantities=more)
