"""Client losses with prescribed gradients at a few points, which are extreme in their class.

Definitions
-----------
Client i has points ``p_ij`` with heights ``c_ij``, and with ``M = L - mu``

    h_i(x) = mu/2 ||x||^2 + min_a [ M/2 ||x - sum_j a_j p_ij||^2 + sum_j a_j c_ij ],

with a in the simplex. This is the envelope of the points' convex hull; it is L-smooth and
mu-strongly convex (Taylor, Hendrickx and Glineur 2017, Theorem 4). It is quadratic on every region
in which the same entries of a are positive. ``F_i(x) = h_i(x) - <v, x>`` with v the mean of all
``grad h_j(0)``, so that F is smallest at zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fltheory import validation
from fltheory.decimals import as_fraction
from fltheory.exact_or_float import is_exact, solve
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import ClientIndices, FloatArray

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PiecewiseQuadraticProblem(ReadOnlyArrays):
    """Clients whose losses are envelopes of a few points; the origin minimises F.

    At points of type `Fraction`, gradients are fractions too; the problem's floats are then read as
    their shortest decimals.

    Parameters
    ----------
    points : array, (N, P, d)
        ``p_ij``.
    heights : array, (N, P)
        ``c_ij``.
    L, mu : float
        ``0 <= mu < L``.

    Raises
    ------
    ValueError
        If a shape is wrong, a number is NaN, or a constant is out of range.

    Examples
    --------
    Half the squared distance from the interval [-1, 1]:

    >>> problem = PiecewiseQuadraticProblem([[[-1.0], [1.0]]], [[0.0, 0.0]], L=1.0, mu=0.0)
    >>> problem.gradient(np.array([[0.5], [3.0]])).tolist()
    [[0.0], [2.0]]
    """

    points: FloatArray
    heights: FloatArray
    _: KW_ONLY
    L: float
    mu: float

    def __init__(self, points: ArrayLike, heights: ArrayLike, *, L: float, mu: float) -> None:
        points = validation.array_of("points", points, "n_clients", "n_points", "dim")
        heights = validation.array_of("heights", heights, *points.shape[:2])
        smoothness = validation.positive("L", L)
        convexity = validation.nonnegative("mu", mu)
        if convexity >= smoothness:
            raise ValueError(f"mu must be below L = {smoothness:g}, got {mu!r}")
        for name, value in (
            ("points", points),
            ("heights", heights),
            ("L", smoothness),
            ("mu", convexity),
        ):
            object.__setattr__(self, name, value)

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self.points.shape[0]

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        return self.points.shape[2]

    @property
    def sigma(self) -> float:
        """Zero: gradients are exact."""
        return 0.0

    @property
    def server_sigma(self) -> float:
        """Zero: gradients are exact."""
        return 0.0

    @cached_property
    def alpha(self) -> FloatArray:
        """(N,) target weights, uniform."""
        return np.full(self.n_clients, 1 / self.n_clients)

    @property
    def sigma_G(self) -> float:
        """Infinity, because the supremum has no closed form and no bound is claimed."""
        return float("inf")

    @cached_property
    def x_star(self) -> FloatArray:
        """(d,) minimiser of F, the origin."""
        return np.zeros(self.dim)

    @cached_property
    def F_star(self) -> float:
        """The minimum of F."""
        return float(self.loss(self.x_star))

    @cached_property
    def _faces(self) -> tuple[list[_Face], ...]:
        return tuple(
            list(_faces(points, heights, self.L - self.mu))
            for points, heights in zip(self.points, self.heights, strict=True)
        )

    @cached_property
    def _tilt(self) -> FloatArray:
        """v, the mean of the envelopes' gradients at the origin."""
        origin = np.zeros((self.n_clients, self.dim))
        return self._envelope_gradients(origin, np.arange(self.n_clients)).mean(axis=0)

    @cached_property
    def _exact_tilt(self) -> Any:
        origin = np.full((self.n_clients, self.dim), Fraction(0), dtype=object)
        gradients = self._exact_gradients(origin, np.arange(self.n_clients))
        return gradients.sum(axis=0) / Fraction(self.n_clients)

    def client_gradients(self, x: Any, clients: ClientIndices) -> Any:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d) and clients (T,)."""
        if is_exact(x):
            return self._exact_gradients(x, clients) - self._exact_tilt
        return self._envelope_gradients(x, clients) - self._tilt

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points of shape (..., d)."""
        flat = np.asarray(x).reshape(-1, self.dim)
        total = np.zeros_like(flat, dtype=np.float64)
        for client in range(self.n_clients):
            total += self.client_gradients(flat, np.full(len(flat), client))
        return (total / self.n_clients).reshape(np.shape(x))

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., d)."""
        flat = np.asarray(x, dtype=np.float64).reshape(-1, self.dim)
        losses = np.stack(
            [
                0.5 * self.mu * (flat**2).sum(axis=1)
                + self._lowest(flat, client)[0]
                - flat @ self._tilt
                for client in range(self.n_clients)
            ],
            axis=1,
        )
        return losses.reshape(*np.shape(x)[:-1], self.n_clients)

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points ``x`` of shape (..., d)."""
        return np.asarray(self.client_losses(x).mean(axis=-1))

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points of shape (..., d)."""
        return self.loss(x) - self.F_star

    def _lowest(self, x: FloatArray, client: int) -> tuple[FloatArray, FloatArray, list[int]]:
        """Return the envelope's values (T,), the hull's nearest points (T, d), and their faces."""
        values = np.full(len(x), np.inf)
        nearest = np.zeros_like(x)
        chosen = [0] * len(x)
        points, heights = self.points[client], self.heights[client]
        for index, face in enumerate(self._faces[client]):
            shares = x @ face.slope.T + face.offset
            at = shares @ points[face.members]
            height = shares @ heights[face.members]
            value = 0.5 * (self.L - self.mu) * ((x - at) ** 2).sum(axis=1) + height
            inside = shares.min(axis=1) >= -_ROUNDING
            for t in np.flatnonzero(inside & (value < values)):
                values[t], nearest[t], chosen[t] = value[t], at[t], index
        return values, nearest, chosen

    def _envelope_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        gradients = np.empty_like(x, dtype=np.float64)
        for client in np.unique(clients):
            rows = clients == client
            _, nearest, _ = self._lowest(x[rows], client)
            gradients[rows] = self.L * x[rows] - (self.L - self.mu) * nearest
        return gradients

    def _exact_gradients(self, x: Any, clients: ClientIndices) -> Any:
        gradients = np.empty(x.shape, dtype=object)
        for row, client in enumerate(clients):
            gradients[row] = self._exact_gradient(x[row], int(client))
        return gradients

    def _exact_gradient(self, x: Any, client: int) -> Any:
        """Return a gradient in fractions, trying the face found in floats first."""
        smoothness, convexity = as_fraction(self.L), as_fraction(self.mu)
        bend = smoothness - convexity
        points, heights = _fractions(self.points[client]), _fractions(self.heights[client])
        guess = self._lowest(x.astype(np.float64)[None], client)[2][0]
        faces = self._faces[client]
        for index in [guess, *range(len(faces))]:
            members = faces[index].members
            shares, level = _stationary(points[members], heights[members], bend, x)
            at = shares @ points[members]
            # Optimality conditions: no negative share, and no other point that is lower.
            if shares.min() >= 0 and (heights - bend * points @ (x - at)).min() >= level:
                return smoothness * x - bend * at
        raise ArithmeticError(f"no face of client {client} was found to hold the nearest point")


@dataclass(frozen=True, eq=False)
class _Face(ReadOnlyArrays):
    """A set of points and their shares ``a = slope x + offset``, valid if no share is negative."""

    members: list[int]
    slope: FloatArray
    offset: FloatArray


def _faces(points: FloatArray, heights: FloatArray, bend: float) -> Iterator[_Face]:
    """Yield the face of every affinely independent set of points."""
    count, dim = points.shape
    for size in range(1, min(count, dim + 1) + 1):
        for members in combinations(range(count), size):
            own = points[list(members)]
            matrix = _conditions(own, bend)
            if np.linalg.cond(matrix) > 1e12:
                continue
            inverse = np.linalg.inv(matrix)
            slope = bend * inverse[:size, :size] @ own
            offset = inverse[:size, size] - inverse[:size, :size] @ heights[list(members)]
            yield _Face(list(members), slope, offset)


def _conditions(points: Any, bend: Any) -> Any:
    """Return the matrix of the optimality equations in the shares and the level."""
    size = len(points)
    matrix = np.zeros((size + 1, size + 1), dtype=points.dtype)
    matrix[:size, :size] = bend * points @ points.T
    matrix[:size, size] = 1
    matrix[size, :size] = 1
    return matrix


def _stationary(points: Any, heights: Any, bend: Fraction, x: Any) -> tuple[Any, Any]:
    """Return the stationary shares on a face, in fractions, and the level there."""
    right = np.append(bend * points @ x - heights, np.array([Fraction(1)], dtype=object))
    found = solve(_conditions(points, bend), right)
    return found[:-1], -found[-1]


def _fractions(values: FloatArray) -> Any:
    made = np.empty(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        made[index] = as_fraction(values[index])
    return made
