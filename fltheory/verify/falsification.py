"""Search for a setting that meets every hypothesis of a theorem and breaks its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fltheory import validation
from fltheory.theorems import RateClaim, Statement, Theorem
from fltheory.verify.check import Comparison, compare
from fltheory.verify.extremal_instances import (
    Genes,
    changed,
    decoded,
    drawn,
    niche_of,
    simpler,
)
from fltheory.verify.truth import Sampling
from fltheory.verify.verdict import HypothesisCheck, Outcome
from fltheory.verify.witness import Witness

DEFAULT_BUDGET = 10_000
_RANDOM_SHARE = 0.5
_AFTER_FIRST = 0.1
_CLEARLY = 1.05

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Falsification:
    """What a search found.

    Attributes
    ----------
    theorem, reading : str
    witness : Witness or None
        Meets every hypothesis and breaks the bound; None if none was found.
    settings_tried, settings_applicable : int
        How many settings were evaluated, and on how many all hypotheses held.
    best_ratio : float
        The largest truth/bound where all hypotheses held; -inf if they never did.
    best : Witness or None
        Where that was.
    """

    theorem: str
    reading: str
    witness: Witness | None
    settings_tried: int
    settings_applicable: int
    best_ratio: float
    best: Witness | None


def falsify(
    theorem: Statement,
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> Falsification:
    """Look for a refutation of a theorem about SAFARI.

    Half of the budget goes to random settings of low-dimensional extremal instances (one or
    two coordinates, equal or grouped clients, scales from 1e-4 to 1e4, q near 0 and 1, small
    and excessive step sizes), the rest to changes of the best ones. Equations between step
    sizes are solved for eta_c. A witness is then made small and its numbers round, as long as
    it remains one.

    Parameters
    ----------
    theorem : Theorem
    budget : int
        Settings to try, the simplification not counted.
    seed : int
    progress : callable, optional
        Called with (settings tried, budget, best ratio so far).

    Raises
    ------
    ValueError
        For a claimed order, which no single setting can refute, or a budget below 1.
    """
    if isinstance(theorem, RateClaim):
        raise ValueError(
            f"theorem must be an inequality to be refuted by one setting, got {theorem.id}, "
            "a claimed order: see fltheory verify"
        )
    budget = validation.whole_number("budget", budget, at_least=1)
    seed = validation.whole_number("seed", seed, at_least=0)
    search = _Search(theorem, np.random.default_rng(seed))
    for tried in search.run(budget):
        if progress is not None and tried % 20 == 0:
            progress(tried, budget, f"best truth/bound {search.best_ratio:.3g}")
    genes = search.refuting
    return Falsification(
        theorem.id,
        theorem.reading,
        None if genes is None else decoded(theorem, simplified(theorem, genes)),
        search.tried,
        search.applicable,
        search.best_ratio,
        None if search.best is None else decoded(theorem, search.best),
    )


class _Search:
    """Random settings, then changes of the best of each niche; keeps count and the best.

    A niche is a kind of instance: many statements are tight somewhere without being false
    there, and a single pool of leaders would gather at that place.
    """

    def __init__(self, theorem: Theorem, rng: np.random.Generator) -> None:
        self._theorem = theorem
        self._rng = rng
        self._leaders: dict[tuple[int, ...], tuple[float, Genes]] = {}
        self._first_refuting = 0
        self._effort = (True, 0, 0.0)
        self.tried = 0
        self.applicable = 0
        self.best_ratio = -math.inf
        self.best: Genes | None = None
        self.refuting: Genes | None = None

    def run(self, budget: int) -> Iterator[int]:
        """Try settings until the budget is spent; yield how many so far.

        After a first refutation a tenth of the budget goes into finding a clear one of
        fewer rounds.
        """
        last = budget
        while self.tried < last:
            self._try(self._next(budget))
            if self._first_refuting:
                last = min(budget, self._first_refuting + int(_AFTER_FIRST * budget))
            yield self.tried

    def _next(self, budget: int) -> Genes:
        explore = self.tried < _RANDOM_SHARE * budget and not self._first_refuting
        if explore or not self._leaders:
            return drawn(self._rng)
        leaders = list(self._leaders.values())
        return changed(leaders[self._rng.integers(len(leaders))][1], self._rng)

    def _try(self, genes: Genes) -> None:
        self.tried += 1
        comparison = evaluated(self._theorem, genes)
        if comparison is None:
            return
        score = -_violation(comparison.hypotheses)
        if score == 0:
            self.applicable += 1
            score = _ratio(comparison)
            if score > self.best_ratio:
                self.best_ratio, self.best = score, genes
            if comparison.outcome is Outcome.REFUTED:
                self._note_refutation(score, genes)
        niche = niche_of(genes)
        if niche not in self._leaders or score > self._leaders[niche][0]:
            self._leaders[niche] = score, genes

    def _note_refutation(self, ratio: float, genes: Genes) -> None:
        self._first_refuting = self._first_refuting or self.tried
        effort = (ratio < _CLEARLY, genes["rounds"], -ratio)
        if self.refuting is None or effort < self._effort:
            self.refuting, self._effort = genes, effort


def evaluated(theorem: Theorem, genes: Genes) -> Comparison | None:
    """Return truth, bound and hypotheses on a setting; None where the genes make none."""
    witness = decoded(theorem, genes)
    if witness is None:
        return None
    return compare(theorem, witness.setting(), Sampling())


def _violation(hypotheses: tuple[HypothesisCheck, ...]) -> float:
    """Return zero if all hold, else how many do not, and by how much, in (0, n]."""
    total = 0.0
    for check in hypotheses:
        if check.holds is not True:
            size = abs(check.margin)
            total += 1.0 if math.isnan(size) or math.isinf(size) else size / (1 + size) + 1e-9
    return total


def simplified(theorem: Theorem, genes: Genes) -> Genes:
    """Make a refuting setting small and its numbers round, as long as it refutes.

    One gene after another gives way to the simplest value that keeps the refutation, until
    none can. A refutation by more than 5% remains one by so much.
    """
    enough = min(_CLEARLY, _refutation(theorem, genes))
    while True:
        before = genes
        for name in before:
            options = ({**genes, name: value} for value in simpler(name, genes[name]))
            genes = next(option for option in options if _refutation(theorem, option) >= enough)
        if genes == before:
            return genes


def _refutation(theorem: Theorem, genes: Genes) -> float:
    """Return truth/bound where the setting refutes, else zero."""
    comparison = evaluated(theorem, genes)
    if comparison is None or comparison.outcome is not Outcome.REFUTED:
        return 0.0
    return _ratio(comparison)


def _ratio(comparison: Comparison) -> float:
    if comparison.bound <= 0:
        return math.inf if comparison.truth > comparison.bound else 0.0
    return comparison.truth / comparison.bound
