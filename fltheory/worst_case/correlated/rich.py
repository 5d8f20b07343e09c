"""The semidefinite program for a richer function that also depends on gradients and losses.

The gradients and losses are those at the model. The state is S, the set of clients that take part
in the coming round, so ``x+`` is known. With ``delta_{i,k} = grad F_i(x_{i,k}) - g_i`` at the local
points of those who take part, ``delta_{i,0}`` at x itself for the others, and
``phi_i = F_i - F_i(x*) - <g_i, . - x*>``,

    W_S(x) = form(z, a_{1,0}..a_{C,K-1}, b_1..b_C, u_1..u_C, U_1..U_{C-1})
             + sum_{i in S} alpha_i (d_i' present d_i + losses phi_i(x_{i,k}))
             + sum_{i not in S} alpha_i (e_i' absent e_i + loss phi_i(x)),
    a_{c,k} = sum_{i in S, c} alpha_i delta_{i,k},  b_c = sum_{i in c, not in S} alpha_i delta_{i,0}
    d_i = (delta_{i,0}, .., delta_{i,K-1}, g_i),   e_i = (delta_{i,0}, g_i)

with u and U as in `program`. The function there, taken at x+, is a special case. The program
requires, for every S and x,

    W_S(x) - E[W_{S'}(x+) | S] - measured + floor h >= 0,     W_S(x) >= -below h

where the losses of each client are evaluated at x_{i,k}, at the local points x+_{i,k} that it would
reach from x+, and at x*. Gradients must be exact, because noise would make x+ and everything
evaluated there random.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, combinations_with_replacement, permutations
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fltheory.decimals import as_fraction
from fltheory.validation import FloatArray
from fltheory.worst_case.checker import rich_checker
from fltheory.worst_case.checker.rich_checker import RichProof
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    Request,
    RoundsCertificate,
    claim_text,
    solutions,
    texts_of,
    units_of,
)
from fltheory.worst_case.correlated.program import (
    ENDS,
    CorrelatedSolution,
    GroupCell,
    OnOffProgram,
    Outcomes,
    cells_of,
    independent_rows,
    least_of,
    mixed,
    states_of,
)
from fltheory.worst_case.proof.proof_file import ProofChecker, first_accepted
from fltheory.worst_case.rounds.one_round import AveragingRound
from fltheory.worst_case.rounds.slack import condition
from fltheory.worst_case.semidefinite import Block

# The ends that are unknown; those of noise are zero.
_ENDS = ("floor", "start", "once", "below")
# Unit of the differences between gradients after a round and now, which are nearly equal.
_APART = 0.1


@dataclass(frozen=True, eq=False)
class RichSolution(CorrelatedSolution):
    """The solver's result for exact gradients, in the program's units.

    Attributes
    ----------
    lower : lists of lists of arrays
        Multipliers of ``W >= -below h``, for every state and cell.
    first : list of arrays
        Multipliers at the start, for every group.
    """

    lower: list[list[FloatArray]]
    first: list[FloatArray]


@dataclass(frozen=True)
class _Client:
    """A client of a cell, with its own coordinates and the points where its loss is evaluated.

    Attributes
    ----------
    size : int
        Number of the client's own vectors; the last one is g.
    seen : tuple of tuples of int
        Indices of the vectors that W contains, now and after the round.
    points : tuple of (int, tuple of int)
        For each point, whether it is after the round, and the gradients of the local steps that
        lead to it. The gradient at a point is the vector with the same index.
    """

    size: int
    seen: tuple[tuple[int, ...], ...]
    points: tuple[tuple[int, tuple[int, ...]], ...]

    @classmethod
    def of(cls, now: int, after: int, still: bool = False) -> _Client:
        """Return a client with ``now`` points before a round and ``after`` points after it.

        If the model does not move, the first point after the round is the same as the first point
        now, because conditions between two equal points would need infinite multipliers.
        """
        first, later = tuple(range(now)), tuple(range(now - still, now - still + after))
        points = [(0, first[:k]) for k in range(now)]
        points += [(1, later[:k]) for k in range(int(still), after)]
        g = now + after - still
        return cls(g + 1, ((*first, g), (*later, g)), tuple(points))

    def twin(self, point: int) -> int | None:
        """Return the point after the round that is close to a point now, if there is one."""
        now, (first, *rest) = len(self.seen[0]) - 1, self.seen[1]
        return now + point if rest and first == now and point < now else None

    def flows(self, near: float) -> list[tuple[float, list[tuple[int, int, int]]]]:
        """Return combinations of conditions, as (a, b, sign), in which function values cancel.

        A combination goes from one point to another and back, with the factor ``near`` if they are
        close. Otherwise it goes from a point via another point to x*, minus the direct condition.
        """
        n = len(self.points)
        pairs = list(combinations(range(n), 2))
        found = [(1.0, [(p, n, 1), (n, p, 1)]) for p in range(n)]
        found += [(near if self.twin(a) == b else 1.0, [(a, b, 1), (b, a, 1)]) for a, b in pairs]
        return found + [(1.0, [(a, b, 1), (b, n, 1), (a, n, -1)]) for a, b in pairs]

    def way(self, point: int) -> list[tuple[int, int]]:
        """Return the conditions from a point to x*, via the point close to it if there is one."""
        n, twin = len(self.points), self.twin(point)
        return [(point, n)] if twin is None else [(point, twin), (twin, n)]


@dataclass(frozen=True, eq=False)
class _Linear:
    """The terms multiplied by the coefficients of W, arrays of shape (states, coefficients, ...).

    Attributes
    ----------
    mean : array
    differences, losses : tuples of arrays
        Forms of each cell. The losses are at the cell's points before or after the round.
    """

    mean: FloatArray
    differences: tuple[FloatArray, ...]
    losses: tuple[FloatArray, ...]

    def of(self, state: int) -> _Linear:
        """Return the terms of one state."""
        return _Linear(
            self.mean[state],
            tuple(own[state] for own in self.differences),
            tuple(loss[state] for loss in self.losses),
        )


class RichProgram(OnOffProgram):
    """The program of a round with exact gradients, for functions that depend on gradients.

    Parameters are those of `OnOffProgram` without ``noisy``.
    """

    # ------------------------------------------------------------ W

    @cached_property
    def _forms(self) -> list[tuple[int, int]]:
        return list(combinations_with_replacement(range(self._n_vectors), 2))

    @cached_property
    def _squares(self) -> dict[bool, list[tuple[int, int]]]:
        """Index pairs of the matrices ``present`` (True) and ``absent`` (False)."""
        sizes = {True: self.steps + 1, False: 2}
        return {
            there: list(combinations_with_replacement(range(size), 2))
            for there, size in sizes.items()
        }

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients of W in a state: those of its form, then those of each group."""
        own = sum(len(places) for places in self._squares.values()) + self.steps + 1
        return len(self._forms) + len(self.groups) * own

    def _of_own(self, group: int, there: bool) -> int:
        """Return the index of the first coefficient of ``present`` or ``absent`` in a group."""
        own = {kind: len(places) for kind, places in self._squares.items()}
        whole = sum(own.values()) + self.steps + 1
        first = len(self._forms) + group * whole
        return first if there else first + own[True] + self.steps

    def _rows(self, cells: Sequence[GroupCell], clients: Sequence[_Client]) -> list[FloatArray]:
        """Return, for each cell, the means of its clients' vectors as rows of the mean block."""
        means = self._means(list(cells))
        starts = 1 + np.cumsum([0, *(client.size - 1 for client in clients)])
        size = int(starts[-1]) + means.shape[1]
        found = []
        for place, (cell, client) in enumerate(zip(cells, clients, strict=True)):
            rows = np.zeros((client.size, size))
            root = np.sqrt(self.alpha[cell.group] * cell.size)
            own = np.arange(client.size - 1)
            rows[own, starts[place] + own] = 1 / root
            rows[-1, starts[-1] :] = means[place]
            found.append(rows)
        return found

    def _expectation(
        self,
        cells: Sequence[GroupCell],
        clients: Sequence[_Client],
        outcomes: Outcomes,
        z: FloatArray,
        after: int,
    ) -> _Linear:
        """Return the terms of E W per coefficient, for W now (0) or after a round (1)."""
        counts, chance, state = outcomes
        rows, n = self._rows(cells, clients), len(self.states)
        vectors = np.zeros((len(counts), self._n_vectors, len(z)))
        vectors[:, 0] = z
        mean = np.zeros((n, self.n_coefficients, len(z), len(z)))
        owns, singles = [], []
        for place, (cell, client) in enumerate(zip(cells, clients, strict=True)):
            own, there = self._by_itself(cell, client, rows[place], after), counts[:, place]
            single = np.zeros((self._n_vectors, client.size))
            for index, vector, (sign, certain) in self._sums(cell, client.seen[after]):
                # The number of the cell's clients in the sum.
                number = certain * cell.size + sign * there
                vectors[:, index] += self.alpha[cell.group] * np.outer(number, rows[place][vector])
                single[index, vector] = sign * self.alpha[cell.group]
            singles.append(single)
            total = np.zeros((n, self.n_coefficients, client.size, client.size))
            losses = np.zeros((n, self.n_coefficients, len(client.seen[after]) - 1))
            for number, (of_mean, of_own, of_loss) in zip(
                (there, cell.size - there), own, strict=True
            ):
                share = chance * number / cell.size
                weight = self.alpha[cell.group] * cell.size
                for to, part in ((mean, weight * of_mean), (total, of_own), (losses, of_loss)):
                    summed = np.bincount(state, share, n)
                    to += np.multiply.outer(summed, part)
            owns.append((total, losses))
        for k, (p, q) in enumerate(self._forms):
            np.add.at(mean[:, k], state, mixed(chance, vectors, p, q))
            for place, cell in enumerate(cells):
                both = mixed(np.ones(1), singles[place][None], p, q)[0]
                if both.any():
                    there = counts[:, place]
                    spread = there * (cell.size - there) / max(cell.size - 1, 1)
                    spread = chance * spread / (cell.size * self.alpha[cell.group])
                    owns[place][0][:, k] += np.multiply.outer(np.bincount(state, spread, n), both)
        return _Linear(mean, *map(tuple, zip(*owns, strict=True)))

    @property
    def _n_vectors(self) -> int:
        return len(self.groups) * (self.steps + 3)

    def _sums(
        self, cell: GroupCell, seen: Sequence[int]
    ) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """Yield (vector of W, the clients' own vector that it sums, which clients it sums over).

        The last entry is (1, 0) for clients in S, (-1, 1) for those not in S, and (0, 1) for all.
        """
        C, K, c = len(self.groups), self.steps, cell.group
        *deltas, g = seen
        for k, own in enumerate(deltas):
            yield 1 + c * K + k, own, (1, 0)
        yield 1 + C * K + c, seen[0], (-1, 1)
        yield 1 + C * K + C + c, g, (1, 0)
        if c < C - 1:
            yield 1 + C * K + 2 * C + c, g, (0, 1)

    def _by_itself(
        self, cell: GroupCell, client: _Client, rows: FloatArray, after: int
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield single clients' terms (mean, own, losses), for clients in S and not in S."""
        seen, size = client.seen[after], client.size
        for there in (True, False):
            # A client evaluated only at x is not in S.
            shown = seen if there else (seen[0], seen[-1])
            mean = np.zeros((self.n_coefficients, *rows.shape[1:] * 2))
            own = np.zeros((self.n_coefficients, size, size))
            loss = np.zeros((self.n_coefficients, len(seen) - 1))
            first, places = self._of_own(cell.group, there), self._squares[there]
            if len(shown) == (self.steps + 1 if there else 2):
                for k, (i, j) in enumerate(places, first):
                    mean[k] = mixed(np.ones(1), rows[None], shown[i], shown[j])[0]
                    own[k] = mixed(np.ones(1), np.eye(size)[None], shown[i], shown[j])[0]
                for k in range(len(shown) - 1):
                    loss[first + len(places) + k, k] = 1
            yield mean, own, loss

    def _seen_now(self, state: int, clients: Sequence[_Client]) -> _Linear:
        """Return the terms of W in a state per coefficient, arrays of shape (coefficients, ...)."""
        cells = self.cells[state]
        counts = np.array([[float(cell.size * cell.present) for cell in cells]])
        z = self._unit_of_z(cells, clients)
        outcome = (counts, np.ones(1), np.array([state]))
        return self._expectation(cells, clients, outcome, z, 0).of(state)

    def _unit_of_z(self, cells: Sequence[GroupCell], clients: Sequence[_Client]) -> FloatArray:
        return np.eye(self._rows(cells, clients)[0].shape[1])[0]

    def _clients(self, cells: Sequence[GroupCell], after: bool) -> list[_Client]:
        K, still = self.steps, after and not any(cell.present for cell in cells)
        return [_Client.of(K if cell.present else 1, K if after else 0, still) for cell in cells]

    # ------------------------------------------------------------ unknowns

    def _count(self) -> None:
        place = 0
        self._free: list[list[int]] = []
        self._of_function: list[slice] = []
        for state, cells in enumerate(self.cells):
            form = self._seen_now(state, self._clients(cells, False))
            flat = [part.reshape(self.n_coefficients, -1) for part in
                    (form.mean, *form.differences, *form.losses)]  # fmt: skip
            free = independent_rows(np.column_stack(flat), self._order())
            if state == 0 and self.rate is None:
                # A term that does not depend on x can be shifted in all states by the same amount.
                free = [k for k in free if k not in self._of_gradients_alone]
            self._free.append(free)
            self._of_function.append(slice(place, place + len(free)))
            place += len(free)

        def slices(clients: Sequence[_Client]) -> list[slice]:
            nonlocal place
            found = []
            for client in clients:
                found.append(slice(place, place + len(client.points) ** 2))
                place += len(client.points) ** 2
            return found

        self._of_round = [slices(self._clients(cells, True)) for cells in self.cells]
        self._of_lower = [slices(self._clients(cells, False)) for cells in self.cells]
        self._of_first = slices(self._first_clients)
        self._of_ends = {name: place + index for index, name in enumerate(_ENDS)}
        self._margin = place + len(_ENDS)
        self.n_unknowns = self._margin + 1

    @property
    def _first_clients(self) -> list[_Client]:
        return [_Client.of(self.steps, 0) for _ in self.groups]

    @cached_property
    def _of_gradients_alone(self) -> set[int]:
        """Indices of the coefficients of terms that do not depend on x."""
        C, K = len(self.groups), self.steps
        first = 1 + C * K + C
        found = {k for k, pair in enumerate(self._forms) if min(pair) >= first}
        for c in range(C):
            for there, places in self._squares.items():
                found.add(self._of_own(c, there) + len(places) - 1)
        return found

    def _order(self) -> list[int]:
        """Return coefficients in order of preference, to choose among linearly dependent ones."""
        sums = set(range(len(self._forms)))
        return [*sums, *(k for k in range(self.n_coefficients) if k not in sums)]

    # ------------------------------------------------------------ the program

    def _with_conditions(
        self,
        cells: Sequence[GroupCell],
        clients: Sequence[_Client],
        linear: _Linear,
        fixed: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        places: Sequence[slice],
        wanted: float,
    ) -> tuple[list[Block], list[FloatArray]]:
        """Return blocks with conditions added, and each multiplier in terms of the unknowns.

        ``ends`` are z and z+ as rows of the mean block, ``linear`` holds arrays of shape (unknowns,
        ...), and ``wanted`` is subtracted from each loss at x.
        """
        mean, fixed = linear.mean, fixed.copy()
        rows, blocks, edges = self._rows(cells, clients), [], []
        for index, (cell, client) in enumerate(zip(cells, clients, strict=True)):
            weight = self.alpha[cell.group] * cell.size
            to_mean = np.vstack([*ends, rows[index]])
            own, other = linear.differences[index], np.zeros((client.size, client.size))
            edge = self._edges(client, linear.losses[index], places[index])
            for pair, form in self._conditions_of(client).items():
                of_mean = weight * to_mean.T @ form @ to_mean
                mean += np.multiply.outer(edge[pair], of_mean)
                own += np.multiply.outer(edge[pair], form[2:, 2:])
                if wanted and pair == (len(client.points), 0):
                    fixed += wanted * of_mean
                    other += wanted * form[2:, 2:]
            if cell.size > 1:
                blocks.append((own, other))
            edges.append(edge)
        return _in_differences([(mean, fixed), *blocks], clients, cells), edges

    def _edges(self, client: _Client, losses: FloatArray, place: slice) -> FloatArray:
        """Return each pair's multiplier in terms of the unknowns; function values cancel."""
        n = len(client.points)
        edge = np.zeros((n + 1, n + 1, self.n_unknowns))
        for k, (factor, flow) in enumerate(client.flows(1 / _APART**2), place.start):
            for a, b, sign in flow:
                edge[a, b, k] += factor * sign
        for point in range(n):
            for pair in client.way(point):
                edge[pair] += losses[:, point]
        return edge

    def _conditions_of(self, client: _Client) -> dict[tuple[int, int], FloatArray]:
        """Return conditions without losses, in (z, z+, own vectors), by pairs of points."""
        n = len(client.points)
        points, gradients = np.zeros((n + 1, client.size + 2)), np.zeros((n + 1, client.size + 2))
        for p, (after, before) in enumerate(client.points):
            points[p, after] = 1
            points[p, [2 + own for own in before]] = -self.step
            points[p, -1] = -self.step * self.unit * len(before)
            gradients[p, 2 + p] = 1
        return {
            (a, b): condition(points[a] - points[b], gradients[a], gradients[b], self.mu)
            for a, b in permutations(range(n + 1), 2)
        }

    def _sum(self, cells: Sequence[GroupCell], clients: Sequence[_Client]) -> _Linear:
        """Return zero arrays of shape (unknowns, ...), to which functions W are added."""
        size, n = len(self._unit_of_z(cells, clients)), self.n_unknowns
        return _Linear(
            np.zeros((n, size, size)),
            tuple(np.zeros((n, client.size, client.size)) for client in clients),
            tuple(np.zeros((n, len(client.points))) for client in clients),
        )

    def _add_function(
        self, to: _Linear, state: int, factor: float, part: _Linear, after: bool = False
    ) -> None:
        """Add a multiple of a state's terms, which are arrays of shape (coefficients, ...)."""
        free, place = self._free[state], self._of_function[state]
        to.mean[place] += factor * part.mean[free]
        for own, found in zip(to.differences, part.differences, strict=True):
            own[place] += factor * found[free]
        for loss, found in zip(to.losses, part.losses, strict=True):
            count = found.shape[1]
            where = slice(loss.shape[1] - count, None) if after else slice(0, count)
            loss[place, where] += factor * found[free]

    def _add_h(self, to: _Linear, cells: Sequence[GroupCell], h: Mapping[str, float]) -> None:
        """Add multiples of h, one per end."""
        n_g = len(cells) - 1
        for name, factor in h.items():
            place, size = self._of_ends[name], to.mean.shape[-1]
            to.mean[place, size - n_g :, size - n_g :] += factor * np.eye(n_g)
            for own in to.differences:
                own[place, -1, -1] += factor

    def _round(self, state: int) -> tuple[list[Block], list[FloatArray]]:
        """Return the blocks of the inequality of a round, and its multipliers."""
        cells = self.cells[state]
        clients = self._clients(cells, True)
        z = self._unit_of_z(cells, clients)
        moved = z.copy()
        for cell, client, row in zip(cells, clients, self._rows(cells, clients), strict=True):
            if cell.present:
                reach = self.step * self.weights[state][cell.group] * cell.size
                *deltas, g = client.seen[0]
                moved -= reach * (row[deltas].sum(axis=0) + self.steps * self.unit * row[g])
        total = self._sum(cells, clients)
        then = self._expectation(cells, clients, self._next(state), moved, 1)
        for other in range(len(self.states)):
            self._add_function(total, other, -1, then.of(other), after=True)
        rate = 1.0 if self.rate is None else self.rate
        self._add_function(total, state, rate, self._seen_now(state, clients))
        self._add_h(total, cells, {"floor": 1.0})
        fixed = np.zeros(total.mean.shape[1:])
        if self.rate is None and self.measure == "distance":
            fixed[0, 0] -= self.mu
        for part in (total.mean, *total.differences, *total.losses):
            part /= self.scale
        places, wanted = self._of_round[state], float(self._takes_loss)
        return self._with_conditions(cells, clients, total, fixed, (z, moved), places, wanted)

    def _lower(self, state: int) -> tuple[list[Block], list[FloatArray]]:
        """Return the blocks of ``W >= -below h``, or ``W >= ||z||^2`` where there is a rate."""
        cells = self.cells[state]
        clients = self._clients(cells, False)
        total, z = self._sum(cells, clients), self._unit_of_z(cells, clients)
        self._add_function(total, state, 1, self._seen_now(state, clients))
        fixed = np.zeros(total.mean.shape[1:])
        if self.rate is None:
            self._add_h(total, cells, {"below": 1.0})
        else:
            fixed[0, 0] -= 1
        return self._with_conditions(
            cells, clients, total, fixed, (z, 0 * z), self._of_lower[state], 0.0
        )

    def _start(self) -> tuple[list[Block], list[FloatArray]]:  # type: ignore[override]
        """Return the blocks of ``start ||z||^2 + once h >= E W + below h`` for stationary S."""
        cells, clients = self._everybody, self._first_clients
        total, z = self._sum(cells, clients), self._unit_of_z(cells, clients)
        found = self._expectation(cells, clients, self._first, z, 0)
        for state in range(len(self.states)):
            self._add_function(total, state, -1, found.of(state))
        total.mean[self._of_ends["start"], 0, 0] = 1
        self._add_h(total, cells, {"once": 1.0})
        if self.rate is None:
            self._add_h(total, cells, {"below": -1.0})
        fixed = np.zeros(total.mean.shape[1:])
        return self._with_conditions(cells, clients, total, fixed, (z, 0 * z), self._of_first, 0.0)

    @cached_property
    def _all(self) -> tuple[list[Block], list[list[FloatArray]]]:
        """All blocks, and the multipliers of rounds, then of lower bounds, then of the start."""
        found = [self._round(state) for state in range(len(self.states))]
        found += [self._lower(state) for state in range(len(self.states))]
        found.append(self._start())
        return [block for blocks, _ in found for block in blocks], [edges for _, edges in found]

    def solve(
        self, costs: Mapping[str, float] | None, fixed: Mapping[str, float] | None = None
    ) -> RichSolution | None:
        """Minimise a sum of ends, with the others given or free; without costs, maximise slack.

        Parameters are those of `OnOffProgram.solve`.
        """
        blocks, edges = self._all
        n = self.n_unknowns
        rows = np.vstack([edge.reshape(-1, n) for cells in edges for edge in cells])
        offsets = np.concatenate([one.ravel() for cells in self._given for one in cells])
        some = rows.any(axis=1)
        rows, offsets = rows[some], offsets[some]
        cost, known, used = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        for name, value in ((name, v) for name, v in (fixed or {}).items() if name in _ENDS):
            known[self._of_ends[name]] = value
            used[self._of_ends[name]] = False
        if self.rate is not None:
            used[self._of_ends["below"]] = False
        used[self._margin] = False
        if costs is not None:
            cost[list(self._of_ends.values())] = [costs.get(name, 0.0) for name in self._of_ends]
        margin = self._margin if costs is None else None
        found = least_of(cost, used, known, (rows, offsets), blocks, margin=margin)
        return None if found is None else self._rich_solution(*found)

    @cached_property
    def _given(self) -> list[list[FloatArray]]:
        """The constant parts of multipliers, nonzero only where F is measured at x."""
        found = [[np.zeros(edge.shape[:2]) for edge in cells] for cells in self._all[1]]
        if self._takes_loss:
            for one in (one for cells in found[: len(self.states)] for one in cells):
                one[-1, 0] = 1
        return found

    def _rich_solution(self, value: float, unknowns: FloatArray) -> RichSolution:
        n = len(self.states)
        function = np.zeros((n, self.n_coefficients))
        for row, free, place in zip(function, self._free, self._of_function, strict=True):
            row[free] = unknowns[place]
        weights = [
            [edge @ unknowns + given for edge, given in zip(*cells, strict=True)]
            for cells in zip(self._all[1], self._given, strict=True)
        ]
        ends = dict.fromkeys(ENDS, 0.0)
        ends |= {name: float(unknowns[place]) for name, place in self._of_ends.items()}
        nothing: list[list[FloatArray]] = [[] for _ in self.states]
        return RichSolution(
            value, ends, function, np.zeros(n), weights[:n], nothing, nothing,
            weights[n : 2 * n], weights[-1],
        )  # fmt: skip


def unknowns_of(a_round: AveragingRound) -> int:
    """Estimate the program's number of unknowns without building it."""
    K, groups = a_round.local_steps, len(a_round.groups)
    size = groups * (K + 3)
    coefficients = size * (size + 1) // 2 + groups * ((K + 1) * (K + 2) // 2 + K + 4)
    points = {True: 2 * K, False: K + 1}
    return sum(
        coefficients + sum(points[cell.present] ** 2 for cell in cells_of(a_round, state))
        for state in states_of(a_round)
    )


def _in_differences(
    blocks: Sequence[Block], clients: Sequence[_Client], cells: Sequence[GroupCell]
) -> list[Block]:
    """Return blocks with gradients after a round written as differences from those before."""
    whole, first, own = np.eye(len(blocks[0][1])), 1, []
    for client, cell in zip(clients, cells, strict=True):
        change, now = np.eye(client.size), len(client.seen[0]) - 1
        for k in range(now, client.size - 1):
            change[k, k], change[k, min(k - now, now - 1)] = _APART, 1
        stop = first + client.size - 1
        whole[first:stop, first:stop] = change[:-1, :-1]
        first = stop
        if cell.size > 1:
            own.append(change)
    return [
        (change.T @ columns @ change, change.T @ fixed @ change)
        for change, (columns, fixed) in zip([whole, *own], blocks, strict=True)
    ]


# ------------------------------------------------------------ bounds and certificates The claims
# are those of `bound`. The better of the two functions' bounds is returned.

# Units of gradients at x*. The solver is most precise if these gradients are small compared with z.
_UNITS = (8, 32, 1)
_MOST_UNKNOWNS = 3_000

_Written: TypeAlias = Callable[[float, Fraction], str]


class RichBound(CorrelatedBound):
    """A bound, as the solver found it, from a function that depends on gradients."""


def richer_bound(plain: CorrelatedBound) -> CorrelatedBound:
    """Return the bound from a function that also depends on gradients, or the given one if better.

    Parameters
    ----------
    plain : CorrelatedBound

    Raises
    ------
    ValueError
        If clients' gradients have noise, or if there are too many states.

    Examples
    --------
    >>> from fltheory.algorithms import Unbiased
    >>> from fltheory.participation import MarkovOnOff
    >>> from fltheory.worst_case.correlated.bound import best_correlated_bound
    >>> from fltheory.worst_case.rounds.one_round import AveragingRound
    >>> from fltheory.worst_case.rounds.client_class import ClientClass
    >>> unbiased = Unbiased([0.5] * 2, client_lr=0.1, local_steps=1, availability=[0.5] * 2)
    >>> a_round = AveragingRound.of(unbiased, MarkovOnOff([0.5] * 2, 0.9))
    >>> plain = best_correlated_bound(a_round, ClientClass(1, "0.1"))
    >>> richer_bound(plain).floor < 0.9 * plain.floor
    True
    """
    request = plain.request
    if request.client_class.sigma:
        raise ValueError(
            "client_class must have sigma = 0 for a function that sees gradients: noise would make "
            f"what it sees random, got {float(request.client_class.sigma):g}"
        )
    unknowns = unknowns_of(request.round)
    if unknowns > _MOST_UNKNOWNS:
        raise ValueError(
            f"a function that sees gradients must have at most {_MOST_UNKNOWNS} coefficients and "
            f"multipliers, got {unknowns}: try fewer clients, groups or local steps"
        )
    for solved in solutions(request, RichProgram, _UNITS):
        return min(plain, RichBound.of(request, solved), key=_value)
    return plain


def _value(bound: CorrelatedBound) -> float:
    asked = bound.request
    return bound.floor if asked.rounds is None else bound.after(asked.rounds, asked.distance)


def rich_certificate(bound: RichBound, margin: float = 1e-6) -> RichCertificate:
    """Return a proof in fractions of a bound slightly above the best one.

    Parameters and errors are those of `certificate`.
    """
    texts = texts_of(bound, margin, solutions(bound.request, RichProgram, _UNITS), _text)
    return first_accepted(RichCertificate, texts, margin)


def _text(request: Request, unit: Fraction, found: RichSolution, bits: int) -> str:
    """Return a certificate's JSON, with numbers rounded to ``bits`` binary places."""
    clients, units = request.client_class, dict(units_of(request, unit))
    # Factors on a form's coordinates, which are z, gradients minus those at x*, and gradients at
    # x*.
    sizes = {"z": Fraction(1), "delta": 1 / clients.L, "g": 1 / clients.L / unit}

    def written(value: float, factor: Fraction) -> str:
        return str(Fraction(round(as_fraction(value) * 2**bits), 2**bits) * factor)

    def weights(rows: FloatArray, factor: Fraction) -> list[list[str]]:
        # The checker derives the conditions between each point and x* itself.
        return [[written(max(float(v), 0.0), factor) for v in row] for row in rows]

    alphas = [own.target_weight for own in request.round.groups]
    cells = [list(cells_of(request.round, state)) for state in states_of(request.round)]
    of_ends = units["z"] / clients.L

    def of_cells(found: list[list[FloatArray]], factor: Fraction) -> list[Any]:
        return [
            [
                weights(rows, alphas[cell.group] * factor)
                for rows, cell in zip(own, here, strict=True)
            ]
            for own, here in zip(found, cells, strict=True)
        ]

    document = {
        "kind": rich_checker.KIND,
        "version": rich_checker.VERSION,
        **claim_text(request, found.ends, lambda value, name: written(value, units[name])),
        "function": [
            _function(row, request.round, units["z"], sizes, written) for row in found.function
        ],
        "multipliers": of_cells(found.multipliers, units["pair"]),
        "lower": of_cells(found.lower, of_ends),
        "first": [
            weights(rows, alpha * of_ends) for rows, alpha in zip(found.first, alphas, strict=True)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _function(
    row: FloatArray,
    a_round: AveragingRound,
    unit: Fraction,
    sizes: Mapping[str, Fraction],
    written: _Written,
) -> Mapping[str, Any]:
    """Return W in one state for the certificate, from coefficients in the program's order."""
    C, K = len(a_round.groups), a_round.local_steps
    values = iter(row.tolist())

    def matrix(kinds: list[str]) -> list[list[str]]:
        rows = [["0"] * len(kinds) for _ in kinds]
        for i, one in enumerate(kinds):
            for j in range(i, len(kinds)):
                rows[i][j] = rows[j][i] = written(next(values), unit * sizes[one] * sizes[kinds[j]])
        return rows

    def losses(count: int) -> list[str]:
        return [written(next(values), unit * sizes["delta"]) for _ in range(count)]

    form = matrix(["z"] + ["delta"] * (C * (K + 1)) + ["g"] * (2 * C - 1))
    own = [
        (matrix(["delta"] * K + ["g"]), losses(K), matrix(["delta", "g"]), losses(1))
        for _ in range(C)
    ]
    return {
        "form": form,
        "present": [one[0] for one in own],
        "absent": [one[2] for one in own],
        "present_losses": [one[1] for one in own],
        "absent_losses": [one[3][0] for one in own],
    }


class RichCertificate(RoundsCertificate[RichProof]):
    """A proof, as JSON, that uses a function that depends on gradients.

    Attributes
    ----------
    text : str
    """

    checker: ClassVar[ProofChecker] = rich_checker
