"""Clients on a line whose losses are piecewise quadratic, and every path of participants.

The tests' own, by plain loops: nothing of the engines, the programs or the checker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from fltheory.validation import FloatArray
from fltheory.worst_case.rounds.one_round import AveragingRound


@dataclass(frozen=True)
class Clients:
    """Losses ``mu x^2 / 2 + slope x + sum_j bend_j huber(x - centre_j, width_j)``, L = 1.

    Slopes are (problems, N), the others (problems, N, J) with bends of sum 1 - mu at most. A Huber
    function is quadratic up to its width and linear beyond.
    """

    mu: float
    slopes: FloatArray
    bends: FloatArray
    centres: FloatArray
    widths: FloatArray

    @classmethod
    def drawn(cls, rng: np.random.Generator, mu: float, problems: int, n: int) -> Clients:
        """Return random clients, some of which are quadratic."""
        shape = (problems, n, 3)
        bends = rng.dirichlet(np.ones(3), size=shape[:2]) * (1 - mu)
        bends *= rng.choice([0.0, 0.5, 1.0], size=(problems, n, 1))
        centres = rng.normal(size=shape) * rng.choice([0.1, 1.0, 5.0], size=(problems, 1, 1))
        widths = np.exp(rng.normal(size=shape)) * rng.choice([1.0, 1e6], size=(problems, n, 1))
        return cls(mu, rng.normal(size=shape[:2]), bends, centres, widths)

    def gradient(self, i: int, x: FloatArray) -> FloatArray:
        """Return client i's gradients at x, (problems, points)."""
        total = self.mu * x + self.slopes[:, i, None]
        for j in range(self.bends.shape[2]):
            bend, centre, width = (
                part[:, i, j, None] for part in (self.bends, self.centres, self.widths)
            )
            total = total + bend * np.clip(x - centre, -width, width)
        return np.asarray(total)

    def value(self, i: int, x: FloatArray) -> FloatArray:
        """Return client i's loss at x."""
        total = self.mu * x**2 / 2 + self.slopes[:, i, None] * x
        for j in range(self.bends.shape[2]):
            bend, centre, width = (
                part[:, i, j, None] for part in (self.bends, self.centres, self.widths)
            )
            inside = np.clip(x - centre, -width, width)
            total = total + bend * inside * (x - centre - inside / 2)
        return np.asarray(total)

    def minimiser(self, alpha: FloatArray) -> FloatArray:
        """Return where the weighted gradient is zero, by halving, (problems, 1)."""
        low, high = (np.full((len(self.slopes), 1), end) for end in (-1e4, 1e4))
        for _ in range(100):
            middle = (low + high) / 2
            rises = sum(a * self.gradient(i, middle) for i, a in enumerate(alpha)) > 0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        return (low + high) / 2


def chain_of(a_round: AveragingRound) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a round's sets, how one follows another, their law, and participants' weights."""
    own = [group for group in a_round.groups for _ in range(group.n_clients)]
    if a_round.chain is not None:
        sets = np.array(a_round.chain.masks, dtype=float)
        follows = np.array(a_round.chain.transition, dtype=float)
        law = np.array(a_round.chain.law, dtype=float)
    else:
        sets = np.array(list(product((0.0, 1.0), repeat=len(own))))
        follows, law = np.ones((len(sets), len(sets))), np.ones(len(sets))
        for i, group in enumerate(own):
            p, nu, there = float(group.availability), float(group.correlation), sets[:, i]
            chance = nu * there + (1 - nu) * p
            follows *= np.where(there[None] > 0, chance[:, None], 1 - chance[:, None])
            law *= np.where(there > 0, p, 1 - p)
    weights = sets * [float(group.weight) for group in own]
    if a_round.averaging == "present":
        weights = sets / np.maximum(sets.sum(axis=1, keepdims=True), 1)
    return sets, follows, law, weights


def paths(
    clients: Clients, start: FloatArray, a_round: AveragingRound, steps: Sequence[float]
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield models on every path of sets after 0, 1, .. rounds, sums of those before, and chances.

    Models and sums are (problems, paths); there is a step size for every round.
    """
    _, follows, law, weights = chain_of(a_round)
    x, sums, chance = start, np.zeros_like(start), np.ones(1)
    yield x, sums, chance
    after = law[None]
    for step in steps:
        updates = []
        for i in range(weights.shape[1]):
            local = x
            for _ in range(a_round.local_steps):
                local = local - step * clients.gradient(i, local)
            updates.append(local - x)
        sums = sums + x
        moved = [x + sum(w * u for w, u in zip(row, updates, strict=True)) for row in weights]
        last = np.repeat(np.arange(len(weights)), x.shape[1])
        chance = (chance[:, None] * after).T.ravel()
        x, sums = np.concatenate(moved, axis=1), np.tile(sums, len(weights))
        possible = chance > 0
        x, sums, chance, after = x[:, possible], sums[:, possible], chance[possible], follows[last]
        after = after[possible]
        yield x, sums, chance


def largest_share(
    found: Mapping[str, Fraction],
    measured: str,
    clients: Clients,
    start: FloatArray,
    a_round: AveragingRound,
    rounds: int,
) -> tuple[float, int]:
    """Return the largest truth over a proved bound in any round, and how many were compared.

    ``found`` are a certificate's coefficients; "mean" is that of ``E||x_t - x*||^2``, "loss" that
    of F at the mean model, "rate" ``E||x_t - x*||^2`` itself.
    """
    alpha = np.array([float(g.target_weight) for g in a_round.groups for _ in range(g.n_clients)])
    best = clients.minimiser(alpha)
    own = {name: float(value) for name, value in found.items()}
    far = ((start - best) ** 2)[:, 0]
    h = sum(a * clients.gradient(i, best)[:, 0] ** 2 for i, a in enumerate(alpha))
    first, each = own["start"] * far + own["start_heterogeneity"] * h, own["heterogeneity"] * h
    total, largest, compared = np.zeros(len(start)), 0.0, 0

    def loss(x: FloatArray) -> FloatArray:
        return np.asarray(sum(a * clients.value(i, x) for i, a in enumerate(alpha)))

    steps = [float(a_round.client_lr)] * rounds
    for t, (x, sums, chance) in enumerate(paths(clients, start, a_round, steps)):
        square = ((x - best) ** 2) @ chance
        if measured == "rate":
            power = own["rate"] ** t
            truth, bound = square, power * first + (1 - power) / (1 - own["rate"]) * each
        elif t:
            gap = loss(sums / t) - loss(best) if measured == "loss" else 0 * x
            truth, bound = gap @ chance if measured == "loss" else total / t, first / t + each
        else:
            truth, bound = np.zeros(0), np.ones(0)
        largest = max([largest, *(truth / bound).tolist()])
        compared, total = compared + truth.size, total + square
    return largest, compared
