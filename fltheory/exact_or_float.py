"""Square roots, logarithms and norms for floats and exact numbers alike.

NumPy silently converts an array of objects to floats to take its norm. So code that reads a
setting's constants, which may be floats or exact numbers, uses these functions instead.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np


def is_exact(value: Any) -> bool:
    """Whether a number, or an array's entries, are objects rather than floats."""
    return np.asarray(value).dtype == object


def root(value: Any) -> Any:
    """Return the square root of a number.

    Examples
    --------
    >>> root(4)
    2.0
    """
    return value.sqrt() if is_exact(value) else math.sqrt(value)


def log(value: Any) -> Any:
    """Return the natural logarithm of a number.

    Examples
    --------
    >>> log(1)
    0.0
    """
    return value.log() if is_exact(value) else math.log(value)


def norm(vector: Any) -> Any:
    """Return the Euclidean norm of a vector.

    Examples
    --------
    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    if is_exact(vector):
        return root((vector * vector).sum())
    return float(np.linalg.norm(vector))


def largest_norm(vectors: Any) -> Any:
    """Return the largest Euclidean norm of the rows of an array (n, d).

    For exact numbers, the squares are compared, because they are fractions if the numbers are.
    """
    if is_exact(vectors):
        return root(largest((vectors * vectors).sum(axis=1)))
    return float(np.linalg.norm(vectors, axis=1).max())


def largest(values: Any) -> Any:
    """Return the largest of some numbers or, for overlapping balls, a ball that contains it.

    Examples
    --------
    >>> largest([1.0, 3.0])
    3.0
    """
    if is_exact(values):
        return reduce(lambda one, other: one.maximum(other), np.ravel(values))
    return float(np.max(values))


def number(value: Any) -> Any:
    """Return an exact number unchanged, and anything else as a float.

    Examples
    --------
    >>> number(np.float64(0.5))
    0.5
    """
    return np.asarray(value).item() if is_exact(value) else float(value)


ROUNDINGS = 64 * float(np.finfo(np.float64).eps)
"""Relative error bound of a few dozen float operations, with respect to their largest number."""


def with_rounding(value: Any, operations: float, size: Any = None) -> tuple[Any, float]:
    """Return a value and a bound on its rounding error, which is zero for exact numbers.

    Parameters
    ----------
    value : float or exact number
    operations : float
        Number of operations, in units of a few dozen operations.
    size : float, optional
        Size of the largest number in the computation; by default, the size of the value.
    """
    if is_exact(value):
        return value, 0.0
    return value, ROUNDINGS * operations * (value if size is None else size)


def powers(base: Any, exponents: Any) -> Any:
    """Return integer powers of a number, (n,).

    Examples
    --------
    >>> powers(0.5, np.array([2, 0]))
    array([0.25, 1.  ])
    """
    if not is_exact(base):
        return np.asarray(base**exponents)
    made = np.empty(len(exponents), dtype=object)
    made[:] = [base ** int(exponent) for exponent in exponents]
    return made


def solve(matrix: Any, vector: Any) -> Any:
    """Return the solution of a system of linear equations with matrix (d, d) and vector (d,).

    Systems in exact numbers are solved by elimination; each pivot is the first one proved nonzero.

    Examples
    --------
    >>> solve(np.array([[2.0]]), np.array([1.0]))
    array([0.5])
    """
    if not is_exact(matrix):
        return np.linalg.solve(matrix, vector)
    rows = np.concatenate([matrix, vector[:, None]], axis=1)
    size = len(vector)
    for place in range(size):
        pivot = next(row for row in range(place, size) if rows[row, place] != 0)
        rows[[place, pivot]] = rows[[pivot, place]]
        rows[place] = rows[place] / rows[place, place]
        for other in range(size):
            if other != place:
                rows[other] = rows[other] - rows[other, place] * rows[place]
    return rows[:, -1]
