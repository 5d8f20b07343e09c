"""The slack of a round, i.e. matrices that must be positive semidefinite for a bound to hold.

Definitions
-----------
Lengths are in units in which L = 1, and x* = 0. With multipliers lambda of the interpolation
conditions, nu of the budgets of heterogeneity and s of those of noise,

    slack = rate ||x||^2 - E||x+||^2 + sum lambda_ab A_ab + sum nu_j H_j + sum s_k ||xi_k||^2

where ``A_ab + f_b - f_a <= 0`` for two points a, b of any function of the class. If it is a sum of
squares and the function values cancel, ``E||x+||^2 <= rate ||x||^2 + sum nu_j H_j + ...`` holds.
For the descent of F, the slack begins with ``F(x) - decrease ||grad F(x)||^2 - E F(x+)``, and F(x+)
is replaced by its upper bound from F's smoothness. Then x* and its gradients are left out, and so
is x, because only moves from it matter. For the gap of F, the slack contains ``-gap (F(x) - F*)``,
which function values must cancel. A theorem's assumption about a run is a sum that is at most zero
on average; it also has a multiplier, as the last condition.

Clients of a kind are interchangeable, so the form splits (Colla and Hendrickx, arXiv 2403.11724):

- the *mean* block, of x, of each kind's mean gradients ``g_0 .. g_{K-1}`` at the local points (only
  ``g_0`` for clients that never take part), and of its mean ``g_*`` at x*. The weighted ``g_*`` add
  up to zero, so that of the reference kind is left out;
- a block of *differences* from the mean for each kind, of ``(g_0 .. g_{K-1}, g_*)``;
- with noise, a block of *fluctuations* of each client given x, of ``(h_1 .. h_{K-1}, xi_0 ..
  xi_{K-2})``: the random part of its gradients, and the noise of all steps but the last, whose
  noise is independent of everything else. Fluctuations of different clients are independent.

Everything is divided by ``e = L client_lr``, so that multipliers for small steps have moderate
size, and the matrices are quadratic in e if the ratios of the steps are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClass, Given, Measure
from fltheory.worst_case.rounds.one_round import Played

Form = list[FloatArray]
"""A quadratic form: one symmetric matrix per block."""

# Smaller budgets are replaced by this value, so that no coordinate is stretched by more than 10^6.
_SMALLEST = 1e-12
GIVEN = "given"
"""A placeholder for a group of clients in the name of the last condition, if it is assumed about a
run."""


@dataclass(frozen=True, eq=False)
class Points(ReadOnlyArrays):
    """The positions and gradients of a kind's points in each block; the last point may be x*.

    ``blocks`` maps a block's index to rows of coordinates, i.e. positions and gradients, (P, d).
    """

    name: str
    blocks: dict[int, tuple[FloatArray, FloatArray]]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.blocks[0][0])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All ordered pairs of different points."""
        return [(a, b) for a in range(len(self)) for b in range(len(self)) if a != b]


@dataclass(frozen=True, eq=False)
class Slack(ReadOnlyArrays):
    """The slack as an affine function of multipliers, one matrix per block.

    Attributes
    ----------
    sizes : tuple of int
        Sizes of the blocks: mean, each kind's differences, each kind's fluctuations.
    decrease : Form
        The form multiplied by the decrease. It is ``||x||^2``, with coefficient ``-(1 - rate)/e``,
        or ``||grad F(x)||^2``, or zero for the gap of F.
    change : Form
        ``(||x||^2 - E||x+||^2)/e`` or ``(F(x) - E F(x+))/e``, without the noise of last steps.
    conditions : list of Form
        ``A_ab``, for the ``pairs`` (kind, a, b) of numbered points. If x* is included, it is the
        last point.
    budgets, noises, orthogonal : list of Form
        The forms ``H_j`` and ``||xi_k||^2``, and products that are zero, for which multipliers may
        have any sign.
    balance : array, (points of each kind but its last, pairs)
        ``balance @ lambda`` must be ``values`` times the decrease, so that function values cancel.
    values : array, (points of each kind but its last,)
    last_noise : float
        Coefficient of sigma^2 from the last local step's noise, divided by e.
    given_level : float or None
        Coefficient of the dissimilarity in the last condition, if this is an assumption about a
        run.
    directions : list of (basis, array of int)
        One basis per block, with the unknown that changes the slack along each coordinate: 0 for
        the multipliers of pairs, 1 for the decrease, 2 for a budget of heterogeneity, 3 for a
        budget of noise.
    points : list of Points
        The points of each kind.
    """

    sizes: tuple[int, ...]
    decrease: Form
    change: Form
    pairs: list[tuple[str, int, int]]
    conditions: list[Form]
    budgets: list[Form]
    noises: list[Form]
    orthogonal: list[Form]
    balance: FloatArray
    values: FloatArray
    last_noise: float
    given_level: float | None
    directions: list[tuple[FloatArray, NDArray[np.intp]]]
    points: list[Points]

    def bases(self, decrease: float, budget: float, noise: float) -> list[FloatArray]:
        """Return one basis per block in which the slack's entries have similar sizes.

        Along the model, the slack changes by ``decrease``. Along gradients that are the same at all
        local points and x*, it changes only by the budget. This is tiny if many clients take part,
        and huge if some never do. Along noise, the slack changes by the budget of noise.
        """
        sizes = np.sqrt(np.maximum([1.0, abs(decrease), budget, noise], _SMALLEST))
        return [basis / sizes[moved_by] for basis, moved_by in self.directions]

    def without_heterogeneity(self) -> list[FloatArray]:
        """Return, for each block, a basis of the subspace on which all budgets' forms are zero."""
        bases = []
        for block, size in enumerate(self.sizes):
            total = sum((form[block] for form in self.budgets), np.zeros((size, size)))
            values, vectors = np.linalg.eigh(total) if size else (np.zeros(0), np.zeros((0, 0)))
            bases.append(vectors[:, values <= 1e-12])
        return bases


def slack_of(
    a_round: Played, clients: AnyClass, measure: Measure = DISTANCE, given: Given | None = None
) -> Slack:
    """Return the slack of a round for a class of clients.

    Raises
    ------
    ValueError
        If the measure does not cover this class.
    """
    measure.check(clients)
    assembly = _Assembly(a_round, clients, measure)
    return assembly.slack() if given is None else assembly.under(given)


class _Assembly:
    """The coordinates of every block, and the forms in these coordinates."""

    def __init__(self, a_round: Played, clients: AnyClass, measure: Measure) -> None:
        self.round, self.clients, self.measure = a_round, clients, measure
        self.kinds, self.moments = a_round.kinds, a_round.moments
        self.shares = np.array([float(kind.share) for kind in self.kinds])
        self.e = float(clients.L * a_round.client_lr)
        self.mu = float(clients.mu / clients.L)
        # If included, x and g_* are among the coordinates of gradients.
        self.first = int(measure.sees_optimum)
        self.steps = [a_round.local_steps if kind.takes_part else 1 for kind in self.kinds]
        own = [count + self.first for count in self.steps]
        self.starts = self.first + np.cumsum([0, *self.steps])
        noisy = clients.sigma > 0 and a_round.local_steps > 1
        self.noisy = [c for c, kind in enumerate(self.kinds) if noisy and kind.takes_part]
        self.sizes = (
            int(self.starts[-1]) + self.first * (len(self.kinds) - 1),
            *(
                0 if kind.n_clients == 1 else size
                for kind, size in zip(self.kinds, own, strict=True)
            ),
            *([2 * (a_round.local_steps - 1)] * len(self.noisy) or [0]),
        )
        # The reference is the largest kind that takes part, so that its mean g_* has moderate
        # coefficients in terms of the others.
        there = [(kind.share, c) for c, kind in enumerate(self.kinds) if kind.takes_part]
        self.reference = max(there)[1] if there else 0
        self.points = [self._points_of(c) for c in range(len(self.kinds))]

    def slack(self) -> Slack:
        pairs = [(own, a, b) for own in self.points for a, b in own.pairs]
        per_square = float(self.measure.part * self.round.q * self.round.server_lr**2) * self.e
        return Slack(
            self.sizes,
            self._form({0: self.measure.falls * np.outer(self._start, self._start)}),
            self._change(),
            [(own.name, a, b) for own, a, b in pairs],
            [self._form(interpolation(own, a, b, self.mu)) for own, a, b in pairs],
            self._budgets(),
            list(self._noises()),
            list(self._orthogonal()),
            _balance_of(self.points),
            self._values(),
            per_square * float(self.round.noise_weight),
            None,
            self._directions(),
            self.points,
        )

    def under(self, given: Given) -> Slack:
        """Return the slack with an assumption about the run as its last condition."""
        plain = self.slack()
        column = np.zeros((len(plain.balance), 1))
        if self.first:
            # The eligible clients' values at the model; their points come first.
            column[0] = float(given.values / self.clients.L)
        return replace(
            plain,
            pairs=[*plain.pairs, (GIVEN, 0, 0)],
            conditions=[*plain.conditions, self._supposed(given)],
            balance=np.hstack([plain.balance, column]),
            given_level=float(given.heterogeneity),
        )

    def _supposed(self, given: Given) -> Form:
        gradient, moved = self._gradient_at_x(), float(given.moved)
        sums = np.array([self._along(c).sum(axis=0) for c in range(len(self.kinds))])
        matrices = {0: float(given.gradient) * np.outer(gradient, gradient)}
        matrices[0] += moved * sums.T @ self.moments.second @ sums
        for c in range(len(self.kinds)):
            if self.sizes[1 + c]:
                own = np.arange(self.sizes[1 + c]) < self.steps[c]
                matrices[1 + c] = moved * self.moments.spread[c] * np.outer(own, own)
        for block, c in enumerate(self.noisy, start=1 + len(self.kinds)):
            # This is the random part of gradients, without the noise itself.
            own = np.arange(self.sizes[block]) < self.sizes[block] // 2
            matrices[block] = moved * self.moments.square[c] * np.outer(own, own)
        return self._form(matrices)

    def _directions(self) -> list[tuple[FloatArray, NDArray[np.intp]]]:
        bases = [np.eye(size) for size in self.sizes]
        moved_by = [np.zeros(size, dtype=np.intp) for size in self.sizes]
        start = 0 if self.first else int(self.starts[self.reference])
        moved_by[0][start] = 1
        if not self.first:
            # Gradients that are the same for all clients and points are in the place of the
            # reference kind. The other kinds have their own places.
            bases[0][:, start] = 1
        for c in range(len(self.kinds)):
            if c != self.reference:
                # These gradients are the same at all local points and at x*.
                optimum = self._at_optimum(c)
                column = int(optimum.argmax()) if self.first else int(self.starts[c + 1]) - 1
                moved_by[0][column] = 2
                bases[0][:, column] = optimum + self._along(c).sum(axis=0)
                ratio = self.shares[c] / self.shares[self.reference]
                bases[0][:, column] -= ratio * self._along(self.reference).sum(axis=0)
            if self.sizes[1 + c]:
                bases[1 + c][:, -1] = 1
                moved_by[1 + c][-1] = 2
        for kind in moved_by[1 + len(self.kinds) :]:
            kind[len(kind) // 2 :] = 3
        return list(zip(bases, moved_by, strict=True))

    @property
    def _x(self) -> FloatArray:
        return _unit(self.sizes[0], 0) if self.first else np.zeros(self.sizes[0])

    @property
    def _start(self) -> FloatArray:
        """The vector whose squared length a round decreases, either x or the gradient of F at x."""
        return self._x if self.first else self._gradient_at_x()

    def _form(self, matrices: dict[int, FloatArray]) -> Form:
        zeros = [np.zeros((size, size)) for size in self.sizes]
        return [matrices.get(block, zero) for block, zero in enumerate(zeros)]

    def _along(self, c: int) -> FloatArray:
        """Return the rows of a kind's mean gradients at its local points."""
        return np.eye(self.sizes[0])[self.starts[c] : self.starts[c + 1]]

    def _at_optimum(self, c: int) -> FloatArray:
        """Return a kind's mean gradient at x*; for the reference kind, it makes F stationary."""
        kept = [d for d in range(len(self.kinds)) if d != self.reference]
        own = np.eye(self.sizes[0])[self.starts[-1] :]
        if not len(own):
            return np.zeros(self.sizes[0])
        if c != self.reference:
            return own[kept.index(c)]
        return np.asarray(-(self.shares[kept] / self.shares[c]) @ own)

    def _points_of(self, c: int) -> Points:
        means, own = self._along(c), self.sizes[1 + c]
        blocks = {0: self._run(means, means, self._x, self._at_optimum(c))}
        if own:
            apart = np.eye(own)
            seen = apart[: self.steps[c]]
            blocks[1 + c] = self._run(seen, seen, np.zeros(own), apart[-1])
        if c in self.noisy:
            block, count = 1 + len(self.kinds) + self.noisy.index(c), self.steps[c] - 1
            nothing = np.zeros(2 * count)
            random, noise = np.zeros((2, count + 1, 2 * count))
            random[1:, :count] = np.eye(count)
            noise[:-1, count:] = np.eye(count)
            blocks[block] = self._run(random, random + noise, nothing, nothing)
        return Points(self.kinds[c].name, blocks)

    def _run(
        self, gradients: FloatArray, seen: FloatArray, start: FloatArray, at_optimum: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the local points and gradients, beginning at ``start``, and x*."""
        before = np.vstack([np.zeros_like(start), np.cumsum(seen, axis=0)[:-1]])
        points = start - self.e * before
        if not self.first:
            return points, gradients
        return np.vstack([points, np.zeros_like(start)]), np.vstack([gradients, at_optimum])

    def _gradient_at_x(self) -> FloatArray:
        """Return the gradient of F at the model, in the mean block."""
        return self.shares @ np.array([own.blocks[0][1][0] for own in self.points])

    def _change(self) -> Form:
        """Return ``part (||s||^2 - E||s - p||^2)/e`` for the round's step -p and its start s."""
        q, part = float(self.round.q), float(self.measure.part)
        gain, own = float(self.round.server_lr), float(self.clients.L * self.round.assist_lr)
        moved = np.array([self._along(c).sum(axis=0) for c in range(len(self.kinds))])
        second = moved.T @ self.moments.second @ moved
        by_clients = gain * symmetric(self._start, self.moments.mean @ moved)
        by_clients -= gain**2 * self.e * second
        by_server = own / self.e * symmetric(self._start, self._gradient_at_x())
        by_server -= own**2 / self.e * np.outer(self._gradient_at_x(), self._gradient_at_x())
        kept = (1 - self.measure.keeps) / self.e * np.outer(self._x, self._x)
        matrices = {0: part * (q * by_clients + (1 - q) * by_server) - kept}
        reach = part * q * gain**2 * self.e
        for c in range(len(self.kinds)):
            if self.sizes[1 + c]:
                own_sum = np.ones(self.sizes[1 + c])
                own_sum[self.steps[c] :] = 0
                variance = reach * self.moments.spread[c]
                matrices[1 + c] = -variance * np.outer(own_sum, own_sum)
        for block, c in enumerate(self.noisy, start=1 + len(self.kinds)):
            ones = np.ones((self.sizes[block],) * 2)
            matrices[block] = -reach * self.moments.square[c] * ones
        return self._form(matrices)

    def _values(self) -> FloatArray:
        """Return the coefficients of function values in the term multiplied by the decrease."""
        rows = []
        for share, own in zip(self.shares, self.points, strict=True):
            rows += [share * (1 - self.measure.falls)] + [0.0] * (len(own) - 2)
        return np.array(rows) if self.first else np.zeros(len(_balance_of(self.points)))

    def _budgets(self) -> list[Form]:
        nothing, every = np.zeros(self.sizes[0]), range(len(self.kinds))
        if self.clients.heterogeneity == "optimum":
            total = self._form({})
            for c in every:
                square = self._square(c, -1, nothing)
                total = [t + self.shares[c] * new for t, new in zip(total, square, strict=True)]
            return [total]
        centres = [(-1, nothing)] * self.first + [(0, self._gradient_at_x())]
        return [self._square(c, point, centre) for c in every for point, centre in centres]

    def _square(self, c: int, point: int, centre: FloatArray) -> Form:
        """Return the mean squared distance of a kind's gradients from a mean-block vector."""
        blocks = self.points[c].blocks
        off = blocks[0][1][point] - centre
        matrices = {0: np.outer(off, off)}
        if 1 + c in blocks:
            gradient = blocks[1 + c][1][point]
            matrices[1 + c] = np.outer(gradient, gradient)
        return self._form(matrices)

    def _noises(self) -> Iterator[Form]:
        for block in range(1 + len(self.kinds), len(self.sizes)):
            for k in range(self.sizes[block] // 2):
                unit = _unit(self.sizes[block], self.sizes[block] // 2 + k)
                yield self._form({block: np.outer(unit, unit)})

    def _orthogonal(self) -> Iterator[Form]:
        """Yield products of xi_k with earlier noise and with earlier gradients."""
        for block in range(1 + len(self.kinds), len(self.sizes)):
            size, count = self.sizes[block], self.sizes[block] // 2
            for k in range(count):
                noise = _unit(size, count + k)
                for earlier in [*range(k), *range(count, count + k)]:
                    yield self._form({block: symmetric(noise, _unit(size, earlier))})


def _unit(size: int, index: int) -> FloatArray:
    return np.eye(size)[index]


def interpolation(own: Points, a: int, b: int, mu: float) -> dict[int, FloatArray]:
    """Return ``A_ab`` for two points of a kind, by block, with ``L = 1``."""
    return {
        block: condition(points[a] - points[b], gradients[a], gradients[b], mu)
        for block, (points, gradients) in own.blocks.items()
    }


def condition(apart: FloatArray, gradient: FloatArray, other: FloatArray, mu: float) -> FloatArray:
    """Return ``A_ab`` from ``x_a - x_b`` and the two gradients, with ``L = 1``."""
    steeper = gradient - other
    squares = (
        np.outer(steeper, steeper) + mu * np.outer(apart, apart) - mu * symmetric(steeper, apart)
    )
    return symmetric(other, apart) / 2 + squares / (2 * (1 - mu))


def _balance_of(every: Sequence[Points]) -> FloatArray:
    """Return the rows that make function values cancel; see `Slack.balance`."""
    rows = []
    for own in every:
        # If values cancel at all points but one, they also cancel at that point.
        for point in range(len(own) - 1):
            rows.append(
                [
                    float(other is own) * ((b == point) - (a == point))
                    for other in every
                    for a, b in other.pairs
                ]
            )
    return np.array(rows).reshape(len(rows), sum(len(own.pairs) for own in every))


def symmetric(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the symmetric matrix of twice the product of two linear forms."""
    return np.outer(left, right) + np.outer(right, left)
