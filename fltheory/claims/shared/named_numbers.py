"""Numbers of a setting by name, and a check of ``quantities`` against ``constants``.

A statement says which number of a setting each symbol is, as a formula in the names that the
checker of certificates knows (``{D_0: "sqrt(squared_distance)"}``). Here these names are symbols
themselves, so that a form of theorem is found whatever letters its author chose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import sympy as sp
from sympy.parsing.sympy_parser import parse_expr

from fltheory.engines import Setting
from fltheory.evidence.evaluation import WithConstants, check_constants
from fltheory.grammar.regime import Regime
from fltheory.participation import UniformSubset
from fltheory.participation.uniformity import mean_size
from fltheory.problems import QuadraticProblem

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
    "least_availability",
    "largest_availability",
)
NUMBERS: Mapping[str, sp.Symbol] = (
    {name: sp.Symbol(name, positive=True, integer=True) for name in _WHOLE}
    | {name: sp.Symbol(name, positive=True) for name in _POSITIVE}
    | {name: sp.Symbol(name, nonnegative=True) for name in _OTHERS}
)
"""Numbers of a setting that a class and a round have, or that a bound starts from, by name."""


class WithQuantities(WithConstants, Protocol):
    """A statement that says which numbers of a setting its symbols are."""

    @property
    def quantities(self) -> Mapping[sp.Symbol, str]:
        """The formula of each symbol."""
        ...

    @property
    def regimes(self) -> Mapping[str, Regime]:
        """Named settings."""
        ...


def formulas_of(statement: WithQuantities) -> dict[sp.Symbol, sp.Expr]:
    """Return what each symbol of a statement is, in `NUMBERS` where they have the name."""
    return {symbol: _formula(text) for symbol, text in statement.quantities.items()}


@lru_cache(maxsize=256)
def _formula(text: str) -> sp.Expr:
    return parse_expr(text, local_dict=dict(NUMBERS))


def check_quantities(statement: WithQuantities) -> None:
    """Raise ValueError unless ``quantities`` are what ``constants`` are, in every regime.

    Proofs and certificates speak of what ``quantities`` say, and verdicts of what ``constants``
    say: they must be one statement. Two numbers of a regime may coincide, as m = N where everybody
    takes part, so they are compared in a setting beside each regime, too, where they do not.
    """
    for name, regime in statement.regimes.items():
        where = f"the regime {name!r}"
        _compare(statement, where, regime.setting, statement.constants(regime.setting))
    for name, regime in statement.regimes.items() if statement.quantities else ():
        beside = _perturbed(regime.setting)
        if beside is None:
            continue
        try:
            given = statement.constants(beside)
        except ValueError:
            # It need not speak of a setting of which nobody asked it.
            continue
        _compare(statement, f"one beside {name!r}", beside, given)


def _compare(
    statement: WithQuantities, where: str, setting: Setting, given: Mapping[sp.Symbol, Any]
) -> None:
    """Raise ValueError if the constants of one setting are not what ``quantities`` say."""
    check_constants(statement, given, f" in {where}")
    if not statement.quantities:
        return
    numbers: dict[Any, Any] = {NUMBERS[key]: value for key, value in _numbers_in(setting).items()}
    for symbol, formula in formulas_of(statement).items():
        # Most formulas are a number's name, for which substitution would be slow.
        meant: Any = numbers[formula] if formula in numbers else formula.subs(numbers)
        if symbol not in given or not sp.sympify(meant).is_number:
            continue
        if not math.isclose(float(meant), float(given[symbol]), rel_tol=_ROUNDING):
            raise ValueError(
                f"quantities of {statement.id} must be what its constants are, got "
                f"{symbol} = {statement.quantities[symbol]}, which is {float(meant):g} and not "
                f"{float(given[symbol]):g} in {where}"
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
        "participants": mean_size(participation),
        "least_availability": participation.marginals.min(),
        "largest_availability": participation.marginals.max(),
        "squared_distance": float(start @ start),
        "excess_loss": float(problem.excess_loss(setting.x0)),
        **{key: getattr(problem, key) for key in ("L", "mu", "sigma", "server_sigma", "sigma_G")},
        **{
            key: getattr(algorithm, key, None)
            for key in ("client_lr", "server_lr", "assist_lr", "q", "local_steps")
        },
    }
    return {key: float(value) for key, value in found.items() if value is not None}
