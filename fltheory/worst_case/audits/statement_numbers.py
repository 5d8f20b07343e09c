"""What a statement's own symbols are in a round and a class: read off its ``quantities``.

A statement says which number of a setting each symbol is, as a formula in the names that the
checker of certificates knows (``{D_0: "sqrt(squared_distance)"}``). Here these names are symbols
themselves, so that a form of theorem is found whatever letters its author chose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from sympy.parsing.sympy_parser import parse_expr

from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import Theorem
from fltheory.worst_case.rounds.measure import AnyClass
from fltheory.worst_case.rounds.one_round import OneRound

Values = dict[sp.Basic | complex, Any]

_ROUNDING = 1e-6
_ASKEW = {"local_steps": 2, "client_lr": 0.019, "assist_lr": 0.043, "q": 0.61}
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
)
NUMBERS: Mapping[str, sp.Symbol] = (
    {name: sp.Symbol(name, positive=True, integer=True) for name in _WHOLE}
    | {name: sp.Symbol(name, positive=True) for name in _POSITIVE}
    | {name: sp.Symbol(name, nonnegative=True) for name in _OTHERS}
)
"""Numbers of a setting that a class and a round have, or that a bound starts from, by name."""


def formulas_of(theorem: Theorem) -> dict[sp.Symbol, sp.Expr]:
    """Return what each symbol of a statement is, in `NUMBERS` where they have the name."""
    return {symbol: _formula(text) for symbol, text in theorem.quantities.items()}


@lru_cache(maxsize=256)
def _formula(text: str) -> sp.Expr:
    return parse_expr(text, local_dict=dict(NUMBERS))


def check_quantities(theorem: Theorem) -> None:
    """Raise ValueError unless ``quantities`` are what ``constants`` are, in every regime.

    A proof speaks of what ``quantities`` say, and verdicts of what ``constants`` say: they must be
    one statement. Two numbers of a regime may coincide, as m = N where everybody takes part, so
    they are compared in a setting beside each regime, too, where they do not.
    """
    beside = {
        f"one beside {name!r}": _perturbed(regime.setting)
        for name, regime in theorem.regimes.items()
    }
    in_regimes = {f"the regime {name!r}": one.setting for name, one in theorem.regimes.items()}
    for name, setting in (in_regimes | beside).items():
        if setting is None:
            continue
        numbers: Values = {NUMBERS[key]: value for key, value in _numbers_in(setting).items()}
        try:
            given = theorem.constants(setting)
        except ValueError:
            if name in in_regimes:
                raise
            # It need not speak of a setting of which nobody asked it.
            continue
        for symbol, formula in formulas_of(theorem).items():
            meant = formula.subs(numbers)
            if symbol not in given or not meant.is_number:
                continue
            if not math.isclose(float(meant), float(given[symbol]), rel_tol=_ROUNDING):
                raise ValueError(
                    f"quantities of {theorem.id} must be what its constants are, got "
                    f"{symbol} = {theorem.quantities[symbol]}, which is {float(meant):g} and not "
                    f"{float(given[symbol]):g} in {name}"
                )


def _perturbed(setting: Setting) -> Setting | None:
    """Return a setting of other numbers, no two of them equal; None where it cannot be had.

    The algorithm is the same one with other steps; the server's factor stays, as a theorem may
    speak of one value of it alone.
    """
    algorithm: Any = setting.algorithm
    own = {field.name for field in fields(algorithm)}
    changed: dict[str, Any] = {name: _ASKEW[name] for name in own & set(_ASKEW)}
    problem = QuadraticProblem(
        np.diag([0.31, 1.7]),
        [[0.0, 1.0], [2.5, 0.3], [-1.1, 4.0], [0.2, -3.0], [1.9, 1.9], [-2.3, 0.1], [0.7, 0.9]],
        sigma=0.37,
        server_sigma=0.83,
    )
    try:
        return Setting(replace(algorithm, **changed), problem, UniformSubset(7, 3), 11, [6.1, -2.9])
    except (TypeError, ValueError):
        return None


def _numbers_in(setting: Setting) -> dict[str, float]:
    """Return those numbers by name that a setting has itself."""
    algorithm, problem, participation = setting.algorithm, setting.problem, setting.participation
    start = setting.x0 - problem.x_star
    found = {
        "rounds": setting.rounds,
        "n_clients": problem.n_clients,
        "participants": getattr(participation, "size", None),
        "squared_distance": float(start @ start),
        "excess_loss": float(problem.excess_loss(setting.x0)),
        **{key: getattr(problem, key) for key in ("L", "mu", "sigma", "server_sigma", "sigma_G")},
        **{
            key: getattr(algorithm, key, None)
            for key in ("client_lr", "server_lr", "assist_lr", "q", "local_steps")
        },
    }
    return {key: float(value) for key, value in found.items() if value is not None}


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
    formulas: dict[Any, Any] = formulas_of(theorem)  # type: ignore[arg-type]
    for symbol in sorted(bound.free_symbols, key=str):
        if symbol not in formulas:
            raise ValueError(
                f"quantities of {theorem.id} must say which number of a setting {symbol} is for "
                'its bound to be proved, say {D_0: "sqrt(squared_distance)"}'
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
