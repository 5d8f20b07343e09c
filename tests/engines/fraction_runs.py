"""Runs of the counting algorithms on a line, along every history, in fractions.

Nothing of the package is used: rounds are plain loops over clients and local steps, and a number
that noise has entered is a list ``[mean, one coefficient a draw]``. Floats stand for the decimals
that they are written as.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product, takewhile
from typing import Any

ONE = Fraction(1)


def decimal(value: float) -> Fraction:
    """Return the decimal that a float is written as."""
    return Fraction(repr(value))


@dataclass
class Noisy:
    """A mean, and coefficients of independent draws of variance one."""

    mean: Fraction
    draws: tuple[Fraction, ...] = ()

    def __add__(self, other: Noisy) -> Noisy:
        width = max(len(self.draws), len(other.draws))
        mine, theirs = (
            side.draws + (Fraction(0),) * (width - len(side.draws)) for side in (self, other)
        )
        return Noisy(
            self.mean + other.mean, tuple(a + b for a, b in zip(mine, theirs, strict=True))
        )

    def times(self, factor: Fraction) -> Noisy:
        return Noisy(self.mean * factor, tuple(factor * draw for draw in self.draws))

    def __sub__(self, other: Noisy) -> Noisy:
        return self + other.times(-ONE)

    @property
    def square(self) -> Fraction:
        return self.mean**2 + sum(draw**2 for draw in self.draws)


NOTHING = Noisy(Fraction(0))


@dataclass
class Line:
    """Clients ``h_i (x - c_i)^2 / 2`` with gradient noise, and how many draws have been made."""

    curvatures: list[Fraction]
    optima: list[Fraction]
    sigma: Fraction
    drawn: int = field(default=0)

    @property
    def n_clients(self) -> int:
        return len(self.optima)

    @property
    def x_star(self) -> Fraction:
        pulls = sum(h * c for h, c in zip(self.curvatures, self.optima, strict=True))
        return pulls / sum(self.curvatures)

    def gradient(self, client: int, x: Noisy) -> Noisy:
        """Return a stochastic gradient, with a draw of its own."""
        exact = (x - Noisy(self.optima[client])).times(self.curvatures[client])
        if not self.sigma:
            return exact
        self.drawn += 1
        return exact + Noisy(Fraction(0), (Fraction(0),) * (self.drawn - 1) + (self.sigma,))

    def change(
        self, client: int, x: Noisy, steps: int, lr: Fraction, correction: Noisy = NOTHING
    ) -> Noisy:
        y = x
        for _ in range(steps):
            y = y - (self.gradient(client, y) + correction).times(lr)
        return y - x


Round = Callable[[dict[str, Any], Line, tuple[int, ...], int], dict[str, Any]]


def fedavg(lr: Fraction, steps: int) -> tuple[Callable[[int], dict[str, Any]], Round]:
    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, total = state["x"], NOTHING
        for i in who:
            total = total + line.change(i, x, steps, lr).times(Fraction(1, len(who)))
        return {"x": x + total}

    return lambda n: {}, run


def fedprox(
    lr: Fraction, steps: int, proximal: Fraction, sizes: list[int]
) -> tuple[Callable[[int], dict[str, Any]], Round]:
    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, total = state["x"], NOTHING
        for i in who:
            y = x
            for _ in range(steps):
                y = y - (line.gradient(i, y) + (y - x).times(proximal)).times(lr)
            total = total + (y - x).times(Fraction(sizes[i], sum(sizes[j] for j in who)))
        return {"x": x + total}

    return lambda n: {}, run


def fednova(
    lr: Fraction, steps: list[int], sizes: list[int]
) -> tuple[Callable[[int], dict[str, Any]], Round]:
    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, total = state["x"], NOTHING
        p = {i: Fraction(sizes[i], sum(sizes[j] for j in who)) for i in who}
        effective = sum(p[i] * steps[i] for i in who)
        for i in who:
            total = total + line.change(i, x, steps[i], lr).times(effective * p[i] / steps[i])
        return {"x": x + total}

    return lambda n: {}, run


def averaged_weighted(
    weights: list[Fraction], steps: int, rate: Callable[[int], Fraction]
) -> tuple[Callable[[int], dict[str, Any]], Round]:
    """Averages of the models before each round, in proportion to a step size of its own."""

    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        now = state["x"] if state["now"] is None else state["now"]
        before = [*state["before"], (rate(t), now)]
        total, after = NOTHING, now
        for share, model in before:
            total = total + model.times(share)
        for i in who:
            after = after + line.change(i, now, steps, rate(t)).times(weights[i])
        average = total.times(1 / sum(share for share, _ in before))
        return {"x": average, "now": after, "before": before}

    return lambda n: {"now": None, "before": []}, run


def fedau(lr: Fraction, steps: int, cutoff: int) -> tuple[Callable[[int], dict[str, Any]], Round]:
    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, n = state["x"], line.n_clients
        moved = x
        for i in who:
            moved = moved + line.change(i, x, steps, lr).times(state["omega"][i] / n)
        omega, ended, lasted = list(state["omega"]), list(state["ended"]), list(state["lasted"])
        for i in range(n):
            lasted[i] += 1
            if i in who or lasted[i] == cutoff:
                omega[i] = (ended[i] * omega[i] + lasted[i]) / Fraction(ended[i] + 1)
                ended[i], lasted[i] = ended[i] + 1, 0
        return {"x": moved, "omega": omega, "ended": ended, "lasted": lasted}

    return lambda n: {"omega": [ONE] * n, "ended": [0] * n, "lasted": [0] * n}, run


def fedar(
    lr: Fraction, steps: int, weight: Callable[[int], Fraction], cutoff: Callable[[int], Fraction]
) -> tuple[Callable[[int], dict[str, Any]], Round]:
    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, table, ages = state["x"], list(state["table"]), list(state["ages"])
        for i in range(line.n_clients):
            ages[i] = None if ages[i] is None else ages[i] + 1
            if i in who:
                table[i], ages[i] = line.change(i, x, steps, lr).times(-1 / lr), 0
        counted = [i for i, age in enumerate(ages) if age is not None and age <= cutoff(t)]
        for i in counted:
            x = x - table[i].times(lr * weight(ages[i]) / len(counted))
        return {"x": x, "table": table, "ages": ages}

    return lambda n: {"table": [NOTHING] * n, "ages": [None] * n}, run


def mifa(lr: Fraction, steps: int) -> tuple[Callable[[int], dict[str, Any]], Round]:
    """MIFA that waits until every client has been there."""

    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, table = state["x"], list(state["table"])
        for i in who:
            table[i] = line.change(i, x, steps, lr).times(-1 / lr)
        if all(update is not None for update in table):
            for update in table:
                x = x - update.times(lr / line.n_clients)
        return {"x": x, "table": table}

    return lambda n: {"table": [None] * n}, run


def f3ast(
    lr: Fraction, steps: int, alpha: list[Fraction], size: int, smoothing: Fraction
) -> tuple[Callable[[int], dict[str, Any]], Round]:
    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, rate = state["x"], list(state["rate"])
        chosen = sorted(who, key=lambda i: -alpha[i] / rate[i])[:size]
        rate = [(1 - smoothing) * r + smoothing * (i in chosen) for i, r in enumerate(rate)]
        moved = x
        for i in chosen:
            moved = moved + line.change(i, x, steps, lr).times(alpha[i] / rate[i])
        return {"x": moved, "rate": rate}

    return lambda n: {"rate": alpha}, run


def scaffold(lr: Fraction, steps: int) -> tuple[Callable[[int], dict[str, Any]], Round]:
    """Option II: a client's control becomes the mean gradient along its local run."""

    def run(state: dict[str, Any], line: Line, who: tuple[int, ...], t: int) -> dict[str, Any]:
        x, controls = state["x"], list(state["controls"])
        mean = NOTHING
        for control in controls:
            mean = mean + control.times(Fraction(1, len(controls)))
        after, moved = list(controls), x
        for i in who:
            correction = mean - controls[i]
            change = line.change(i, x, steps, lr, correction)
            moved = moved + change.times(Fraction(1, len(who)))
            after[i] = change.times(-1 / (lr * steps)) - correction
        return {"x": moved, "controls": after}

    return lambda n: {"controls": [NOTHING] * n}, run


Law = Callable[[tuple[tuple[int, ...], ...]], Iterator[tuple[Fraction, tuple[int, ...]]]]
"""Who may take part next, and how probably, after the sets so far."""


def bernoulli(p: list[Fraction]) -> Law:
    def following(past: tuple[tuple[int, ...], ...]) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        for bits in product((0, 1), repeat=len(p)):
            chance = ONE
            for here, q in zip(bits, p, strict=True):
                chance *= q if here else 1 - q
            yield chance, tuple(i for i, here in enumerate(bits) if here)

    return following


def on_and_off(p: list[Fraction], nu: list[Fraction]) -> Law:
    def following(past: tuple[tuple[int, ...], ...]) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        come = [
            q if not past else v * (i in past[-1]) + (1 - v) * q
            for i, (q, v) in enumerate(zip(p, nu, strict=True))
        ]
        yield from bernoulli(come)(())

    return following


def cycle(periods: list[int], offsets: list[int]) -> Law:
    def following(past: tuple[tuple[int, ...], ...]) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        t = len(past)
        yield (
            ONE,
            tuple(
                i for i, (k, o) in enumerate(zip(periods, offsets, strict=True)) if (t + o) % k == 0
            ),
        )

    return following


def one_of(n: int) -> Law:
    def following(past: tuple[tuple[int, ...], ...]) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        for i in range(n):
            yield Fraction(1, n), (i,)

    return following


def waiting(p: list[Fraction], size: int) -> Law:
    """A subset of some size, once each of it has been seen: within k rounds with G_C(k).

    After k rounds of waiting it is C with ``(G_C(k + 1) - G_C(k)) / sum_C (1 - G_C(k))``.
    """
    subsets = list(combinations(range(len(p)), size))

    def within(subset: tuple[int, ...], k: int) -> Fraction:
        return math.prod((1 - (1 - p[i]) ** k for i in subset), start=ONE)

    def following(past: tuple[tuple[int, ...], ...]) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
        k = len(list(takewhile(lambda who: not who, reversed(past))))
        still = sum(1 - within(subset, k) for subset in subsets)
        found = [(within(each, k + 1) - within(each, k), each) for each in subsets]
        yield from ((chance / still, each) for chance, each in found)
        yield 1 - sum(chance for chance, _ in found) / still, ()

    return following


def squared_distances(
    algorithm: tuple[Callable[[int], dict[str, Any]], Round],
    line: Line,
    law: Law,
    rounds: int,
    x0: Fraction,
) -> list[Fraction]:
    """Return ``E (x_t - x*)^2`` of every round, summed over all histories."""
    init, run = algorithm
    found = [Fraction(0)] * (rounds + 1)

    def visit(state: dict[str, Any], past: tuple[tuple[int, ...], ...], chance: Fraction) -> None:
        found[len(past)] += chance * (state["x"] - Noisy(line.x_star)).square
        if len(past) == rounds:
            return
        drawn = line.drawn
        for probability, who in law(past):
            if probability:
                line.drawn = drawn
                after = run(state, line, who, len(past) + 1)
                visit(after, (*past, who), chance * probability)

    line.drawn = 0
    visit({"x": Noisy(x0), **init(line.n_clients)}, (), ONE)
    return found


def rational_weight_error(p: Fraction, cutoff: float, rounds: int) -> tuple[Fraction, ...]:
    """Return FedAU's ``E[(p omega_t - 1)^2]`` for t = 0 .. rounds-1, state by state."""
    states = {(0, 0): Fraction(1)}
    errors = []
    for t in range(rounds):
        errors.append(
            sum(
                (mass * (p * (Fraction(s, m) if m else 1) - 1) ** 2)
                for (m, s), mass in states.items()
            )
        )
        following: dict[tuple[int, int], Fraction] = {}
        for (m, s), mass in states.items():
            ends = Fraction(1) if t + 1 - s == cutoff else p
            for state, share in (((m + 1, t + 1), ends), ((m, s), 1 - ends)):
                if share:
                    following[state] = following.get(state, Fraction(0)) + mass * share
        states = following
    return tuple(Fraction(error) for error in errors)
