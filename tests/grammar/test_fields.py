"""What a statement says of symbols that are none of its own is told when it is made."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.grammar.fields import NUMBERS_OF_SETTINGS
from fltheory.verify.certificates import certificate_checker

TEMPLATE = files("fltheory.commands").joinpath("templates/theorem.txt").read_text("utf-8")


def with_plain(name: str, **tables: str) -> str:
    """Return the template with one symbol that is SymPy's own, and tables that speak of it."""
    line = re.compile(rf'^{name} = symbol\("{name}", "[^"]*", number="[^"]*", ', re.MULTILINE)
    text, changed = line.subn(f'{name} = sp.Symbol("{name}", ', TEMPLATE)
    assert changed == 1
    given = "".join(f"    {table}={{{entry}}},\n" for table, entry in tables.items())
    return text.replace("THEOREM = Theorem(\n", f"THEOREM = Theorem(\n{given}")


@pytest.fixture
def with_plain_sigma(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(with_plain("sigma", meanings='sigma: "noise"', quantities='sigma: "sigma"'))
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
    ("name", "tables", "said"),
    [
        (
            "sigma",
            {"meanings": 'sigma: "noise"', "quantities": 'sp.Symbol("sigm"): "sigma"'},
            "got sigm, which is none (nearest: sigma)",
        ),
        (
            "D_0",
            {"meanings": 'D_0: "a start"', "quantities": 'sp.Symbol("d0"): "excess_loss"'},
            "got d0, which is none (nearest: D_0)",
        ),
        (
            "N",
            {"meanings": 'N: "clients"', "quantities": 'sp.Symbol("N"): "n_clients"'},
            "N of other assumptions than its N",
        ),
        (
            "N",
            {"meanings": 'N: "clients"', "quantities": 'N: "n_client"'},
            "got 'n_client' for N (nearest: n_clients)",
        ),
        (
            "N",
            {"meanings": 'N: "clients"', "quantities": 'N: "n_clients +"'},
            "must be formulas",
        ),
        (
            "sigma",
            {"meanings": 'sp.Symbol("sigm"): "noise"'},
            "what sigma is, got none (nearest: sigm)",
        ),
        ("sigma", {"meanings": 'sp.Symbol("sigma"): "noise"'}, "sigma of other assumptions"),
    ],
)
@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_slip_in_a_table_is_one_line_with_its_place(
    name: str, tables: dict[str, str], said: str, fltheory_command, tmp_path: Path
) -> None:
    text = with_plain(name, **tables)
    is_told(text, "THEOREM = Theorem(", said, fltheory_command, tmp_path)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("n_client", "number of N: number must be made of the names in fltheory.numbers, got "),
        ("n_client", "'n_client' in 'n_client' (nearest: n_clients)"),
        ("n_clients +", "number of N: number must be a formula"),
    ],
)
@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_slip_in_a_symbol_is_one_line_with_its_place(
    number: str, said: str, fltheory_command, tmp_path: Path
) -> None:
    assert TEMPLATE.count('number="n_clients"') == 1
    text = TEMPLATE.replace('number="n_clients"', f'number="{number}"')
    is_told(text, "N = symbol(", said, fltheory_command, tmp_path)


def is_told(text: str, line: str, said: str, fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    status, _, err = fltheory_command("--load", path, "verify", "my")
    (where,) = (i for i, one in enumerate(text.splitlines(), 1) if one.startswith(line))
    assert (status, err.count("\n")) == (2, 1)
    assert said in " ".join(err.split())
    assert f"mine.py, line {where}: " in err


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_no_meanings_at_all_are_told_when_it_is_registered(tmp_path: Path) -> None:
    declared = re.compile(r'^(\w+) = symbol\("\w+", "[^"]*", number="[^"]*", ', re.MULTILINE)
    text, changed = declared.subn(r'\1 = sp.Symbol("\1", ', TEMPLATE)
    assert changed == 9
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ValueError, match="must say what D_0, K, L, N, R, eta_c, m, mu, sigma is"):
        theorems.load(path)


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_statements_may_share_a_mapping(with_plain_sigma) -> None:
    more = {**with_plain_sigma.quantities, sp.Symbol("sigm"): "rounds"}
    assert replace(with_plain_sigma, quantities=more).quantities == more
    del more[symbol(with_plain_sigma, "sigma")]
    with pytest.raises(ValueError, match=r"got sigm, which is none \(nearest: sigma\)"):
        replace(with_plain_sigma, quantities=more)
