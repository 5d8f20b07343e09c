"""Repairs of SA-FL's refuted inequalities: the printed forms, with few changes.

The ``derived`` readings are what the proofs give, in the proofs' own form; they ask for less,
so they say more. A repair stays as near to the printed statement as the proof allows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import sympy as sp

from fltheory.theorems.repair import Mend, Repair
from fltheory.theorems.sa_fl import (
    DRIFT_5,
    STEP_DERIVED_4,
    STEP_DRIFT_5,
    STEP_PRINTED_4,
    SUBMISSION_4,
    THEOREM_4,
    THEOREM_4_DERIVED,
    THEOREM_5,
    gradient_symbols,
)
from fltheory.theorems.sa_fl_symbols import (
    G_1,
    G_2,
    G_3,
    G_4,
    K,
    L,
    eta_bar,
    eta_s,
    mu,
    q,
    sigma_G,
)
from fltheory.theorems.statement import (
    BoundedQuantity,
    Hypothesis,
    Reduction,
    RoundRange,
    Statement,
    Theorem,
)


def _theorem_4(
    printed: Theorem,
    reduction: Reduction,
    *,
    step: Hypothesis = STEP_PRINTED_4,
    power: int = 2,
    quantity: BoundedQuantity = THEOREM_4.quantity,
) -> Theorem:
    """Return Theorem 4 with eta_s to a power in the condition on q."""
    smooth, dissimilarity, _, coupling, few = printed.hypotheses
    clients = 4 * sigma_G**2 - 4 * G_2 * (1 / (2 * K**2) - 2 * L * eta_s**power / K**2)
    condition = sp.Le(q, 1 / (clients / ((1 - L * eta_s) * G_1) + 1))
    return replace(
        printed,
        quantity=quantity,
        hypotheses=(smooth, dissimilarity, step, coupling, replace(few, condition=condition)),
        round_symbols=gradient_symbols(reduction, RoundRange(0, -1)),
    )


def _theorem_5(*, clients: int = 4, server: sp.Expr = 1 / (L + mu), drift: bool = False) -> Theorem:
    """Return Theorem 5 with its condition on q for these gains, and with a limit on eta_c."""
    *others, coupling, few = THEOREM_5.hypotheses
    numerator = clients * eta_bar / mu**2 * DRIFT_5 * G_3 - 4 / mu * G_4
    denominator = (server - (L + mu) ** 2 * eta_bar / (4 * L**2 * mu**2)) * G_3
    condition = sp.Le(q, 1 / (1 + numerator / denominator))
    step = (STEP_DRIFT_5,) if drift else ()
    return replace(
        THEOREM_5, hypotheses=(*others, *step, coupling, replace(few, condition=condition))
    )


_STEP = Mend("eta_c <= 1/(2 sqrt(30) LK) for 1/(4 sqrt(30LK))", "(45)", {"step": STEP_DERIVED_4})
_POWER = Mend("eta_s for eta_s^2 in the condition on q", "(55)", {"power": 1})
_ROUNDS = Mend(
    "the sum over r = 0 .. R-1 for 1 .. R", "(51)", {"quantity": THEOREM_4_DERIVED.quantity}
)
_MINIMA = Mend("minima for maxima in G_1 and G_2", "(54), (55)", {"reduction": "min"})

REPAIR_4 = Repair(
    (_STEP, _POWER, _ROUNDS, _MINIMA),
    lambda reduction="max", **changes: _theorem_4(THEOREM_4, reduction, **changes),
)
REPAIR_SUBMISSION_4 = Repair((_STEP, _POWER, _ROUNDS), partial(_theorem_4, SUBMISSION_4, "min"))
REPAIR_5 = Repair(
    (
        Mend("16 etabar/mu^2 for 4 etabar/mu^2 in the condition on q", "(80)", {"clients": 16}),
        Mend("1/(L mu) for 1/(L+mu) in the condition on q", "(81)", {"server": 1 / (L * mu)}),
        Mend("eta_c <= 1/(8LK) as a further hypothesis", "(75)", {"drift": True}),
    ),
    _theorem_5,
)

STATEMENTS: tuple[Statement, ...] = tuple(
    repair.theorem() for repair in (REPAIR_SUBMISSION_4, REPAIR_4, REPAIR_5)
)
