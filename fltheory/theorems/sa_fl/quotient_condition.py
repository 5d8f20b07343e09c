"""Conditions ``q <= 1/(1 + N/D)``, and their form without the fraction."""

from __future__ import annotations

import sympy as sp
from sympy.core.relational import Relational

from fltheory.derivations.derivation import Implied, Step


def quotient(condition: Relational) -> tuple[sp.Expr, sp.Expr]:
    """Return N and D of ``q <= 1/(1 + N/D)``, as written.

    Examples
    --------
    >>> x, y, q = sp.symbols("x y q", positive=True)
    >>> quotient(sp.Le(q, 1 / (1 + (x - 1) / (2 + y))))
    (x - 1, y + 2)
    """
    numerator, denominator = sp.fraction(1 / condition.rhs - 1)
    return numerator, denominator


def clearing_steps(condition: Relational, domain: tuple[Relational, ...]) -> tuple[Step, ...]:
    """Return the steps from ``q <= 1/(1 + N/D)`` to ``q (N + D) <= D`` and back."""
    over, under = quotient(condition)
    cleared = sp.Le(condition.lhs * (over + under), under)
    positive = sp.Gt(under, 0, evaluate=False)
    return (
        Step(
            "clearing the fraction",
            "q <= 1/(1 + N/D) gives q (N + D) <= D, where D > 0 and N + D > 0",
            Implied(
                given=(condition,),
                claimed=cleared,
                domain=(*domain, positive, sp.Gt(over + under, 0, evaluate=False)),
                multipliers=(over + under,),
            ),
        ),
        Step(
            "clearing the fraction, any D",
            "q <= 1/(1 + N/D) gives q (N + D) <= D, whatever the sign of D",
            Implied(given=(condition,), claimed=cleared, domain=domain),
        ),
        Step(
            "clearing the fraction, converse",
            "q (N + D) <= D with D > 0 gives q <= 1/(1 + N/D), so that nothing is lost",
            Implied(given=(cleared,), claimed=condition, domain=(*domain, positive)),
        ),
    )
