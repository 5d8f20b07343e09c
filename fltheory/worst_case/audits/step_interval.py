"""One inequality for every step size of an interval, proved on a few boxes.

Over the step size the slack is a cubic matrix polynomial, if multipliers are in proportion to the
step and the claim has degree four at most. Where its Bernstein coefficients are positive
semidefinite it is so in between. What cannot be proved on an interval is tried on its halves.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from fltheory.decimals import as_fraction
from fltheory.theorems import Theorem
from fltheory.worst_case.audits.played_round import SafariRound
from fltheory.worst_case.audits.theorem_form import DISTANCE_FORM, NUMBERS, form_of
from fltheory.worst_case.checker.one_round import BERNSTEIN, NODES, RESIDUAL, Box
from fltheory.worst_case.rounds.certificate import (
    Certificate,
    certificate_text,
    of_bits,
    rounded_box,
)
from fltheory.worst_case.rounds.client_class import ClientClass, exact
from fltheory.worst_case.rounds.measure import DISTANCE
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import Form, Slack, slack_of

_MOST_BOXES = 64
Polynomials = dict[str, list[Fraction]]


def interval_certificate(
    theorem: Theorem, client_class: ClientClass, played: SafariRound, *, first: Any, last: Any
) -> Certificate | None:
    """Prove a theorem's one-round inequality for all step sizes of the clients in an interval.

    Parameters
    ----------
    theorem, client_class, played
        As in `audit`, of a bound on the distance.
    first, last : number
        The smallest and largest ``client_lr``, in place of that of ``played``; the server's step
        follows the coupling.

    Returns
    -------
    Certificate or None
        None if it is not proved on 64 boxes.

    Raises
    ------
    ValueError
        For what `audit` refuses, or ``first`` not below ``last``.
    """
    low, high = (exact(name, value, above=0) for name, value in (("first", first), ("last", last)))
    if low >= high:
        raise ValueError(f"first must be below last = {high}, got {first!r}")
    if form_of(theorem) is not DISTANCE_FORM:
        raise ValueError(f"theorem must bound the distance to x*, got {theorem.id}")
    a_round = replace(played, client_lr=low).coupled(theorem, client_class)
    bound = _polynomials(theorem, client_class, a_round)
    done: list[Box] = []
    waiting = [(low, high)]
    while waiting:
        if len(done) + len(waiting) > _MOST_BOXES:
            return None
        start, end = waiting.pop()
        box = _box(a_round, client_class, bound, start, end)
        if box is None:
            middle = Fraction((float(start) * float(end)) ** 0.5).limit_denominator(10**6)
            if not start < middle < end:
                return None
            waiting += [(middle, end), (start, middle)]
        else:
            done.append(box)
    return Certificate.accepted(certificate_text(a_round, client_class, DISTANCE, bound, done))


def _polynomials(theorem: Theorem, clients: ClientClass, a_round: OneRound) -> Polynomials:
    """Return the one-round inequality's coefficients as polynomials in client_lr."""
    step = sp.Symbol("step", positive=True)
    ratio = a_round.assist_lr / a_round.client_lr
    steps: dict[sp.Basic | complex, Any] = {
        NUMBERS["client_lr"]: step,
        NUMBERS["assist_lr"]: sp.Rational(ratio.numerator, ratio.denominator) * step,
    }
    parts = DISTANCE_FORM.parts(theorem, clients, a_round, steps)
    rate = parts.pop("rate")
    of_round = {"rate": rate} | {name: (1 - rate) * part for name, part in parts.items()}
    return {"gap": [Fraction(0)]} | {
        name: [
            as_fraction(c) for c in reversed(sp.Poly(sp.expand(of_round[name]), step).all_coeffs())
        ]
        for name in ("rate", *RESIDUAL)
    }


def _value(polynomial: list[Fraction], at: Fraction) -> Fraction:
    return sum((c * at**power for power, c in enumerate(polynomial)), Fraction(0))


def _box(
    a_round: OneRound, clients: ClientClass, bound: Polynomials, low: Fraction, high: Fraction
) -> Box | None:
    """Return multipliers for all step sizes of a box, None if none are found."""
    nodes = [low + (high - low) * node for node in NODES]
    rounds = [
        replace(a_round, client_lr=at, assist_lr=a_round.assist_lr / a_round.client_lr * at)
        for at in nodes
    ]
    claims = [_over_e(played, clients, bound) for played in rounds]
    slacks = [slack_of(played, clients) for played in rounds]
    if any(value < 0 for claim in claims for value in claim[1:]):
        return None
    together = _bernstein(slacks, claims)
    from fltheory.worst_case.rounds.program import Program

    middle = claims[len(claims) // 2]
    bases = [basis for _ in NODES for basis in slacks[1].bases(*middle)]
    solution = Program(together, bases).widest_slack(1.0, 1.0, 1.0)
    if solution is None or solution.value > 0:
        return None
    for bits in (32, 44):
        box = rounded_box(a_round, slacks[0], solution.multipliers, of_bits(bits), (low, high))
        text = certificate_text(a_round, clients, DISTANCE, bound, [box])
        if Certificate.accepted(text) is not None:
            return box
    return None


def _over_e(
    played: OneRound, clients: ClientClass, bound: Polynomials
) -> tuple[float, float, float]:
    """Return decrease, budget of heterogeneity and of noise over e, at a step size."""
    e = clients.L * played.client_lr
    rate, heterogeneity, noise = (
        _value(bound[name], played.client_lr) for name in ("rate", "heterogeneity", "noise")
    )
    last = played.q * (played.server_lr * played.client_lr) ** 2 / played.participants
    scale = clients.L**2 / e
    left = (noise - last) * scale if clients.sigma > 0 else Fraction(0)
    return float((1 - rate) / e), float(heterogeneity * scale), float(left)


def _bernstein(slacks: list[Slack], claims: list[tuple[float, float, float]]) -> Slack:
    """Return the Bernstein coefficients of slacks at the nodes, side by side as blocks."""
    matrix = np.array(BERNSTEIN, dtype=np.float64)

    def joined(forms: list[Form], factors: list[float]) -> Form:
        return [
            sum(
                (
                    weight * factor * form[block]
                    for weight, factor, form in zip(row, factors, forms, strict=True)
                ),
                np.zeros((size, size)),
            )
            for row in matrix
            for block, size in enumerate(slacks[0].sizes)
        ]

    def each(name: str, factors: list[float]) -> list[Form]:
        forms = zip(*(getattr(slack, name) for slack in slacks), strict=True)
        return [joined(list(own), factors) for own in forms]

    ones = [1.0] * len(slacks)
    decreases, budgets, noises = (list(column) for column in zip(*claims, strict=True))
    return replace(
        slacks[0],
        sizes=slacks[0].sizes * len(slacks),
        decrease=joined([slack.decrease for slack in slacks], decreases),
        change=joined([slack.change for slack in slacks], ones),
        conditions=each("conditions", ones),
        budgets=each("budgets", budgets),
        noises=each("noises", noises),
        orthogonal=each("orthogonal", ones),
    )
