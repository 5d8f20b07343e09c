"""Conditions on SAFARI's random rounds, required to hold for every outcome of its coins.

Statements have conditions on ``max over r in T_s`` or on round r. Both T_s and x_r depend on which
rounds the coins give to the server and which to the clients. Elsewhere these conditions are read in
expectation. Here a condition must hold on every path that has rounds of both kinds; there are 2^R -
2 such paths. If there is no noise and every client round has the same clients, x_r is a function of
the coins alone, each coordinate moves towards x* or towards the participants' optimum, and a box
contains all reachable points. All computations use fractions, rounded outwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import sympy as sp
from flint import fmpq

from fltheory.theorems import Theorem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.theorems.sa_fl.quotient_condition import quotient
from fltheory.verify.safari.witness import Witness

_GRID = 10**15
_GRADIENTS = (sa_fl.G_1, sa_fl.G_2, sa_fl.G_3, sa_fl.G_4)

Number: TypeAlias = Any  # fmpq, ten times as fast as Fraction, or float for a quick look
Interval: TypeAlias = tuple[Number, Number]


def holds_on_every_path(theorem: Theorem, witness: Witness) -> bool:
    """Return whether all conditions on random rounds are proved to hold on every path.

    False means that this is not proved. The setting may have noise or draw its participants, a step
    may overshoot in a coordinate, or the condition may fail or not be of the form
    ``q <= 1/(1 + N/D)`` with maxima or with the values of each round.
    """
    if not theorem.round_symbols:
        return True
    reductions = {item.reduction for item in theorem.round_symbols}
    # The check below also confirms that D is positive on every path.
    asked = (h.condition for h in theorem.hypotheses if not h.is_sign)
    of_rounds = [condition for condition in asked if condition.has(*_GRADIENTS)]
    if len(of_rounds) != 1 or len(reductions) != 1 or of_rounds[0].lhs != sa_fl.q:
        return False
    moves = _Moves.of(witness)
    check = {"max": _with_maxima, "every": _in_each_round}.get(reductions.pop())
    if moves is None or check is None:
        return False
    forms = _coefficients(of_rounds[0], witness)
    # Floats quickly reject hopeless cases; the others are decided with exact fractions.

    def settled(as_number: Callable[[Fraction], Number]) -> bool:
        above, below = ([as_number(part) for part in form] for form in forms)
        return check(above, below, moves.in_numbers(as_number))

    return settled(float) and settled(_rational)


def is_function_of_coins(witness: Witness) -> bool:
    """Return whether only the coins are random, and no step overshoots in a coordinate."""
    return _Moves.of(witness) is not None


_SYMBOLS = (sa_fl.L, sa_fl.mu, sa_fl.eta_s, sa_fl.eta_c, sa_fl.K, sa_fl.eta_bar)
_DISSIMILARITY = sp.Symbol("sigma_G_squared", positive=True)


def _coefficients(condition: sp.Rel, witness: Witness) -> tuple[list[Fraction], list[Fraction]]:
    """Return N and D of ``q <= 1/(1 + N/D)`` as linear forms in 1, G_1, .., G_4."""
    L, mu = max(witness.curvatures), min(witness.curvatures)
    centre = [sum(axis) / len(axis) for axis in zip(*witness.optima, strict=True)]
    squares = [
        sum((h * (o - c)) ** 2 for h, o, c in zip(witness.curvatures, point, centre, strict=True))
        for point in witness.optima
    ]
    steps = Fraction(witness.local_steps)
    contraction = witness.client_lr * steps * mu / 2
    values = (L, mu, witness.assist_lr, witness.client_lr, steps, contraction, max(squares))
    forms = [
        [Fraction(above(*values)) / Fraction(below(*values)) for above, below in form]
        for form in _quotients(condition)
    ]
    return forms[0], forms[1]


@lru_cache(maxsize=16)
def _quotients(condition: sp.Rel) -> list[list[tuple[Callable[..., Any], Callable[..., Any]]]]:
    """Return each coefficient as two functions that have integer coefficients and no floats."""
    forms = []
    for part in quotient(condition):
        form = sp.Poly(sp.expand(part.subs(sa_fl.sigma_G, sp.sqrt(_DISSIMILARITY))), *_GRADIENTS)
        monomials = (1, *_GRADIENTS)
        ratios = (sp.fraction(sp.together(form.coeff_monomial(one))) for one in monomials)
        forms.append(
            [
                tuple(
                    sp.lambdify((*_SYMBOLS, _DISSIMILARITY), sp.expand(p), modules=[]) for p in pair
                )
                for pair in ratios
            ]
        )
    return forms


@dataclass(frozen=True)
class _Axis:
    """One coordinate, as its displacement z from x*."""

    curvature: Number
    start: Number
    target: Number
    towards_target: Number
    towards_zero: Number
    gradient_of_clients: Number
    rounds: int

    @cached_property
    def reached(self) -> Interval:
        """An interval that contains z_0 .. z_{R-1} on every path."""
        low = high = lowest = highest = self.start
        for _ in range(self.rounds - 1):
            low = _down(min(self._moved(low)))
            high = _up(max(self._moved(high)))
            lowest, highest = min(lowest, low), max(highest, high)
        return lowest, highest

    def _moved(self, z: Fraction) -> Interval:
        return self.towards_zero * z, self.target + self.towards_target * (z - self.target)

    def with_clients_alone(self) -> Iterator[Interval]:
        """Yield intervals around z_0 .. z_{R-1} if all rounds are client rounds."""
        low = high = self.start
        for _ in range(self.rounds):
            yield low, high
            low, high = _down(self._moved(low)[1]), _up(self._moved(high)[1])

    def squared_gradient(self, z: Interval) -> Interval:
        """Return the range of (curvature z)^2."""
        return _range_of_square(z, 0, self.curvature**2)

    def squared_sum(self, z: Interval) -> Interval:
        """Return the range of the squared sum of the participants' local gradients."""
        return _range_of_square(z, self.target, self.gradient_of_clients**2)

    def least(self, of_gradient: Number, of_losses: Number) -> Number:
        """Return the minimum of a combination of its shares of G_3 and G_4 over what is reached."""
        square = of_gradient * self.curvature**2 + of_losses * self.curvature / 2
        linear = -of_losses * self.curvature * self.target
        ends = self.reached
        turning = -linear / (2 * square) if square > 0 else ends[0]
        points = [*ends, min(max(turning, ends[0]), ends[1])]
        return min(square * z**2 + linear * z for z in points)


_NUMBERS = tuple(item.name for item in fields(_Axis) if item.name != "rounds")


@dataclass(frozen=True)
class _Moves:
    """The moves of all coordinates."""

    q: Number
    axes: tuple[_Axis, ...]

    @classmethod
    def of(cls, witness: Witness) -> _Moves | None:
        """Return the moves, or None if they overshoot or do not depend on the coins alone."""
        count = len(witness.optima)
        eligible = [o for i, o in enumerate(witness.optima) if i not in witness.excluded]
        drawn = len(set(eligible)) > 1 and witness.participants < len(eligible)
        if witness.sigma or witness.server_sigma or drawn:
            return None
        axes = []
        for axis, h in enumerate(witness.curvatures):
            centre = sum(point[axis] for point in witness.optima) / count
            target = sum(point[axis] for point in eligible) / len(eligible) - centre
            local, server = 1 - witness.client_lr * h, 1 - witness.assist_lr * h
            if local < 0 or server < 0:
                return None
            clients = local**witness.local_steps
            axes.append(
                _Axis(
                    h,
                    witness.x0[axis] - centre,
                    target,
                    clients,
                    server,
                    (1 - clients) / witness.client_lr,
                    witness.rounds,
                )
            )
        return cls(witness.q, tuple(axes))

    def in_numbers(self, as_number: Callable[[Fraction], Number]) -> _Moves:
        """Return the same moves in a different number type; floats are not rounded outwards."""
        axes = []
        for axis in self.axes:
            numbers: dict[str, Any] = {name: as_number(getattr(axis, name)) for name in _NUMBERS}
            axes.append(replace(axis, **numbers))
        return _Moves(as_number(self.q), tuple(axes))


def _rational(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def _with_maxima(N: Sequence[Number], D: Sequence[Number], moves: _Moves) -> bool:
    """Decide ``q <= 1/(1 + N/D)``, N = n_0 - n_2 G_2 and D = d_1 G_1, on every path.

    Let round j be the first server round, so only client rounds have led to x_j. Then G_1 is at
    least the squared gradient at x_j, and G_2 is at least its value in those client rounds.
    """
    n_0, n_2, d_1 = N[0], -N[2], D[1]
    if any((N[1], *N[3:], D[0], *D[2:])) or min(n_0, n_2, d_1) < 0:
        return False
    most = sum(axis.squared_sum(axis.reached)[1] for axis in moves.axes)
    before: Number = 0
    for state in zip(*(axis.with_clients_alone() for axis in moves.axes), strict=True):
        pairs = list(zip(moves.axes, state, strict=True))
        gradient = sum(axis.squared_gradient(z)[0] for axis, z in pairs)
        positive = gradient > 0 and n_0 - n_2 * most + d_1 * gradient > 0
        if not positive or moves.q * (n_0 - n_2 * before) > (1 - moves.q) * d_1 * gradient:
            return False
        summed = sum(axis.squared_sum(z)[0] for axis, z in pairs)
        before = max(before, summed)
    return True


def _in_each_round(N: Sequence[Number], D: Sequence[Number], moves: _Moves) -> bool:
    """Decide ``q <= 1/(1 + N/D)``, N and D in G_3 and G_4, at all reachable points."""
    if any((*N[:3], *D[:3], D[4])) or D[3] <= 0:
        return False
    together = [n + d for n, d in zip(N, D, strict=True)]
    slack = [d - moves.q * both for d, both in zip(D, together, strict=True)]

    def least(form: Sequence[Number]) -> Number:
        return sum(axis.least(form[3], form[4]) for axis in moves.axes)

    return least(D) > 0 and least(together) > 0 and least(slack) >= 0


def _range_of_square(z: Interval, centre: Number, factor: Number) -> Interval:
    ends = [factor * (end - centre) ** 2 for end in z]
    return (0 if z[0] <= centre <= z[1] else min(ends)), max(ends)


def _down(value: Number) -> Number:
    return value if isinstance(value, float) else fmpq((value * _GRID).floor(), _GRID)


def _up(value: Number) -> Number:
    return value if isinstance(value, float) else fmpq((value * _GRID).ceil(), _GRID)
