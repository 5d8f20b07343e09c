"""The common core of all proof checkers: standard library only, no modelling code.

A front end reads a certificate of its kind, derives its own quadratic forms in fractions, and lets
this file decide. This file has four parts.

*Reading untrusted files.* `document_of` reads JSON without floats and checks the kind and the
version. `fields_of`, `list_of`, `rows_of`, `fraction`, `whole` and `in_range` check the contents.
Each raises `ProofError` with a message that begins with the place: ``"class.mu: out of range"``.

*Vectors of interchangeable clients.* `Coordinates` consist of vectors that all clients share (the
model x) and of groups of clients, in which each client has its own vectors (gradients). `shared`,
`own` (one client's vector) and `mean` (a group's mean) return a `Vector`; vectors are added,
subtracted and multiplied by fractions.

*Forms.* A `SymmetricForm` is a quadratic form that does not change when clients of a group are
exchanged, plus means of function values. It is built from terms of single clients and of pairs of
clients:

    add(w, u, v)                 w <u, v>, of vectors that all share
    add_each(w, group, u, v)     w times the mean of <u_i, v_i> over the group's clients
    add_two(w, a, b, u, v)       w times the mean of <u_i, v_j>, i in a and j in b, i and j distinct
    add_value(w, group, point)   w times the mean of f_i at a point of the group
    add_conditions(group, weights, points, gradients, mu)
                                 terms that are at most zero for every 1-smooth, mu-strongly convex
                                 f_i

*Deciding.* `check` raises `ProofError` unless function values cancel and the form is a sum of
squares. This can be decided exactly. Write a client's vector as its group's mean plus a difference.
Mixed products of the two cancel, so the form splits into one block of means and a block of
differences for each group (Colla and Hendrickx, arXiv 2403.11724). Each block must be positive
semidefinite, which elimination in integers decides.

Examples
--------
``|x|^2 - |x - g|^2 >= 0`` for gradients of 1-smooth convex functions with minimiser 0. The
points are x and 0. The condition of the pair (0, x) is ``f(x) - f(0) - <g, x> + |g|^2/2 <= 0``, and
the multiplier of the pair (x, 0) makes function values cancel.

>>> one, two, zero = Fraction(1), Fraction(2), Fraction(0)
>>> clients = Coordinates(1, [Group("clients", n_clients=1, vectors=1, points=2)])
>>> x, g, nothing = clients.shared(0), clients.own(0, 0), clients.nothing
>>> form = SymmetricForm(clients)
>>> form.add(one, x, x)
>>> form.add_each(-one, 0, x - g, x - g)
>>> form.add_conditions(0, [[zero, two], [two, zero]], [x, nothing], [g, nothing], zero)
>>> form.check("descent")
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

LONGEST_NUMBER = 2_000  # characters

Fractions = list[Fraction]
FractionRows = list[Fractions]


class ProofError(ValueError):
    """The certificate is not a valid proof; the message names the first check that fails."""


# ---------------------------------------------------------------- reading an untrusted file


def kind_of(text: str) -> str:
    """Return the kind that a certificate declares, to find its front end, or an empty text."""
    try:
        document = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ProofError(f"not JSON: {error}") from error
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind if isinstance(kind, str) else ""


def document_of(
    text: str, names: str, most_characters: int, *, version: int, **constants: Any
) -> dict[str, Any]:
    """Return a certificate's fields, after checking ``version`` and other fixed ``constants``.

    Raises
    ------
    ProofError
        If the text is too long or not JSON, the certificate has a different version, or a field is
        missing or unknown.
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
    found = document.get("version", version) if isinstance(document, dict) else version
    if type(found) is int and 1 <= found < version:
        raise ProofError(
            f"version: must be {version}, got the earlier format {found}: make the proof again"
        )
    top = fields_of("certificate", document, names)
    for name, value in {"version": version, **constants}.items():
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
    """Return an object that must have exactly these fields."""
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
    """Return the list of what ``of`` reads from each item."""
    if not isinstance(found, list):
        raise ProofError(f"{place}: must be a list, got {shown(found)}")
    return [of(f"{place}[{index}]", item) for index, item in enumerate(found)]


def row(place: str, found: Any) -> Fractions:
    """Return a list of fractions."""
    return list_of(place, found, fraction)


def rows_of(place: str, found: Any, size: int) -> FractionRows:
    """Return a square matrix of fractions."""
    rows: FractionRows = list_of(place, found, row)
    if len(rows) != size or any(len(one) != size for one in rows):
        raise ProofError(f"{place}: must be {size} rows of {size} numbers")
    return rows


def symmetric_of(place: str, found: Any, size: int) -> FractionRows:
    """Return a symmetric matrix of fractions."""
    rows = rows_of(place, found, size)
    if any(rows[i][j] != rows[j][i] for i in range(size) for j in range(i)):
        raise ProofError(f"{place}: must be symmetric")
    return rows


def weights_of(place: str, found: Any, size: int) -> FractionRows:
    """Return the multipliers of pairs of points, a square matrix without negative entries."""
    rows = rows_of(place, found, size)
    if any(weight < 0 for one in rows for weight in one):
        raise ProofError(f"{place}: must not be negative")
    return rows


def numbers_of(place: str, found: Any, count: int) -> Fractions:
    """Return a list of exactly ``count`` fractions."""
    numbers = row(place, found)
    if len(numbers) != count:
        raise ProofError(f"{place}: must be {count} numbers")
    return numbers


def shares_of(place: str, found: Any, count: int) -> Fractions:
    """Return ``count`` nonnegative fractions whose sum is at most one."""
    parts = numbers_of(place, found, count)
    if min(parts, default=Fraction(0)) < 0 or sum(parts) > 1:
        raise ProofError(f"{place}: must not be negative, nor more than one in all")
    return parts


def fraction(place: str, found: Any) -> Fraction:
    """Return the fraction written as text like ``-3/4``, without decimal points or exponents."""
    if not isinstance(found, str) or len(found) > LONGEST_NUMBER:
        raise ProofError(f"{place}: must be text of at most {LONGEST_NUMBER} characters")
    if not re.fullmatch(r"-?[0-9]+(/[0-9]*[1-9][0-9]*)?", found):
        raise ProofError(f"{place}: must be a fraction like '3/4', got {shown(found)}")
    above, _, below = found.partition("/")
    return Fraction(int(above), int(below or "1"))


def whole(place: str, found: Any) -> int:
    """Return an integer."""
    if type(found) is not int or abs(found) > 10**15:
        raise ProofError(f"{place}: must be a whole number, got {shown(found)}")
    return found


def in_range(ranges: Mapping[str, bool]) -> None:
    """Refuse the first number that is out of range, naming its place."""
    for place, holds in ranges.items():
        if not holds:
            raise ProofError(f"{place}: out of range")


def shown(value: Any) -> str:
    """Return a value as shown in messages, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ----------------------------------------------------------- vectors of interchangeable clients


@dataclass(frozen=True)
class Vector:
    """A client's vector, or a vector that all clients share, which has no difference part.

    Attributes
    ----------
    means : tuple of Fraction
        Coefficients of the vectors that all clients share and of the means of every group.
    apart : tuple of Fraction
        Coefficients of the differences of the client's own vectors from their means; empty if none.
    """

    means: tuple[Fraction, ...]
    apart: tuple[Fraction, ...] = ()

    def __add__(self, other: Vector) -> Vector:
        """Return the sum."""
        means = tuple(a + b for a, b in zip(self.means, other.means, strict=True))
        if not self.apart or not other.apart:
            return Vector(means, self.apart or other.apart)
        return Vector(means, tuple(a + b for a, b in zip(self.apart, other.apart, strict=True)))

    def __rmul__(self, factor: Fraction | int) -> Vector:
        """Return a multiple."""
        return Vector(
            tuple(factor * value for value in self.means),
            tuple(factor * value for value in self.apart),
        )

    def __sub__(self, other: Vector) -> Vector:
        """Return the difference."""
        return self + (-1) * other


@dataclass(frozen=True)
class Group:
    """A group of interchangeable clients, whose losses may differ.

    Attributes
    ----------
    name : str
        The name that messages use.
    n_clients : int or None
        None if the number is unbounded.
    vectors : int
        Number of each client's own vectors.
    points : int
        Number of points at which each client's loss is evaluated.
    """

    name: str
    n_clients: int | None
    vectors: int
    points: int


class Coordinates:
    """The coordinates of forms.

    Parameters
    ----------
    shared : int
        Number of vectors that all clients share.
    groups : sequence of Group
    """

    def __init__(self, shared: int, groups: Sequence[Group]) -> None:
        self.groups = list(groups)
        self._first = [shared + sum(g.vectors for g in groups[:c]) for c in range(len(groups) + 1)]

    @property
    def n_means(self) -> int:
        """The size of the block of means."""
        return self._first[-1]

    @property
    def nothing(self) -> Vector:
        """The vector of zeros."""
        return Vector((Fraction(0),) * self.n_means)

    def shared(self, index: int) -> Vector:
        """Return a vector that all clients share."""
        return Vector(_unit(self.n_means, index))

    def mean(self, group: int, index: int) -> Vector:
        """Return the mean of a vector over a group."""
        return Vector(_unit(self.n_means, self._first[group] + index))

    def own(self, group: int, index: int) -> Vector:
        """Return a client's own vector."""
        apart = _unit(self.groups[group].vectors, index)
        return Vector(self.mean(group, index).means, apart)


def _unit(size: int, index: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(int(place == index)) for place in range(size))


# ---------------------------------------------------------------- forms


class SymmetricForm:
    """A quadratic form invariant under exchange of clients, plus means of function values.

    Attributes
    ----------
    means : matrix
        The block of the shared vectors and the groups' means.
    differences : list of matrices
        One block per group, for the mean over its clients.
    values : list of lists
        Coefficients of the means of function values, one per group and point.
    """

    def __init__(self, clients: Coordinates) -> None:
        self.clients = clients
        self.means = _zeros(clients.n_means)
        self.differences = [_zeros(group.vectors) for group in clients.groups]
        self.values = [[Fraction(0)] * group.points for group in clients.groups]

    def add(self, weight: Fraction, left: Vector, right: Vector) -> None:
        """Add ``weight <left, right>`` for vectors that all clients share."""
        if any(left.apart) or any(right.apart):
            raise TypeError("a client's own vector must be added by add_each or add_two")
        _add_product(self.means, weight, left.means, right.means)

    def add_each(self, weight: Fraction, group: int, left: Vector, right: Vector) -> None:
        """Add ``weight`` times the mean of ``<left_i, right_i>`` over the clients of a group."""
        _add_product(self.means, weight, left.means, right.means)
        _add_product(self.differences[group], weight, left.apart, right.apart)

    def add_two(
        self, weight: Fraction, group: int, other: int, left: Vector, right: Vector
    ) -> None:
        """Add ``weight`` times the mean of ``<left_i, right_j>`` over pairs of different clients.

        Differences from a mean add up to zero. So for the pairs of one group,
        ``sum_{i != j} <a_i, b_j>`` is ``-sum_i <a_i, b_i>``, and the mean over n (n - 1) pairs is
        ``-1/(n - 1)`` times the mean over n clients. For pairs of two groups, the mean is zero.
        """
        _add_product(self.means, weight, left.means, right.means)
        count = self.clients.groups[group].n_clients
        if group == other and count is not None:
            if count < 2:
                raise ValueError("a group of one client has no pairs")
            less = -weight / (count - 1)
            _add_product(self.differences[group], less, left.apart, right.apart)

    def add_value(self, weight: Fraction, group: int, point: int) -> None:
        """Add ``weight`` times the mean of ``f_i`` at a point, over the clients of a group."""
        self.values[group][point] += weight

    def add_conditions(
        self,
        group: int,
        weights: FractionRows,
        points: Sequence[Vector],
        gradients: Sequence[Vector],
        mu: Fraction,
    ) -> None:
        """Add interpolation conditions, which are at most zero for every function of the class.

        The class is that of 1-smooth functions of curvature at least mu, which may be negative.
        The condition of a pair of points, with the points and gradients of each client, is
        ``weights[a][b] >= 0`` times

            f_b - f_a + <g_b, x_a - x_b>
                + (|g_a - g_b|^2 + mu |x_a - x_b|^2 - 2 mu <g_a - g_b, x_a - x_b>) / (2 (1 - mu))

        (Taylor, Hendrickx and Glineur 2017, Theorem 4). With the Laplacian D of the weights' graph,
        ``sum w_ab |v_a - v_b|^2 = v'Dv``, and ``sum w_ab <g_b, x_a - x_b>`` is
        ``g'(W' - diag(incoming weights)) x``. So there are as many products as points, not as
        pairs.
        """
        count = range(len(weights))
        entering = [sum((one[b] for one in weights), Fraction(0)) for b in count]
        leaving = [sum(one, Fraction(0)) for one in weights]
        scale = 1 / (2 * (1 - mu))
        for a in count:
            self.add_value(entering[a] - leaving[a], group, a)
            laplacian = [-weights[a][b] - weights[b][a] for b in count]
            laplacian[a] += entering[a] + leaving[a]
            transport = [weights[b][a] for b in count]
            transport[a] -= entering[a]
            apart = _mixed(laplacian, points, self.clients.nothing)
            steeper = _mixed(laplacian, gradients, self.clients.nothing)
            moved = _mixed(transport, points, self.clients.nothing)
            self.add_each(scale, group, gradients[a], steeper - (2 * mu) * apart)
            self.add_each(scale * mu, group, points[a], apart)
            self.add_each(Fraction(1), group, gradients[a], moved)

    def blocks(self, zero: Sequence[Vector] = ()) -> dict[str, FractionRows]:
        """Return the blocks that must be positive semidefinite, by name.

        Parameters
        ----------
        zero : sequence of Vector
            Combinations of means that are zero, such as the mean gradient at x*. Each combination
            eliminates the first coordinate with a nonzero coefficient.
        """
        named = {"means": _restricted(self.means, [list(one.means) for one in zero])}
        for group, block in zip(self.clients.groups, self.differences, strict=True):
            # A single client does not differ from the mean.
            if group.n_clients != 1 and block:
                named[f"differences of {group.name}"] = block
        return named

    def check_values(self, place: str) -> None:
        """Check that function values cancel, so that the form depends on vectors alone.

        Raises
        ------
        ProofError
            If they do not cancel. The message names the first such point.
        """
        for group, values in zip(self.clients.groups, self.values, strict=True):
            for point, value in enumerate(values):
                if value != 0:
                    raise ProofError(
                        f"{place}: the function values of point {point} of {group.name} do not "
                        "cancel"
                    )

    def check(self, place: str, zero: Sequence[Vector] = ()) -> None:
        """Check that function values cancel and that the form is a sum of squares.

        Raises
        ------
        ProofError
            If a check fails. The message names the first one that does.
        """
        self.check_values(place)
        check_blocks(place, self.blocks(zero))


def _mixed(factors: Fractions, vectors: Sequence[Vector], nothing: Vector) -> Vector:
    """Return a linear combination of vectors of one client, skipping zero factors."""
    means = list(nothing.means)
    apart = [Fraction(0)] * max(len(vector.apart) for vector in vectors)
    for factor, vector in zip(factors, vectors, strict=True):
        if factor:
            for total, values in ((means, vector.means), (apart, vector.apart)):
                for index, value in enumerate(values):
                    if value:
                        total[index] += factor * value
    return Vector(tuple(means), tuple(apart))


def _zeros(size: int) -> FractionRows:
    return [[Fraction(0)] * size for _ in range(size)]


def _add_product(
    matrix: FractionRows, weight: Fraction, left: Sequence[Fraction], right: Sequence[Fraction]
) -> None:
    """Add the symmetric part of ``weight left right'``."""
    if not weight:
        return
    ones = [(i, value) for i, value in enumerate(left) if value]
    others = [(j, weight * value / 2) for j, value in enumerate(right) if value]
    for i, value in ones:
        for j, other in others:
            product = value * other
            matrix[i][j] += product
            matrix[j][i] += product


def _restricted(matrix: FractionRows, zero: Sequence[Fractions]) -> FractionRows:
    """Return a form restricted to the coordinates for which some combinations are zero.

    Each combination eliminates its first coordinate p by ``v_p = -sum_{i != p} c_i v_i / c_p``.
    """
    left = list(range(len(matrix)))
    for index, combination in enumerate(zero):
        pivot = min(i for i, value in enumerate(combination) if value)
        out = [-value / combination[pivot] for value in combination]
        out[pivot] = Fraction(0)
        column = matrix[pivot]
        matrix = [
            [
                value + out[i] * column[j] + out[j] * column[i] + out[i] * out[j] * column[pivot]
                for j, value in enumerate(one)
            ]
            for i, one in enumerate(matrix)
        ]
        left.remove(pivot)
        for later in zero[index + 1 :]:
            if later[pivot]:
                raise ValueError("combinations that are zero must have distinct first coordinates")
    return [[matrix[i][j] for j in left] for i in left]


# ---------------------------------------------------------------- deciding


def check_blocks(place: str, blocks: Mapping[str, FractionRows]) -> None:
    """Check that every block is positive semidefinite.

    Raises
    ------
    ProofError
        If a block is not. The message names the first one.
    """
    for name, block in blocks.items():
        if not is_positive_semidefinite(block):
            raise ProofError(f"{place}: the slack of {name} has a negative eigenvalue")


def is_positive_semidefinite(matrix: FractionRows) -> bool:
    """Whether a symmetric matrix of fractions has no negative eigenvalue, by exact elimination.

    This is Bareiss's elimination in integers, in which the pivots are leading minors. In a
    semidefinite matrix, the whole row of a zero pivot must be zero.

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
    scale = math.lcm(*(value.denominator for one in matrix for value in one))
    rows = [[int(value * scale) for value in one] for one in matrix]
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


def with_numbers(claim: str, bound: Mapping[str, Fraction]) -> str:
    """Return a claim followed by the values of its coefficients."""
    numbers = ", ".join(f"{name} = {float(value):.6g}" for name, value in bound.items())
    return f"{claim}; {numbers}"


def run(arguments: Sequence[str], program: str, check: Callable[[str], str]) -> int:
    """Check a file: return 0 and print its claim if it is proved, 1 if not, 2 for wrong usage."""
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
