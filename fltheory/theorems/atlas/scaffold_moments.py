"""Stationary moments of SCAFFOLD on one loss that is not quadratic, for any number of clients.

One dimension, everybody takes part, option II. A client's H local steps from x are
``z <- z - (f'(x + g z) + xi + noise)`` from z = 0, g the step size; with ``y = z + H xi`` the round
is ``x+ = x + g mean(y)`` and ``xi_c+ = (y_c - mean(y))/H``, as controls sum to zero. For every
monomial phi in x and the controls of a few clients ``E phi(state+) = E phi(state)``, and clients
are independent given the state: these are linear equations for the moments ``E x^i xi_1^j ..``,
however many clients there are. They do not close; x is of order sqrt(g), and what is of a higher
order than `ORDER` is left out. By how much the last order changes a moment is its error, an
estimate and no bound. The equations are solved in balls of hundreds of bits: nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, factorial, perm
from operator import add

from flint import arb, arb_mat, ctx, fmpq

ORDER = 8
"""In powers of sqrt(g): moments up to x^8."""
_BITS = 256

Exponents = tuple[int, ...]
Polynomial = Mapping[Exponents, fmpq]
"""By the exponents of x, g and the variables that have no order."""
Moment = tuple[int, Exponents]
"""The exponent of x, and those of the controls of one client after the other, from the largest."""


@dataclass(frozen=True)
class OneLoss:
    """A loss about its minimiser, the noise of its gradient, and a round of local steps.

    Attributes
    ----------
    slopes : tuple of Fraction
        ``f''/1!, f'''/2!, ..`` at the minimiser.
    noise : tuple of Fraction
        ``E e, E e^2, ..`` of a gradient's noise, which has mean zero.
    local_steps : int
        H.
    """

    slopes: tuple[Fraction, ...]
    noise: tuple[Fraction, ...]
    local_steps: int


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _order(exponents: Exponents) -> int:
    return exponents[0] + 2 * exponents[1]


def _times(one: Polynomial, other: Polynomial, most: int) -> dict[Exponents, fmpq]:
    found: dict[Exponents, fmpq] = {}
    for left, factor in one.items():
        room = most - _order(left)
        for right, value in other.items():
            if _order(right) <= room:
                place = tuple(map(add, left, right))
                found[place] = found.get(place, fmpq(0)) + factor * value
    return found


def _plus(one: Polynomial, other: Polynomial, factor: fmpq) -> dict[Exponents, fmpq]:
    found = dict(one)
    for place, value in other.items():
        found[place] = found.get(place, fmpq(0)) + factor * value
    return found


def _after_a_step(loss: OneLoss, most_z: int, order: int) -> list[dict[Exponents, fmpq]]:
    """Return ``E (z after a step)^k`` in x, g, xi and z, for k = 0 .. most_z."""
    one: Polynomial = {(0, 0, 0, 0): fmpq(1)}
    place: Polynomial = {(1, 0, 0, 0): fmpq(1), (0, 1, 0, 1): fmpq(1)}
    step: dict[Exponents, fmpq] = {(0, 0, 0, 1): fmpq(1), (0, 0, 1, 0): fmpq(-1)}
    power: Polynomial = one
    for slope in loss.slopes:
        power = _times(power, place, order)
        step = _plus(step, power, -_rational(slope))
    powers: list[Polynomial] = [one]
    for _ in range(most_z):
        powers.append(_times(powers[-1], step, order))
    noise = (fmpq(1), *map(_rational, loss.noise))
    found = []
    for k in range(most_z + 1):
        total: dict[Exponents, fmpq] = {}
        for used in range(k + 1):
            total = _plus(total, powers[k - used], comb(k, used) * (-1) ** used * noise[used])
        found.append(total)
    return found


@lru_cache(maxsize=32)
def _of_one_client(loss: OneLoss, most: int, order: int) -> tuple[Polynomial, ...]:
    """Return ``E[y^m | x, xi]`` in x, g and xi, for m = 0 .. most."""
    # A power of z comes with each further power of g.
    after = _after_a_step(loss, most + order // 2, order)
    found = []
    for m in range(most + 1):
        now: dict[Exponents, fmpq] = {
            (0, 0, m - k, k): fmpq(comb(m, k) * loss.local_steps ** (m - k)) for k in range(m + 1)
        }
        for _ in range(loss.local_steps):
            before: dict[Exponents, fmpq] = {}
            for (x, g, xi, z), factor in now.items():
                rest: Polynomial = {(x, g, xi, 0): factor}
                before = _plus(before, _times(rest, after[z], order), fmpq(1))
            now = before
        found.append({key[:3]: value for key, value in now.items() if key[3] == 0 and value})
    return tuple(found)


def _shares(total: int, largest: int) -> Iterator[Exponents]:
    """Yield the partitions of a number, parts in falling order."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in _shares(total - first, first):
            yield (first, *rest)


def _tuples(total: int, named: int) -> Iterator[tuple[Exponents, Exponents, int]]:
    """Yield how often ``total`` draws of clients hit each named one, and others; and how many ways.

    The ways are per ordered choice of the others.
    """
    for hits in product(range(total + 1), repeat=named):
        left = total - sum(hits)
        if left < 0:
            continue
        for others in _shares(left, left):
            ways = factorial(total)
            for size in (*hits, *others):
                ways //= factorial(size)
            for size in set(others):
                ways //= factorial(others.count(size))
            yield hits, others, ways


Equation = Mapping[tuple[Moment, int, int, int], fmpq]
"""By moment, power of g, others drawn and draws: times (N - r)!/(N - r - others)! / N^draws."""


def _moments_up_to(order: int) -> list[Moment]:
    return [
        (i, controls)
        for degree in range(order // 2 + 1)
        for controls in _shares(degree, degree)
        for i in range(order - 2 * degree + 1)
        if (i, controls) != (0, ())
    ]


def _products(moment: Moment, most: int) -> Iterator[tuple[int, Exponents, int, fmpq]]:
    """Expand ``(x + g Y)^i prod_k (y_k - Y)^j_k``, Y the mean of y.

    Yields powers of g and of each y_k, how many factors Y there are, and the coefficient.
    """
    i, controls = moment
    for n in range(0 if controls else 1, min(i, most - i) + 1):
        for own in product(*(range(j + 1) for j in controls)):
            factor = comb(i, n)
            for j, kept in zip(controls, own, strict=True):
                factor *= comb(j, kept) * (-1) ** (j - kept)
            yield n, own, n + sum(controls) - sum(own), fmpq(factor)


def _equation(loss: OneLoss, moment: Moment, order: int) -> Equation:
    """Return ``E phi(state+) - E phi(state)`` of ``x^i xi_1^j ..``, over g where there is no xi."""
    i, controls = moment
    named, degree = len(controls), sum(controls)
    most = order - 2 * degree if controls else order + 2
    client = _of_one_client(loss, order // 2 + 1, order)
    found: dict[tuple[Moment, int, int, int], fmpq] = {}
    if controls:
        found[moment, 0, 0, 0] = fmpq(-1)
    for n, own, draws, factor in _products(moment, most):
        for hits, others, ways in _tuples(draws, named):
            sizes = (*map(add, own, hits), *others)
            start = (i - n, n, *[0] * len(sizes))
            state: Polynomial = {start: factor * ways / loss.local_steps**degree}
            for place, size in enumerate(sizes):
                state = _times(state, _of_client(client[size], place, len(sizes)), most)
            for (x, g, *powers), value in state.items():
                about = (x, tuple(sorted(filter(None, powers), reverse=True)))
                key = (about, g - (not controls), len(others), draws)
                found[key] = found.get(key, fmpq(0)) + value
    return {key: value for key, value in found.items() if value}


def _of_client(one: Polynomial, place: int, clients: int) -> dict[Exponents, fmpq]:
    return {
        (x, g, *[0] * place, xi, *[0] * (clients - place - 1)): value
        for (x, g, xi), value in one.items()
    }


@lru_cache(maxsize=32)
def _equations(loss: OneLoss) -> Mapping[Moment, Equation]:
    return {moment: _equation(loss, moment, ORDER) for moment in _moments_up_to(ORDER)}


def _solved(loss: OneLoss, step: Fraction, clients: int, order: int) -> Mapping[Moment, arb]:
    moments = [one for one in _moments_up_to(order) if len(one[1]) <= clients]
    places = {moment: place for place, moment in enumerate(moments)}
    rows = [[arb(0)] * len(places) for _ in places]
    right = [[arb(0)] for _ in places]
    powers = [_rational(step) ** k for k in range(order + 1)]
    for row, moment in enumerate(moments):
        named, most = len(moment[1]), order - 2 * sum(moment[1])
        for (about, g, others, draws), value in _equations(loss)[moment].items():
            if about[0] + 2 * g > most:
                continue
            drawn = fmpq(perm(clients - named, others), clients**draws)
            factor = arb(value * powers[g] * drawn)
            if about == (0, ()):
                right[row][0] -= factor
            elif about in places:
                rows[row][places[about]] += factor
    found = arb_mat(rows).solve(arb_mat(right))
    return {moment: found[place, 0] for moment, place in places.items()}


def stationary_moments(
    loss: OneLoss, step: Fraction, clients: int, wanted: Sequence[Moment]
) -> list[tuple[arb, float]]:
    """Return stationary moments, each with how much the last order changed it.

    Raises
    ------
    ZeroDivisionError
        If the equations have no one solution.

    Examples
    --------
    For ``f' = x`` and noise of variance 1, two clients and two local steps of 1/10 the model is
    autoregressive, ``x+ = 0.81 x + 0.1 noise``, whose noise has variance (0.81 + 1)/2:

    >>> quadratic = OneLoss((Fraction(1),), tuple(map(Fraction, (0, 1) * 5)), 2)
    >>> ((mean, _), (square, _)) = stationary_moments(
    ...     quadratic, Fraction(1, 10), 2, [(1, ()), (2, ())]
    ... )
    >>> float(mean), round(float(square) * (1 - 0.81**2), 12)
    (0.0, 0.00905)
    """
    bits, ctx.prec = ctx.prec, _BITS
    try:
        fine, coarse = (_solved(loss, step, clients, order) for order in (ORDER, ORDER - 2))
        return [(fine[one], abs(float(fine[one] - coarse[one]))) for one in wanted]
    finally:
        ctx.prec = bits
