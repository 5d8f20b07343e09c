"""What is known of a quantity without end: that it stays, or falls no faster than a power.

With the same steps in every round the moments of a run converge, and often not to zero: gradient
noise and clients who stay away leave an error that no number of rounds removes. Such a limit
refutes every order that vanishes, whatever constants it hides, and no slope needs to be fitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from fltheory.engines import Setting, stationary
from fltheory.grammar.quantities import BoundedQuantity


@dataclass(frozen=True)
class KnownDecay:
    """How a quantity is known to decay without end: at least a multiple of a power.

    Attributes
    ----------
    exponent : float
        Of the variable; zero where the quantity stays above a positive number.
    why : str
        The reason, in a few words, as said of the truth.
    in_floats : bool
        Whether it was computed, in floats; what is proved by hand is not.
    """

    exponent: float
    why: str
    in_floats: bool = False


_FIELDS = ("squared_distance", "squared_gradient", "excess_loss")


def known_limit(quantity: Any, settings: Sequence[Setting]) -> float | None:
    """Return what a quantity's limit is at least, if a run has one; None where none is known.

    Parameters
    ----------
    quantity : BoundedQuantity, or what needs no run
        Its last value, or a plain mean over the rounds, which has the same limit.
    settings : sequence of Setting
        Along a variable: runs that differ in their numbers of rounds alone.
    """
    if not isinstance(quantity, BoundedQuantity) or quantity.field not in _FIELDS:
        return None
    if quantity.reduction not in ("last", "mean") or quantity.weights is not None:
        return None
    first = settings[0]
    if not all(_differ_in_rounds_alone(first, other) for other in settings):
        return None
    try:
        limit = stationary(first)
    except (ValueError, ArithmeticError):
        return None
    value = float(getattr(limit, quantity.field)) - limit.rounding_error.get(quantity.field, 0.0)
    return max(value, 0.0) if limit.converges and math.isfinite(value) else None


def _differ_in_rounds_alone(one: Setting, other: Setting) -> bool:
    return (
        one.algorithm is other.algorithm
        and one.problem is other.problem
        and one.participation is other.participation
    )


def vanishes(order: sp.Expr, variable: sp.Symbol, values: Mapping[sp.Symbol, float]) -> bool:
    """Tell whether a claimed order tends to zero as its variable grows, all else as it is.

    False, too, where SymPy cannot find its limit, as of some maxima and cases: nothing is then
    known of it, and slopes decide.
    """
    known: dict[Any, Any] = {
        symbol: value
        for symbol, value in values.items()
        if symbol != variable and symbol in order.free_symbols
    }
    try:
        return bool(sp.limit(order.subs(known), variable, sp.oo) == 0)
    except (NotImplementedError, TypeError, ValueError):
        return False
