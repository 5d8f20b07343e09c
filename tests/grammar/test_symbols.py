"""Declared symbols: two papers' L are two symbols, and each says its number of a setting."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.engines import Setting
from fltheory.engines.enclosure.exact_setting import exact_setting
from fltheory.grammar.units import CURVATURE, PURE
from fltheory.numbers.of_setting import value_in
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import BoundedQuantity, RoundRange, Theorem, symbol

L = symbol("L", "smoothness", CURVATURE, "L", positive=True)
R = symbol("R", "rounds", PURE, lambda setting: setting.rounds, positive=True, integer=True)
DISTANCE = BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "||x||^2", "")
SETTING = Setting(
    FedAvg(0.1, 3), QuadraticProblem([[2.0]], [[1.0], [4.0]]), UniformSubset(2, 1), 7, [0.5]
)


def own(bound: sp.Expr, **changes) -> Theorem:
    known = {"id": "own/1", "reading": "printed", "title": "", "source": ""}
    return Theorem(**known, quantity=DISTANCE, bound=bound, **changes)


def test_symbols_of_one_name_and_other_meanings_stay_apart() -> None:
    other = symbol("L", "Lipschitz constant of the Hessian", positive=True)
    assert other != L
    assert {L: 1, other: 2}[L] == 1
    # SymPy keeps what it has made, by equality: the other's product must not be taken for it.
    assert [*(L * R).free_symbols & {L}] == [L]
    assert (other * R).free_symbols == {other, R}
    assert symbol("L", "smoothness", CURVATURE, "L", positive=True) == L
    copied = pickle.loads(pickle.dumps(L**2 + 1))
    assert copied == L**2 + 1
    assert copied.free_symbols == {L}


def test_formulas_are_written_as_with_plain_symbols() -> None:
    names = ("a", "B", "L", "eta", "c_1")
    declared = [symbol(name, positive=True) for name in names]
    plain = [sp.Symbol(name, positive=True) for name in names]

    def formula(a, b, c, d, e) -> sp.Expr:
        return (b - a) ** 2 / sp.sqrt(c * d) + sp.Max(e, a) * sp.log(b) - 3 * d * c

    assert str(formula(*declared)) == str(formula(*plain))
    assert sp.latex(formula(*declared)) == sp.latex(formula(*plain))


def test_a_statement_asks_its_symbols() -> None:
    theorem = own(L / R)
    assert dict(theorem.meanings) == {L: "smoothness", R: "rounds"}
    assert dict(theorem.units) == {L: CURVATURE, R: PURE}
    assert dict(theorem.quantities) == {L: "L"}
    assert dict(theorem.constants(SETTING)) == {L: 2.0, R: 7}
    # A reading with another bound has that bound's symbols, and no others.
    other = replace(theorem, bound=sp.sqrt(L))
    assert dict(other.meanings) == {L: "smoothness"}
    assert dict(other.constants(SETTING)) == {L: 2.0}


def test_a_domain_refuses_before_numbers_are_asked() -> None:
    def never(setting: Setting) -> Setting:
        raise ValueError("algorithm must be another one")

    with pytest.raises(ValueError, match="another one"):
        own(L / R, domain=never).constants(SETTING)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("sqrt(squared_distance)", 2.0),  # x* = 2.5
        ("excess_loss", 4.0),
        ("control_gap", 9.0),  # 2 (2.5 - 1) and 2 (2.5 - 4), squared
        ("Max(client_lr, server_lr)/2", 0.5),
        ("Min(n_clients, participants) + rounds - is_warm", 8),
        ("log(local_steps)", math.log(3)),
    ],
)
def test_numbers_are_those_of_the_setting_and_exact_where_it_is(formula: str, value) -> None:
    assert value_in(formula, SETTING) == pytest.approx(value, rel=1e-15)


def test_numbers_of_an_exact_setting_are_exact() -> None:
    exact = exact_setting(SETTING)
    assert Fraction(str(value_in("excess_loss*client_lr", exact).value)) == Fraction(2, 5)
    assert value_in("sqrt(squared_distance)", exact).value == 2


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("squared_distanc", r"symbol x: .*got 'squared_distanc' .*nearest: squared_distance"),
        ("sqrt(", "symbol x: number must be a formula"),
        (3, "symbol x: number must be callable, got 3"),
        (lambda: 3, "symbol x: number must take 1 argument"),
    ],
)
def test_bad_numbers(number, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        symbol("x", "a number", PURE, number)
