"""Values of a statement's symbols in a round and a class, by the numbers that they are."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.parsing.sympy_parser import parse_expr

from fltheory.claims.statement import Basis, Statement
from fltheory.decimals import as_fraction
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.theorems import Theorem
from fltheory.worst_case.rounds.measure import AnyClass, Given
from fltheory.worst_case.rounds.one_round import OneRound

Values = dict[sp.Basic | complex, Any]

_WHOLE = ("local_steps", "participants", "n_clients", "rounds")
_POSITIVE = ("L", "client_lr", "server_lr")
_OTHERS = (
    "mu",
    "assist_lr",
    "q",
    "sigma",
    "server_sigma",
    "sigma_G",
    "squared_distance",
    "excess_loss",
    "least_availability",
    "largest_availability",
)
NUMBERS: Mapping[str, sp.Symbol] = (
    {name: sp.Symbol(name, positive=True, integer=True) for name in _WHOLE}
    | {name: sp.Symbol(name, positive=True) for name in _POSITIVE}
    | {name: sp.Symbol(name, nonnegative=True) for name in _OTHERS}
)
"""Numbers of a setting that a class and a round have, or that a bound starts from, by name.

They are symbols themselves, so that a form of theorem is found whatever letters its author chose.
"""


def formulas_of(statement: Basis) -> dict[sp.Symbol, sp.Expr]:
    """Return what each symbol of a statement is, in `NUMBERS` where they have the name."""
    return {symbol: _formula(text) for symbol, text in statement.quantities.items()}


@lru_cache(maxsize=256)
def _formula(text: str) -> sp.Expr:
    return parse_expr(text, local_dict=dict(NUMBERS))


def names_in(theorem: Theorem, expression: sp.Basic) -> set[str]:
    """Return the numbers of a setting that a statement's formula is made of, by name.

    A symbol that the statement does not say anything about counts under its own name, in brackets.
    """
    formulas = formulas_of(theorem)
    names: set[str] = set()
    for symbol in _without_definitions(theorem, expression).free_symbols:
        own = formulas.get(symbol)
        names |= {f"[{symbol}]"} if own is None else {str(s) for s in own.free_symbols}
    return names


def bound_in_numbers(theorem: Statement) -> Any:
    """Return the bound on a run, definitions put in, in `NUMBERS`.

    Raises
    ------
    ValueError
        If the statement does not say what one of its symbols is.
    """
    assert theorem.bound_on_run is not None
    bound: Any = theorem.bound_on_run[1]
    formulas: dict[Any, Any] = formulas_of(theorem.basis)
    for symbol in sorted(bound.free_symbols, key=str):
        if symbol not in formulas:
            raise ValueError(
                f"number of {symbol} must be a formula in numbers of a setting for {theorem.id} to "
                "be proved, e.g. 'sqrt(squared_distance)'"
            )
    # A float stands for its shortest decimal, as everywhere in proofs.
    decimals = {number: sp.Rational(str(float(number))) for number in bound.atoms(sp.Float)}
    return bound.xreplace({**formulas, **decimals})


def numbers_of(clients: AnyClass, a_round: OneRound) -> dict[str, Fraction]:
    """Return what a class and a round settle, by name."""
    numbers = {
        "L": clients.L,
        "mu": clients.mu,
        "client_lr": a_round.client_lr,
        "server_lr": a_round.server_lr,
        "assist_lr": a_round.assist_lr,
        "q": a_round.q,
        "local_steps": Fraction(a_round.local_steps),
        "participants": Fraction(a_round.participants),
        "sigma_G": clients.dissimilarity,
        "sigma": clients.sigma,
        "server_sigma": clients.server_sigma,
    }
    if a_round.n_clients is not None:
        numbers["n_clients"] = Fraction(a_round.n_clients)
        chance = Fraction(a_round.participants, int(a_round.n_eligible or 1))
        numbers["largest_availability"] = chance
        numbers["least_availability"] = chance if a_round.excluded_share == 0 else Fraction(0)
    return numbers


def values_in_numbers(clients: AnyClass, a_round: OneRound) -> Values:
    """Return the values of those of `NUMBERS` that a class and a round settle."""
    return {
        NUMBERS[name]: sp.Rational(value.numerator, value.denominator)
        for name, value in numbers_of(clients, a_round).items()
    }


def holds(
    theorem: Theorem, hypothesis: Hypothesis, clients: AnyClass, a_round: OneRound
) -> bool | None:
    """Return whether a hypothesis holds, None where a trajectory decides."""
    if not hypothesis.is_known:
        return None
    decided = with_values(theorem, hypothesis.condition, values_in_numbers(clients, a_round))
    return bool(decided) if decided in (sp.true, sp.false) else None


def given_in(
    theorem: Theorem, clients: AnyClass, a_round: OneRound, reductions: AbstractSet[str]
) -> Given | None:
    """Return what a theorem supposes of a run, if it is linear in what a round's program sees.

    Reduced over rounds in one of these ways, so that the inequality of a round may use it.
    """
    values = values_in_numbers(clients, a_round)
    level = NUMBERS["sigma_G"]
    del values[level]
    fields: dict[Any, str] = {item.symbol: item.field for item in theorem.round_symbols}
    for hypothesis in theorem.hypotheses:
        used = hypothesis.condition.free_symbols & fields.keys()
        own = [item for item in theorem.round_symbols if item.symbol in used]
        before_each = {(item.rounds.first, item.rounds.beyond_last) for item in own} <= {(0, -1)}
        ways = {item.reduction for item in own} <= reductions
        if not (own and before_each and ways and isinstance(hypothesis.condition, sp.Le)):
            continue
        left, right = hypothesis.condition.args
        apart: Any = left
        apart = apart - right
        rest: Any = sp.expand(with_values(theorem, apart, values, unknown={level}))
        found = dict.fromkeys(_SEEN.values(), sp.Integer(0))
        for symbol in used:
            found[_SEEN[fields[symbol]]] = rest.coeff(symbol, 1)
            rest = rest - symbol * rest.coeff(symbol, 1)
        found["heterogeneity"] = sp.expand(rest).coeff(level, 2)
        if sp.expand(rest - found["heterogeneity"] * level**2) == 0 and all(
            value.is_Rational for value in found.values()
        ):
            exact = {name: as_fraction(value) for name, value in found.items()}
            # Any multiple says the same: the largest number is one.
            largest = max(map(abs, exact.values())) or Fraction(1)
            return Given(hypothesis.name, **{n: v / largest for n, v in exact.items()})
    return None


_SEEN = {
    "squared_gradient": "gradient",
    "participant_gradient_sum": "moved",
    "participant_excess_loss": "values",
}


def with_values(
    theorem: Theorem,
    expression: Any,
    values: Mapping[Any, Any],
    unknown: AbstractSet[Any] = frozenset(),
) -> Any:
    """Return a statement's formula with numbers put in for its symbols, where there are any.

    Values may be formulas in ``unknown`` symbols, which no statement has.
    """
    own: dict[Any, Any] = {}
    for symbol, formula in formulas_of(theorem).items():
        value = formula.subs(values)
        # Half a value would replace a symbol of the statement by one of the same letters here.
        if value.free_symbols <= unknown:
            own[symbol] = value
    return _without_definitions(theorem, expression).subs(own)


def _without_definitions(theorem: Theorem, expression: Any) -> Any:
    definitions: dict[Any, Any] = dict(theorem.definitions)
    # A definition may use those before it.
    for symbol in reversed(definitions):
        expression = expression.subs(symbol, definitions[symbol])
    return expression
