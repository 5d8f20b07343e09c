"""Search around given settings for one that refutes a statement, whatever it is about.

Equations between step sizes, kept while a search changes numbers.

A theorem may tie step sizes together, as ``eta_c K = 4 eta_s L/(L + mu)``. A random change of any
of these numbers breaks the equation, and random changes seldom meet it again. So one number of the
algorithm is solved for. Which one is whatever number moves the quotient of both sides: most
equations are monomials in it, so that one step in logarithms solves them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import sympy as sp

from fltheory.claims.comparison import Trial
from fltheory.claims.statement import Basis, Statement
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate, theorem_values
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Verdict
from fltheory.grammar.assertion import Relation
from fltheory.verify.search.naturalness import oddities
from fltheory.verify.search.search import Search, simplified
from fltheory.verify.search.setting_numbers import (
    AnySetting,
    SettingNumber,
    changed,
    in_other_units,
    numbers_of,
    simpler,
    with_numbers,
    with_other_clients,
)

_S = TypeVar("_S", bound=AnySetting)
_STEPS = 4
_MET = 1e-14
# The secant's other point, an eighth away. In logarithms an equation of powers is a line, which
# two points settle.
_PROBE = 1.125


def with_equations_met(basis: Basis, setting: _S, rng: np.random.Generator) -> _S:
    """Return the setting with its algorithm's numbers moved until the equations hold.

    Parameters
    ----------
    basis : Basis
        Whose hypotheses are meant; those that are no equations, or need a run, are left alone.
    setting : Setting, or LearningSetting
    rng : numpy Generator
        Chooses the number that is solved for.

    Raises
    ------
    ValueError
        If the statement does not speak of such a setting.
    """
    for equation in _equations(basis):
        logarithm = _log_quotient(basis, equation, setting)
        if abs(logarithm) <= _MET or not math.isfinite(logarithm):
            continue
        candidates = list(_step_sizes(setting))
        order = rng.permutation(len(candidates))
        solved = (_solved(basis, equation, setting, candidates[i]) for i in order)
        setting = next((one for one in solved if one is not None), setting)
    return setting


def _equations(basis: Basis) -> Iterator[sp.Rel]:
    of_run = {item.symbol for item in basis.round_symbols}
    for hypothesis in basis.hypotheses:
        condition = hypothesis.condition
        is_equation = isinstance(condition, sp.Eq) and hypothesis.is_known
        if is_equation and not of_run & condition.free_symbols:
            yield condition


def _log_quotient(basis: Basis, equation: sp.Rel, setting: AnySetting) -> float:
    """Return log(left/right); NaN where one of them is not positive."""
    values = theorem_values(basis, basis.constants(setting))
    left, right = float(evaluate(equation.lhs, values)), float(evaluate(equation.rhs, values))
    return math.log(left / right) if left > 0 and right > 0 else math.nan


def _step_sizes(setting: AnySetting) -> Iterator[SettingNumber]:
    for number in numbers_of(setting):
        if number.path.startswith("algorithm.") and isinstance(number.value, float):
            yield number


def _solved(basis: Basis, equation: sp.Rel, setting: _S, number: SettingNumber) -> _S | None:
    """Return the setting with the equation solved for a number; None if it does not depend on it.

    Secant steps in logarithms: the first is exact where both sides are powers of the number.
    """
    before, at = _PROBE * number.value, number.value
    if at <= 0:
        return None
    try:
        changed = with_numbers(setting, {number.place: before})
        gap_before = _log_quotient(basis, equation, changed)
        gap = _log_quotient(basis, equation, setting)
        for _ in range(_STEPS):
            if abs(gap) <= _MET:
                break
            if gap == gap_before:
                return None
            step = gap * math.log(at / before) / (gap - gap_before)
            before, gap_before, at = at, gap, at * math.exp(-step)
            changed = with_numbers(setting, {number.place: at})
            gap = _log_quotient(basis, equation, changed)
    except (ValueError, OverflowError):
        return None
    return changed if abs(gap) < 1e-9 else None


_CLEARLY = 1.05
_FRESH_SHARE = 0.2
_WANDERING_SHARE = 0.4
_RESCALED_SHARE = 0.05
_EXCLUDING_SHARE = 0.05
_CROSSED_SHARE = 0.1
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
    found : Setting, or LearningSetting
    trial : Trial
        How near it is to a refutation.
    verdict : Verdict or None
        What the statement is worth there, where it refutes it.
    """

    origin: str
    found: AnySetting
    trial: Trial
    verdict: Verdict | None = None

    @cached_property
    def oddities(self) -> int:
        """How many things about the setting look made up."""
        return len(oddities(self.found))

    def setting(self) -> AnySetting:
        """Return the setting."""
        return self.found

    @property
    def lines(self) -> tuple[str, ...]:
        """Every number of the setting, what it is made of, and both sides with the evidence."""
        made_of = ", ".join(type(part).__name__ for part in _parts(self.found))
        numbers = (f"{n.path} = {_shown(n.value)}" for n in numbers_of(self.found))
        sides = () if self.verdict is None else (_sides(self.verdict),)
        return (f"{made_of}; found from regime {self.origin!r}", *numbers, *sides)


def _parts(setting: AnySetting) -> tuple[object, ...]:
    """Return what a setting is made of: a run's three parts, or the learning problem."""
    if isinstance(setting, Setting):
        return setting.algorithm, setting.problem, setting.participation
    return (setting,)


def _sides(verdict: Verdict) -> str:
    """Return what the statement is worth in a line; what an order shows stands in its detail."""
    evidence = f"({verdict.evidence.grade.name.lower()} evidence)"
    if verdict.relation is Relation.OF_ORDER:
        return f"{verdict.detail} {evidence}"
    return f"truth {verdict.truth:.6g}, bound {verdict.bound:.6g} {evidence}"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


class SettingSearch(Search[FoundSetting]):
    """Change the numbers of given settings, going on from the best that each led to."""

    def __init__(
        self, statement: Statement, starts: Mapping[str, AnySetting], budget: int, seed: int
    ) -> None:
        super().__init__(budget, seed)
        self._statement, self._starts = statement, starts
        self._known: dict[str, list[FoundSetting]] = {}
        self._refuting: FoundSetting | None = None
        self._best: FoundSetting | None = None

    @property
    def best(self) -> FoundSetting | None:
        """Where truth/bound is largest; None if the statement applied nowhere."""
        return self._best

    def refutation(self, *, simple: bool) -> FoundSetting | None:
        """Return the preferred refutation, its numbers made round if asked."""
        if self._refuting is None:
            return None
        found = _simplified(self._statement, self._refuting) if simple else self._refuting
        return replace(found, verdict=self._statement.verdict(found.found, _SAMPLING))

    def attempts(self) -> Iterator[int]:
        """Try settings, the given ones first, until the budget is spent; yield how many so far.

        Raises
        ------
        ValueError
            At the end, if the statement could be evaluated nowhere: what it said of the first.
        """
        for origin, setting in list(self._starts.items())[: self._budget]:
            self._take(_tried(self._statement, origin, setting))
            yield self.tried
        yield from super().attempts()
        if not self._known and self._budget >= len(self._starts):
            # "No refutation found" would hide that nothing was looked at.
            self._statement.trial(next(iter(self._starts.values())), _SAMPLING)

    def try_more(self) -> None:
        """Try a change of a setting."""
        self._take(self._changed())

    def _changed(self) -> FoundSetting | None:
        """Return a change that the statement speaks of, if one is soon found."""
        for _ in range(_ATTEMPTS):
            origin, setting = self._parent()
            try:
                other = self._other(setting)
                other = with_equations_met(self._statement.basis, other, self._rng)
                tried = _tried(self._statement, origin, other)
            except (ValueError, OverflowError):
                continue
            if tried is not None:
                return tried
        return None

    def _other(self, setting: AnySetting) -> AnySetting:
        """Return the setting with other numbers, units or clients, or a part of another start."""
        kind = self._rng.random()
        if kind < _RESCALED_SHARE:
            return in_other_units(setting, self._rng)
        if kind < _RESCALED_SHARE + _EXCLUDING_SHARE:
            return with_other_clients(setting, self._rng)
        if kind < _RESCALED_SHARE + _EXCLUDING_SHARE + _CROSSED_SHARE and len(self._starts) > 1:
            return self._crossed(setting)
        return changed(setting, self._rng)

    def _crossed(self, setting: AnySetting) -> AnySetting:
        """Return the setting with a part of one of those that the search went out from."""
        other = self._starts[str(self._rng.choice(list(self._starts)))]
        names = [item.name for item in fields(setting) if item.init]
        name = str(self._rng.choice(names))
        if type(other) is not type(setting):
            raise ValueError(f"starts must be of one kind, got {other!r}")
        return replace(setting, **{name: getattr(other, name)})

    def _parent(self) -> tuple[str, AnySetting]:
        """Return the best of an origin, anything it has led to, or the origin itself."""
        origin = str(self._rng.choice(list(self._starts)))
        known = self._known.get(origin)
        kind = self._rng.random()
        if not known or kind < _FRESH_SHARE:
            return origin, self._starts[origin]
        if kind < _FRESH_SHARE + _WANDERING_SHARE:
            return origin, known[self._rng.integers(len(known))].found
        return origin, max(known, key=lambda tried: tried.trial.score).found

    def _take(self, tried: FoundSetting | None) -> None:
        self.tried += 1
        if tried is None:
            return
        self._known.setdefault(tried.origin, []).append(tried)
        if not tried.trial.applies:
            return
        self.applicable += 1
        if tried.trial.ratio > self.best_ratio:
            self.best_ratio, self._best = tried.trial.ratio, tried
        if tried.trial.refutes:
            self._refuting = min(filter(None, (self._refuting, tried)), key=_effort)


def _effort(tried: FoundSetting) -> tuple[float, ...]:
    rounds = tried.found.rounds if isinstance(tried.found, Setting) else 0
    return tried.trial.ratio < _CLEARLY, tried.oddities, rounds, -tried.trial.ratio


def _tried(statement: Statement, origin: str, setting: AnySetting) -> FoundSetting | None:
    """Return None where the statement does not speak of such a setting, or has no number."""
    try:
        with np.errstate(all="ignore"):
            return FoundSetting(origin, setting, statement.trial(setting, _SAMPLING))
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return None


def _simplified(statement: Statement, refuting: FoundSetting) -> FoundSetting:
    """Make numbers round while the setting refutes clearly and looks no more made up."""
    enough = min(_CLEARLY, refuting.trial.ratio)
    return simplified(
        refuting,
        lambda tried: range(len(numbers_of(tried.found))),
        lambda tried, index: (
            _tried(statement, tried.origin, option) for option in _simpler_at(tried.found, index)
        ),
        lambda option, before: (
            option.trial.refutes
            and option.trial.ratio >= enough
            and option.oddities <= before.oddities
        ),
        min(_STEPS_OF_SIMPLIFICATION, statement.search_budget),
    )


def _simpler_at(setting: AnySetting, index: int) -> Sequence[AnySetting]:
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
