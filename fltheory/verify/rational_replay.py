"""Replay a witness without rounding: moments by enumeration, in fractions.

Per coordinate, as the Hessian is diagonal: for every participant set and both kinds of round
the model goes to ``a x + b`` plus noise of a known variance, and the first two moments follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import sympy as sp

from fltheory.theorems import RoundRange, Theorem, sa_fl
from fltheory.theorems.statement import Reduction
from fltheory.verify.rational_values import rational_value, satisfied
from fltheory.verify.witness import Witness

Series = dict[str, list[Fraction]]


@dataclass(frozen=True)
class Replay:
    """Both sides of a theorem and its hypotheses on a witness, in fractions.

    Attributes
    ----------
    truth, bound : Fraction
    hypotheses : mapping of str to bool
        By name: whether it holds.
    values : mapping of str to Fraction
        The symbols' values that are single numbers.
    """

    truth: Fraction
    bound: Fraction
    hypotheses: Mapping[str, bool]
    values: Mapping[str, Fraction]

    @property
    def refutes(self) -> bool:
        """Whether all hypotheses hold and the bound is broken."""
        return all(self.hypotheses.values()) and self.truth > self.bound


def replay(theorem: Theorem, witness: Witness) -> Replay:
    """Evaluate a theorem of SA-FL on a witness, exactly."""
    series = _series(witness)
    values = _constants(theorem, witness)
    for symbol, expression in theorem.definitions.items():
        values[symbol] = rational_value(expression, values)
    rounds = _symbol_values(theorem, series)
    single = {symbol: numbers[0] for symbol, numbers in rounds.items() if len(numbers) == 1}
    every = {symbol: numbers for symbol, numbers in rounds.items() if len(numbers) > 1}
    values |= single
    hypotheses = {
        hypothesis.name: all(
            satisfied(hypothesis.condition, values | at_round)
            for at_round in _rounds_of(hypothesis.condition, every)
        )
        for hypothesis in theorem.hypotheses
    }
    quantity = theorem.quantity
    truth = _reduced(quantity.rounds, series[quantity.field], quantity.reduction)[0]
    return Replay(
        truth,
        rational_value(theorem.bound, values),
        hypotheses,
        {str(symbol): value for symbol, value in values.items()},
    )


def _rounds_of(
    condition: sp.Basic, every: Mapping[sp.Symbol, list[Fraction]]
) -> Iterator[dict[sp.Symbol, Fraction]]:
    used = {symbol: every[symbol] for symbol in every if symbol in condition.free_symbols}
    if not used:
        yield {}
        return
    for numbers in zip(*used.values(), strict=True):
        yield dict(zip(used, numbers, strict=True))


def _symbol_values(theorem: Theorem, series: Series) -> dict[sp.Symbol, list[Fraction]]:
    return {
        item.symbol: _reduced(item.rounds, series[item.field], item.reduction)
        for item in theorem.round_symbols
    }


def _reduced(rounds: RoundRange, numbers: list[Fraction], reduction: Reduction) -> list[Fraction]:
    chosen = numbers[rounds.first : len(numbers) + rounds.beyond_last]
    if reduction == "every":
        return chosen
    if reduction == "last":
        return [chosen[-1]]
    if reduction == "mean":
        return [_total(chosen) / len(chosen)]
    return [max(chosen) if reduction == "max" else min(chosen)]


def _constants(theorem: Theorem, w: Witness) -> dict[sp.Symbol, Fraction]:
    centre = [_total(column) / len(w.optima) for column in zip(*w.optima, strict=True)]
    pulls = [
        _total((h * (c - x)) ** 2 for h, c, x in zip(w.curvatures, optimum, centre, strict=True))
        for optimum in w.optima
    ]
    away = [x - c for x, c in zip(w.x0, centre, strict=True)]
    values = {
        sa_fl.L: max(w.curvatures),
        sa_fl.mu: min(w.curvatures),
        sa_fl.sigma: w.sigma,
        sa_fl.sigma_s: w.server_sigma,
        sa_fl.eta_c: w.client_lr,
        sa_fl.eta_s: w.assist_lr,
        sa_fl.q: w.q,
        sa_fl.K: Fraction(w.local_steps),
        sa_fl.m: Fraction(w.participants),
        sa_fl.R: Fraction(w.rounds),
        sa_fl.Delta_0: _total(h * a**2 for h, a in zip(w.curvatures, away, strict=True)) / 2,
    }
    values[sa_fl.sigma_G] = _root(max(pulls))
    values[sa_fl.D_0] = _root(_total(a**2 for a in away))
    if theorem.constants is sa_fl.one_noise_level:
        values[sa_fl.sigma] = max(w.sigma, w.server_sigma)
    return values


def _root(square: Fraction) -> Fraction:
    """Return the square root of a square of a fraction."""
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root != square:
        raise ValueError(f"norms in a witness must be fractions, got the square {square}")
    return root


@dataclass(frozen=True)
class _Coordinate:
    """Maps and noises of one coordinate, in the offset from x*."""

    curvature: Fraction
    start: Fraction
    client_decay: Fraction
    server_decay: Fraction
    sampled_mean: Fraction
    sampled_second: Fraction
    client_noise: Fraction
    server_noise: Fraction
    gradient_pull: Fraction
    gradient_noise: Fraction


def _series(w: Witness) -> Series:
    coordinates = [_coordinate(w, axis) for axis in range(len(w.curvatures))]
    histories = [_moments(coordinate, w) for coordinate in coordinates]
    series: Series = {
        "squared_distance": [],
        "squared_gradient": [],
        "participant_gradient_sum": [],
        "participant_excess_loss": [],
    }
    for moments in zip(*histories, strict=True):
        pairs = list(zip(coordinates, moments, strict=True))
        series["squared_distance"].append(_total(second for _, (_, second) in pairs))
        series["squared_gradient"].append(_total(c.curvature**2 * s for c, (_, s) in pairs))
        series["participant_gradient_sum"].append(
            _total(
                c.gradient_pull**2 * (s - 2 * m * c.sampled_mean + c.sampled_second)
                + c.gradient_noise
                for c, (m, s) in pairs
            )
        )
        series["participant_excess_loss"].append(
            _total(c.curvature / 2 * (s - 2 * m * c.sampled_mean) for c, (m, s) in pairs)
        )
    return series


def _total(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


def _coordinate(w: Witness, axis: int) -> _Coordinate:
    h, d, K = w.curvatures[axis], len(w.curvatures), w.local_steps
    column = [optimum[axis] for optimum in w.optima]
    centre = _total(column) / len(column)
    eligible = [c - centre for i, c in enumerate(column) if i not in w.excluded]
    means = [_total(chosen) / w.participants for chosen in combinations(eligible, w.participants)]
    step = 1 - w.client_lr * h
    noise = w.sigma**2 / d / w.participants
    return _Coordinate(
        curvature=h,
        start=w.x0[axis] - centre,
        client_decay=step**K,
        server_decay=1 - w.assist_lr * h,
        sampled_mean=_total(means) / len(means),
        sampled_second=_total(mean**2 for mean in means) / len(means),
        client_noise=noise * w.client_lr**2 * _total(step ** (2 * k) for k in range(K)),
        server_noise=w.server_sigma**2 / d * w.assist_lr**2,
        gradient_pull=(1 - step**K) / w.client_lr,
        gradient_noise=noise * _total((1 - step**k) ** 2 for k in range(K)),
    )


def _moments(c: _Coordinate, w: Witness) -> list[tuple[Fraction, Fraction]]:
    """Return (mean, second moment) in rounds 0 .. R."""
    a, s, q = c.client_decay, c.server_decay, w.q
    mean, second = c.start, c.start**2
    history = [(mean, second)]
    for _ in range(w.rounds):
        towards = (1 - a) * c.sampled_mean
        second = q * (
            a**2 * second
            + 2 * a * towards * mean
            + (1 - a) ** 2 * c.sampled_second
            + c.client_noise
        ) + (1 - q) * (s**2 * second + c.server_noise)
        mean = q * (a * mean + towards) + (1 - q) * s * mean
        history.append((mean, second))
    return history
