"""The slack of weighted averaging: what must be positive semidefinite for a bound to hold.

Definitions
-----------
As in `slack`, with a group for each kind of client c: n of them, of target weight alpha. Client i's
update ``D_i``, the sum of its gradients, has a random weight ``W_i``. With ``a_c = E sum W_i`` over
the group, ``M_cd = E (sum_c W_i)(sum_d W_j)`` and ``v_c = n (E W_i^2 - E W_i W_j)``,

    E||sum W_i D_i||^2 = sum_cd M_cd <mean_c D, mean_d D> + sum_c v_c mean_c ||D_i - mean_c D||^2

so that there are a block of means, of x and of each group's mean gradients ``g_0 .. g_{K-1}, g_*``,
and a block of differences for each group. ``sum_c n_c alpha_c mean_c g_* = 0`` leaves the last
group's ``g_*`` out.
"""

from __future__ import annotations

import math

import numpy as np

from fltheory.validation import FloatArray
from fltheory.worst_case.methods.averaging_round import AveragingRound
from fltheory.worst_case.proof import averaging_checker
from fltheory.worst_case.rounds.client_class import ClientClass
from fltheory.worst_case.rounds.measure import DISTANCE
from fltheory.worst_case.rounds.slack import (
    Form,
    Group,
    Slack,
    balance_of,
    interpolation,
    symmetric,
)


def averaging_slack(a_round: AveragingRound, clients: ClientClass) -> Slack:
    """Return the slack of a round of weighted averaging.

    Raises
    ------
    ValueError
        For nonconvex clients, or groups and local steps that are too many.
    """
    rows = len(a_round.groups) * (a_round.local_steps + 1)
    if rows > averaging_checker.MOST_ROWS:
        raise ValueError(
            "groups of equal availability and weight, times local_steps + 1, must be at most "
            f"{averaging_checker.MOST_ROWS}, got {rows}"
        )
    DISTANCE.check(clients)
    if a_round.averaging == "present":
        _check_present(a_round)
    return _Assembly(a_round, clients).slack()


def _check_present(a_round: AveragingRound) -> None:
    """Refuse means whose proofs the checker would not go over."""
    counts = [own.n_clients for own in a_round.groups]
    if sum(counts) > averaging_checker.MOST_PRESENT:
        raise ValueError(
            f"clients must be at most {averaging_checker.MOST_PRESENT} to average over those "
            f"present, got {sum(counts)}"
        )
    numbers = math.prod(count + 1 for count in counts)
    if numbers > averaging_checker.MOST_NUMBERS:
        raise ValueError(
            f"groups must have at most {averaging_checker.MOST_NUMBERS} different numbers of "
            f"clients present to average over those, got {numbers}"
        )


def weight_moments(a_round: AveragingRound) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a (C,), M (C, C) and v (C,) of the groups' weights, server_lr aside."""
    counts = np.array([own.n_clients for own in a_round.groups], dtype=np.float64)
    p = np.array([float(own.availability) for own in a_round.groups])
    if a_round.averaging == "weights":
        weights = np.array([float(own.weight) for own in a_round.groups])
        mean = counts * p * weights
        spread = counts * weights**2 * p * (1 - p)
        return mean, np.outer(mean, mean) + np.diag(spread), spread
    one, ones = p.copy(), p.copy()
    for c in range(len(p)):
        others = _number(counts, p, [c])
        at = 1 / np.arange(1, len(others) + 1)
        one[c], ones[c] = p[c] * (others @ at), p[c] * (others @ at**2)
    together = np.zeros((len(p), len(p)))
    for c in range(len(p)):
        for d in range(len(p)):
            if c != d or counts[c] > 1:
                others = _number(counts, p, [c, d])
                together[c, d] = p[c] * p[d] * (others @ (2.0 + np.arange(len(others))) ** -2)
    pairs = np.outer(counts, counts) - np.diag(counts)
    spread = counts * (ones - np.diag(together))
    return counts * one, pairs * together + np.diag(counts * ones), spread


def _number(counts: FloatArray, p: FloatArray, without: list[int]) -> FloatArray:
    """Return the law of how many are there, of all clients but one of each group named."""
    from scipy.stats import binom

    law = np.ones(1)
    for c, (count, chance) in enumerate(zip(counts, p, strict=True)):
        left = int(count) - without.count(c)
        law = np.convolve(law, binom.pmf(np.arange(left + 1), left, chance))
    return law


class _Assembly:
    """Coordinates of every block, and the forms in them."""

    def __init__(self, a_round: AveragingRound, clients: ClientClass) -> None:
        self.round, self.clients = a_round, clients
        self.e = float(clients.L * a_round.client_lr)
        self.mu = float(clients.mu / clients.L)
        self.steps = a_round.local_steps
        self.shares = [float(own.n_clients * own.target_weight) for own in a_round.groups]
        kinds = len(self.shares)
        self.sizes = (
            kinds * (self.steps + 1),
            *(0 if own.n_clients == 1 else self.steps + 1 for own in a_round.groups),
        )
        self.moments = weight_moments(a_round)
        self.groups = [self._group(c) for c in range(kinds)]

    def slack(self) -> Slack:
        x = np.eye(self.sizes[0])[0]
        pairs = [(group, a, b) for group in self.groups for a, b in group.pairs]
        return Slack(
            self.sizes,
            self._form({0: np.outer(x, x)}),
            self._change(x),
            [(group.name, a, b) for group, a, b in pairs],
            [self._form(interpolation(group, a, b, self.mu)) for group, a, b in pairs],
            self._budgets(),
            [],
            [],
            balance_of(self.groups),
            0.0,
            self._directions(),
            self.groups,
        )

    def _form(self, matrices: dict[int, FloatArray]) -> Form:
        return [
            matrices.get(block, np.zeros((size, size))) for block, size in enumerate(self.sizes)
        ]

    def _along(self, c: int) -> FloatArray:
        first = 1 + c * self.steps
        return np.eye(self.sizes[0])[first : first + self.steps]

    def _at_optimum(self, c: int) -> FloatArray:
        """Return a group's mean gradient at x*; the last is what makes F stationary there."""
        kinds, size = len(self.shares), self.sizes[0]
        own = np.eye(size)[1 + kinds * self.steps :]
        if c < kinds - 1:
            return own[c]
        others = -np.array(self.shares[:-1]) / self.shares[-1]
        return np.asarray(others @ own) if kinds > 1 else np.zeros(size)

    def _group(self, c: int) -> Group:
        x = np.eye(self.sizes[0])[0]
        blocks = {0: self._run(self._along(c), x, self._at_optimum(c))}
        size = self.sizes[1 + c]
        if size:
            apart = np.eye(size)
            blocks[1 + c] = self._run(apart[:-1], np.zeros(size), apart[-1])
        return Group(str(c), blocks)

    def _run(
        self, along: FloatArray, start: FloatArray, at_optimum: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        before = np.vstack([np.zeros_like(start), np.cumsum(along, axis=0)[:-1]])
        points = np.vstack([start - self.e * before, np.zeros_like(start)])
        return points, np.vstack([along, at_optimum])

    def _change(self, x: FloatArray) -> Form:
        """Return ``(||x||^2 - E||x - server_lr e sum W_i D_i||^2) / e``."""
        mean, second, spread = self.moments
        gain = float(self.round.server_lr)
        moved = np.array([self._along(c).sum(axis=0) for c in range(len(self.shares))])
        square = moved.T @ second @ moved
        matrices = {0: gain * symmetric(x, mean @ moved) - gain**2 * self.e * square}
        for c, variance in enumerate(spread):
            own = np.append(np.ones(self.steps), 0.0)
            matrices[1 + c] = -(gain**2) * self.e * variance * np.outer(own, own)
        return self._form({block: m for block, m in matrices.items() if self.sizes[block]})

    def _budgets(self) -> list[Form]:
        at_optimum = [self._square(c, -1, np.zeros(self.sizes[0])) for c in range(len(self.shares))]
        if self.clients.heterogeneity == "optimum":
            total = self._form({})
            for share, form in zip(self.shares, at_optimum, strict=True):
                total = [old + share * new for old, new in zip(total, form, strict=True)]
            return [total]
        firsts = [group.blocks[0][1][0] for group in self.groups]
        gradient = np.array(self.shares) @ np.array(firsts)
        at_x = [self._square(c, 0, gradient) for c in range(len(self.shares))]
        return [form for both in zip(at_optimum, at_x, strict=True) for form in both]

    def _square(self, c: int, point: int, centre: FloatArray) -> Form:
        """Return a group's mean squared distance of gradients from a vector of the mean block."""
        blocks = self.groups[c].blocks
        matrices = {
            block: np.outer(off, off)
            for block, (_, gradients) in blocks.items()
            for off in [gradients[point] - (centre if block == 0 else 0)]
        }
        return self._form(matrices)

    def _directions(self) -> list[tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.intp]]]]:
        bases = [np.eye(size) for size in self.sizes]
        kinds = [np.zeros(size, dtype=np.intp) for size in self.sizes]
        kinds[0][0] = 1
        first = 1 + len(self.shares) * self.steps
        for c in range(len(self.shares) - 1):
            # Gradients that are the same along the way and at x*.
            column = first + c
            kinds[0][column] = 2
            bases[0][:, column] += self._along(c).sum(axis=0)
            others = self._along(len(self.shares) - 1).sum(axis=0)
            bases[0][:, column] -= self.shares[c] / self.shares[-1] * others
        for basis, kind in zip(bases[1:], kinds[1:], strict=True):
            if len(basis):
                basis[:, -1] = 1
                kind[-1] = 2
        return list(zip(bases, kinds, strict=True))
