"""A round's slack matrices: what must be positive semidefinite for a bound to hold for all clients.

Definitions
-----------
Lengths are in units in which L = 1, and x* = 0. With multipliers lambda of the interpolation
conditions, nu of the budgets of heterogeneity and s of those of noise,

    slack = rate ||x||^2 - E||x+||^2 + sum lambda_ab A_ab + sum nu_j H_j + sum s_k ||xi_k||^2

where ``A_ab + f_b - f_a <= 0`` for two points a, b of any function of the class. If it is a sum of
squares and the function values cancel, ``E||x+||^2 <= rate ||x||^2 + sum nu_j H_j + ...`` holds.
For the descent of F it begins with ``F(x) - decrease ||grad F(x)||^2 - E F(x+)``, where F(x+) is
what F's smoothness bounds it by; x* and its gradients are left out, and so is x, as moves from it
are all that enters.

Clients of a group are alike, so the form splits (Colla and Hendrickx, arXiv 2403.11724):

- the *mean* block, of ``(x, means of the eligible clients' gradients g_0 .. g_{K-1} along the way,
  mean of the excluded clients' gradients at x* and at x)``. The gradients at x* add up to zero, so
  the eligible clients' mean is ``-s/n`` times the excluded clients', and zero without those;
- a block of *differences* from the mean for each group, of ``(g_0 .. g_{K-1}, g_*)`` and
  ``(u_0, u_*)``. The participants' mean has ``c`` times their variance;
- with noise, a block of *fluctuations* of each client given x, of ``(h_1 .. h_{K-1}, xi_0 ..
  xi_{K-2})``: what is random of its gradients, and the noise but for the last step's, which is
  independent of all else. Those of different clients are independent: 1/m of their variance.

All is divided by ``e = L client_lr``, so that multipliers of small steps are of moderate size and
the matrices are quadratic in e where the steps keep their ratios.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.measure import DISTANCE, AnyClass, Measure
from fltheory.worst_case.rounds.one_round import OneRound

Form = list[FloatArray]
"""A quadratic form: one symmetric matrix a block."""

_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Group(ReadOnlyArrays):
    """Positions and gradients of a group's points, the last of which may be x*, in each block.

    ``blocks`` maps a block's index to rows of coordinates: positions and gradients, (P, d).
    """

    name: str
    blocks: dict[int, tuple[FloatArray, FloatArray]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All ordered pairs of its points."""
        count = len(next(iter(self.blocks.values()))[0])
        return [(a, b) for a in range(count) for b in range(count) if a != b]


@dataclass(frozen=True, eq=False)
class Slack(ReadOnlyArrays):
    """The slack as an affine function of multipliers, one matrix a block.

    Attributes
    ----------
    sizes : tuple of int
        Of the blocks: mean, differences of the eligible and of the excluded, fluctuations.
    decrease : Form
        ``||x||^2``, whose coefficient is ``-(1 - rate)/e``, or ``||grad F(x)||^2``.
    change : Form
        ``(||x||^2 - E||x+||^2)/e`` or ``(F(x) - E F(x+))/e``, without the noise of last steps.
    conditions : list of Form
        ``A_ab``, with ``pairs`` (group, a, b); points are numbered, x* last if it is one.
    budgets, noises, orthogonal : list of Form
        ``H_j``; ``||xi_k||^2``; products that are zero, whose multipliers have any sign.
    balance : array, (points of each group but its last, pairs)
        Times lambda it must be zero, so that function values cancel.
    last_noise : float
        Coefficient of sigma^2 that the last local step's noise has, over e.
    directions : list of (basis, array of int)
        Coordinates, one basis a block, and what moves the slack along each of them: 0 for the
        multipliers of pairs, 1 the decrease, 2 a budget, 3 a noise's budget.
    groups : list of Group
        The points of eligible and of excluded clients.
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
    last_noise: float
    directions: list[tuple[FloatArray, NDArray[np.intp]]]
    groups: list[Group]

    def bases(self, decrease: float, budget: float, noise: float) -> list[FloatArray]:
        """Return coordinates, one basis a block, in which the slack's entries are of like size.

        The model moves it by ``decrease``; gradients that are the same along the way and at x*
        move it by the budget alone, which is tiny where many clients take part and huge where
        some never do; and noise by its own budget.
        """
        sizes = np.sqrt(np.maximum([1.0, abs(decrease), budget, noise], _SMALLEST))
        return [basis / sizes[moved_by] for basis, moved_by in self.directions]

    def without_heterogeneity(self) -> list[FloatArray]:
        """Return bases, one a block, of what is left where all budgets are zero."""
        bases = []
        for block, size in enumerate(self.sizes):
            total = sum((form[block] for form in self.budgets), np.zeros((size, size)))
            values, vectors = np.linalg.eigh(total) if size else (np.zeros(0), np.zeros((0, 0)))
            bases.append(vectors[:, values <= 1e-12])
        return bases


def slack_of(a_round: OneRound, clients: AnyClass, measure: Measure = DISTANCE) -> Slack:
    """Return the slack of a round for a class of clients.

    Raises
    ------
    ValueError
        For a class that the measure does not bound.
    """
    measure.check(clients)
    return _Assembly(a_round, clients, measure).slack()


class _Assembly:
    """Coordinates of every block, and the forms in them."""

    def __init__(self, a_round: OneRound, clients: AnyClass, measure: Measure) -> None:
        self.round, self.clients = a_round, clients
        self.part, self.sees_optimum = float(measure.part), measure.sees_optimum
        self.e = float(clients.L * a_round.client_lr)
        self.mu = float(clients.mu / clients.L)
        self.steps = a_round.local_steps
        self.share = float(1 - a_round.excluded_share)
        self.excludes = a_round.excluded_share > 0
        self.noisy = clients.sigma > 0 and self.steps > 1
        # x comes before the gradients, if it is there.
        self.first = int(self.sees_optimum)
        each = 1 + self.first
        self.sizes = (
            self.first + self.steps + each * self.excludes,
            0 if a_round.n_eligible == 1 else self.steps + self.first,
            each if self.excludes and a_round.n_excluded != 1 else 0,
            2 * (self.steps - 1) if self.noisy else 0,
        )
        self.groups = [self._eligible()] + ([self._excluded()] if self.excludes else [])

    def slack(self) -> Slack:
        pairs = [(group, a, b) for group in self.groups for a, b in group.pairs]
        return Slack(
            self.sizes,
            self._form({0: np.outer(self._start, self._start)}),
            self._change(),
            [(group.name, a, b) for group, a, b in pairs],
            [self._form(interpolation(group, a, b, self.mu)) for group, a, b in pairs],
            self._budgets(),
            list(self._noises()),
            list(self._orthogonal()),
            balance_of(self.groups),
            self.part * float(self.round.q) * self._reach**2 / (self.e * self.round.participants),
            self._directions(),
            self.groups,
        )

    def _directions(self) -> list[tuple[FloatArray, NDArray[np.intp]]]:
        mean, eligible, excluded, fluctuations = (np.eye(size) for size in self.sizes)
        kinds = [np.zeros(size, dtype=np.intp) for size in self.sizes]
        kinds[0][0] = 1
        along = slice(self.first, self.first + self.steps)
        if not self.sees_optimum:
            # Gradients that are the same for everybody and along the way.
            mean[:, 0] = 1
        if self.excludes:
            # Gradients that are the same along the way, and at x*.
            own = self.first + self.steps
            mean[along, own] = -(1 - self.share) / self.share
            mean[own:, own] = 1
            kinds[0][own] = 2
        for basis, kind in ((eligible, kinds[1]), (excluded, kinds[2])):
            if len(basis):
                basis[:, -1] = 1
                kind[-1] = 2
        kinds[3][self.sizes[3] // 2 :] = 3
        return list(zip((mean, eligible, excluded, fluctuations), kinds, strict=True))

    @property
    def _reach(self) -> float:
        """What a local gradient is multiplied by in the end."""
        return float(self.round.server_lr) * self.e

    @property
    def _x(self) -> FloatArray:
        return _unit(self.sizes[0], 0) if self.sees_optimum else np.zeros(self.sizes[0])

    @property
    def _start(self) -> FloatArray:
        """What a round makes smaller, by its distance from the step that is taken."""
        return self._x if self.sees_optimum else self._gradient_at_x()

    def _form(self, matrices: dict[int, FloatArray]) -> Form:
        zeros = [np.zeros((size, size)) for size in self.sizes]
        return [matrices.get(block, zero) for block, zero in enumerate(zeros)]

    def _eligible(self) -> Group:
        mean, differences, _, fluctuations = self.sizes
        steps = self.steps
        means = np.eye(mean)[self.first : self.first + steps]
        at_optimum = np.zeros(mean)
        if self.excludes:
            at_optimum = -(1 - self.share) / self.share * _unit(mean, self.first + steps)
        blocks = {0: self._run(means, means, self._x, at_optimum)}
        if differences:
            apart = np.eye(differences)
            blocks[1] = self._run(apart[:steps], apart[:steps], np.zeros(differences), apart[-1])
        if fluctuations:
            nothing = np.zeros(fluctuations)
            random, noise = np.zeros((2, steps, fluctuations))
            random[1:, : steps - 1] = np.eye(steps - 1)
            noise[:-1, steps - 1 :] = np.eye(steps - 1)
            blocks[3] = self._run(random, random + noise, nothing, nothing)
        return Group("eligible", blocks)

    def _run(
        self, gradients: FloatArray, seen: FloatArray, start: FloatArray, at_optimum: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return points and gradients from ``start`` on, each less e times what it sees, and x*."""
        before = np.vstack([np.zeros_like(start), np.cumsum(seen, axis=0)[:-1]])
        points = start - self.e * before
        if not self.sees_optimum:
            return points, gradients
        return np.vstack([points, np.zeros_like(start)]), np.vstack([gradients, at_optimum])

    def _excluded(self) -> Group:
        mean, _, differences, _ = self.sizes
        own = _unit(mean, mean - 1)
        blocks = {0: self._run(own[None], own[None], self._x, _unit(mean, mean - 2))}
        if differences:
            apart = np.eye(differences)
            blocks[2] = self._run(apart[:1], apart[:1], np.zeros(differences), apart[-1])
        return Group("excluded", blocks)

    def _gradient_at_x(self) -> FloatArray:
        """Return the gradient of F at the model, in the mean block."""
        gradient = self.share * self.groups[0].blocks[0][1][0]
        if self.excludes:
            gradient = gradient + (1 - self.share) * self.groups[1].blocks[0][1][0]
        return gradient

    def _change(self) -> Form:
        q, reach = float(self.round.q), self._reach
        server = float(self.clients.L * self.round.assist_lr)
        eligible = self.groups[0].blocks
        total = {block: own[1][: self.steps].sum(axis=0) for block, own in eligible.items()}
        by_clients = _less(self._start, reach, total[0], self.e)
        by_server = _less(self._start, server, self._gradient_at_x(), self.e)
        matrices = {0: self.part * (q * by_clients + (1 - q) * by_server)}
        spread = {1: float(self.round.sampling_variance), 3: 1 / self.round.participants}
        for block in total.keys() - {0}:
            moved = total[block]
            if block == 3:
                moved = np.ones(self.sizes[3])
            size = self.part * q * spread[block] * reach**2 / self.e
            matrices[block] = -size * np.outer(moved, moved)
        return self._form(matrices)

    def _budgets(self) -> list[Form]:
        weights = (self.share, 1 - self.share)
        own = [(group, index + 1) for index, group in enumerate(self.groups)]
        if self.clients.heterogeneity == "optimum":
            total = self._form({})
            for (group, block), weight in zip(own, weights, strict=False):
                square = self._square(group, block, -1, np.zeros(self.sizes[0]))
                total = [old + weight * new for old, new in zip(total, square, strict=True)]
            return [total]
        centre = self._gradient_at_x()
        points = [(-1, np.zeros_like(centre))] * self.sees_optimum + [(0, centre)]
        return [
            self._square(group, block, point, at) for group, block in own for point, at in points
        ]

    def _square(self, group: Group, block: int, point: int, centre: FloatArray) -> Form:
        """Return a group's mean squared distance of gradients from a vector of the mean block."""
        off = group.blocks[0][1][point] - centre
        matrices = {0: np.outer(off, off)}
        if block in group.blocks:
            gradient = group.blocks[block][1][point]
            matrices[block] = np.outer(gradient, gradient)
        return self._form(matrices)

    def _noises(self) -> Iterator[Form]:
        for k in range(self.sizes[3] // 2):
            unit = _unit(self.sizes[3], self.steps - 1 + k)
            yield self._form({3: np.outer(unit, unit)})

    def _orthogonal(self) -> Iterator[Form]:
        """Yield products of xi_k with earlier noise, and with gradients that it comes after."""
        size, count = self.sizes[3], self.sizes[3] // 2
        for k in range(count):
            noise = _unit(size, count + k)
            for earlier in [*range(k), *range(count, count + k)]:
                yield self._form({3: symmetric(noise, _unit(size, earlier))})


def _unit(size: int, index: int) -> FloatArray:
    return np.eye(size)[index]


def interpolation(group: Group, a: int, b: int, mu: float) -> dict[int, FloatArray]:
    """Return ``A_ab`` of two points of a group, by block; ``L = 1``."""
    matrices = {}
    for block, (points, gradients) in group.blocks.items():
        apart, steeper = points[a] - points[b], gradients[a] - gradients[b]
        squares = (
            np.outer(steeper, steeper)
            + mu * np.outer(apart, apart)
            - mu * symmetric(steeper, apart)
        )
        matrices[block] = symmetric(gradients[b], apart) / 2 + squares / (2 * (1 - mu))
    return matrices


def balance_of(groups: Sequence[Group]) -> FloatArray:
    """Return what of the pairs' multipliers must be zero; see `Slack.balance`."""
    rows = []
    for group in groups:
        # What cancels at all points but one cancels there too.
        for point in range(len(group.blocks[0][0]) - 1):
            rows.append(
                [
                    float(other is group) * ((b == point) - (a == point))
                    for other in groups
                    for a, b in other.pairs
                ]
            )
    return np.array(rows).reshape(len(rows), sum(len(group.pairs) for group in groups))


def symmetric(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the matrix of twice a product of two linear forms."""
    return np.outer(left, right) + np.outer(right, left)


def _less(x: FloatArray, step: float, direction: FloatArray, e: float) -> FloatArray:
    """Return ``(||x||^2 - ||x - step direction||^2) / e``."""
    squares = step / e * symmetric(x, direction)
    return squares - step * step / e * np.outer(direction, direction)


def combined(forms: Sequence[Form], weights: FloatArray, start: Form) -> Form:
    """Return a form and a weighted sum of others."""
    total = [matrix.copy() for matrix in start]
    for form, weight in zip(forms, weights, strict=True):
        for block, matrix in enumerate(form):
            total[block] += weight * matrix
    return total
