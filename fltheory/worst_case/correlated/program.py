"""The semidefinite program for weighted averaging with clients that come and go in bursts.

The state is S, the set of clients that took part in the previous round, described by its number of
clients in each group. If the sets follow a different chain, each client is a group, and the states
are those of the chain. Clients of a group are interchangeable, so the only quadratic forms of
``z = x - x*`` and ``g_i = grad F_i(x*)`` that can matter are

    W_S(x) = form(z, u_1..u_C, U_1..U_{C-1})
             + sum_c (present_c sum_{i in S, c} + all_c sum_{i in c}) alpha_i ||g_i||^2
    u_c = sum_{i in S, c} alpha_i g_i,     U_c = sum_{i in c} alpha_i g_i

with coefficients for every state. The term ``2 b <z, u>`` is a Poisson correction. Given S, the
next round's drift contains ``<z, u_S>``, and b cancels this. Without the correction, the floor does
not shrink with the step. The program requires, for every state and x,

    W_S(x) - E[W_{S'}(x+) | S] - measured + floor h + noise sigma^2 >= 0

with ``h = sum alpha_i ||g_i||^2``, for all L-smooth, mu-strongly convex clients. Everything is
written in terms of ``delta = grad F_i - g_i`` and ``F_i - <g_i, .>``, which is also in the class.
Interpolation conditions enter with multipliers.

A state splits each group into two *cells*: the clients that are present and those that are not. A
form that does not change when clients of a cell are exchanged has a *mean* block, of z and the
cells' means, and a block of *differences* for every cell. Given how many clients of a cell are in
S', these clients are a uniform subset of the cell. So the mean of a sum over S' follows from the
cells' means, and its variance is that of draws without replacement. (The checker tags clients
instead, and works with sums over pairs.)

Units: L is 1, and g is measured in ``unit``. A cell's vectors are multiplied by ``sqrt(alpha)``,
and its means by ``sqrt(alpha size)``, so that h is the sum of squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, permutations, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fltheory.read_only import ReadOnlyArrays, read_only
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.one_round import AveragingRound
from fltheory.worst_case.rounds.slack import condition
from fltheory.worst_case.semidefinite import Block, IntArray, optimum

Outcomes: TypeAlias = tuple[FloatArray, FloatArray, IntArray]
"""How many of each cell come, (outcomes, cells), with which probability, and to which state."""

# A form of length one counts as a combination of others if its remainder is smaller than this.
_DEPENDENT = 1e-9


@dataclass(frozen=True)
class GroupCell:
    """Clients of a group that were all present in the previous round, or all absent.

    Attributes
    ----------
    group : int
    present : bool
    size : int
    """

    group: int
    present: bool
    size: int


@dataclass(frozen=True, eq=False)
class DifferenceForm(ReadOnlyArrays):
    """Quadratic forms: their mean blocks, and a block of differences for every cell.

    Attributes
    ----------
    mean : array, (..., d, d)
    differences : tuple of arrays, (..., K + 1, K + 1)
        Form in ``(delta_0, .., delta_{K-1}, g)``.
    """

    mean: FloatArray
    differences: tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class CorrelatedSolution(ReadOnlyArrays):
    """The solver's result, in the program's units.

    Attributes
    ----------
    value : float
    ends : mapping of str to float
        The claim's coefficients.
    function : array, (states, coefficients)
    constants : array, (states,)
        The constants that noise adds to W.
    multipliers : list of lists of arrays
        One (K + 1, K + 1) matrix per state and cell. Entry (a, b) belongs to the condition of
        points a and b; x* is the last point.
    noises, orthogonal : lists of lists of arrays
        Multipliers for a client's fluctuations, for every state and cell.
    """

    value: float
    ends: Mapping[str, float]
    function: FloatArray
    constants: FloatArray
    multipliers: list[list[FloatArray]]
    noises: list[list[FloatArray]]
    orthogonal: list[list[FloatArray]]


ENDS = ("floor", "start", "once", "below", "noise", "noise_once", "noise_below")
"""Unknowns of the claim: ``floor h`` in every round, ``start ||z_0||^2 + once h`` at first, ``W >=
-below h``; the same of noise."""


class OnOffProgram:
    """The program of a round, for a class of clients.

    Parameters
    ----------
    a_round : AveragingRound
    mu : float
        Strong convexity divided by L.
    step : float
        Step size of local SGD, times L.
    measure : {"distance", "loss"}
        The quantity that is summed over rounds: ``||z||^2`` or ``F(x) - F*``.
    rate : float, optional
        If given, ``E W+ <= rate W + ...`` and ``W >= ||z||^2`` are required, and nothing is summed.
    noisy : bool
        Whether clients' gradients have noise.
    unit : float
        Unit of g.
    """

    def __init__(
        self,
        a_round: AveragingRound,
        mu: float,
        step: float,
        measure: str = "distance",
        rate: float | None = None,
        noisy: bool = False,
        unit: float = 1.0,
    ) -> None:
        self.round, self.mu, self.step, self.unit = a_round, mu, step, unit
        self.measure, self.rate, self.noisy = measure, rate, noisy
        self.steps = a_round.local_steps
        self.groups = a_round.groups
        self.alpha = np.array([float(own.target_weight) for own in self.groups])
        gain = sum(own.n_clients * own.weight * own.availability for own in self.groups)
        gain = a_round.server_lr * (1 if a_round.averaging == "present" else gain)
        self.scale = 2 * step * self.steps * float(gain)
        self._lay_out()

    def _lay_out(self) -> None:
        """Set the states, the weights in each, and the indices of unknowns."""
        self.states = states_of(self.round)
        self.weights = np.array([_weights(self.round, state) for state in self.states])
        self.cells = [list(cells_of(self.round, state)) for state in self.states]
        self._count()

    # ------------------------------------------------------------ forms

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations_with_replacement(range(2 * len(self.groups)), 2))

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients of W in a state, including ``present_c`` and ``all_c``."""
        return len(self._pairs) + 2 * len(self.groups)

    def _means(self, cells: list[GroupCell]) -> FloatArray:
        """Return the cells' means of g, with weighted sum zero, as combinations of coordinates."""
        root = np.sqrt([self.alpha[cell.group] * cell.size for cell in cells])
        basis = np.linalg.qr(root[:, None], mode="complete")[0][:, 1:]
        return np.asarray(basis / root[:, None])

    def _size(self, cells: list[GroupCell]) -> int:
        return 1 + len(cells) * self.steps + len(cells) - 1

    def _expected(self, cells: list[GroupCell], outcomes: Outcomes, moves: bool) -> DifferenceForm:
        """Return the form in E W that belongs to each coefficient of each next state.

        Arrays begin with (states, coefficients).
        """
        counts, chance, after = outcomes
        n_groups, n = len(self.groups), len(self.states)
        means, size, K = self._means(cells), self._size(cells), self.steps
        first_g = size - means.shape[1]
        vectors = np.zeros((len(counts), 2 * n_groups, size))
        vectors[:, 0, 0] = 1
        reach = self.step * self.weights[after] * float(moves)
        for place, cell in enumerate(cells):
            c, alpha = cell.group, self.alpha[cell.group]
            taken = reach[:, c] * counts[:, place]
            along = slice(1 + place * K, 1 + (place + 1) * K)
            vectors[:, 0, along] -= (taken / np.sqrt(alpha * cell.size))[:, None]
            vectors[:, 0, first_g:] -= self.unit * K * taken[:, None] * means[place]
            vectors[:, 1 + c, first_g:] += alpha * counts[:, place, None] * means[place]
            if c < n_groups - 1:
                vectors[:, 1 + n_groups + c, first_g:] += alpha * cell.size * means[place]
        mean = np.zeros((n, self.n_coefficients, size, size))
        differences = []
        for k, (p, q) in enumerate(self._pairs):
            np.add.at(mean[:, k], after, mixed(chance, vectors, p, q))
        for place, cell in enumerate(cells):
            c, alpha = cell.group, self.alpha[cell.group]
            square = np.zeros((size, size))
            square[first_g:, first_g:] = np.outer(means[place], means[place])
            of_present, of_all = len(self._pairs) + c, len(self._pairs) + n_groups + c
            weighed = chance * alpha * counts[:, place]
            np.add.at(mean[:, of_present], after, weighed[:, None, None] * square)
            np.add.at(mean[:, of_all], after, (chance * alpha * cell.size)[:, None, None] * square)
            own = np.zeros((n, self.n_coefficients, K + 1, K + 1))
            single = np.zeros((len(counts), 2 * n_groups, K + 1))
            single[:, 0, :K] = -reach[:, [c]]
            single[:, 0, K] = -reach[:, c] * K * self.unit
            single[:, 1 + c, K] = alpha
            spread = counts[:, place] * (cell.size - counts[:, place]) / max(cell.size - 1, 1)
            spread = chance * spread / (cell.size * alpha)
            for k, (p, q) in enumerate(self._pairs):
                np.add.at(own[:, k], after, mixed(spread, single, p, q))
            np.add.at(own[:, of_present, K, K], after, chance * counts[:, place] / cell.size)
            np.add.at(own[:, of_all, K, K], after, chance)
            differences.append(own)
        return DifferenceForm(mean, tuple(differences))

    def _next(self, state: int) -> Outcomes:
        """Return the possible numbers of each cell's clients in the round after a state."""
        if self.round.chain is not None:
            return self._by_chain(np.array(self.round.chain.transition[state], dtype=float))
        cells, groups = self.cells[state], self.groups
        chances = [
            groups[cell.group].stays if cell.present else groups[cell.group].comes for cell in cells
        ]
        return self._independent(cells, chances)

    @property
    def _everybody(self) -> list[GroupCell]:
        return [GroupCell(c, False, own.n_clients) for c, own in enumerate(self.groups)]

    @cached_property
    def _first(self) -> Outcomes:
        """The possible numbers of each group's clients in the stationary distribution."""
        if self.round.chain is not None:
            return self._by_chain(np.array(self.round.chain.law, dtype=float))
        return self._independent(self._everybody, [own.availability for own in self.groups])

    def _by_chain(self, chance: FloatArray) -> Outcomes:
        after = np.flatnonzero(chance)
        return np.array(self.states, dtype=float)[after], chance[after], after

    def _independent(self, cells: list[GroupCell], chances: list[Fraction]) -> Outcomes:
        counts: FloatArray = np.zeros((1, 0), dtype=int)
        chance: FloatArray = np.ones(1)
        for cell, own in zip(cells, chances, strict=True):
            number, likely = _binomial(cell.size, float(own))
            counts = np.column_stack(
                [np.repeat(counts, len(number), axis=0), np.tile(number, len(counts))]
            )
            chance = np.outer(chance, likely).ravel()
        groups = np.array([[cell.group == c for c in range(len(self.groups))] for cell in cells])
        places = {state: place for place, state in enumerate(self.states)}
        following = (counts @ groups).tolist()
        return counts, chance, np.array([places[tuple(row)] for row in following])

    def _now(self, state: int) -> DifferenceForm:
        """Return the form in W of a state that belongs to each coefficient."""
        cells = self.cells[state]
        counts = np.array([[float(cell.size * cell.present) for cell in cells]])
        found = self._expected(cells, (counts, np.ones(1), np.array([state])), False)
        return DifferenceForm(found.mean[state], tuple(own[state] for own in found.differences))

    def _condition(self, pair: tuple[int, int]) -> FloatArray:
        """Return a pair's interpolation condition, without function values, in (z, delta.., g)."""
        K, (a, b) = self.steps, pair
        points = np.zeros((K + 1, K + 2))
        points[:K, 0] = 1
        for k in range(K):
            points[k, 1 : 1 + k] = -self.step
            points[k, K + 1] = -self.step * k * self.unit
        gradients = np.zeros((K + 1, K + 2))
        gradients[:K, 1 : K + 1] = np.eye(K)
        return condition(points[a] - points[b], gradients[a], gradients[b], self.mu)

    def _fluctuation(self, pair: tuple[int, int]) -> FloatArray:
        """Return the condition for fluctuations from noise, in (h_1..h_{K-1}, xi_0..xi_{K-1})."""
        K, (a, b) = self.steps, pair
        h, xi = np.zeros((K + 1, 2 * K - 1)), np.zeros((K, 2 * K - 1))
        h[1:K, : K - 1] = np.eye(K - 1)
        xi[:, K - 1 :] = np.eye(K)
        points = np.zeros((K + 1, 2 * K - 1))
        for k in range(1, K):
            points[k] = points[k - 1] - self.step * (h[k - 1] + xi[k - 1])
        return condition(points[a] - points[b], h[a], h[b], self.mu)

    @cached_property
    def _cycles(self) -> list[list[tuple[int, int]]]:
        """Cycles of points along which function values cancel, either through x* or not."""
        K = self.steps
        found = [[(p, K), (K, p)] for p in range(K)]
        return found + [[(a, b), (b, K), (K, a)] for a, b in permutations(range(K), 2)]

    # ------------------------------------------------------------ unknowns

    def _count(self) -> None:
        """Assign indices to unknowns: each state's independent coefficients, multipliers, ends."""
        self._now_forms = [self._now(state) for state in range(len(self.states))]
        self._free: list[list[int]] = []
        for state, form in enumerate(self._now_forms):
            free = _independent(form, self._order())
            if state == 0 and self.rate is None:
                # A term that does not depend on z can be shifted in all states by the same amount.
                free = [k for k in free if k < len(self._pairs) and 0 in self._pairs[k]]
            self._free.append(free)
        place = 0
        self._of_function: list[slice] = []
        for free in self._free:
            self._of_function.append(slice(place, place + len(free)))
            place += len(free)
        self._of_cells: list[list[slice]] = []
        self._of_noises: list[list[slice]] = []
        K = self.steps
        # xi_k is orthogonal to earlier noise, and to h_1 .. h_k.
        before = [(k, j) for k in range(K) for j in range(k)]
        self._orthogonal = [(K - 1 + k, K - 1 + j) for k, j in before]
        self._orthogonal += [(K - 1 + k, j) for k, j in before]
        extra = (K + len(self._orthogonal)) if self.noisy else 0
        for cells in self.cells:
            own, noises = [], []
            for _ in cells:
                own.append(slice(place, place + len(self._cycles)))
                place += len(self._cycles)
                noises.append(slice(place, place + extra))
                place += extra
            self._of_cells.append(own)
            self._of_noises.append(noises)
        # Without a rate, all constants can be shifted by the same amount, so the first is set to
        # zero.
        self._of_constants = place + np.arange(len(self.states))
        place += len(self.states)
        self._of_ends = {name: place + index for index, name in enumerate(ENDS)}
        self._margin = place + len(ENDS)
        self.n_unknowns = self._margin + 1

    def _order(self) -> list[int]:
        """Return coefficients in order of preference, to choose among linearly dependent ones."""
        n = len(self.groups)
        quadratic = {pair: place for place, pair in enumerate(self._pairs)}

        def rank(pair: tuple[int, int]) -> int:
            return sum(1 <= item <= n for item in pair)

        of_all = range(len(self._pairs) + n, len(self._pairs) + 2 * n)
        of_present = range(len(self._pairs), len(self._pairs) + n)
        forms = sorted(self._pairs, key=rank)
        first = [quadratic[pair] for pair in forms if rank(pair) == 0]
        rest = [quadratic[pair] for pair in forms if rank(pair) > 0]
        return [*first, *of_all, *rest, *of_present]

    # ------------------------------------------------------------ the program

    def _inequality(self, state: int) -> Iterator[Block]:
        """Yield the blocks of ``rate W_S - E W_{S'} - measured + floor h + conditions >= 0``."""
        cells, size, K = self.cells[state], self._size(self.cells[state]), self.steps
        means = self._means(cells)
        first_g, fixed = size - means.shape[1], np.zeros((size, size))
        fixed_owns = [np.zeros((K + 1, K + 1)) for _ in cells]
        mean, owns = self._decrease(state)
        floor = self._of_ends["floor"]
        mean[floor, first_g:, first_g:] = np.eye(size - first_g)
        for own in owns:
            own[floor, K, K] = 1
        if self.rate is None and self.measure == "distance":
            fixed[0, 0] -= self.scale * self.mu
        mean, fixed = mean / self.scale, fixed / self.scale
        owns = [own / self.scale for own in owns]
        for index, cell in enumerate(cells):
            weight = self.alpha[cell.group] * cell.size
            to_mean = np.zeros((K + 2, size))
            to_mean[0, 0] = 1
            to_mean[1 : K + 1, 1 + index * K : 1 + (index + 1) * K] = np.eye(K) / np.sqrt(weight)
            to_mean[K + 1, first_g:] = means[index]
            own_place = self._of_cells[state][index]
            forms = np.array([sum(map(self._condition, cycle)) for cycle in self._cycles])
            mean[own_place] = weight * to_mean.T @ forms @ to_mean
            owns[index][own_place] = forms[:, 1:, 1:]
            if self._takes_loss:
                form = self._condition((K, 0))
                fixed += weight * to_mean.T @ form @ to_mean
                fixed_owns[index] += form[1:, 1:]
        yield mean, fixed
        for cell, own, fixed_own in zip(cells, owns, fixed_owns, strict=True):
            if cell.size > 1:
                yield own, fixed_own

    def _decrease(self, state: int) -> tuple[FloatArray, list[FloatArray]]:
        """Return ``rate W_S - E W_{S'}``, i.e. columns of the mean block and of differences."""
        cells, K = self.cells[state], self.steps
        after = self._expected(cells, self._next(state), True)
        now, rate = self._now_forms[state], 1.0 if self.rate is None else self.rate
        mean = np.zeros((self.n_unknowns, *after.mean.shape[-2:]))
        owns = [np.zeros((self.n_unknowns, K + 1, K + 1)) for _ in cells]
        for other, (free, place) in enumerate(zip(self._free, self._of_function, strict=True)):
            mean[place] -= after.mean[other, free]
            for own, part in zip(owns, after.differences, strict=True):
                own[place] -= part[other, free]
        free, place = self._free[state], self._of_function[state]
        mean[place] += rate * now.mean[free]
        for own, part in zip(owns, now.differences, strict=True):
            own[place] += rate * part[free]
        return mean, owns

    @property
    def _takes_loss(self) -> bool:
        return self.rate is None and self.measure == "loss"

    def _fluctuations(self, state: int) -> Iterator[Block]:
        """Yield a client's block of noise in every cell."""
        cells, K = self.cells[state], self.steps
        counts, chance, after = self._next(state)
        everything = np.ones((2 * K - 1, 2 * K - 1))
        for index, cell in enumerate(cells):
            columns = np.zeros((self.n_unknowns, 2 * K - 1, 2 * K - 1))
            fixed = np.zeros((2 * K - 1, 2 * K - 1))
            reach = self.unit * self.step * self.weights[after, cell.group]
            factors = chance * counts[:, index] / cell.size * reach**2
            factors /= self.alpha[cell.group] * self.scale
            # The coefficient of ||z||^2 comes first in every state.
            first = np.array([place.start for place in self._of_function])[after]
            np.add.at(columns, first, -factors[:, None, None] * everything)
            forms = np.array([sum(map(self._fluctuation, cycle)) for cycle in self._cycles])
            columns[self._of_cells[state][index]] = self.unit**2 * forms
            if self._takes_loss:
                fixed += self.unit**2 * self._fluctuation((K, 0))
            first = self._of_noises[state][index].start
            for k in range(K):
                columns[first + k, K - 1 + k, K - 1 + k] = 1
            for place, (i, j) in enumerate(self._orthogonal):
                columns[first + K + place, i, j] = columns[first + K + place, j, i] = 1
            yield columns, fixed

    def _noise_rows(self, state: int) -> Iterator[tuple[FloatArray, float]]:
        """Yield the rows for noise in the inequality and in W, which must not be negative."""
        if not self.noisy:
            return
        cells = self.cells[state]
        row, end = np.zeros(self.n_unknowns), np.zeros(self.n_unknowns)
        constants, rate = self._of_constants, 1.0 if self.rate is None else self.rate
        _, chance, after = self._next(state)
        np.add.at(row, constants[after], -chance)
        row[constants[state]] += rate
        row[self._of_ends["noise"]] = 1
        row /= self.scale
        for index, cell in enumerate(cells):
            start = self._of_noises[state][index].start
            row[start : start + self.steps] -= self.alpha[cell.group] * cell.size
        yield row, 0.0
        end[constants[state]] = 1
        if self.rate is None:
            end[self._of_ends["noise_below"]] = 1
        yield end, 0.0

    def _positive(self, state: int) -> Iterator[Block]:
        """Yield the blocks of ``W >= -below h``, or ``W >= ||z||^2`` where there is a rate."""
        own = self._of_function[state], self._now_forms[state], self._free[state]
        h = {} if self.rate is not None else {"below": 1.0}
        yield from self._ends(self.cells[state], [own], h, 0.0 if self.rate is None else -1.0)

    def _start(self) -> Iterator[Block]:
        """Yield the blocks of ``start ||z||^2 + once h >= E W + below h`` for stationary S."""
        cells = self._everybody
        found = self._expected(cells, self._first, False)
        used = [
            (
                self._of_function[state],
                DifferenceForm(-found.mean[state], tuple(-own[state] for own in found.differences)),
                self._free[state],
            )
            for state in range(len(self.states))
        ]
        h = {"once": 1.0} if self.rate is not None else {"once": 1.0, "below": -1.0}
        (mean, fixed), *owns = self._ends(cells, used, h, 0.0)
        mean[self._of_ends["start"], 0, 0] = 1
        yield from [(mean, fixed), *owns]

    def _ends(
        self,
        cells: list[GroupCell],
        used: list[tuple[slice, DifferenceForm, list[int]]],
        h: Mapping[str, float],
        square: float,
    ) -> Iterator[Block]:
        """Yield the blocks of a form of z and g alone, plus multiples of h and of ``||z||^2``."""
        keep = [0, *range(1 + len(cells) * self.steps, self._size(cells))]
        mean, fixed = np.zeros((self.n_unknowns, len(keep), len(keep))), np.zeros((len(keep),) * 2)
        owns = [np.zeros((self.n_unknowns, 1, 1)) for _ in cells]
        fixed[0, 0] = square
        for place, form, free in used:
            mean[place] += form.mean[np.ix_(free, keep, keep)]
            for own, part in zip(owns, form.differences, strict=True):
                own[place, 0, 0] += part[free, -1, -1]
        for name, factor in h.items():
            mean[self._of_ends[name], 1:, 1:] = factor * np.eye(len(keep) - 1)
            for own in owns:
                own[self._of_ends[name], 0, 0] = factor
        yield mean, fixed
        for cell, own in zip(cells, owns, strict=True):
            if cell.size > 1:
                yield own, np.zeros((1, 1))

    @cached_property
    def _blocks(self) -> list[Block]:
        found: list[Block] = []
        for state in range(len(self.states)):
            found += self._inequality(state)
            found += self._positive(state)
            if self.noisy:
                found += self._fluctuations(state)
        return [*found, *self._start()]

    @cached_property
    def _pair_rows(self) -> list[list[FloatArray]]:
        """Return each cell's multipliers as sums over cycles, (K + 1, K + 1, unknowns)."""
        K, found = self.steps, []
        for cells in self._of_cells:
            found.append([np.zeros((K + 1, K + 1, self.n_unknowns)) for _ in cells])
            for rows, own in zip(found[-1], cells, strict=True):
                for place, cycle in enumerate(self._cycles):
                    for pair in cycle:
                        rows[pair][own.start + place] += 1
        return found

    def _start_row(self) -> FloatArray:
        """Return ``noise_once - E constant - noise_below``, which is not negative."""
        _, chance, after = self._first
        row = np.zeros(self.n_unknowns)
        np.add.at(row, self._of_constants[after], -chance)
        row[self._of_ends["noise_once"]] = 1
        if self.rate is None:
            row[self._of_ends["noise_below"]] = -1
        return row

    def solve(
        self,
        costs: Mapping[str, float] | None,
        fixed: Mapping[str, float] | None = None,
    ) -> CorrelatedSolution | None:
        """Minimise a sum of ends, with the others given or free; without costs, maximise slack.

        Parameters
        ----------
        costs : mapping of str to float, or None
            If None, the least eigenvalue of all blocks is maximised.
        fixed : mapping of str to float
        """
        K = self.steps
        pairs = np.array([rows for cells in self._pair_rows for rows in cells])
        places = list(permutations(range(K + 1), 2))
        rows = [pairs[:, a, b] for a, b in places]
        takes = [np.full(len(pairs), float(self._takes_loss and pair == (K, 0))) for pair in places]
        noise = [row for state in range(len(self.states)) for row, _ in self._noise_rows(state)]
        if self.noisy:
            noise.append(self._start_row())
        nonnegative = np.vstack([*rows, *noise])
        offsets = np.concatenate([*takes, np.zeros(len(noise))])
        cost = np.zeros(self.n_unknowns)
        known = np.zeros(self.n_unknowns)
        for name, value in (fixed or {}).items():
            known[self._of_ends[name]] = value
        used = np.zeros(self.n_unknowns, dtype=bool)
        used[: self._of_constants[0]] = True
        if self.noisy:
            used[self._of_constants[int(self.rate is None) :]] = True
        for name, place in self._of_ends.items():
            used[place] = name not in (fixed or {}) and (self.noisy or "noise" not in name)
            used[place] &= self.rate is None or "below" not in name
        if costs is not None:
            cost[[self._of_ends[name] for name in costs]] = list(costs.values())
        found = least_of(
            cost,
            used,
            known,
            (nonnegative, offsets),
            self._blocks,
            margin=self._margin if costs is None else None,
            inner=len(noise),
        )
        return None if found is None else self._solution(*found)

    def _solution(self, value: float, unknowns: FloatArray) -> CorrelatedSolution:
        K, function = self.steps, np.zeros((len(self.states), self.n_coefficients))
        for row, free, place in zip(function, self._free, self._of_function, strict=True):
            row[free] = unknowns[place]
        multipliers = [[rows @ unknowns for rows in cells] for cells in self._pair_rows]
        if self._takes_loss:
            for matrix in (matrix for cells in multipliers for matrix in cells):
                matrix[K, 0] += 1
        noises = [[unknowns[own] for own in cells] for cells in self._of_noises]
        return CorrelatedSolution(
            value,
            {name: float(unknowns[place]) for name, place in self._of_ends.items()},
            function,
            unknowns[self._of_constants],
            multipliers,
            [[own[:K] for own in cells] for cells in noises],
            [[own[K:] for own in cells] for cells in noises],
        )


def states_of(a_round: AveragingRound) -> list[tuple[int, ...]]:
    """Return the possible numbers of clients present in each group, or a chain's sets."""
    if a_round.chain is not None:
        return [tuple(int(one) for one in mask) for mask in a_round.chain.masks]
    return list(
        product(
            *(
                range(own.n_clients + 1) if own.availability < 1 else [own.n_clients]
                for own in a_round.groups
            )
        )
    )


def cells_of(a_round: AveragingRound, state: tuple[int, ...]) -> Iterator[GroupCell]:
    """Yield a state's cells that have members."""
    for group, (own, number) in enumerate(zip(a_round.groups, state, strict=True)):
        if number:
            yield GroupCell(group, True, number)
        if number < own.n_clients:
            yield GroupCell(group, False, own.n_clients - number)


def _weights(a_round: AveragingRound, state: tuple[int, ...]) -> list[float]:
    """Return, for each group, the factor on a participant's update."""
    factor = float(a_round.server_lr)
    if a_round.averaging == "present":
        return [factor / max(sum(state), 1)] * len(state)
    return [factor * float(own.weight) for own in a_round.groups]


def least_of(
    cost: FloatArray,
    used: NDArray[np.bool_],
    known: FloatArray,
    nonnegative: tuple[FloatArray, FloatArray],
    blocks: Sequence[Block],
    *,
    places: Sequence[IntArray] | None = None,
    margin: int | None = None,
    inner: int = 0,
) -> tuple[float, FloatArray] | None:
    """Return the least cost and all unknowns, unused ones as in ``known``, or None.

    Parameters
    ----------
    cost, used, known : arrays, (unknowns,)
    nonnegative : tuple of arrays, (rows, unknowns) and (rows,)
    blocks : sequence of Block
    places : sequence of arrays, optional
        The unknowns that each block's columns belong to. By default, these are all unknowns, in
        order.
    margin : int, optional
        Index of an unknown to maximise, up to one, instead of minimising the cost. It is a lower
        bound on every block's least eigenvalue and on the last ``inner`` rows.
    inner : int
    """
    rows, offsets = nonnegative
    every = [np.arange(len(cost))] * len(blocks) if places is None else places
    if margin is not None:
        cost, used = np.zeros(len(cost)), used.copy()
        cost[margin], used[margin] = -1, True
        rows, offsets = np.vstack([rows, cost]), np.append(offsets, 1.0)
        rows[len(rows) - 1 - inner : -1, margin] = -1
        blocks = [
            (_without_margin(columns, own == margin), constant)
            for (columns, constant), own in zip(blocks, every, strict=True)
        ]
    number = np.cumsum(used) - 1
    taken = [used[own] for own in every]
    found = optimum(
        cost[used],
        equal=(np.zeros((0, int(used.sum()))), np.zeros(0)),
        nonnegative=(rows[:, used], offsets + rows @ known),
        blocks=[
            (columns[some], constant + np.tensordot(known[own], columns, 1))
            for (columns, constant), own, some in zip(blocks, every, taken, strict=True)
        ],
        places=places and [number[own[some]] for own, some in zip(places, taken, strict=True)],
    )
    if found is None:
        return None
    unknowns = known.copy()
    unknowns[used] = found.unknowns
    return found.value, unknowns


def _without_margin(columns: FloatArray, margin: NDArray[np.bool_]) -> FloatArray:
    less = columns.copy()
    less[margin] = -np.eye(columns.shape[-1])
    return less


@lru_cache(maxsize=1024)
def _binomial(count: int, chance: float) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the possible numbers of a group's clients present, and their probabilities."""
    from scipy.stats import binom

    number = np.arange(count + 1)
    likely = np.asarray(binom.pmf(number, count, chance))
    return read_only((number[likely > 0], likely[likely > 0]))


def mixed(factor: FloatArray, rows: FloatArray, i: int, j: int) -> FloatArray:
    """Return ``factor 2 <row_i, row_j>`` as matrices, or ``factor <row_i, row_i>`` if i = j."""
    both = np.asarray(np.einsum("o,oi,oj->oij", factor, rows[:, i], rows[:, j]))
    return both if i == j else both + both.transpose(0, 2, 1)


def _independent(form: DifferenceForm, order: list[int]) -> list[int]:
    """Return linearly independent coefficients of W in a state, chosen in order of preference."""
    flat = np.column_stack(
        [part.reshape(len(form.mean), -1) for part in (form.mean, *form.differences)]
    )
    return independent_rows(flat, order)


def independent_rows(flat: FloatArray, order: list[int]) -> list[int]:
    """Return linearly independent rows, chosen in order of preference."""
    kept: list[int] = []
    basis: list[FloatArray] = []
    for k in order:
        rest = flat[k] / max(float(np.linalg.norm(flat[k])), 1e-300)
        for row in basis:
            rest = rest - (row @ rest) * row
        if np.linalg.norm(rest) > _DEPENDENT:
            kept.append(k)
            basis.append(rest / np.linalg.norm(rest))
    return kept
