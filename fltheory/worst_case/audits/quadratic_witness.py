"""Quadratic clients with one Hessian that break a bound; their dissimilarity is bounded everywhere.

Definitions
-----------
Coordinates do not mix. Along a coordinate of curvature h, a client round takes x to ``A x - B t``.
Here t is the participants' mean tilt, ``A = 1 - h B`` and
``B = server_lr (1 - (1 - client_lr h)^K) / h``. A server round takes x to ``(1 - assist_lr h) x``.
So ``E x_R^2`` is a quadratic form in the start and the eligible clients' mean tilt, plus a multiple
of the variance of their tilts, and its coefficients follow a recursion. For each curvature, the
largest amount by which a bound is exceeded then has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.client_class import ClientClass
from fltheory.worst_case.rounds.measure import AnyClass, Claim
from fltheory.worst_case.rounds.one_round import OneRound

N_CURVATURES = 65
_MOST_CLIENTS = 200
_DECIMALS = 10**6

Number = TypeVar("Number", float, Fraction)


@dataclass(frozen=True)
class QuadraticWitness:
    """Quadratic clients in decimals, and both sides of a bound that they break.

    Attributes
    ----------
    round : OneRound
    curvatures : tuple of Fraction, (d,)
        Diagonal of the Hessian that all clients share.
    optima : tuple of tuples, (N, d)
        The clients' minimisers. The last clients never take part. F is smallest at zero.
    x0 : tuple of Fraction, (d,)
    rounds : int
        R.
    truth, bound : Fraction
        The value of ``E||x_R||^2`` or another bounded quantity, and the claimed bound, which is
        smaller.
    """

    round: OneRound
    curvatures: tuple[Fraction, ...]
    optima: tuple[tuple[Fraction, ...], ...]
    x0: tuple[Fraction, ...]
    rounds: int
    truth: Fraction
    bound: Fraction

    @property
    def setting(self) -> Setting:
        """The setting, for the engines."""
        played, n_clients = self.round, len(self.optima)
        return Setting(
            played.algorithm,
            QuadraticProblem(
                np.diag(np.array(self.curvatures, dtype=np.float64)),
                np.array(self.optima, dtype=np.float64),
            ),
            UniformSubset(
                n_clients,
                played.participants,
                excluded=range(int(played.n_eligible or 0), n_clients),
            ),
            self.rounds,
            np.array(self.x0, dtype=np.float64),
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """The problem in a few lines."""
        return (
            f"Hessian diag({', '.join(map(str, self.curvatures))}), R = {self.rounds}, "
            f"x0 = ({', '.join(map(str, self.x0))})",
            *(
                f"client {index}: optimum ({', '.join(map(str, optimum))})"
                for index, optimum in enumerate(self.optima)
            ),
        )


@dataclass(frozen=True)
class RoundsClaim:
    """``E||x_R||^2 <= start ||x_0||^2 + heterogeneity sigma_G^2`` for one R."""

    rounds: int
    start: Fraction
    heterogeneity: Fraction


def curvatures_of(clients: AnyClass) -> FloatArray:
    """Return positive curvatures that clients of a class can have."""
    low, high = max(float(clients.mu), 0.0), float(clients.L)
    return np.linspace(low, high, N_CURVATURES)[0 if low else 1 :]


def largest_mean_tilt(a_round: OneRound) -> Fraction:
    """Return the largest mean tilt of eligible clients that the excluded clients can balance."""
    share = a_round.excluded_share
    return min(Fraction(1), share / (1 - share))


Form = tuple[Any, Any, Any, Any]


def second_moments(a_round: OneRound, h: Any, number: type[Any]) -> Iterator[Form]:
    """Yield the coefficients of x^2, 2 x t, t^2 and the tilts' variance in E x_r^2, r = 0, 1, .."""
    q, gain, own, variance = (
        number(value)
        for value in (
            a_round.q,
            a_round.server_lr,
            a_round.assist_lr,
            a_round.sampling_variance,
        )
    )
    reach = gain * (1 - (1 - number(a_round.client_lr) * h) ** a_round.local_steps) / h
    stay, server = 1 - h * reach, 1 - own * h
    mean, square = q * stay + (1 - q) * server, q * stay**2 + (1 - q) * server**2
    one, zero = number(1), number(0)
    first, shift = one, zero
    xx, xt, tt, spread = one, zero, zero, zero
    while True:
        yield xx, xt, tt, spread
        xx, xt, tt, spread = (
            square * xx,
            square * xt - q * stay * reach * first,
            square * tt - 2 * q * stay * reach * shift + q * reach**2,
            square * spread + q * reach**2 * variance,
        )
        first, shift = mean * first, mean * shift - q * reach


def _moments_after(a_round: OneRound, h: Any, rounds: int, number: type[Any]) -> Form:
    return next(islice(second_moments(a_round, h, number), rounds, None))


def in_decimals(start: float) -> Fraction:
    """Return the number rounded to six decimals, or to a simple fraction if rounding gives zero."""
    rounded = Fraction(round(start * _DECIMALS), _DECIMALS)
    return rounded if rounded or not start else Fraction(start).limit_denominator(10**12)


@dataclass(frozen=True)
class TiltedClients:
    """Tilts of clients with one Hessian, i.e. gradients at zero, in decimals; they add up to zero.

    Attributes
    ----------
    tilts : list of tuples, (N, d)
        The tilts of the eligible clients come first, and are equal along the first axis.
    mean : Fraction
        The eligible clients' mean tilt along the first axis.
    heterogeneity, variance : Fraction
        The largest squared length of a tilt, and the eligible clients' variance along the other
        axes.
    """

    tilts: list[tuple[Fraction, ...]]
    mean: Fraction
    heterogeneity: Fraction
    variance: Fraction

    @classmethod
    def of(cls, a_round: OneRound, mean: float) -> TiltedClients:
        """Return clients that differ as much as possible, given the eligible clients' mean tilt."""
        eligible, n_clients = int(a_round.n_eligible or 0), int(a_round.n_clients or 0)
        excluded = n_clients - eligible
        tilt = min(Fraction(math.floor(mean * _DECIMALS), _DECIMALS), largest_mean_tilt(a_round))
        length = Fraction(math.isqrt(int((1 - tilt**2) * _DECIMALS**2)), _DECIMALS)
        units = _units(eligible)
        tilts = [(tilt, *(length * part for part in unit)) for unit in units]
        zeros = (Fraction(0),) * (len(tilts[0]) - 1)
        tilts += [(-tilt * eligible / excluded, *zeros)] * excluded if excluded else []
        squares = [[part**2 for part in own] for own in tilts]
        apart = sum((part for own in squares[:eligible] for part in own[1:]), Fraction(0))
        return cls(tilts, tilt, max(sum(own, Fraction(0)) for own in squares), apart / eligible)

    def witness(
        self,
        a_round: OneRound,
        curvatures: tuple[Fraction, Fraction],
        start: Fraction,
        rounds: int,
        truth: Fraction,
        bound: Fraction,
    ) -> QuadraticWitness:
        """Return these clients as a witness, given curvatures for the first and the other axes."""
        others = len(self.tilts[0]) - 1
        scales = (curvatures[0], *[curvatures[1]] * others)
        # A tilt t is the gradient at zero, so the optimum is -t/h.
        optima = tuple(
            tuple(-t / own for t, own in zip(row, scales, strict=True)) for row in self.tilts
        )
        x0 = (start, *[Fraction(0)] * others)
        return QuadraticWitness(a_round, scales, optima, x0, rounds, truth, bound)


def within_class(value: float, clients: AnyClass) -> Fraction:
    """Return the closest positive curvature of the class, in decimals."""
    rounded = Fraction(round(value * _DECIMALS), _DECIMALS)
    least = clients.mu if clients.mu > 0 else Fraction(1, _DECIMALS)
    return min(max(rounded, least), clients.L)


def _units(count: int) -> list[tuple[Fraction, ...]]:
    """Return vectors that add up to zero and are at most, and in decimals nearly, of length one."""
    if count < 2:
        return [()] * count
    pairs: list[tuple[Fraction, ...]] = [(Fraction((-1) ** index),) for index in range(count)]
    if count % 2 == 0:
        return pairs
    half, height = Fraction(1, 2), Fraction(866025, 10**6)
    three: list[tuple[Fraction, ...]] = [
        (Fraction(1), Fraction(0)),
        (-half, height),
        (-half, -height),
    ]
    return three + [(own[0], Fraction(0)) for own in pairs[: count - 3]]


# ------------------------------------------------------------ claims The bounded quantity is a
# quadratic form in the start and the eligible clients' mean tilt along one axis, plus a multiple of
# the variance of their tilts along the other axes. F is smallest at 0, where it is 0. Curvatures
# are positive, which a class of smooth clients also allows.

_MOST_ROUNDS = 128

Sides = Callable[[Any, type[Any]], tuple[Form, Any]]
"""For a curvature: coefficients of what is bounded, and of the squared start in the bound."""


def quadratic_witness(
    a_round: OneRound, clients: ClientClass, claims: Iterator[RoundsClaim]
) -> QuadraticWitness | None:
    """Return quadratic clients that break one of the claims, or None if none are found."""
    for claim in claims:

        def sides(h: Any, number: type[Any], claim: RoundsClaim = claim) -> tuple[Form, Any]:
            return _moments_after(a_round, h, claim.rounds, number), number(claim.start)

        found = _broken(a_round, clients, claim.heterogeneity, claim.rounds, sides)
        if found is not None:
            return found
    return None


def quadratic_descent_witness(
    a_round: OneRound, clients: AnyClass, claim: Claim
) -> QuadraticWitness | None:
    """Return quadratic clients that break a claim on F after one round, or None if not found."""

    def sides(h: Any, number: type[Any]) -> tuple[Form, Any]:
        start = h / 2 - number(claim.speed) * h * h
        return tuple(part * h / 2 for part in _moments_after(a_round, h, 1, number)), start

    return _broken(a_round, clients, claim.heterogeneity, 1, sides)


def quadratic_gradient_witness(
    a_round: OneRound, clients: AnyClass, claim: Claim, first: int
) -> QuadraticWitness | None:
    """Return quadratic clients that break a claim summed over some R rounds, or None.

    The summed claim is
    ``1/R sum E||grad F(x_r)||^2 <= (F(x_0) - F*)/(decrease R) + residual/decrease``, over the R
    rounds starting with ``first``, for R up to 128.
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
    """Return the clients that exceed a bound by the largest amount, if any exceed it."""
    if a_round.n_clients is None or a_round.n_clients > _MOST_CLIENTS:
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
                # If the start is far enough away, the start alone breaks the claim.
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
    """Return the witness in decimals, if exact fractions confirm that it breaks the claim."""
    curvature, mean, start = found
    h, g = (within_class(value, clients) for value in (curvature, spread_at))
    tilted, z = TiltedClients.of(a_round, mean), in_decimals(start)
    (xx, xt, tt, _), of_start = sides(h, Fraction)
    spread = sides(g, Fraction)[0][3]
    truth = xx * z**2 + 2 * xt * z * tilted.mean + tt * tilted.mean**2 + spread * tilted.variance
    bound = of_start * z**2 + residual * tilted.heterogeneity
    return None if truth <= bound else tilted.witness(a_round, (h, g), z, rounds, truth, bound)
