"""The worst clients of a class, rebuilt from the program's solution as a problem that can be run.

The program's dual solution contains the products of the worst clients' vectors, and factoring these
products gives the vectors. Clients of a group differ by unit vectors that add up to zero. An
envelope through the positions and gradients is a function of the class, however they were rounded.
So the witness is a problem in decimals, and the effect of the round on it is computed with exact
fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fltheory.algorithms.contract import CLIENTS
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.clients.analytic_clients import Silence, SteppedClients
from fltheory.participation import UniformSubset
from fltheory.problems.base import gradients_at
from fltheory.problems.piecewise_quadratic_problem import PiecewiseQuadraticProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.bound import Bound, Solver
from fltheory.worst_case.rounds.client_class import ClientClass
from fltheory.worst_case.rounds.one_round import OneRound
from fltheory.worst_case.rounds.slack import slack_of

if TYPE_CHECKING:
    from fltheory.worst_case.rounds.program import Solution

_MOST_CLIENTS = 50
_MOST_SETS = 20_000
# The solver is accurate to about 1e-8. Eigenvalues below `_SMALL` times the largest are its
# rounding errors, and nine decimals of its results are kept.
_SMALL = 1e-7
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class WorstClients(ReadOnlyArrays):
    """A problem of the class, and the effect of one round on a model.

    Attributes
    ----------
    problem : PiecewiseQuadraticProblem
        Its optimum is the origin.
    round : OneRound
    x0 : array, (d,)
    before, after : Fraction
        ``||x0||^2`` and ``E||x1||^2``, exactly.
    dissimilarity : Fraction
        ``1/N sum_i ||grad F_i(0)||^2``.
    """

    problem: PiecewiseQuadraticProblem
    round: OneRound
    x0: FloatArray
    before: Fraction
    after: Fraction
    dissimilarity: Fraction

    @property
    def participation(self) -> UniformSubset:
        """The participation process, in which the last clients never take part."""
        eligible, size = self.round.n_eligible, self.problem.n_clients
        return UniformSubset(
            size, self.round.participants, excluded=range(int(eligible or 0), size)
        )

    def excess(self, rate: Fraction, heterogeneity: Fraction) -> Fraction:
        """Return by how much a bound on the round is exceeded; if it holds, at most 0."""
        return self.after - rate * self.before - heterogeneity * self.dissimilarity

    def run(self) -> float:
        """Return ``E||x1||^2`` computed by the algorithm's own code, over all sets of participants.

        Raises
        ------
        ValueError
            If there are more than 20,000 sets.
        """
        participation, algorithm = self.participation, self.round.algorithm
        if participation.n_outcomes > _MOST_SETS:
            raise ValueError(
                f"participation must have at most {_MOST_SETS} possible sets of participants to "
                f"run them all, got {participation.n_outcomes}"
            )
        clients = SteppedClients(self.problem, Silence())
        total = 0.0
        for branch, chance in algorithm.branches:
            if chance == 0:
                continue
            nobody = np.zeros(self.problem.n_clients, dtype=bool)
            outcomes = list(participation.outcomes()) if branch == CLIENTS else [(1.0, nobody)]
            who = np.array([mask for _, mask in outcomes])
            start = np.tile(self.x0, (len(who), 1))
            state = algorithm.init(start, self.problem.n_clients)
            after = algorithm.round(state, clients, who, branch)["x"]
            chances = np.array([probability for probability, _ in outcomes])
            total += float(chance) * float(chances @ (after**2).sum(axis=1))
        return total

    @property
    def lines(self) -> tuple[str, ...]:
        """The problem in a few lines: its constants, then each client's points and heights."""
        problem = self.problem
        head = (
            f"L = {problem.L:g}, mu = {problem.mu:g}, {problem.n_clients} clients in dimension "
            f"{problem.dim}, x0 = {_numbers(self.x0)}",
        )
        clients = tuple(
            f"client {index}: "
            + ", ".join(f"{_numbers(p)} at {c:.9g}" for p, c in zip(points, heights, strict=True))
            for index, (points, heights) in enumerate(
                zip(problem.points, problem.heights, strict=True)
            )
        )
        return head + clients


def _numbers(point: FloatArray) -> str:
    return f"({', '.join(f'{value:.9g}' for value in point)})"


@checks_kinds
def worst_clients(bound: Bound) -> WorstClients:
    """Return clients that show that a bound cannot be improved at its rate.

    Parameters
    ----------
    bound : Bound
        A bound for at most 50 clients of a class with heterogeneity at the optimum and without
        noise, for which the program's value is attained.

    Raises
    ------
    ValueError
        If the class is different, or if there are too many clients.
    ArithmeticError
        If the solver finds none.

    Examples
    --------
    One of three clients never takes part. No other clients of the class do worse:

    >>> from fltheory.algorithms import FedAvg
    >>> from fltheory.worst_case import ClientClass, best_bound
    >>> rounds = UniformSubset(3, 1, excluded=[2])
    >>> bound = best_bound(FedAvg(0.5, 1), rounds, ClientClass(1, "0.1"), rate="0.95")
    >>> worst = worst_clients(bound)
    >>> worst.problem.n_clients
    3
    """
    a_round, clients = bound.round, bound.client_class
    if not isinstance(a_round, OneRound) or not isinstance(clients, ClientClass):
        raise ValueError(
            "bound must be on the distance after a round with uniformly drawn clients, got "
            f"{type(a_round).__name__} and {type(clients).__name__}"
        )
    rate = Fraction(bound.rate) if bound.given_speed is None else bound.given_speed
    return worst_clients_at(a_round, clients, rate)


def worst_clients_at(a_round: OneRound, clients: ClientClass, rate: Fraction) -> WorstClients:
    """Return the worst clients of a round at a rate; see `worst_clients`."""
    if not clients.is_exact:
        raise ValueError(
            "client_class must have heterogeneity at the optimum and no noise, where the program's "
            f"value is attained, got {clients!r}"
        )
    if a_round.n_clients is None or a_round.n_clients > _MOST_CLIENTS:
        raise ValueError(
            f"n_clients must be at most {_MOST_CLIENTS} to write them down, got {a_round.n_clients}"
        )
    solution = Solver(a_round, clients).least_residual(rate)
    if solution is None:
        raise ArithmeticError(f"the solver found no worst clients at a rate of {float(rate):.6g}")
    return _Rebuilt(a_round, clients, solution).witness()


class _Rebuilt:
    """Clients rebuilt from the products of their vectors."""

    def __init__(self, a_round: OneRound, clients: ClientClass, solution: Solution) -> None:
        self._round, self._clients = a_round, clients
        self._slack = slack_of(a_round, clients)
        size = max(float(solution.gram[0][0, 0]), 1e-12)
        # The means come first, followed by each kind's differences.
        self._vectors = [_factor(gram / size) for gram in solution.gram[: 1 + len(a_round.kinds)]]

    def witness(self) -> WorstClients:
        a_round = self._round
        n_eligible, n_excluded = int(a_round.n_eligible or 0), int(a_round.n_excluded or 0)
        counts = [n_eligible, n_excluded]
        data = [
            self._group(index, counts, member)
            for index in range(len(self._slack.points))
            for member in range(counts[index])
        ]
        # Groups have different numbers of points, so the last point is repeated, which changes
        # nothing.
        most = max(len(heights) for _, heights in data)
        points = np.array([_padded(own, most) for own, _ in data]).round(_DIGITS)
        heights = np.array([_padded(own, most) for _, own in data]).round(_DIGITS)
        x0 = np.zeros(points.shape[2])
        x0[: self._vectors[0].shape[1]] = self._vectors[0][0]
        problem = PiecewiseQuadraticProblem(
            points, heights, L=float(self._clients.L), mu=float(self._clients.mu)
        )
        return played(problem, a_round, x0.round(_DIGITS))

    def _group(self, index: int, counts: list[int], member: int) -> tuple[FloatArray, FloatArray]:
        """Return one client's points and heights."""
        group = self._slack.points[index]
        positions, gradients = (
            np.hstack(
                [
                    self._of(group.blocks, which, block, counts, member)
                    for block in range(len(self._vectors))
                ]
            )
            for which in (0, 1)
        )
        values = _function_values(positions, gradients, float(self._clients.mu / self._clients.L))
        smoothness, share = float(self._clients.L), float(self._clients.mu / self._clients.L)
        steeper = gradients - share * positions
        points = positions - steeper / (1 - share)
        above = values - share / 2 * (positions**2).sum(axis=1)
        heights = above - (steeper**2).sum(axis=1) / (2 * (1 - share))
        return points, smoothness * heights

    def _of(
        self, blocks: Any, which: int, block: int, counts: list[int], member: int
    ) -> FloatArray:
        """Return a group's positions or gradients in a block's own dimensions."""
        vectors = self._vectors[block]
        rows = len(blocks[0][which])
        if block == 0:
            return blocks[0][which] @ vectors
        units = _units_adding_to_zero(counts[block - 1])
        if block not in blocks:
            return np.zeros((rows, units.shape[1] * vectors.shape[1]))
        own = blocks[block][which] @ vectors
        return np.kron(units[member], own).reshape(rows, -1)


def played(problem: PiecewiseQuadraticProblem, a_round: OneRound, x0: FloatArray) -> WorstClients:
    """Run a round on clients without noise in fractions, averaging over participants exactly."""
    n_clients, eligible = problem.n_clients, int(a_round.n_eligible or 0)
    start = np.array([Fraction(repr(float(value))) for value in x0], dtype=object)
    server = gradients_at(problem, start).sum(axis=0) / Fraction(n_clients)
    at_optimum = gradients_at(problem, start * Fraction(0))
    local = np.tile(start, (eligible, 1))
    moved = local * Fraction(0)
    for _ in range(a_round.local_steps):
        gradients = problem.client_gradients(local, np.arange(eligible))
        moved = moved + gradients
        local = local - a_round.client_lr * gradients
    mean = moved.sum(axis=0) / Fraction(eligible)
    spread = _square(moved - mean) / Fraction(eligible) * a_round.sampling_variance
    reach = a_round.server_lr * a_round.client_lr
    by_clients = _square(start - reach * mean) + reach**2 * spread
    by_server = _square(start - a_round.assist_lr * server)
    return WorstClients(
        problem,
        a_round,
        x0,
        _square(start),
        a_round.q * by_clients + (1 - a_round.q) * by_server,
        _square(at_optimum) / n_clients,
    )


def _square(values: Any) -> Fraction:
    return Fraction((values * values).sum())


def _factor(gram: FloatArray) -> FloatArray:
    """Return vectors, (coordinates, r), with these inner products."""
    if gram.size == 0:
        return np.zeros((0, 0))
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    kept = values > _SMALL * max(float(values.max()), _SMALL)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _units_adding_to_zero(count: int) -> FloatArray:
    """Return ``count`` unit vectors that add up to zero, in as few dimensions as possible."""
    if count < 2:
        return np.zeros((count, 0))
    signs = np.array([(-1.0) ** index for index in range(count)])
    if count % 2 == 0:
        return signs[:, None]
    units = np.stack([signs, np.zeros(count)], axis=1)
    units[:3] = [[1.0, 0.0], [-0.5, math.sqrt(0.75)], [-0.5, -math.sqrt(0.75)]]
    return units


def _function_values(positions: FloatArray, gradients: FloatArray, mu: float) -> FloatArray:
    """Return the function values closest to meeting the interpolation conditions, with L = 1."""
    from scipy.optimize import linprog

    count = len(positions)
    rows, right = [], []
    for a in range(count):
        for b in range(count):
            if a == b:
                continue
            apart, steeper = positions[a] - positions[b], gradients[a] - gradients[b]
            square = steeper @ steeper + mu * apart @ apart - 2 * mu * steeper @ apart
            row = np.zeros(count + 1)
            row[[a, b, count]] = -1.0, 1.0, -1.0
            rows.append(row)
            right.append(-(gradients[b] @ apart) - square / (2 * (1 - mu)))
    cost = np.append(np.zeros(count), 1.0)
    bounds = [(None, None)] * (count - 1) + [(0.0, 0.0), (None, None)]
    found = linprog(cost, np.array(rows), np.array(right), bounds=bounds)
    if found.x is None:
        raise ArithmeticError("no function values were found for the worst clients")
    return np.asarray(found.x[:count])


def _padded(values: FloatArray, size: int) -> FloatArray:
    return np.concatenate([values, np.repeat(values[-1:], size - len(values), axis=0)])
