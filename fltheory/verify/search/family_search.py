"""Search a family of settings for one that meets every hypothesis and violates the bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np

from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Outcome, Verdict
from fltheory.theorems import Family, Parameter
from fltheory.verify.check import check
from fltheory.verify.search.search import Search, oddities, simplified

_RANDOM_SHARE = 0.5
_LEADERS = 8
_REPLICAS = 500
_ERROR_PROBABILITY = 1e-9
_UNLIKELY = 1 - 1e-6
"""Truth over bound, in floats, up to which no enclosure makes a refutation."""


@dataclass(frozen=True, eq=False)
class FamilyWitness:
    """A setting of a family, given by the values of its parameters.

    Attributes
    ----------
    family : Family
    values : mapping of str to float
    verdict : Verdict
        The theorem's verdict on this setting.
    """

    family: Family
    values: Mapping[str, float]
    verdict: Verdict

    def setting(self) -> Setting:
        """Return the setting."""
        return self.family.setting(**self.values)

    @cached_property
    def oddities(self) -> int:
        """Number of ways in which the setting looks artificial."""
        return len(oddities(self.setting()))

    @property
    def lines(self) -> tuple[str, str]:
        """The witness in two lines: its values, and both sides with the evidence."""
        verdict = self.verdict
        sign = ">" if verdict.outcome is Outcome.REFUTED else "against"
        return (
            ", ".join(f"{name} = {value:.6g}" for name, value in self.values.items()),
            f"truth {verdict.truth:.6g} {sign} bound {verdict.bound:.6g} "
            f"({verdict.evidence.grade.name.lower()} evidence)",
        )


class FamilySearch(Search[FamilyWitness]):
    """A search among random settings of a family, then among changes of the best.

    Half of the budget goes to random settings, the rest to changes of one or two parameters of the
    eight settings with the largest truth/bound. The probability that any sampled check of a search
    is wrong is 1e-9.

    Attributes
    ----------
    refuting : FamilyWitness or None
        A refutation, if there is one.
    """

    def __init__(self, theorem: Statement, family: Family, budget: int, seed: int) -> None:
        super().__init__(budget, seed)
        self._theorem, self._family = theorem, family
        self._sampling = Sampling(_REPLICAS, 0, _ERROR_PROBABILITY / budget)
        self._leaders: list[FamilyWitness] = []
        self.refuting: FamilyWitness | None = None

    @property
    def best(self) -> FamilyWitness | None:
        """The setting with the largest truth/bound; None if the theorem applied nowhere."""
        return self._leaders[0] if self._leaders else None

    def try_more(self) -> None:
        """Try a random setting, or a change of a leader."""
        explores = self.tried < _RANDOM_SHARE * self._budget or not self._leaders
        values = self._family.drawn(self._rng) if explores else self._changed(self._rng)
        self.tried += 1
        if not self._falls_behind(values):
            self._take(self._judged(values))

    def _falls_behind(self, values: Mapping[str, float]) -> bool:
        """Return whether a setting, in floats, is neither leader nor refutation; count it if so.

        Enclosing both sides can cost hundreds of times as much, and most settings do not need it.
        """
        try:
            trial = self._theorem.trial(self._family.setting(**values), self._sampling)
        except ValueError:
            return False
        last = _size(self._leaders[-1]) if len(self._leaders) == _LEADERS else -math.inf
        behind = trial.applies and not trial.refutes and trial.ratio < min(last, _UNLIKELY)
        self.applicable += behind
        return behind

    def refutation(self, *, simple: bool) -> FamilyWitness | None:
        """Return the refutation, with as many parameters as possible at simple values if asked."""
        if self.refuting is None or not simple:
            return self.refuting
        return simplified(
            self.refuting,
            lambda _: self._family.parameters,
            self._simpler,
            lambda option, before: (
                option.verdict.outcome is Outcome.REFUTED and option.oddities <= before.oddities
            ),
        )

    def _simpler(
        self, witness: FamilyWitness, parameter: Parameter
    ) -> Iterator[FamilyWitness | None]:
        now = witness.values[parameter.name]
        for value in takewhile(lambda one: one != now, parameter.simpler(now)):
            yield self._judged({**witness.values, parameter.name: value})

    def _changed(self, rng: np.random.Generator) -> dict[str, float]:
        leader = self._leaders[int(rng.integers(len(self._leaders)))]
        values = dict(leader.values)
        count = min(len(values), int(rng.integers(1, 3)))
        for name in rng.choice(list(values), size=count, replace=False):
            parameter = self._family.parameter(str(name))
            anew = rng.random() < 0.3
            values[str(name)] = (
                parameter.drawn(rng) if anew else parameter.nudged(values[str(name)], rng)
            )
        return values

    def _judged(self, values: Mapping[str, float]) -> FamilyWitness | None:
        """Check a setting; None if the values do not give one."""
        try:
            setting = self._family.setting(**values)
        except ValueError:
            return None
        try:
            verdict = check(
                self._theorem,
                setting,
                replicas=self._sampling.replicas,
                error_probability=self._sampling.error_probability,
            )
        except ValueError as error:
            where = ", ".join(f"{name} = {value:g}" for name, value in values.items())
            raise ValueError(f"{error} (in the family's setting with {where})") from error
        return FamilyWitness(self._family, dict(values), verdict)

    def _take(self, witness: FamilyWitness | None) -> None:
        if witness is None or witness.verdict.outcome is Outcome.INAPPLICABLE:
            return
        if any(hypothesis.holds is None for hypothesis in witness.verdict.hypotheses):
            return
        self.applicable += 1
        if witness.verdict.outcome is Outcome.REFUTED and (
            self.refuting is None or _preference(witness) > _preference(self.refuting)
        ):
            self.refuting = witness
        self._leaders.append(witness)
        self._leaders.sort(key=_size, reverse=True)
        del self._leaders[_LEADERS:]
        self.best_ratio = _size(self._leaders[0])


def _preference(witness: FamilyWitness) -> tuple[float, float]:
    """Return a refutation's preference: how natural it looks, then truth/bound."""
    return -witness.oddities, _size(witness)


def _size(witness: FamilyWitness) -> float:
    """Return truth/bound; infinity if truth exceeds a bound that is not positive."""
    verdict = witness.verdict
    # Relative to a bound near zero, a truth that is only rounding error would look infinitely
    # large.
    if verdict.evidence.replicas is None and abs(verdict.truth) <= verdict.evidence.error:
        return 0.0
    if verdict.bound <= 0:
        return math.inf if verdict.truth > verdict.bound else 0.0
    return -math.inf if math.isnan(verdict.ratio) else verdict.ratio
