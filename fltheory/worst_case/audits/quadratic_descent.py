"""Quadratic clients with one Hessian that break a bound on the descent of F.

As in `quadratic_witness`, what is bounded is a quadratic form in the start along one axis, the
eligible clients' mean tilt, and the variance of their tilts along the others. F is smallest at 0,
where it is 0, and the curvatures are positive: convex clients are smooth ones, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from typing import Any

from fltheory.worst_case.audits.quadratic_witness import (
    Form,
    QuadraticWitness,
    TiltedClients,
    curvatures_of,
    few_enough,
    in_decimals,
    largest_mean_tilt,
    second_moments,
    within_class,
)
from fltheory.worst_case.rounds.measure import AnyClass, Claim
from fltheory.worst_case.rounds.one_round import OneRound

_MOST_ROUNDS = 128

Sides = Callable[[Any, type[Any]], tuple[Form, Any]]
"""For a curvature: coefficients of what is bounded, and of the squared start in the bound."""


def quadratic_descent_witness(
    a_round: OneRound, clients: AnyClass, claim: Claim
) -> QuadraticWitness | None:
    """Return quadratic clients that break a claim on F after one round, None if none do."""

    def sides(h: Any, number: type[Any]) -> tuple[Form, Any]:
        form = next(islice(second_moments(a_round, h, number), 1, None))
        start = h / 2 - number(claim.speed) * h * h
        return tuple(part * h / 2 for part in form), start

    return _broken(a_round, clients, claim.heterogeneity, 1, sides)


def quadratic_gradient_witness(
    a_round: OneRound, clients: AnyClass, claim: Claim, first: int
) -> QuadraticWitness | None:
    """Return quadratic clients that break a claim's sum over some R, None if none do.

    That is ``1/R sum E||grad F(x_r)||^2 <= (F(x_0) - F*)/(decrease R) + residual/decrease``, over
    the R rounds from ``first`` on; R is tried up to 128.
    """
    if claim.speed <= 0:
        return None
    rounds = 1
    while rounds <= _MOST_ROUNDS:

        def sides(h: Any, number: type[Any], rounds: int = rounds) -> tuple[Form, Any]:
            forms = islice(second_moments(a_round, h, number), first, first + rounds)
            total = [sum(parts) * h * h / rounds for parts in zip(*forms, strict=True)]
            start = h / 2 / (number(claim.speed) * rounds)
            return tuple(total), start

        floor = claim.heterogeneity / claim.speed
        found = _broken(a_round, clients, floor, rounds, sides)
        if found is not None:
            return found
        rounds *= 2
    return None


def _broken(
    a_round: OneRound, clients: AnyClass, residual: Fraction, rounds: int, sides: Sides
) -> QuadraticWitness | None:
    """Return the clients for which the excess over a bound is largest, if they break it."""
    if not few_enough(a_round):
        return None
    forms = {float(h): sides(float(h), float) for h in curvatures_of(clients)}
    spread_at = max(forms, key=lambda h: float(forms[h][0][3]))
    spread, floor = forms[spread_at][0][3], float(residual)
    most = float(largest_mean_tilt(a_round))
    best: tuple[float, float, float, float] | None = None
    for h, ((xx, xt, tt, _), start) in forms.items():
        for mean in {0.0, most}:
            fixed = tt * mean**2 + spread * (1 - mean**2) - floor
            if xx >= start:
                # From far enough away the start alone breaks the claim.
                far = 2 * math.sqrt((abs(fixed) + 1) / max(xx - start, 1e-12))
                found = math.inf, h, 0.0, far
            else:
                found = fixed + (xt * mean) ** 2 / (start - xx), h, mean, xt * mean / (start - xx)
            best = found if best is None or found[0] > best[0] else best
    if best is None or best[0] <= 0:
        return None
    return _written(a_round, clients, residual, rounds, sides, best[1:], spread_at)


def _written(
    a_round: OneRound,
    clients: AnyClass,
    residual: Fraction,
    rounds: int,
    sides: Sides,
    found: tuple[float, float, float],
    spread_at: float,
) -> QuadraticWitness | None:
    """Return the witness in decimals, if it breaks the claim in fractions."""
    curvature, mean, start = found
    h, g = (within_class(value, clients) for value in (curvature, spread_at))
    tilted, z = TiltedClients.of(a_round, mean), in_decimals(start)
    (xx, xt, tt, _), of_start = sides(h, Fraction)
    spread = sides(g, Fraction)[0][3]
    truth = xx * z**2 + 2 * xt * z * tilted.mean + tt * tilted.mean**2 + spread * tilted.variance
    bound = of_start * z**2 + residual * tilted.heterogeneity
    return None if truth <= bound else tilted.witness(a_round, (h, g), z, rounds, truth, bound)
