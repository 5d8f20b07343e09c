"""Search SAFARI's low-dimensional extremal instances, evaluated by the hundred."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, takewhile

import numpy as np
import sympy as sp

from fltheory.claims.comparison import Comparison
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome
from fltheory.theorems import Theorem
from fltheory.validation import FloatArray
from fltheory.verify.safari.extremal_instances import (
    Genes,
    changed,
    coupling_of,
    decoded,
    drawn,
    niche_of,
    simpler,
)
from fltheory.verify.safari.instance_batch import InstanceBatch, assess
from fltheory.verify.safari.witness import Witness
from fltheory.verify.search.search import Search, simplified

_GENERATION = 250
_RANDOM_SHARE = 0.5
_CLEARLY = 1.05
_TRUST = 1 + 1e-9
_LENGTHS = (0, 30, 300, math.inf)
_SOON_CERTIFIED = 300


@dataclass(frozen=True)
class _Generation:
    """Settings that are evaluated together: those that make an instance, by length."""

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
    """Return random settings; theorems with the same coupling of step sizes share them."""
    rng = np.random.default_rng([seed, index])
    return _Generation.of(coupling, [drawn(rng) for _ in range(size)])


class InstanceSearch(Search[Witness]):
    """Random settings, then changes of the best of each niche.

    A niche is a kind of instance: many statements are tight somewhere without being false
    there, and a single pool of leaders would gather at that place.

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
        """Return the preferred refutation, made small and its numbers round if asked."""
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
        """Keep the refutation that is soon certified, clear, of few rounds and large.

        The exact engine confirms it first.
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
    """Return truth, bound and hypotheses on a setting; None where the genes make none."""
    witness = decoded(coupling_of(theorem), genes)
    if witness is None:
        return None
    return theorem.compared(witness.setting(), Sampling())


def simplified_genes(theorem: Theorem, genes: Genes) -> Genes:
    """Make a refuting setting small and its numbers round, as long as it refutes.

    One gene after another gives way to the simplest value that keeps the refutation, until
    none can. A refutation by more than 5% remains one by so much.
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
    """Return truth/bound, by the exact engine, where the setting refutes, else zero."""
    comparison = evaluated(theorem, genes)
    if comparison is None or comparison.outcome is not Outcome.REFUTED:
        return 0.0
    return comparison.truth / comparison.bound if comparison.bound > 0 else math.inf
