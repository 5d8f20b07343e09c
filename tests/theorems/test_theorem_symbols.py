"""What symbols are assumed to be is what is put in for them: checks of steps lean on it."""

from __future__ import annotations

from itertools import islice

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Step

STATEMENTS = theorems.registered()
WITH_CONSTANTS = [s for s in STATEMENTS if getattr(s, "constants", None) and s.regimes]
WITH_STEPS = [s for s in STATEMENTS if s.derivation]

# Inner products, differences of losses, and losses themselves can be negative.
OF_ANY_SIGN = {
    "sa-fl-submission/4": {"F_0", "F_1", "F_r", "F_next", "F_after", "F_R", "F_min", "T", "T_s"}
    | {"T_c", "A_1"},
    "sa-fl/4": {"F_0", "F_1", "F_r", "F_next", "F_after", "F_R", "F_min", "T", "T_s", "T_c", "A_1"},
    "sa-fl/5": {"u", "G_4"},
    "ca-fed/2": {"u", "A_1", "A_2", "A_3", "A_4", "B", "X", "w_0"},
    "scaffold-bias/4.1": {"tau"},
}


def name(statement: Statement) -> str:
    return f"{statement.id} {statement.reading}"


@pytest.mark.parametrize("statement", WITH_CONSTANTS, ids=name)
def test_numbers_are_of_the_kind_of_their_symbols(statement) -> None:
    for regime in islice(statement.regimes.values(), 2):
        for symbol, value in statement.constants(regime.setting).items():
            number = float(value)
            signs = (symbol.is_extended_nonnegative, symbol.is_extended_positive)
            assert signs[0] in (None, number >= 0), symbol
            assert not signs[1] or number > 0, symbol
            assert symbol.is_integer in (None, number % 1 == 0), symbol


@pytest.mark.parametrize("statement", WITH_STEPS, ids=name)
def test_what_proofs_are_about_has_no_sign_but_where_it_is_listed(statement) -> None:
    symbols = set[sp.Symbol]().union(*map(symbols_of, statement.derivation.steps))
    signed = {str(symbol) for symbol in symbols if not symbol.is_extended_nonnegative}
    assert signed <= OF_ANY_SIGN.get(statement.id, set())


def symbols_of(step: Step) -> set[sp.Symbol]:
    sides = (vars(step.claim).get(side) for side in ("left", "right", "claimed", "expression"))
    found = [*(side for side in sides if side is not None), *vars(step.claim).get("given", ())]
    return set[sp.Symbol]().union(*(side.free_symbols for side in found))
