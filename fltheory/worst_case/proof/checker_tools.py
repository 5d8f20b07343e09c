"""Tools of the proof checkers: parsing untrusted files, and matrices of fractions.

Standard library alone: with this file beside it each checker is a program of its own.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

LONGEST_NUMBER = 2_000  # characters

Fractions = list[Fraction]
FractionRows = list[Fractions]


class ProofError(ValueError):
    """The certificate proves nothing; the message names the first thing that fails."""


# ---------------------------------------------------------------- reading what a stranger wrote


def document_of(text: str, names: str, most_characters: int, **constants: Any) -> dict[str, Any]:
    """Return a certificate's fields, ``constants`` among them as they must be.

    Raises
    ------
    ProofError
        For a text that is too long or no JSON, a field that is missing or not known.
    """
    if len(text) > most_characters:
        raise ProofError(f"file: must have at most {most_characters} characters")
    try:
        document = json.loads(
            text, object_pairs_hook=_once, parse_float=_no_number, parse_constant=_no_number
        )
    except ProofError:
        raise
    except (RecursionError, ValueError) as error:
        raise ProofError(f"not JSON: {error}") from error
    top = fields_of("certificate", document, names)
    for name, value in constants.items():
        if top[name] != value or type(top[name]) is not type(value):
            raise ProofError(f"{name}: must be {value!r}, got {shown(top[name])}")
    return top


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ProofError("a field is given twice")
    return found


def _no_number(text: str) -> Any:
    raise ProofError(f"{text[:40]}: numbers must be whole, or text like '3/4'")


def fields_of(place: str, found: Any, names: str) -> dict[str, Any]:
    """Return an object that has these fields and no other."""
    if not isinstance(found, dict):
        raise ProofError(f"{place}: must be an object with fields, got {shown(found)}")
    for name in names.split():
        if name not in found:
            raise ProofError(f"{place}.{name}: the field is missing")
    for name in found:
        if name not in names.split():
            raise ProofError(f"{place}.{name[:40]}: is not a field here")
    return found


def list_of(place: str, found: Any, of: Callable[[str, Any], Any]) -> list[Any]:
    """Return a list each of whose items ``of`` accepts."""
    if not isinstance(found, list):
        raise ProofError(f"{place}: must be a list, got {shown(found)}")
    return [of(f"{place}[{index}]", item) for index, item in enumerate(found)]


def row(place: str, found: Any) -> Fractions:
    """Return a list of fractions."""
    return list_of(place, found, fraction)


def fraction(place: str, found: Any) -> Fraction:
    """Return the fraction that a text like ``-3/4`` is; no points, no exponents."""
    if not isinstance(found, str) or len(found) > LONGEST_NUMBER:
        raise ProofError(f"{place}: must be text of at most {LONGEST_NUMBER} characters")
    if not re.fullmatch(r"-?[0-9]+(/[0-9]*[1-9][0-9]*)?", found):
        raise ProofError(f"{place}: must be a fraction like '3/4', got {shown(found)}")
    above, _, below = found.partition("/")
    return Fraction(int(above), int(below or "1"))


def whole(place: str, found: Any) -> int:
    """Return a whole number."""
    if type(found) is not int or abs(found) > 10**15:
        raise ProofError(f"{place}: must be a whole number, got {shown(found)}")
    return found


def shown(value: Any) -> str:
    """Return a value as a message shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_graph(weights: FractionRows, size: int, place: str) -> None:
    """Weights of pairs are not negative, and as much leaves every point as comes to it."""
    if len(weights) != size or any(len(row) != size for row in weights):
        raise ProofError(f"{place}: must be {size} rows of {size} numbers")
    if any(weight < 0 for row in weights for weight in row):
        raise ProofError(f"{place}: must not be negative")
    for point in range(size):
        if sum(weights[point]) != sum(row[point] for row in weights):
            raise ProofError(f"{place}: the function values of point {point} do not cancel")


# ---------------------------------------------------------------- lists of fractions


def basis(size: int, index: int) -> Fractions:
    """Return a vector of zeros and a one."""
    return [Fraction(int(place == index)) for place in range(size)]


def scaled(factor: Fraction, vector: Fractions) -> Fractions:
    """Return ``factor vector``."""
    return [factor * value for value in vector]


def added(*vectors: Fractions) -> Fractions:
    """Return the sum of vectors."""
    return [sum(values, Fraction(0)) for values in zip(*vectors, strict=True)]


def squares(size: int, weighed: Sequence[tuple[Fraction, Fractions]]) -> FractionRows:
    """Return ``sum w v v'``."""
    total = [[Fraction(0)] * size for _ in range(size)]
    for weight, vector in weighed:
        for i, left in enumerate(vector):
            if weight and left:
                for j, right in enumerate(vector):
                    total[i][j] += weight * left * right
    return total


def add(total: FractionRows, more: FractionRows) -> None:
    """Add a matrix to another in its place."""
    for row, values in zip(total, more, strict=True):
        for index, value in enumerate(values):
            row[index] += value


def is_positive_semidefinite(matrix: FractionRows) -> bool:
    """Whether a symmetric matrix of fractions has no negative eigenvalue, by exact elimination.

    Bareiss's, in whole numbers: the pivots are leading minors over each other. A pivot of zero is
    one of a semidefinite matrix only if its row is zero.

    Examples
    --------
    >>> is_positive_semidefinite([[Fraction(1), Fraction(1)], [Fraction(1), Fraction(1)]])
    True
    >>> is_positive_semidefinite([[Fraction(0), Fraction(1)], [Fraction(1), Fraction(1)]])
    False
    """
    size = len(matrix)
    if any(matrix[i][j] != matrix[j][i] for i in range(size) for j in range(i)):
        return False
    scale = math.lcm(*(value.denominator for row in matrix for value in row))
    rows = [[int(value * scale) for value in row] for row in matrix]
    before = 1
    for k in range(size):
        pivot = rows[k][k]
        if pivot < 0 or (pivot == 0 and any(rows[k][k + 1 :])):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, size):
            for j in range(i, size):
                value = (pivot * rows[i][j] - rows[k][i] * rows[k][j]) // before
                rows[i][j] = rows[j][i] = value
        before = pivot
    return True


def run(arguments: Sequence[str], program: str, check: Callable[[str], str]) -> int:
    """Check a file: 0 if it proves its claim, which is printed, 1 if not, 2 for a wrong call."""
    if len(arguments) != 1:
        print(f"usage: python {program} FILE", file=sys.stderr)
        return 2
    try:
        claim = check(Path(arguments[0]).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ProofError) as error:
        print(f"not proved: {error}", file=sys.stderr)
        return 1
    print(f"proved, for every client of the class: {claim}")
    return 0
