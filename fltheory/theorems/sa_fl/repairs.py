"""Repairs of SA-FL's refuted inequalities, and their faults one by one.

The printed conditions on q are what the paper's argument spends on 4 q sigma_G^2, the price of
clients who differ. No condition on a run of many rounds pays for it: gradients on its right vanish
(Theorem 4) or stay below it (Theorem 5). A repair leaves the condition out and has the price in
the bound, so that it applies wherever step sizes are small. `FAULTS` keeps the printed forms and
mends each fault of theirs alone, to tell which one a setting shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import sympy as sp

from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, Reduction, RoundRange
from fltheory.grammar.refutation import Mend, Repair, Weight
from fltheory.theorems.sa_fl import proof_4, proof_5
from fltheory.theorems.sa_fl.regimes import OWN_5_REPAIRED
from fltheory.theorems.sa_fl.statements import (
    DRIFT_5,
    STEP_DERIVED_4,
    STEP_DRIFT_5,
    STEP_PRINTED_4,
    SUBMISSION_4,
    THEOREM_4,
    THEOREM_4_DERIVED,
    THEOREM_5,
    bound_5,
    corollary_1_repaired,
    corollary_2_repaired,
    gradient_symbols,
)
from fltheory.theorems.sa_fl.symbols import (
    G_1,
    G_2,
    G_3,
    G_4,
    K,
    L,
    eta_bar,
    eta_c,
    eta_s,
    mu,
    q,
    sigma,
    sigma_G,
)

STEP_REPAIRED_5 = Hypothesis(
    "small client step",
    as_printed(lambda: sp.Le(eta_c, 1 / (16 * L * K))),
    "local drift, (75), and (78)",
)


def _theorem_4(
    printed: Theorem,
    reduction: Reduction,
    *,
    step: Hypothesis = STEP_PRINTED_4,
    power: int = 2,
    quantity: BoundedQuantity = THEOREM_4.quantity,
    price_in_bound: bool = False,
) -> Theorem:
    """Return Theorem 4 with eta_s to a power in the condition on q, or without that condition."""
    smooth, dissimilarity, _, coupling, few = (h for h in printed.hypotheses if not h.is_sign)
    if price_in_bound:
        return replace(
            printed,
            quantity=quantity,
            bound=as_printed(lambda: printed.bound + 4 * q * sigma_G**2),
            hypotheses=(smooth, dissimilarity, step, coupling),
            round_symbols=(),
        )
    clients = 4 * sigma_G**2 - 4 * G_2 * (1 / (2 * K**2) - 2 * L * eta_s**power / K**2)
    condition = sp.Le(q, 1 / (clients / ((1 - L * eta_s) * G_1) + 1))
    return replace(
        printed,
        quantity=quantity,
        hypotheses=(smooth, dissimilarity, step, coupling, replace(few, condition=condition)),
        round_symbols=gradient_symbols(reduction, RoundRange(0, -1)),
    )


def _theorem_5(
    *,
    clients: int = 4,
    server: sp.Expr = 1 / (L + mu),
    step: Hypothesis | None = None,
    price_in_bound: bool = False,
    noise: int = 2,
) -> Theorem:
    """Return Theorem 5 with its condition on q for these gains, or without that condition."""
    *others, coupling, few = (h for h in THEOREM_5.hypotheses if not h.is_sign)
    steps = () if step is None else (step,)
    bound = as_printed(lambda: bound_5(noise))
    if price_in_bound:
        return replace(
            THEOREM_5,
            bound=as_printed(lambda: bound + 4 * q * sigma_G**2 / mu**2),
            hypotheses=(*others, *steps, coupling),
            round_symbols=(),
        )
    numerator = clients * eta_bar / mu**2 * DRIFT_5 * G_3 - 4 / mu * G_4
    denominator = (server - (L + mu) ** 2 * eta_bar / (4 * L**2 * mu**2)) * G_3
    condition = sp.Le(q, 1 / (1 + numerator / denominator))
    return replace(
        THEOREM_5,
        bound=bound,
        hypotheses=(*others, *steps, coupling, replace(few, condition=condition)),
    )


_STEP = Mend(
    "eta_c <= 1/(2 sqrt(30) LK) in place of 1/(4 sqrt(30LK))",
    "(45)",
    {"step": STEP_DERIVED_4},
    Weight.MISPRINT,
)
_POWER = Mend(
    "eta_s in place of eta_s^2 in the condition on q", "(55)", {"power": 1}, Weight.MISPRINT
)
_ROUNDS = Mend(
    "the sum over r = 0 .. R-1 in place of 1 .. R",
    "(51)",
    {"quantity": THEOREM_4_DERIVED.quantity},
    Weight.MISPRINT,
)
_MINIMA = Mend(
    "minima in place of maxima in G_1 and G_2", "(54), (55)", {"reduction": "min"}, Weight.GAP
)
_PRICE_4 = Mend(
    "a term 4 q sigma_G^2 in the bound in place of the condition on q",
    "(52), without (54)",
    {"price_in_bound": True},
    Weight.GAP,
)


def _maxima_of_4(reduction: Reduction = "max", **changes: Any) -> Theorem:
    return _theorem_4(THEOREM_4, reduction, **changes)


_minima_of_submission_4 = partial(_theorem_4, SUBMISSION_4, "min")

FAULTS: Mapping[str, Repair[Theorem]] = {
    "sa-fl/4": Repair((_STEP, _POWER, _ROUNDS, _MINIMA), _maxima_of_4),
    "sa-fl-submission/4": Repair((_STEP, _POWER, _ROUNDS), _minima_of_submission_4),
    "sa-fl/5": Repair(
        (
            Mend(
                "16 etabar/mu^2 in place of 4 etabar/mu^2 in the condition on q",
                "(80)",
                {"clients": 16},
                Weight.MISPRINT,
            ),
            Mend(
                "1/(L mu) in place of 1/(L+mu) in the condition on q",
                "(81)",
                {"server": 1 / (L * mu)},
                Weight.MISPRINT,
            ),
            Mend(
                "eta_c <= 1/(8LK) as a further hypothesis",
                "(75)",
                {"step": STEP_DRIFT_5},
                Weight.MISSING_HYPOTHESIS,
            ),
        ),
        _theorem_5,
    ),
}
"""Each fault of a printed statement by itself, the form of its condition on q kept."""

REPAIR_4 = Repair(
    (_STEP, _ROUNDS, _PRICE_4),
    _maxima_of_4,
    proof_4.repaired(THEOREM_4.bound + 4 * q * sigma_G**2, STEP_DERIVED_4.condition),
)
REPAIR_SUBMISSION_4 = Repair(
    # With the step's limit mended nothing is known against its condition, which asks for minima.
    (_STEP, _ROUNDS, replace(_PRICE_4, weight=None)),
    _minima_of_submission_4,
    proof_4.repaired(SUBMISSION_4.bound + 4 * q * sigma_G**2, STEP_DERIVED_4.condition, sigma),
)
_STEP_5 = Mend(
    "eta_c <= 1/(16LK) as a further hypothesis",
    "(75), (78)",
    {"step": STEP_REPAIRED_5},
    Weight.MISSING_HYPOTHESIS,
)
_NOISE_5 = Mend(
    "4 q eta_c sigma^2/(mu m) in place of 2 q eta_c sigma^2/(mu m) in the bound",
    "(61), the cited lemma's factor 2",
    {"noise": 4},
    Weight.GAP,
)
_PRICE_5 = Mend(
    "a term 4 q sigma_G^2/mu^2 in the bound in place of the condition on q, which has 1/(L+mu) "
    "instead of 1/(L mu)",
    "(78), (81)",
    {"price_in_bound": True},
    Weight.MISPRINT,
)
_BOUND_5 = _theorem_5(noise=4, price_in_bound=True).bound
REPAIR_5 = Repair(
    (_STEP_5, _NOISE_5, _PRICE_5),
    _theorem_5,
    proof_5.repaired(
        _BOUND_5,
        next(h.condition for h in THEOREM_5.hypotheses if h.name == "small server step"),
        STEP_REPAIRED_5.condition,
    ),
)

_REPAIRED_4 = REPAIR_4.theorem()
_REPAIRED_5 = replace(REPAIR_5.theorem(), own_run=OWN_5_REPAIRED)

STATEMENTS: tuple[Statement, ...] = (
    REPAIR_SUBMISSION_4.theorem(),
    _REPAIRED_4,
    _REPAIRED_5,
    corollary_1_repaired(_REPAIRED_4),
    corollary_2_repaired(_REPAIRED_5),
)
