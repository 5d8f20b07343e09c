"""Search around given settings for one that refutes a statement, whatever it is about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fltheory import validation
from fltheory.claims.comparison import Comparison
from fltheory.claims.statement import Inequality
from fltheory.engines import Setting
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import HypothesisCheck, Outcome
from fltheory.verify.search.naturalness import oddities
from fltheory.verify.search.setting_numbers import changed, numbers_of, simpler, with_numbers

_CLEARLY = 1.05
_FRESH_SHARE = 0.2
_WANDERING_SHARE = 0.4
_ATTEMPTS = 50
_STEPS_OF_SIMPLIFICATION = 400
_SAMPLING = Sampling(replicas=200, error_probability=1e-12)


@dataclass(frozen=True, eq=False)
class FoundSetting:
    """A setting that a search came upon.

    Attributes
    ----------
    origin : str
        The regime that the search changed to get there.
    """

    origin: str
    found: Setting

    def setting(self) -> Setting:
        """Return the setting."""
        return self.found

    @property
    def lines(self) -> tuple[str, ...]:
        """Every number of the setting, and what it is made of."""
        kinds = (self.found.algorithm, self.found.problem, self.found.participation)
        made_of = ", ".join(type(kind).__name__ for kind in kinds)
        numbers = (f"{n.path} = {_shown(n.value)}" for n in numbers_of(self.found))
        return (f"{made_of}; found from regime {self.origin!r}", *numbers)


def _shown(value: object) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


@dataclass(frozen=True, eq=False)
class _Scored:
    """A setting and how near to a refutation it is: truth/bound, or how many conditions fail."""

    origin: str
    setting: Setting
    hypotheses: tuple[HypothesisCheck, ...]
    comparison: Comparison | None

    @cached_property
    def applies(self) -> bool:
        """Whether every hypothesis is met."""
        return all(check.holds for check in self.hypotheses)

    @cached_property
    def ratio(self) -> float:
        """truth/bound; infinite for a bound that is not positive, 1 where the two can't be told."""
        assert self.comparison is not None
        truth, bound = self.comparison.truth, self.comparison.bound
        if self.comparison.outcome is Outcome.UNDECIDED and not math.isnan(truth - bound):
            return 1.0
        return truth / bound if bound > 0 else math.inf if truth > bound else -math.inf

    @cached_property
    def oddities(self) -> int:
        """How many things about the setting look made up."""
        return len(oddities(self.setting))

    @property
    def refutes(self) -> bool:
        """Whether this refutes the statement."""
        return self.comparison is not None and self.comparison.outcome is Outcome.REFUTED

    @cached_property
    def score(self) -> float:
        """What the search raises; NaN counts as hopeless."""
        if self.applies:
            return -math.inf if math.isnan(self.ratio) else self.ratio
        failing = [check.margin for check in self.hypotheses if not check.holds]
        return -sum(1 + math.tanh(abs(margin)) for margin in failing if not math.isnan(margin))


class SettingSearch:
    """Change the numbers of given settings, going on from the best that each led to.

    Attributes
    ----------
    tried, applicable : int
    best_ratio : float
        Largest truth/bound where all hypotheses held; -inf if they never did.
    best : FoundSetting or None
        Where that was.
    """

    def __init__(
        self, statement: Inequality, starts: dict[str, Setting], budget: int, seed: int
    ) -> None:
        self._statement = statement
        self._starts = starts
        self._budget = validation.whole_number("budget", budget, at_least=1)
        self._rng = np.random.default_rng(validation.seed_number("seed", seed))
        self._known: dict[str, list[_Scored]] = {}
        self._refuting: _Scored | None = None
        self._best: _Scored | None = None
        self.tried = 0
        self.applicable = 0

    @property
    def best_ratio(self) -> float:
        """Largest truth/bound where all hypotheses held."""
        return -math.inf if self._best is None else self._best.ratio

    @property
    def best(self) -> FoundSetting | None:
        """Where that was."""
        return None if self._best is None else _found(self._best)

    def simplified(self) -> FoundSetting | None:
        """Return the preferred refutation, its numbers made round."""
        if self._refuting is None:
            return None
        return _found(_simplified(self._statement, self._refuting))

    def attempts(self) -> Iterator[int]:
        """Try settings, the given ones first, until the budget is spent; yield how many so far."""
        for origin, setting in list(self._starts.items())[: self._budget]:
            self._take(_scored(self._statement, origin, setting))
            yield self.tried
        while self.tried < self._budget:
            self._take(self._changed())
            yield self.tried

    def _changed(self) -> _Scored | None:
        """Return a change that the statement speaks of, if one is soon found."""
        for _ in range(_ATTEMPTS):
            origin, setting = self._parent()
            try:
                scored = _scored(self._statement, origin, changed(setting, self._rng))
            except (ValueError, OverflowError):
                continue
            if scored is not None:
                return scored
        return None

    def _parent(self) -> tuple[str, Setting]:
        """Return the best of an origin, anything it has led to, or the origin itself."""
        origin = str(self._rng.choice(list(self._starts)))
        known = self._known.get(origin)
        kind = self._rng.random()
        if not known or kind < _FRESH_SHARE:
            return origin, self._starts[origin]
        if kind < _FRESH_SHARE + _WANDERING_SHARE:
            return origin, known[self._rng.integers(len(known))].setting
        return origin, max(known, key=lambda scored: scored.score).setting

    def _take(self, scored: _Scored | None) -> None:
        self.tried += 1
        if scored is None:
            return
        self._known.setdefault(scored.origin, []).append(scored)
        if not scored.applies:
            return
        self.applicable += 1
        if scored.ratio > self.best_ratio:
            self._best = scored
        if scored.refutes and (self._refuting is None or _effort(scored) < _effort(self._refuting)):
            self._refuting = scored


def _found(scored: _Scored) -> FoundSetting:
    return FoundSetting(scored.origin, scored.setting)


def _effort(scored: _Scored) -> tuple[float, ...]:
    return scored.ratio < _CLEARLY, scored.oddities, scored.setting.rounds, -scored.ratio


def _scored(statement: Inequality, origin: str, setting: Setting) -> _Scored | None:
    """Return None where the statement does not speak of such a setting, or has no number."""
    try:
        with np.errstate(all="ignore"):
            checks = statement.hypotheses_without_run(setting)
            if not all(check.holds for check in checks):
                return _Scored(origin, setting, checks, None)
            comparison = statement.compared(setting, _SAMPLING)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return None
    return _Scored(origin, setting, comparison.hypotheses, comparison)


def _simplified(statement: Inequality, refuting: _Scored) -> _Scored:
    """Make numbers round while the setting refutes clearly and looks no more made up."""
    enough = min(_CLEARLY, refuting.ratio)
    steps = 0
    settled = False
    while not settled:
        settled = True
        for index in range(len(numbers_of(refuting.setting))):
            for option in _simpler_at(refuting.setting, index):
                steps += 1
                scored = _scored(statement, refuting.origin, option)
                if (
                    scored is not None
                    and scored.refutes
                    and scored.ratio >= enough
                    and scored.oddities <= refuting.oddities
                ):
                    refuting, settled = scored, False
                    break
            if steps >= _STEPS_OF_SIMPLIFICATION:
                return refuting
    return refuting


def _simpler_at(setting: Setting, index: int) -> Sequence[Setting]:
    """Return settings with a simpler number at one place, the simplest first."""
    number = numbers_of(setting)[index]
    options = []
    for value in list(simpler(number.value))[:-1]:
        if np.array_equal(value, number.value):
            break
        try:
            options.append(with_numbers(setting, {number.place: value}))
        except (ValueError, OverflowError):
            continue
    return options
