"""Search for natural witnesses: several clients, many rounds, moderate numbers.

Logically, a refutation with one client and one round is as good as any other. The theorem's authors
will prefer a refutation with several clients, many rounds and numbers of moderate size. It should
show a single fault of the statement, and its step sizes should be within all other limits of the
proof. So if a printed statement about SAFARI is refuted and its faults are known one by one, we
search for such a setting for each fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

import numpy as np

from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome
from fltheory.grammar.refutation import Mend, Weight
from fltheory.theorems import Theorem
from fltheory.theorems.sa_fl.statements import FAULTS
from fltheory.verify.safari.coin_paths import holds_on_every_path, is_function_of_coins
from fltheory.verify.safari.instances import (
    Genes,
    InstanceBatch,
    Layout,
    assess,
    coupling_of,
    decoded,
)
from fltheory.verify.safari.witness import Witness

BUDGET = 4000
NATURAL = (
    "4 to 10 clients, 100 to 3000 rounds, q from 0.05 to 0.95, and curvatures and distances "
    "from 0.1 to 100"
)
_GENERATION = 500
_RANDOM_SHARE = 0.5
_SHARE_BEFORE_SURE_ONES = 0.75
_SURE_ONES = 10
_LOOKED_INTO = 150
_LEADERS = 30
_CLEARLY = 1.2

_HALVES = Layout((1,) * 5 + (-1,) * 5, 5, (5, 6, 7, 8, 9))
_LAYOUTS = (
    _HALVES,
    Layout((1, 1, -1, -1), 2, (2, 3)),
    Layout((1, 1, 1, 1, -2, -2), 4, (4, 5)),
    Layout((1,) * 8 + (-4,) * 2, 8, (8, 9)),
    Layout((1, 1, -1, -1), 2),
    Layout((0, 0, 0, 0), 4),
)


def _numbers(*texts: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, texts))


_CHOICES: Mapping[str, Sequence[Any]] = {
    "clients": _LAYOUTS,
    "dim": (1, 1, 2),
    "grouped_axis": (0, 1),
    "start_axis": (0, 1),
    "smoothness": _numbers("1", "2", "5", "10", "20", "50", "100"),
    # With these values, eta_c K = 4 eta_s/(1 + 1/condition) in Theorem 5 is also a short decimal.
    "condition": _numbers("1", "5/3", "4"),
    "spread": _numbers("0.1", "0.5", "1", "2", "10"),
    "start": _numbers(
        "-10", "-5", "-3", "-2.5", "-2", "-1.5", "-1", "1", "1.5", "2", "2.5", "3", "5"
    ),
    "sigma": _numbers("0", "0", "0", "0", "0.1", "0.5"),
    "server_sigma": _numbers("0", "0", "0", "0", "0.1", "0.5"),
    "q": _numbers(*(f"0.{tenths}" for tenths in range(1, 10)), "0.05", "0.95"),
    "local_steps": (1, 2, 5, 10, 20, 50, 100),
    "step": _numbers(
        *("0.001", "0.002", "0.005", "0.01", "0.02", "0.025", "0.04", "0.05", "0.1", "0.2"),
        *("0.5", "1", "1.5", "2", "2.25", "2.5", "3"),
    ),
    "detuning": _numbers("0.5", "1", "2"),
    "rounds": (100, 200, 500, 1000, 2000, 3000),
}


@dataclass(frozen=True)
class NaturalWitness:
    """The result of the search for one fault.

    Attributes
    ----------
    fault : Mend
        The fault, with the change that repairs it. All other faults are repaired during its search.
    witness : Witness or None
        A setting that refutes both the printed statement and the statement with all other faults
        repaired, or None if none was found.
    on_every_path : bool
        Whether its conditions hold for every outcome of the rounds' coins, not only in expectation.
    tried, applicable, refuting : int
        The number of settings tried, the number that met every hypothesis of the statement with
        only this fault, and the number that also refuted both that statement and the printed one.
    """

    fault: Mend
    witness: Witness | None
    on_every_path: bool
    tried: int
    applicable: int
    refuting: int

    @property
    def outcome(self) -> str:
        """A short text on the result."""
        if self.witness is None:
            return f"no witness among the {self.applicable} settings that met every hypothesis"
        read = "on every path of the coin tosses" if self.on_every_path else "in expectation"
        return (
            f"refuted by {self.refuting} of the {self.applicable} settings that met every "
            f"hypothesis; the witness meets them {read}"
        )

    @property
    def line(self) -> str:
        """A line that gives the result and the kind of settings searched."""
        return f"{self.outcome}; {self.tried} settings tried, with {NATURAL}"


def preferred(found: Sequence[NaturalWitness]) -> Witness | None:
    """Return a witness, preferably one on every path, then one of a graver fault."""
    with_witness = [one for one in found if one.witness is not None]
    weights = list(Weight)

    def doubts(one: NaturalWitness) -> tuple[bool, int]:
        return not one.on_every_path, -weights.index(one.fault.weight or weights[0])

    return min(with_witness, key=doubts).witness if with_witness else None


def natural_witnesses(
    theorem: Theorem, budget: int = BUDGET, seed: int = 0
) -> tuple[NaturalWitness, ...]:
    """Search natural settings for each fault of a printed statement about SAFARI.

    Parameters
    ----------
    theorem : Theorem
        A printed statement.
    budget, seed : int
        Number of settings to try for each fault, and the random seed.

    Returns
    -------
    tuple of NaturalWitness
        One entry per known fault; empty if the statement's faults are not known one by one.
    """
    if theorem.reading != "printed" or theorem.id not in FAULTS:
        return ()
    faults = FAULTS[theorem.id]
    return tuple(
        _WitnessSearch(theorem, mend, faults.without(mend), budget, seed).found()
        for mend in faults.mends
    )


class _Candidate(NamedTuple):
    """A setting that seems to refute the statement, and its weaknesses as a witness."""

    doubts: tuple[float | Fraction, ...]
    witness: Witness
    genes: Genes


class _WitnessSearch:
    def __init__(
        self, printed: Theorem, mend: Mend, alone: Theorem, budget: int, seed: int
    ) -> None:
        self._printed, self._mend, self._alone, self._budget = printed, mend, alone, budget
        self._rng = np.random.default_rng(seed)
        self._coupling = coupling_of(printed)
        self._leaders: list[tuple[float, Genes]] = []
        self._candidates: list[_Candidate] = []
        self._sure: dict[Witness, bool] = {}
        self.tried = self.applicable = 0

    def found(self) -> NaturalWitness:
        while self.tried < self._budget:
            size = min(_GENERATION, self._budget - self.tried)
            parents = self._parents()
            self._take([self._next(parents) for _ in range(size)])
        best = next(self._confirmed(), None)
        return NaturalWitness(
            self._mend,
            best,
            best is not None and self._on_every_path(best),
            self.tried,
            self.applicable,
            len(self._candidates),
        )

    def _parents(self) -> Sequence[Genes]:
        """Return settings to change: at first none, then candidates, then ones on every path."""
        if self.tried < _RANDOM_SHARE * self._budget:
            return ()
        simple = [one for one in self._candidates if is_function_of_coins(one.witness)]
        if self.tried >= _SHARE_BEFORE_SURE_ONES * self._budget:
            simple.sort(key=lambda one: one.doubts)
            looked_into = simple[:_LOOKED_INTO]
            known = (one.genes for one in looked_into if self._on_every_path(one.witness))
            if sure := list(islice(known, _SURE_ONES)):
                return sure
        return [one.genes for one in simple] or [genes for _, genes in self._leaders]

    def _next(self, parents: Sequence[Genes]) -> Genes:
        fresh = _drawn(self._rng)
        if not parents:
            return fresh
        genes = parents[int(self._rng.integers(len(parents)))]
        names = self._rng.choice(list(_CHOICES), size=int(self._rng.integers(1, 3)), replace=False)
        return {**genes, **{str(name): fresh[str(name)] for name in names}}

    def _on_every_path(self, witness: Witness) -> bool:
        if witness not in self._sure:
            self._sure[witness] = holds_on_every_path(self._printed, witness)
        return self._sure[witness]

    def _take(self, candidates: Sequence[Genes]) -> None:
        self.tried += len(candidates)
        pairs = [(genes, decoded(self._coupling, genes)) for genes in candidates]
        kept = [(genes, witness) for genes, witness in pairs if witness is not None]
        kept.sort(key=lambda pair: pair[1].rounds)
        for _, group in groupby(kept, key=lambda pair: pair[1].rounds):
            genes, witnesses = zip(*group, strict=True)
            self._assess(genes, witnesses)
        self._leaders.sort(key=lambda leader: leader[0], reverse=True)
        del self._leaders[_LEADERS:]

    def _assess(self, genes: Sequence[Genes], witnesses: Sequence[Witness]) -> None:
        batch = InstanceBatch(witnesses)
        alone, printed = (assess(theorem, batch) for theorem in (self._alone, self._printed))
        applies = alone.violation == 0
        self.applicable += int(applies.sum())
        scores = np.where(applies, np.minimum(alone.ratio, 100), -alone.violation)
        self._leaders += zip(map(float, scores), genes, strict=True)
        ratios = np.where(printed.violation == 0, np.minimum(alone.ratio, printed.ratio), 0.0)
        for index in map(int, np.flatnonzero(applies & (ratios > 1))):
            witness, ratio = witnesses[index], float(ratios[index])
            self._candidates.append(_Candidate(_doubts(witness, ratio), witness, genes[index]))

    def _confirmed(self) -> Iterator[Witness]:
        """Yield refutations confirmed by the exact engine, starting with those on every path."""
        ranked = [one.witness for one in sorted(self._candidates, key=lambda one: one.doubts)]
        sure = (witness for witness in ranked if self._on_every_path(witness))
        for witness in chain(sure, ranked):
            setting = witness.setting()
            outcomes = [
                theorem.compared(setting, Sampling()).outcome
                for theorem in (self._alone, self._printed)
            ]
            if set(outcomes) == {Outcome.REFUTED}:
                yield witness


def _drawn(rng: np.random.Generator) -> Genes:
    return {name: values[int(rng.integers(len(values)))] for name, values in _CHOICES.items()}


def _doubts(witness: Witness, ratio: float) -> tuple[float | Fraction, ...]:
    """Return a witness's weaknesses (small excess, large numbers, ...), the gravest first."""
    uneven = abs(witness.q - Fraction(1, 2))
    return ratio < _CLEARLY, max(witness.curvatures), uneven, witness.rounds, -ratio
