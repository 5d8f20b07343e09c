"""The error of FedAU's online weights, ``E[(p omega_t - 1)^2]``, enclosed in balls.

Let ``U_m(z)`` be the generating function of the round in which the m-th interval ends, and G that
of an interval's length. Then ``U_m = U_{m-1} G``, so these are powers of a polynomial, computed
without subtraction. Under a two-state chain, U_m is a vector, because an interval ends either with
the client present or after K absences. Because ``omega = s/m`` while the next interval is open, the
mean of ``(p s/m - 1)^2`` requires only

``sum_m U_m``, ``sum_m U_m/m`` and ``sum_m U_m/m^2``.

The probability that m intervals end in time falls with m. So intervals of large m are dropped once
it is very unlikely that they end in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_poly, ctx

from fltheory.engines.affine.numbers import Entries


def enclosed_weight_errors(
    first: Any, stays: Any, comes: Any, share: Any, *, cutoff: float, rounds: int
) -> Entries:
    """Return one client's errors for t = 0 .. rounds-1, (rounds,) balls.

    Parameters
    ----------
    first, stays, comes : fmpq
        Probabilities of being present in the first round, after a presence, and after an absence.
    share : fmpq
        p; omega is compared with 1/p.
    cutoff : int or math.inf
        K, the longest interval.
    rounds : int
    """
    longest = int(min(cutoff, rounds))
    # How an interval ends affects only whether the client is present next, and without memory not
    # even that.
    chances = [stays] if stays == comes else [stays, comes]
    lengths = [_lengths(chance, comes, longest) for chance in chances]
    ended = _joined([arb_poly([arb(1)])], [_lengths(first, comes, longest)], len(chances))
    sums = [[arb_poly([])] * 3 for _ in chances]
    largest = max(arb(1), (arb(share) * longest - 1) ** 2)
    left_out = arb(0)
    for m in range(1, rounds):
        ended = [poly.truncate(rounds) for poly in ended]
        for place, poly in enumerate(ended):
            scaled = [poly, poly * (1 / arb(m)), poly * (1 / arb(m) ** 2)]
            sums[place] = [total + part for total, part in zip(sums[place], scaled, strict=True)]
        in_time = sum((poly(arb(1)) for poly in ended), arb(0))
        left_out = in_time * (rounds - 1 - m) * largest
        if left_out < _negligible():
            break
        ended = _joined(ended, lengths, len(chances))
    total = (share - 1) ** 2 * _open(first, comes, longest)
    for chance, sums_of_state in zip(chances, sums, strict=True):
        squares = [_coefficients(poly, rounds) for poly in sums_of_state]
        weighed = [
            (share * s) ** 2 * over_m2 - 2 * share * s * over_m + once
            for s, (once, over_m, over_m2) in enumerate(zip(*squares, strict=True))
        ]
        total = total + arb_poly(weighed) * _open(chance, comes, longest)
    found = np.empty(rounds, dtype=object)
    found[:] = [
        value + arb(0).union(arb(left_out.upper())) for value in _coefficients(total, rounds)
    ]
    return found


def _negligible() -> Any:
    return arb(2) ** -ctx.prec


@dataclass(frozen=True, eq=False)
class _Lengths:
    """The distribution of an interval's length, for ends with the client present and ends at K."""

    there: Any
    cut: Any
    longest: int


def _joined(ended: Sequence[Any], laws: Sequence[_Lengths], states: int) -> list[Any]:
    """Return the distribution of the round in which one more interval ends, by its final state."""
    nothing = arb_poly([])
    there = sum((poly * law.there for poly, law in zip(ended, laws, strict=True)), nothing)
    away = sum(
        (poly.left_shift(law.longest) * law.cut for poly, law in zip(ended, laws, strict=True)),
        nothing,
    )
    return [there + away] if states == 1 else [there, away]


def _lengths(first: Any, comes: Any, longest: int) -> _Lengths:
    away = [arb(0), *_absences(first, comes, longest)]
    there = [arb(0), arb(first), *(chance * comes for chance in away[1:-1])]
    return _Lengths(arb_poly(there), away[-1], longest)


def _open(first: Any, comes: Any, longest: int) -> Any:
    """Return the probabilities that an interval is still open after j rounds, j < K."""
    return arb_poly([arb(1), *_absences(first, comes, longest)[:-1]])


def _absences(first: Any, comes: Any, longest: int) -> Sequence[Any]:
    """Return the probabilities of being absent throughout 1, ..., K rounds."""
    chances = [arb(1 - first)]
    for _ in range(longest - 1):
        chances.append(chances[-1] * (1 - comes))
    return chances


def _coefficients(poly: Any, count: int) -> list[Any]:
    values = poly.truncate(count).coeffs()
    return values + [arb(0)] * (count - len(values))
