"""The building blocks of Rocq files: numbers, lists, records and sums of squares.

A positive semidefinite block S of a slack is written out as ``S = sum_k d_k (l_k)^2`` with all
``d_k`` nonnegative. A factorisation in floats, rounded to dyadic fractions, gives the first
squares. The remainder is diagonally dominant, so it is a sum of squares of single coordinates and
of pairs of coordinates.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from fltheory.worst_case.checker.kernel import FractionRows, Fractions

_BITS = 40  # binary places of the factors' entries
Square = tuple[Fraction, Fractions]
"""A weight that is not negative, and the linear form whose square it weighs."""


class NotExportedError(ValueError):
    """The Rocq library does not cover proofs of this kind, or the proof is too large."""


def refused(what: str) -> NotExportedError:
    """Return the error that names what the library does not cover."""
    return NotExportedError(
        f"a certificate must be of a kind that Rocq's library knows, got one with {what}"
    )


def refuse(present: Mapping[str, bool]) -> None:
    """Refuse a proof that has one of these features, and name the feature.

    Raises
    ------
    NotExportedError
        If one is present. The message names the first one.
    """
    for what, is_there in present.items():
        if is_there:
            raise refused(what)


# ---------------------------------------------------------------- numbers and lists


def rational(value: Fraction | int, over: str = "#") -> str:
    """Return a number as a Rocq rational."""
    value = Fraction(value)
    if value.denominator == 1:
        return f"({value.numerator})" if value < 0 else str(value.numerator)
    return f"({value.numerator} {over} {value.denominator})"


def real(value: Fraction | int) -> str:
    """Return a number as a Rocq real."""
    return rational(value, "/")


def wrapped(text: str, indent: int = 0) -> str:
    """Return the text in lines of at most 100 characters, broken at spaces."""
    before = " " * indent
    return textwrap.fill(
        re.sub(r"\s+", " ", text), 100, initial_indent=before, subsequent_indent=before + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def listed(items: Iterable[str]) -> str:
    """Return a list in Rocq's notation."""
    return f"[{'; '.join(items)}]"


def rationals(values: Iterable[Fraction]) -> str:
    """Return a list of rationals."""
    return listed(map(rational, values))


def rows_listed(rows: Iterable[Iterable[Fraction]]) -> str:
    """Return a list of lists of rationals."""
    return listed(map(rationals, rows))


def defined(name: str, kind: str, fields: Mapping[str, str], *, breaks: bool = False) -> str:
    """Return the definition of a record; ``breaks`` says whether long lines are broken."""
    lines = [f"  {field} := {value}" for field, value in fields.items()]
    rows = ";\n".join(wrapped(line.strip(), 2) if breaks else line for line in lines)
    return f"Definition {name} : {kind} := {{|\n{rows}\n|}}.\n"


def pairs_listed(weights: FractionRows, unit: Fraction) -> str:
    """Return the multipliers of pairs, in the loss's own units instead of units with L = 1."""
    return listed(
        [
            f"({a}%nat, {b}%nat, {rational(unit * value)})"
            for a, row in enumerate(weights)
            for b, value in enumerate(row)
            if value
        ]
    )


# ---------------------------------------------------------------- sums of squares


def squares_listed(matrix: FractionRows) -> str:
    """Return a matrix as a sum of squares, each with its weight."""
    return listed(
        [f"({rational(weight)}, {rationals(form)})" for weight, form in sum_of_squares(matrix)]
    )


def sum_of_squares(matrix: FractionRows) -> list[Square]:
    """Write a positive semidefinite matrix of fractions as ``sum_k d_k l_k l_k'``.

    Raises
    ------
    NotExportedError
        If the matrix is not positive semidefinite.

    Examples
    --------
    >>> one = Fraction(1)
    >>> sum_of_squares([[one, one], [one, one]])
    [(Fraction(1, 1), [Fraction(1, 1), Fraction(1, 1)])]
    """
    there = [i for i, row in enumerate(matrix) if any(row)]
    # If nothing depends on a coordinate, rounding could leave a negative remainder.
    dense = [[matrix[i][j] for j in there] for i in there]
    rounded = _rounded_squares(dense)
    dominant = _dominant_squares(_left_over(dense, rounded))
    found = _eliminated(dense) if dominant is None else [*rounded, *dominant]
    return [(weight, _at(there, form)) for weight, form in found]


def _at(places: Sequence[int], values: Fractions) -> Fractions:
    """Return a list with the given values at these indices and zeros elsewhere, up to the last."""
    known = dict(zip(places, values, strict=False))
    return [known.get(place, Fraction(0)) for place in range(max(known) + 1)]


def _rounded_squares(matrix: FractionRows) -> list[Square]:
    """Return squares; their sum is below a matrix by about half of its least eigenvalue."""
    size = len(matrix)
    # Scale coordinates by powers of two, so that the diagonal is about one.
    scales = [_power_of_two(matrix[i][i]) for i in range(size)]
    scaled = np.array(
        [[float(matrix[i][j] * scales[i] * scales[j]) for j in range(size)] for i in range(size)]
    ).reshape(size, size)
    least = float(np.linalg.eigvalsh(scaled).min(initial=np.inf))
    if not 1e-13 < least < np.inf:
        return []
    factor = np.linalg.cholesky(scaled - least / 2 * np.eye(size))
    return [
        (
            Fraction(1),
            [
                Fraction(round(float(factor[i, k]) * 2**_BITS), 2**_BITS) / scales[i]
                for i in range(size)
            ],
        )
        for k in range(size)
    ]


def _power_of_two(value: Fraction) -> Fraction:
    """Return a power of two near 1 over the root of a number, or 1 if it is not positive."""
    if value <= 0:
        return Fraction(1)
    exponent = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return Fraction(2) ** -exponent


def _left_over(matrix: FractionRows, squares: Sequence[Square]) -> FractionRows:
    size = range(len(matrix))
    rest = [list(row) for row in matrix]
    for weight, form in squares:
        for i in size:
            if form[i]:
                for j in size:
                    rest[i][j] -= weight * form[i] * form[j]
    return rest


def _dominant_squares(rest: FractionRows) -> list[Square] | None:
    """Return the squares of a diagonally dominant matrix, or None if it is not dominant."""
    size = len(rest)
    found: list[Square] = []
    diagonal = [rest[i][i] for i in range(size)]
    for i, j in combinations(range(size), 2):
        value = rest[i][j]
        if value:
            form = [Fraction(0)] * size
            form[i], form[j] = Fraction(1), Fraction(1 if value > 0 else -1)
            found.append((abs(value), form))
            diagonal[i] -= abs(value)
            diagonal[j] -= abs(value)
    if any(value < 0 for value in diagonal):
        return None
    return found + [
        (value, [Fraction(int(place == i)) for place in range(i + 1)])
        for i, value in enumerate(diagonal)
        if value
    ]


def _eliminated(matrix: FractionRows) -> list[Square]:
    """Return the squares from exact elimination, in which numbers have many digits."""
    rest, found = [list(row) for row in matrix], []
    for k in range(len(matrix)):
        pivot = rest[k][k]
        if pivot < 0 or (pivot == 0 and any(rest[k])):
            raise NotExportedError("the slack must be positive semidefinite to be exported")
        if pivot:
            form = [value / pivot for value in rest[k]]
            found.append((pivot, form))
            rest = _left_over(rest, [(pivot, form)])
    return found
