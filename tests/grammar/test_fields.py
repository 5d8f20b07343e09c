"""What is wrong with a symbol is told in a line, with its place."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.numbers.of_setting import NUMBERS
from fltheory.verify import check_regimes
from fltheory.verify.certificates import certificate_checker
from tests.worst_case.audits.own_theorem import MINE

TEMPLATE = files("fltheory.commands").joinpath("templates/theorem.txt").read_text("utf-8")


def test_numbers_of_symbols_are_among_those_that_the_checker_works_out() -> None:
    assert set(NUMBERS) < set(certificate_checker._NUMBERS)


def test_the_reference_lists_every_number() -> None:
    listed = (theorems.symbol.__doc__ or "").partition("Notes")[2]
    assert set(re.findall(r"``(\w+)``", listed)) - {"sqrt", "log", "Min", "Max"} == set(NUMBERS)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("n_client", "symbol N: number must be made of the names in fltheory.numbers, got "),
        ("n_client", "'n_client' in 'n_client' (nearest: n_clients)"),
        ("n_clients +", "symbol N: number must be a formula"),
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
    with pytest.raises(ValueError, match="got D_0, K, L, N, R, eta_c, m, mu, sigma without one"):
        theorems.load(path)


@pytest.mark.parametrize("value", ["3", None, [1.0], 1j])
def test_a_number_that_is_none_is_named_with_its_file(value: Any) -> None:
    start = next(one for one in MINE.meanings if one.name == "D_0")
    wrong = replace(MINE, read_as={start: theorems.symbol("D_0", number=lambda setting: value)})
    told = re.escape(
        f"the value of D_0 in 'my/1' must be a real number, got {value!r} ({__file__}, "
    )
    with pytest.raises(ValueError, match=told):
        check_regimes([wrong])


def test_a_symbol_that_nobody_declared_is_told_when_it_is_registered() -> None:
    undeclared = replace(MINE, bound=MINE.bound * sp.Symbol("c"))
    with pytest.raises(ValueError, match="got c without one: declare each with"):
        theorems.load([undeclared])
