"""The program for one large group of clients: coefficients are polynomials in who was present.

In `OnOffProgram` every number n of clients present has its own coefficients and blocks. Here W's
coefficients and the multipliers are cubic in n, so their number does not depend on N. Moments of
polynomials are polynomials, hence so are the blocks, in coordinates that do not depend on n: z, the
cells' means, and v with mean g of ``(N - n) v`` over those present and ``-n v`` over the others.
They are positive on a range if their Bernstein coefficients are, on pieces of it. States 0 and N
have blocks of their own.

The blocks are evaluated at a few n of every piece, where means over the next n' are sums over Gauss
points. (The checker works with factorial moments in fractions.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, permutations, product
from math import comb
from typing import TypeAlias

import numpy as np

from fltheory.validation import FloatArray
from fltheory.worst_case.correlated.program import (
    ENDS,
    CorrelatedSolution,
    DifferenceForm,
    GroupCell,
    OnOffProgram,
    Outcomes,
    least_of,
)
from fltheory.worst_case.semidefinite import Block

TERMS = 4
"""Coefficients of a polynomial in n, of ``1, n/N, n(n-1)/N^2, n(n-1)(n-2)/N^3``."""
PIECES = 4
_DEGREE = 8
_POINTS = 3
_Blocks: TypeAlias = Callable[[float], list[FloatArray]]


class PolynomialProgram(OnOffProgram):
    """The program of a round for one group with weights, for the mean of the distance.

    Parameters are those of `OnOffProgram`.
    """

    def _lay_out(self) -> None:
        if self.measure != "distance" or self.rate is not None or self.noisy:
            raise ValueError("only the mean of the distance, without noise, is covered")
        (own,) = self.groups
        self.count = own.n_clients
        # Outcomes of the next round take the place of its states.
        self.states = [(index,) for index in range(_POINTS**2)]
        reach = float(self.round.server_lr * own.weight)
        self.weights = np.full((len(self.states), 1), reach)
        self._first_cycle = self.n_coefficients * TERMS
        self._first_end = self._first_cycle + 2 * len(self._cycles) * TERMS
        self._of_ends = {name: self._first_end + place for place, name in enumerate(ENDS)}
        self._margin = self._first_end + len(ENDS)
        self.n_unknowns = self._margin + 1

    def _terms(self, n: FloatArray) -> FloatArray:
        """Return the terms of a polynomial at n, (len(n), TERMS)."""
        N = self.count
        return np.stack(
            [np.prod([(n - i) / N for i in range(r)] + [1 + 0 * n], 0) for r in range(TERMS)], 1
        )

    def _at(self, n: float) -> list[GroupCell]:
        # Sizes between whole numbers serve to interpolate.
        sizes = ((True, n), (False, self.count - n))
        return [GroupCell(0, present, size) for present, size in sizes if size]  # type: ignore[arg-type]

    def _outcomes(self, cells: list[GroupCell], chances: list[float]) -> Outcomes:
        """Return points and weights that give the mean of polynomials of degree 5 exactly."""
        parts = [_gauss(cell.size, chance) for cell, chance in zip(cells, chances, strict=True)]
        counts = np.array(list(product(*(points for points, _ in parts))))
        chance = np.array([np.prod(one) for one in product(*(weights for _, weights in parts))])
        return counts, chance, np.arange(len(chance))

    def _columns(self, form: DifferenceForm, after: FloatArray) -> list[FloatArray]:
        """Return a form's columns from the terms that multiply it in each outcome."""
        found = []
        for part in (form.mean, *form.differences):
            own = np.zeros((self.n_unknowns, *part.shape[-2:]))
            whole = np.einsum("or,okij->krij", after, part[: len(after)])
            own[: self._first_cycle] = whole.reshape(-1, *part.shape[-2:])
            found.append(own)
        return found

    def _now_at(self, n: float, cells: list[GroupCell]) -> list[FloatArray]:
        counts = np.array([[float(cell.size * cell.present) for cell in cells]])
        form = self._expected(cells, (counts, np.ones(1), np.array([0])), False)
        return self._columns(form, self._terms(np.array([float(n)])))

    def _add_h(self, parts: list[FloatArray], end: str, factor: float) -> None:
        mean, *owns = parts
        # With one cell, its mean of g is zero.
        if len(owns) == 2:
            mean[self._of_ends[end], -1, -1] += factor
        for own in owns:
            own[self._of_ends[end], -1, -1] += factor

    def _round_at(self, n: float) -> list[FloatArray]:
        """Return the mean block of a round's inequality at n, then those of differences."""
        cells, (group,) = self._at(n), self.groups
        chances = [float(group.stays if cell.present else group.comes) for cell in cells]
        outcomes = self._outcomes(cells, chances)
        after = self._terms(outcomes[0].sum(axis=1))
        then = self._columns(self._expected(cells, outcomes, True), after)
        parts = [now - one for now, one in zip(self._now_at(n, cells), then, strict=True)]
        self._add_h(parts, "floor", 1.0)
        parts = [part / self.scale for part in parts]
        K, terms = self.steps, self._terms(np.array([float(n)]))[0]
        forms = np.array([sum(map(self._condition, cycle)) for cycle in self._cycles])
        means, size = self._means(cells), self._size(cells)
        for index, cell in enumerate(cells):
            weight = cell.size / self.count
            to_mean = np.zeros((K + 2, size))
            to_mean[0, 0] = 1
            to_mean[1 : K + 1, 1 + index * K : 1 + (index + 1) * K] = np.eye(K) / np.sqrt(weight)
            to_mean[K + 1, size - means.shape[1] :] = means[index]
            start = self._first_cycle + (not cell.present) * len(forms) * TERMS
            place = slice(start, start + len(forms) * TERMS)
            for part, own in (
                (parts[0], weight * to_mean.T @ forms @ to_mean),
                (parts[1 + index], forms[:, 1:, 1:]),
            ):
                part[place] = np.einsum("r,cij->crij", terms, own).reshape(-1, *own.shape[1:])
        return parts

    def _lower_at(self, n: float) -> list[FloatArray]:
        """Return the blocks of ``W >= -below h`` at n, the mean block in z and v."""
        cells = self._at(n)
        parts = self._now_at(n, cells)
        self._add_h(parts, "below", 1.0)
        keep = [0, -1] if len(cells) == 2 else [0]
        return [parts[0][:, keep][:, :, keep], *(own[:, -1:, -1:] for own in parts[1:])]

    def _start_blocks(self) -> list[Block]:
        """Return the blocks of ``start ||z||^2 + once h >= E W + below h`` at the start."""
        cells, (group,) = self._everybody, self.groups
        outcomes = self._outcomes(cells, [float(group.availability)])
        form = self._expected(cells, outcomes, False)
        parts = [-one for one in self._columns(form, self._terms(outcomes[0][:, 0]))]
        parts = [parts[0][:, :1, :1], parts[1][:, -1:, -1:]]
        parts[0][self._of_ends["start"]] += 1
        parts[1][self._of_ends["once"]] += 1
        parts[1][self._of_ends["below"]] -= 1
        return [(part, np.zeros((1, 1))) for part in parts]

    # ------------------------------------------------------------ on ranges of n

    def _powers(self, n: float, size: int) -> FloatArray:
        """Return the factors that make the entries of a mean block polynomials in n."""
        t, K = n / self.count, (size - 2) // 2
        sign = np.sign(self._means(self._at(n))[0, 0])
        factors = [1.0, *[t**0.5] * K, *[(1 - t) ** 0.5] * K, sign * (t * (1 - t)) ** 0.5]
        return np.array(factors)

    def _on(
        self, low: float, high: float, of: _Blocks, index: int, square: float = 0.0
    ) -> Iterator[Block]:
        """Yield the Bernstein coefficients on pieces of a range of one of the blocks."""
        edges = np.linspace(low, high, PIECES + 1)
        for start, stop in pairwise(edges):
            nodes = start + (stop - start) * _NODES
            values = [of(float(n))[index] for n in nodes]
            size = values[0].shape[-1]
            sizes = np.ones((len(nodes), size))
            if index == 0:
                factors = np.array([self._powers(float(n), size) for n in nodes])
                values = [v * np.outer(f, f) for v, f in zip(values, factors, strict=True)]
                sizes = _TO_BERNSTEIN @ factors**2
            found = np.tensordot(_TO_BERNSTEIN, np.array(values), 1)
            fixed = np.zeros((size, size))
            fixed[0, 0] = square
            # Units in which the entries of a mean block are of one size again.
            units = 1 / np.sqrt(sizes)
            for unit, columns in zip(units, found, strict=True):
                yield columns * np.outer(unit, unit), fixed

    def _all_blocks(self) -> Iterator[Block]:
        N = self.count
        inequalities: list[tuple[_Blocks, float]] = [
            (self._round_at, -self.mu),
            (self._lower_at, 0.0),
        ]
        for of, square in inequalities:
            for n in (0, N):
                mean = of(n)[0]
                fixed = np.zeros(mean.shape[1:])
                fixed[0, 0] = square
                yield mean, fixed
            yield from self._on(1, N - 1, of, 0, square)
            yield from self._on(2, N, of, 1)
            yield from self._on(0, N - 2, of, -1)
        yield from self._start_blocks()

    def _rows(self) -> FloatArray:
        """Return the Bernstein coefficients on [0, N] of the multipliers of pairs."""
        found, edges = [], np.linspace(0, self.count, PIECES + 1)
        terms = np.vstack(
            [_TO_BERNSTEIN @ self._terms(a + (b - a) * _NODES) for a, b in pairwise(edges)]
        )
        for cell, pair in product(range(2), permutations(range(self.steps + 1), 2)):
            rows = np.zeros((len(terms), self.n_unknowns))
            for place, cycle in enumerate(self._cycles):
                first = self._first_cycle + (cell * len(self._cycles) + place) * TERMS
                rows[:, first : first + TERMS] += cycle.count(pair) * terms
            found.append(rows)
        return np.vstack(found)

    def solve(
        self, costs: Mapping[str, float] | None, fixed: Mapping[str, float] | None = None
    ) -> CorrelatedSolution | None:
        """Minimise a sum of ends, the others given or free; without costs, maximise slack.

        Parameters are those of `OnOffProgram.solve`. In the solution, terms of the polynomials take
        the place of states, and multipliers are lists of matrices for those present and absent.
        """
        cost, known = np.zeros(self.n_unknowns), np.zeros(self.n_unknowns)
        used, rows = np.ones(self.n_unknowns, dtype=bool), self._rows()
        for name, place in self._of_ends.items():
            cost[place] = (costs or {}).get(name, 0.0)
            known[place] = (fixed or {}).get(name, 0.0)
            used[place] = name not in (fixed or {}) and "noise" not in name
        # A constant can be added to the coefficient of h in all states.
        used[(self.n_coefficients - 1) * TERMS] = used[self._margin] = False
        margin, inner = (self._margin, len(rows)) if costs is None else (None, 0)
        found = least_of(
            cost, used, known, (rows, np.zeros(len(rows))), list(self._all_blocks()),
            margin=margin, inner=inner,
        )  # fmt: skip
        if found is None:
            return None
        value, x = found
        cycles = x[self._first_cycle : self._first_end].reshape(2, -1, TERMS)
        multipliers = np.zeros((2, TERMS, self.steps + 1, self.steps + 1))
        for place, cycle in enumerate(self._cycles):
            for a, b in cycle:
                multipliers[:, :, a, b] += cycles[:, place]
        ends = {name: float(x[place]) for name, place in self._of_ends.items()}
        function = x[: self._first_cycle].reshape(-1, TERMS).T
        return CorrelatedSolution(
            value, ends, function, np.zeros(TERMS), [list(own) for own in multipliers], [], []
        )


def _gauss(count: float, chance: float) -> tuple[FloatArray, FloatArray]:
    """Return Gauss points and weights of a binomial law, by its Krawtchouk polynomials."""
    k = np.arange(_POINTS)
    beside = np.sqrt(chance * (1 - chance) * k[1:] * np.maximum(count - k[1:] + 1, 0))
    jacobi = np.diag(chance * (count - k) + k * (1 - chance)) + np.diag(beside, 1)
    points, vectors = np.linalg.eigh(jacobi + np.diag(beside, -1))
    return points, vectors[0] ** 2


_NODES = (1 - np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)) / 2
_TO_BERNSTEIN = np.linalg.inv(
    [
        [comb(_DEGREE, j) * x**j * (1 - x) ** (_DEGREE - j) for j in range(_DEGREE + 1)]
        for x in _NODES
    ]
)
"""From values at the nodes to Bernstein coefficients."""
