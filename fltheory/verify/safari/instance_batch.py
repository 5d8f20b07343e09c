"""Many instances of SAFARI at once: moments in float64, and what a theorem says of them.

The recursion is that of one coordinate of a shared diagonal Hessian, for all instances and
coordinates together. It makes the search quick; whatever the search claims is checked again by
the exact engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.evidence.evaluation import evaluate
from fltheory.grammar.family import SearchSpace
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import Reduction, RoundRange
from fltheory.read_only import ReadOnlyArrays
from fltheory.theorems import Theorem
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.validation import FloatArray
from fltheory.verify.safari.witness import Witness

_AXES = 2
_EQUAL = 1e-12
_SMALLEST = 1e-9


@dataclass(frozen=True, eq=False)
class InstanceBatch(ReadOnlyArrays):
    """Constants and moments of n instances of at most two coordinates.

    Parameters
    ----------
    instances : sequence of Witness
    """

    instances: Sequence[Witness]

    @cached_property
    def rounds(self) -> NDArray[np.int64]:
        """(n,) each one's R."""
        return np.array([instance.rounds for instance in self.instances], dtype=np.int64)

    @cached_property
    def constants(self) -> dict[sp.Symbol, FloatArray]:
        """Values of the symbols, each (n,)."""
        present = self._coordinates.present
        curvature = self._coordinates.curvature
        away = self._coordinates.start
        return {
            sa_fl.L: np.where(present, curvature, -np.inf).max(axis=0),
            sa_fl.mu: np.where(present, curvature, np.inf).min(axis=0),
            sa_fl.sigma: self._numbers(lambda w: w.sigma),
            sa_fl.sigma_s: self._numbers(lambda w: w.server_sigma),
            sa_fl.sigma_G: self._coordinates.dissimilarity,
            sa_fl.eta_c: self._numbers(lambda w: w.client_lr),
            sa_fl.eta_s: self._numbers(lambda w: w.assist_lr),
            sa_fl.q: self._numbers(lambda w: w.q),
            sa_fl.K: self._numbers(lambda w: w.local_steps),
            sa_fl.m: self._numbers(lambda w: w.participants),
            sa_fl.R: self.rounds.astype(np.float64),
            sa_fl.Delta_0: (curvature * away**2).sum(axis=0) / 2,
            sa_fl.D_0: np.sqrt((away**2).sum(axis=0)),
        }

    @cached_property
    def series(self) -> dict[str, FloatArray]:
        """Expected quantities in rounds 0 .. the longest R, each (rounds + 1, n)."""
        with np.errstate(all="ignore"):
            return self._series()

    def reduced(self, field: str, rounds: RoundRange, reduction: Reduction) -> FloatArray:
        """Reduce a series over each instance's own rounds: (n,), or NaN-padded for ``every``."""
        series = self.series[field]
        index = np.arange(series.shape[0])[:, None]
        last = self.rounds + rounds.beyond_last
        if reduction == "last":
            return np.take_along_axis(series, last[None, :], axis=0)[0]
        inside = (index >= rounds.first) & (index <= last)
        if reduction == "every":
            return np.where(inside, series, np.nan)
        if reduction == "mean":
            with np.errstate(all="ignore"):
                return np.where(inside, series, 0.0).sum(axis=0) / inside.sum(axis=0)
        sign = 1.0 if reduction == "max" else -1.0
        with np.errstate(all="ignore"):
            return sign * np.where(inside, sign * series, -np.inf).max(axis=0)

    def _numbers(self, of: Callable[[Witness], Fraction | int]) -> FloatArray:
        return np.array([float(of(instance)) for instance in self.instances])

    @cached_property
    def _coordinates(self) -> _Coordinates:
        return _Coordinates.of(self.instances)

    def _series(self) -> dict[str, FloatArray]:
        c, K = self._coordinates, self.constants[sa_fl.K]
        client_lr, assist_lr = self.constants[sa_fl.eta_c], self.constants[sa_fl.eta_s]
        q, R = self.constants[sa_fl.q], int(self.rounds.max())
        decay = 1 - client_lr * c.curvature
        share = c.present / c.present.sum(axis=0)
        noise = share * self.constants[sa_fl.sigma] ** 2 / self.constants[sa_fl.m]
        client_noise, gradient_noise = np.zeros_like(decay), np.zeros_like(decay)
        power = np.ones_like(decay)
        for step in range(int(K.max())):
            running = step < K
            client_noise += np.where(running, power**2, 0.0)
            gradient_noise += np.where(running, (1 - power) ** 2, 0.0)
            power = np.where(running, power * decay, power)
        a, s = power, 1 - assist_lr * c.curvature
        added = (
            q * ((1 - a) ** 2 * c.sampled_second + noise * client_lr**2 * client_noise)
            + (1 - q) * share * (self.constants[sa_fl.sigma_s] * assist_lr) ** 2
        )
        mean_to_second = 2 * q * a * (1 - a) * c.sampled_mean
        second_decay, mean_decay = q * a**2 + (1 - q) * s**2, q * a + (1 - q) * s
        towards = q * (1 - a) * c.sampled_mean
        means, seconds = (np.empty((R + 1, *decay.shape)) for _ in range(2))
        means[0], seconds[0] = c.start, c.start**2
        for r in range(R):
            seconds[r + 1] = second_decay * seconds[r] + mean_to_second * means[r] + added
            means[r + 1] = mean_decay * means[r] + towards
        crossed = seconds - 2 * c.sampled_mean * means
        pull = np.where(c.present, (1 - a) / client_lr, 0.0)
        return {
            "squared_distance": seconds.sum(axis=1),
            "squared_gradient": (c.curvature**2 * seconds).sum(axis=1),
            "participant_gradient_sum": (
                pull**2 * (crossed + c.sampled_second) + noise * gradient_noise
            ).sum(axis=1),
            "participant_excess_loss": (c.curvature / 2 * crossed).sum(axis=1),
        }


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """What distinguishes coordinates, each (2, n); a missing one is zero throughout."""

    present: NDArray[np.bool_]
    curvature: FloatArray
    start: FloatArray
    sampled_mean: FloatArray
    sampled_second: FloatArray
    dissimilarity: FloatArray

    @classmethod
    def of(cls, instances: Sequence[Witness]) -> _Coordinates:
        shape = (_AXES, len(instances))
        present = np.zeros(shape, dtype=np.bool_)
        curvature, start, mean, second = (np.zeros(shape) for _ in range(4))
        dissimilarity = np.zeros(len(instances))
        for index, w in enumerate(instances):
            pulls = [0.0] * len(w.optima)
            for axis, h in enumerate(map(float, w.curvatures)):
                column = [float(optimum[axis]) for optimum in w.optima]
                centre = sum(column) / len(column)
                offsets = [value - centre for value in column]
                pulls = [p + (h * o) ** 2 for p, o in zip(pulls, offsets, strict=True)]
                present[axis, index] = True
                curvature[axis, index] = h
                start[axis, index] = float(w.x0[axis]) - centre
                eligible = [o for i, o in enumerate(offsets) if i not in w.excluded]
                mean[axis, index], second[axis, index] = _sampled(eligible, w.participants)
            dissimilarity[index] = max(pulls) ** 0.5
        return cls(present, curvature, start, mean, second, dissimilarity)


def _sampled(offsets: Sequence[float], size: int) -> tuple[float, float]:
    """Return mean and second moment of the mean of ``size`` drawn without replacement."""
    count = len(offsets)
    mean = sum(offsets) / count
    if size == count:
        return mean, mean**2
    variance = sum((offset - mean) ** 2 for offset in offsets) / count
    return mean, mean**2 + variance / size * (count - size) / (count - 1)


@dataclass(frozen=True, eq=False)
class Assessment(ReadOnlyArrays):
    """What a theorem says of each instance of a batch.

    Attributes
    ----------
    truth, bound : array, (n,)
    violation : array, (n,)
        Zero where all hypotheses hold, else how many do not and by how much.
    """

    truth: FloatArray
    bound: FloatArray
    violation: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """truth/bound, (n,); infinite where a bound of zero or less is broken."""
        with np.errstate(all="ignore"):
            degenerate = np.where(self.truth > self.bound, np.inf, 0.0)
            ratio = np.where(self.bound > 0, self.truth / self.bound, degenerate)
        return np.where(np.isfinite(self.truth) & np.isfinite(self.bound), ratio, 0.0)


def assess(theorem: Theorem, batch: InstanceBatch) -> Assessment:
    """Evaluate a theorem about SAFARI on a batch."""
    values: dict[sp.Symbol, FloatArray] = dict(batch.constants)
    if theorem.search_space is SearchSpace.SAFARI_ONE_NOISE_LEVEL:
        values[sa_fl.sigma] = np.maximum(values[sa_fl.sigma], values.pop(sa_fl.sigma_s))
    for symbol, expression in theorem.definitions.items():
        values[symbol] = evaluate(expression, values)
    for item in theorem.round_symbols:
        values[item.symbol] = batch.reduced(item.field, item.rounds, item.reduction)
    ranges = {
        item.symbol: item.rounds for item in theorem.round_symbols if item.reduction == "every"
    }
    violation = np.zeros(batch.rounds.size)
    for hypothesis in theorem.hypotheses:
        used = [ranges[s] for s in ranges if hypothesis.condition.has(s)]
        inside = _inside(batch, used[0]) if used else None
        violation += _violation(_relative_margin(hypothesis, values), inside)
    quantity = theorem.quantity
    truth = batch.reduced(quantity.field, quantity.rounds, quantity.reduction)
    bound = np.broadcast_to(evaluate(theorem.bound, values), truth.shape)
    return Assessment(truth, bound, violation)


def _inside(batch: InstanceBatch, rounds: RoundRange) -> NDArray[np.bool_]:
    index = np.arange(batch.rounds.max() + 1)[:, None]
    return (index >= rounds.first) & (index <= batch.rounds + rounds.beyond_last)


def _relative_margin(hypothesis: Hypothesis, values: dict[sp.Symbol, FloatArray]) -> FloatArray:
    """Return how far inside its limit a condition is, in [-1, 1]; NaN where undefined."""
    condition = hypothesis.condition
    left, right = evaluate(condition.lhs, values), evaluate(condition.rhs, values)
    if isinstance(condition, sp.Ge | sp.Gt):
        left, right = right, left
    with np.errstate(all="ignore"):
        scale = np.maximum(abs(left), abs(right))
        gap = np.where(np.isinf(right) & (left < right), 1.0, (right - left) / scale)
        gap = np.where(scale == 0, 0.0, gap)
    if isinstance(condition, sp.Eq):
        return np.asarray(_EQUAL - abs(gap))
    if isinstance(condition, sp.Lt | sp.Gt):
        return np.where(gap == 0, -_EQUAL, gap)
    return gap


def _violation(margin: FloatArray, inside: NDArray[np.bool_] | None) -> FloatArray:
    """Return zero where a condition holds (in all rounds inside), else up to about one."""
    missed = np.where(np.isnan(margin), 1.0, np.clip(-margin, 0.0, 1.0))
    if inside is not None:
        missed = np.where(inside, missed, 0.0).max(axis=0)
    return missed + _SMALLEST * (missed > 0)
