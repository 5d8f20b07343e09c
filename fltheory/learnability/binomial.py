"""Binomial probabilities as fractions in lowest terms; 100,000 draws take a second.

With p = a/b and c = b - a, the sum of ``C(n, j) a^j c^(n-j)`` over j < k is cut into blocks. A
block needs one long binomial coefficient and short numbers; blocks are joined in pairs by ``T(lo,
hi) = T(lo, mid) c^(hi - mid) + a^(mid - lo) T(mid, hi)`` for ``T(lo, hi) = sum C(n, j) a^(j - lo)
c^(hi - 1 - j)``. The denominator is a power of b, so the fraction is reduced by b's few prime
factors, which avoids a greatest common divisor of two long numbers.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, cast

_BLOCK = 2048
_LEAF = 32


def binomial_tail(n: int, p: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """Return ``P[X < k]`` and ``P[X <= k]`` for X binomial with n draws, 0 < p < 1, 0 <= k <= n.

    Examples
    --------
    >>> binomial_tail(2, Fraction(1, 4), 1)
    (Fraction(9, 16), Fraction(15, 16))
    """
    a, b = p.numerator, p.denominator
    whole = b**n
    if k <= n - k:
        below, at = _sums(n, a, b - a, k)
    else:
        above, at = _sums(n, b - a, a, n - k)
        below = whole - above - at
    return over_power(below, b, n, whole), over_power(below + at, b, n, whole)


def _sums(n: int, a: int, c: int, k: int) -> tuple[int, int]:
    """Return the sum of ``C(n, j) a^j c^(n-j)`` over 0 <= j < k, and its term at k."""
    if k == 0:
        return 0, c**n
    parts: list[tuple[int, int]] = []
    choose = 1
    for low in range(0, k, _BLOCK):
        high = min(low + _BLOCK, k)
        total, choose = _block(n, a, c, low, high, choose)
        parts.append((total, high - low))
    power = lru_cache(maxsize=None)(pow)
    while len(parts) > 1:
        joined = [
            (left * power(c, wide) + power(a, narrow) * right, narrow + wide)
            for (left, narrow), (right, wide) in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = joined + parts[2 * len(joined) :]
    rest = c ** (n - k)
    return parts[0][0] * c * rest, choose * a**k * rest


def _block(n: int, a: int, c: int, low: int, high: int, choose: int) -> tuple[int, int]:
    """Return T(low, high), and C(n, high), from ``choose = C(n, low)``."""
    part = _relative(n, a, c, low, high)
    return choose * part.total // part.below, choose * part.above // part.below


class _Relative(NamedTuple):
    """``C(n, high)/C(n, low) = above/below`` and ``T(low, high)/C(n, low) = total/below``."""

    above: int
    below: int
    total: int


def _relative(n: int, a: int, c: int, low: int, high: int) -> _Relative:
    """Return the ratios, joining halves recursively; a few terms are summed directly."""
    if high - low > _LEAF:
        middle = (low + high) // 2
        left, right = _relative(n, a, c, low, middle), _relative(n, a, c, middle, high)
        total = left.total * (right.below * c ** (high - middle))
        total += a ** (middle - low) * left.above * right.total
        return _Relative(left.above * right.above, left.below * right.below, total)
    total, below, power = 1, 1, 1
    for j in range(high - 2, low - 1, -1):
        power *= c
        total = power * below * (j + 1) + a * (n - j) * total
        below *= j + 1
    above = math.prod(range(n - high + 1, n - low + 1))
    return _Relative(above, below * high, total * high)


class _LowestTerms(NamedTuple):
    """A fraction known to be in lowest terms."""

    numerator: int
    denominator: int


numbers.Rational.register(_LowestTerms)


def over_power(numerator: int, base: int, exponent: int, whole: int) -> Fraction:
    """Return ``numerator / whole``, where ``whole = base**exponent``, cancelling base's primes."""
    if numerator == 0:
        return Fraction(0)
    radical, digits = _radical(base), 8
    while True:
        modulus = base ** min(digits, exponent)
        common = math.gcd(numerator % modulus, modulus)
        if digits >= exponent or (modulus // common) % radical == 0:
            break
        digits *= 2
    reduced = _LowestTerms(numerator // common, whole // common)
    return Fraction(cast(numbers.Rational, reduced))


def _radical(number: int) -> int:
    """Return the product of a number's distinct primes."""
    radical, divisor = 1, 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            radical *= divisor
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return radical * number
