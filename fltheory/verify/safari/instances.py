"""Low-dimensional extremal instances of SAFARI: random draws, changes and simplification.

An instance is a handful of numbers ("genes"). All have few digits, so each is a short fraction and
the instance can be printed and certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from typing import Any, cast

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.claims.along_run import Theorem
from fltheory.claims.comparison import Comparison
from fltheory.claims.statement import Statement
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome
from fltheory.grammar.family import SearchSpace
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import Reduction, RoundRange
from fltheory.read_only import ReadOnlyArrays
from fltheory.theorems.sa_fl import statements as sa_fl
from fltheory.validation import FloatArray
from fltheory.verify.safari.witness import Witness
from fltheory.verify.search.search import Search, simplified

Genes = Mapping[str, Any]
Number = Fraction


@dataclass(frozen=True)
class Layout:
    """The clients' optima, as multiples of the spread, and who takes part."""

    optima: tuple[int, ...]
    participants: int
    excluded: tuple[int, ...] = ()


LAYOUTS = (
    Layout((0,), 1),
    Layout((1, -1), 1, (0,)),
    Layout((1, -1), 1),
    Layout((1, -1), 2),
    Layout((3, -1, -1, -1), 1, (0,)),
    Layout((3, -1, -1, -1), 3),
    Layout((-3, 1, 1, 1), 1, (1, 2)),
)
_SPACES = (SearchSpace.SAFARI, SearchSpace.SAFARI_ONE_NOISE_LEVEL)
_STEPS = (1, 2, 5, 20)
_DIGITS = 2
_COUPLED = (sa_fl.L, sa_fl.mu, sa_fl.eta_s, sa_fl.K)
_LONGEST = 3000
_ROUND_LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


def is_about_safari(statement: Statement) -> bool:
    """Return whether the settings of a statement are instances of this module."""
    return statement.search_space in _SPACES


def about_safari(statement: Statement) -> Theorem:
    """Return a statement as a theorem on SAFARI.

    Raises
    ------
    ValueError
        If the statement is not about SAFARI.
    """
    if not is_about_safari(statement):
        raise ValueError(f"theorem must be an inequality about SAFARI, got {statement.id}")
    return cast("Theorem", statement)


def rounded(value: float, digits: int = _DIGITS) -> Number:
    """Return ``value`` to a number of significant digits, as a fraction."""
    return Fraction(f"{value:.{digits - 1}e}")


def _power(rng: np.random.Generator, low: float, high: float) -> Number:
    return rounded(10 ** rng.uniform(low, high))


def _draw_q(rng: np.random.Generator) -> Number:
    """Draw from the open interval (0, 1), because at its ends one kind of round never happens."""
    kind = rng.integers(3)
    if kind == 0:
        return rounded(rng.uniform(0.01, 0.99))
    small = _power(rng, -4, -0.5)
    return small if kind == 1 else 1 - small


def _sometimes(
    draw: Callable[[np.random.Generator], Number], chance: float
) -> Callable[[np.random.Generator], Number]:
    return lambda rng: draw(rng) if rng.random() < chance else Fraction(0)


_DRAWS: Mapping[str, Callable[[np.random.Generator], Any]] = {
    "layout": lambda rng: int(rng.integers(len(LAYOUTS))),
    "dim": lambda rng: int(rng.integers(1, 3)),
    "grouped_axis": lambda rng: int(rng.integers(2)),
    "start_axis": lambda rng: int(rng.integers(2)),
    "smoothness": lambda rng: _power(rng, -4, 4),
    "condition": lambda rng: _power(rng, 0, 2),
    "spread": lambda rng: _power(rng, -4, 4),
    "start": lambda rng: _power(rng, -3, 3) * int(rng.choice((-1, 1))),
    "sigma": _sometimes(lambda rng: _power(rng, -2, 1), 0.3),
    "server_sigma": _sometimes(lambda rng: _power(rng, -2, 1), 0.3),
    "q": _draw_q,
    "local_steps": lambda rng: int(rng.choice(_STEPS)),
    "step": lambda rng: _power(rng, rng.choice((-4, -0.5)), 0.6),
    "detuning": lambda rng: _power(rng, -2, 2),
    "rounds": lambda rng: int(_LONGEST ** (rng.uniform() ** 1.5)),
}


def drawn(rng: np.random.Generator) -> Genes:
    """Draw an instance."""
    return {name: draw(rng) for name, draw in _DRAWS.items()}


def changed(genes: Genes, rng: np.random.Generator) -> Genes:
    """Change one or two genes; numbers are scaled or redrawn, choices are redrawn."""
    names = rng.choice(list(_DRAWS), size=int(rng.integers(1, 3)), replace=False)
    return {**genes, **{str(name): _changed(str(name), genes, rng) for name in names}}


def _changed(name: str, genes: Genes, rng: np.random.Generator) -> Any:
    value = genes[name]
    if not isinstance(value, Fraction) or value == 0 or rng.random() < 0.3:
        return _DRAWS[name](rng)
    factor = 10 ** rng.normal(0, 0.3)
    if name == "q" and value > Fraction(1, 2):
        return 1 - rounded(float(1 - value) * factor)
    return rounded(float(value) * factor)


def niche_of(genes: Genes) -> tuple[int, ...]:
    """Return an instance's niche, i.e. its layout and the decades of its main numbers."""
    decades = [float(genes["step"]), float(genes["smoothness"]), 10.0 * genes["rounds"]]
    likely = 1 if genes["q"] > Fraction(1, 10) else 0
    return (genes["layout"], likely, *(int(np.floor(np.log10(size))) for size in decades))


def simpler(name: str, value: Any) -> Sequence[Any]:
    """Return values that may replace ``value``, the simplest first and ``value`` itself last."""
    if name == "rounds":
        return [r for r in _ROUND_LENGTHS if r < value] + [value]
    if name == "local_steps":
        return sorted({1, 2, value})[: [1, 2, value].index(value) + 1]
    if not isinstance(value, Fraction):
        return sorted({0, value}) if name != "dim" else sorted({1, value})
    if value == 0:
        return [value]
    sign = 1 if value > 0 else -1
    size = abs(value)
    decade = Fraction(10) ** int(np.floor(np.log10(float(size))))
    options = [Fraction(0)] if name in {"sigma", "server_sigma"} else []
    options += [
        sign * Fraction(1),
        sign * decade,
        sign * 10 * decade,
        sign * rounded(float(size), 1),
    ]
    options += [Fraction(1, 2)] if name == "q" else []
    return list(dict.fromkeys([*options, value]))


@lru_cache(maxsize=1024)
def _solved_for_client_step(coupling: sp.Eq) -> Callable[..., Number] | None:
    """Return eta_c as a function of fractions, or None if it is not a rational function.

    The numerator and the denominator have integer coefficients, so no floats are involved.
    """
    solutions = sp.solve(coupling, sa_fl.eta_c)
    if len(solutions) != 1 or not solutions[0].is_rational_function(*_COUPLED):
        return None
    numerator, denominator = sp.fraction(sp.together(solutions[0]))
    above, below = (
        sp.lambdify(_COUPLED, sp.Poly(part, *_COUPLED).as_expr(), modules=[])
        for part in (numerator, denominator)
    )
    return lambda *values: Fraction(above(*values)) / Fraction(below(*values))


def coupling_of(theorem: Theorem) -> sp.Eq | None:
    """Return the theorem's equation between step sizes, if it has one."""
    conditions = (hypothesis.condition for hypothesis in theorem.hypotheses)
    return next((c for c in conditions if isinstance(c, sp.Eq) and c.has(sa_fl.eta_c)), None)


def decoded(coupling: sp.Eq | None, genes: Genes) -> Witness | None:
    """Return the instance, with eta_c from a coupling of step sizes, or None if there is none.

    Lengths are multiples of the spread, noise levels of ``smoothness * spread``, and ``step`` is
    the server's step times the smoothness. The groups' optima lie on one axis, and the start lies
    on the same axis or on the other one, so that all norms are fractions.
    """
    layout, dim = genes.get("clients") or LAYOUTS[genes["layout"]], genes["dim"]
    L, spread = genes["smoothness"], genes["spread"]
    mu = L if dim == 1 else L / genes["condition"]
    q, assist_lr, steps = genes["q"], genes["step"] / L, genes["local_steps"]
    if not 0 < q < 1 or mu > L:
        return None
    client_lr = _client_lr(coupling, genes["detuning"], L, mu, assist_lr, Fraction(steps))
    if client_lr is None or client_lr <= 0:
        return None
    return Witness(
        curvatures=(L,) if dim == 1 else (L, mu),
        optima=tuple(
            _on_axis(multiple * spread, genes["grouped_axis"], dim) for multiple in layout.optima
        ),
        x0=_on_axis(genes["start"] * spread, genes["start_axis"], dim),
        sigma=genes["sigma"] * L * spread,
        server_sigma=genes["server_sigma"] * L * spread,
        participants=layout.participants,
        excluded=layout.excluded,
        q=q,
        client_lr=client_lr,
        assist_lr=assist_lr,
        local_steps=steps,
        rounds=genes["rounds"],
    )


def _client_lr(
    coupling: sp.Eq | None, detuning: Number, L: Number, mu: Number, assist_lr: Number, K: Number
) -> Number | None:
    """Solve the equation between step sizes; if there is none, detune eta_c = 2 eta_s / K."""
    if coupling is None:
        return detuning * 2 * assist_lr / K
    solved = _solved_for_client_step(coupling)
    try:
        return None if solved is None else solved(L, mu, assist_lr, K)
    except ZeroDivisionError:
        return None


def _on_axis(value: Number, axis: int, dim: int) -> tuple[Number, ...]:
    return tuple(value if index == axis % dim else Fraction(0) for index in range(dim))


# ------------------------------------------------------------ many instances at once The recursion
# follows single coordinates of a shared diagonal Hessian, for all instances and coordinates
# together. It makes the search fast. The exact engine checks every claim of the search again.

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
        """R of each instance, (n,)."""
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
        """Expected quantities in rounds 0 to the largest R, each (rounds + 1, n)."""
        with np.errstate(all="ignore"):
            return self._series()

    def reduced(self, field: str, rounds: RoundRange, reduction: Reduction) -> FloatArray:
        """Reduce a series over each instance's rounds to (n,), or pad it with NaN for ``every``."""
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
    """The numbers that distinguish coordinates, each (2, n), or zero for a missing coordinate."""

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
    """Return mean and second moment of the mean of ``size`` offsets drawn without replacement."""
    count = len(offsets)
    mean = sum(offsets) / count
    if size == count:
        return mean, mean**2
    variance = sum((offset - mean) ** 2 for offset in offsets) / count
    return mean, mean**2 + variance / size * (count - size) / (count - 1)


@dataclass(frozen=True, eq=False)
class Assessment(ReadOnlyArrays):
    """A theorem's sides on each instance of a batch.

    Attributes
    ----------
    truth, bound : array, (n,)
    violation : array, (n,)
        Zero where all hypotheses hold; otherwise a measure of how many fail and by how much.
    """

    truth: FloatArray
    bound: FloatArray
    violation: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """truth/bound, (n,); infinite where the truth exceeds a bound of zero or less."""
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
    """Return how far inside its limit a condition is, relatively, in [-1, 1]; NaN if undefined."""
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
    """Return zero where a condition holds (in all rounds ``inside``), elsewhere up to about 1."""
    missed = np.where(np.isnan(margin), 1.0, np.clip(-margin, 0.0, 1.0))
    if inside is not None:
        missed = np.where(inside, missed, 0.0).max(axis=0)
    return missed + _SMALLEST * (missed > 0)


# ------------------------------------------------------------ the search

_GENERATION = 250
_RANDOM_SHARE = 0.5
_CLEARLY = 1.05
_TRUST = 1 + 1e-9
_LENGTHS = (0, 30, 300, math.inf)
_SOON_CERTIFIED = 300


@dataclass(frozen=True)
class _Generation:
    """Settings that are evaluated together. They are valid instances, grouped by length."""

    size: int
    groups: Sequence[tuple[Sequence[Genes], InstanceBatch]]

    @classmethod
    def of(cls, coupling: sp.Eq | None, candidates: Sequence[Genes]) -> _Generation:
        pairs = [(genes, decoded(coupling, genes)) for genes in candidates]
        kept = [(genes, witness) for genes, witness in pairs if witness is not None]
        groups = []
        for above, last in pairwise(_LENGTHS):
            group = [(g, witness) for g, witness in kept if above < witness.rounds <= last]
            if group:
                genes, instances = zip(*group, strict=True)
                groups.append((genes, InstanceBatch(instances)))
        return cls(len(candidates), groups)


@lru_cache(maxsize=48)
def _explored(coupling: sp.Eq | None, seed: int, index: int, size: int) -> _Generation:
    """Return random settings, which theorems with the same coupling of step sizes share."""
    rng = np.random.default_rng([seed, index])
    return _Generation.of(coupling, [drawn(rng) for _ in range(size)])


class InstanceSearch(Search[Witness]):
    """A search among random settings, then among changes of the best in each niche.

    A niche is a kind of instance. Many statements are tight in some region without being false
    there, and a single pool of leaders would converge to that region.

    Attributes
    ----------
    refuting : genes or None
        The preferred refutation, if there is one.
    """

    def __init__(self, theorem: Theorem, budget: int, seed: int) -> None:
        super().__init__(budget, seed)
        self._theorem, self._coupling = theorem, coupling_of(theorem)
        self._leaders: dict[tuple[int, ...], tuple[float, Genes]] = {}
        self._effort: tuple[float, ...] = ()
        self._generations = 0
        self._best: Genes | None = None
        self.refuting: Genes | None = None

    def try_more(self) -> None:
        """Try a generation of settings together."""
        size = min(_GENERATION, self._budget - self.tried)
        if self.tried < _RANDOM_SHARE * self._budget or not self._leaders:
            generation = _explored(self._coupling, self._seed, self._generations, size)
        else:
            leaders = [genes for _, genes in self._leaders.values()]
            chosen = self._rng.integers(len(leaders), size=size)
            offspring = [changed(leaders[leader], self._rng) for leader in chosen]
            generation = _Generation.of(self._coupling, offspring)
        self._generations += 1
        self._take(generation)

    @property
    def best(self) -> Witness | None:
        """The setting with the largest truth/bound, in fractions."""
        return None if self._best is None else decoded(self._coupling, self._best)

    def refutation(self, *, simple: bool) -> Witness | None:
        """Return the preferred refutation; if ``simple``, simplify it and round its numbers."""
        if self.refuting is None:
            return None
        genes = simplified_genes(self._theorem, self.refuting) if simple else self.refuting
        return decoded(self._coupling, genes)

    def _take(self, generation: _Generation) -> None:
        self.tried += generation.size
        for genes, batch in generation.groups:
            assessed = assess(self._theorem, batch)
            applies = assessed.violation == 0
            self.applicable += int(applies.sum())
            self._note_leaders(genes, np.where(applies, assessed.ratio, -assessed.violation))
            ratios = np.where(applies, assessed.ratio, -np.inf)
            self._note_refutations(genes, ratios)
            leading = int(np.argmax(ratios))
            if ratios[leading] > self.best_ratio:
                self.best_ratio, self._best = float(ratios[leading]), genes[leading]

    def _note_leaders(self, candidates: Sequence[Genes], scores: FloatArray) -> None:
        for genes, score in zip(candidates, scores, strict=True):
            niche = niche_of(genes)
            if niche not in self._leaders or score > self._leaders[niche][0]:
                self._leaders[niche] = float(score), genes

    def _note_refutations(self, genes: Sequence[Genes], ratios: FloatArray) -> None:
        """Keep the best refutation, preferring those quick to certify, clear, short and large.

        The exact engine must confirm it first.
        """
        efforts = [
            (_effort(genes[index], float(ratio)), index)
            for index, ratio in enumerate(ratios)
            if ratio > _TRUST
        ]
        for effort, index in sorted(efforts):
            if self.refuting is not None and effort >= self._effort:
                return
            if refutation(self._theorem, genes[index]) > 0:
                self.refuting, self._effort = genes[index], effort
                return


def _effort(genes: Genes, ratio: float) -> tuple[float, ...]:
    rounds = genes["rounds"]
    return rounds > _SOON_CERTIFIED, ratio < _CLEARLY, rounds, -ratio


def evaluated(theorem: Theorem, genes: Genes) -> Comparison | None:
    """Return truth, bound and hypotheses on a setting, or None if the genes give no setting."""
    witness = decoded(coupling_of(theorem), genes)
    if witness is None:
        return None
    return theorem.compared(witness.setting(), Sampling())


def simplified_genes(theorem: Theorem, genes: Genes) -> Genes:
    """Make a refuting setting smaller and its numbers rounder, as long as it still refutes.

    Genes are replaced, one by one, by the simplest value that keeps the refutation, until no gene
    can be replaced. A refutation by more than 5% stays above 5%.
    """
    enough = min(_CLEARLY, refutation(theorem, genes))
    return simplified(
        genes,
        list,
        lambda known, name: (
            {**known, name: value}
            for value in takewhile(lambda one: one != known[name], simpler(name, known[name]))
        ),
        lambda option, _: refutation(theorem, option) >= enough,
    )


def refutation(theorem: Theorem, genes: Genes) -> float:
    """Return the exact engine's truth/bound if the setting refutes, otherwise zero."""
    comparison = evaluated(theorem, genes)
    if comparison is None or comparison.outcome is not Outcome.REFUTED:
        return 0.0
    return comparison.truth / comparison.bound if comparison.bound > 0 else math.inf
