"""Search around given settings for one that refutes a statement of any kind.

Equations between step sizes are kept while the search changes numbers.

A theorem may couple step sizes, as in ``eta_c K = 4 eta_s L/(L + mu)``. A random change of any of
these numbers breaks the equation, and random changes seldom restore it. So the equation is solved
for one number of the algorithm, chosen among those that change the quotient of both sides. Most
equations are monomials in it, so that one step in logarithms solves them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import sympy as sp

from fltheory.claims.comparison import Trial
from fltheory.claims.statement import Basis, Statement
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate, values_in
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Verdict
from fltheory.grammar.assertion import Relation
from fltheory.learnability.system import LearningSetting
from fltheory.participation import UniformSubset
from fltheory.participation.process import process_of
from fltheory.validation import FloatArray
from fltheory.verify.search.search import Search, oddities, simplified

# ------------------------------------------------------------ numbers of a setting
# A setting is a tree of frozen dataclasses: problem, participation, algorithm and their parts. A
# learning problem is a tree of populations, marginals and counts. A setting's numbers are the
# fields that are numbers or arrays of numbers. A part that occurs in several places (such as step
# sizes that are also weights of an average) is changed in all of them. Fractions remain fractions.

_DIGITS = 3
_DECADES = (0.05, 0.4, 1.5)
_LONGEST = 3000
_ROUND_COUNTS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

# Powers of the units of length and of loss in the fields that have units.
_UNITS: Mapping[str, tuple[int, int]] = {
    "optima": (1, 0),
    "x_star": (1, 0),
    "x0": (1, 0),
    "width": (1, 0),
    "hessians": (-2, 1),
    "curvature": (-2, 1),
    "proximal": (-2, 1),
    "sigma": (-1, 1),
    "server_sigma": (-1, 1),
    "client_lr": (2, -1),
    "assist_lr": (2, -1),
}

Place: TypeAlias = tuple[int, str]
AnySetting: TypeAlias = Setting | LearningSetting
_S = TypeVar("_S", bound=AnySetting)


@dataclass(frozen=True, eq=False)
class SettingNumber:
    """A number of a setting, or an array of numbers.

    Attributes
    ----------
    part : object
        The dataclass that has the number as a field.
    name : str
        Name of the field.
    path : str
        The number's path, e.g. ``algorithm.client_lr``.
    """

    part: Any
    name: str
    path: str

    @property
    def value(self) -> Any:
        """What it is."""
        return getattr(self.part, self.name)

    @property
    def place(self) -> Place:
        """The number's unique key, however many paths lead to it."""
        return id(self.part), self.name


def numbers_of(setting: AnySetting) -> tuple[SettingNumber, ...]:
    """Return all numbers of a setting, each once."""
    found: dict[Place, SettingNumber] = {}
    for number in _below(setting, ""):
        found.setdefault(number.place, number)
    return tuple(found.values())


def _below(part: Any, path: str) -> Iterator[SettingNumber]:
    for item in fields(part):
        if not item.init:
            continue
        value, here = getattr(part, item.name), f"{path}{item.name}"
        if is_dataclass(value):
            yield from _below(value, f"{here}.")
        elif _holds_parts(value):
            for index, each in enumerate(value):
                yield from _below(each, f"{here}[{index}].")
        elif _is_numeric(value):
            yield SettingNumber(part, item.name, here)


def _holds_parts(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) > 0 and all(map(is_dataclass, value))


def _is_numeric(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, tuple):
        if len(value) == 1 and isinstance(value[0], Fraction):
            return False  # the weight of a single part is 1
        return len(value) > 0 and all(isinstance(entry, float | Fraction) for entry in value)
    if isinstance(value, np.ndarray):
        return value.size > 0 and np.issubdtype(value.dtype, np.floating)
    return isinstance(value, int | float | Fraction)


def with_numbers(setting: _S, values: Mapping[Place, Any]) -> _S:
    """Return the setting with other numbers at some places.

    Raises
    ------
    ValueError
        If a part refuses its new number.
    """
    return cast(_S, _rebuilt(setting, values, {}))


def _rebuilt(part: Any, values: Mapping[Place, Any], done: dict[int, Any]) -> Any:
    if id(part) not in done:
        changes: dict[str, Any] = {}
        for item in fields(part):
            value = getattr(part, item.name)
            if (id(part), item.name) in values:
                changes[item.name] = values[id(part), item.name]
            elif item.init and (is_dataclass(value) or _holds_parts(value)):
                parts = value if isinstance(value, tuple) else (value,)
                below = tuple(_rebuilt(each, values, done) for each in parts)
                if any(new is not old for new, old in zip(below, parts, strict=True)):
                    changes[item.name] = below if isinstance(value, tuple) else below[0]
        done[id(part)] = replace(part, **changes) if changes else part
    return done[id(part)]


def changed(setting: _S, rng: np.random.Generator) -> _S:
    """Change one to three numbers of a setting, each by itself or all by one factor.

    Raises
    ------
    ValueError
        If the result is not a valid setting.
    """
    numbers = numbers_of(setting)
    count = min(int(rng.integers(1, 4)), len(numbers))
    chosen = [numbers[index] for index in rng.choice(len(numbers), size=count, replace=False)]
    factor = _factor(rng) if count > 1 and rng.random() < 0.5 else None
    return with_numbers(
        setting, {number.place: _changed(number.value, rng, factor) for number in chosen}
    )


def in_other_units(setting: _S, rng: np.random.Generator) -> _S:
    """Return the same run with other units of length and of loss.

    A statement whose terms all have the same unit has the same verdict in other units. One that
    mixes units has not, and showing that by changing single numbers would need many changes at
    once.

    Raises
    ------
    ValueError
        If the result is not a valid setting.
    """
    length, loss = _rounded(_factor(rng)), _rounded(_factor(rng))
    values: dict[Place, Any] = {}
    for number in numbers_of(setting):
        of_length, of_loss = _UNITS.get(number.name, (0, 0))
        if of_length or of_loss:
            values[number.place] = number.value * (length**of_length * loss**of_loss)
    return with_numbers(setting, values)


def with_other_clients(setting: AnySetting, rng: np.random.Generator) -> AnySetting:
    """Return the setting with one more, or one fewer, client that never takes part.

    Raises
    ------
    ValueError
        If participation has no list of excluded clients, or the result is not a valid setting.
    """
    process = process_of(setting.participation) if isinstance(setting, Setting) else None
    if process is None or process.uniform_draw is None:
        raise ValueError(f"setting must name the clients that it excludes, got {setting!r}")
    size, excluded = process.uniform_draw
    one = {int(rng.integers(process.n_clients))}
    other = UniformSubset(process.n_clients, size, excluded=tuple(one ^ set(excluded)))
    return cast(Setting, _rebuilt(setting, {(id(setting), "participation"): other}, {}))


def _changed(value: Any, rng: np.random.Generator, factor: float | None) -> Any:
    if isinstance(value, int):
        options = (1, value - 1, value + 1, value // 2, 2 * value)
        return min(int(rng.choice(options)), max(value, _LONGEST))
    if isinstance(value, float):
        return _changed_number(value, rng, factor)
    if isinstance(value, Fraction):
        return _decimal(_changed_number(float(value), rng, factor))
    array = _changed_array(np.array(value, dtype=np.float64), rng, factor)
    return _like(value, array)


def _like(value: Any, array: FloatArray) -> Any:
    """Return an array in a field's type: an array, or a tuple of floats or fractions."""
    if not isinstance(value, tuple):
        return array
    if not isinstance(value[0], Fraction):
        return tuple(array.tolist())
    fractions = [_decimal(entry) for entry in array.tolist()]
    if _is_stochastic(np.array(value, dtype=np.float64)):
        fractions[-1] = 1 - sum(fractions[:-1], Fraction(0))
    return tuple(fractions)


def _decimal(value: float) -> Fraction:
    """Return a number, rounded to few digits, as the fraction of its decimal."""
    return Fraction(repr(_rounded(value)))


def _changed_number(value: float, rng: np.random.Generator, factor: float | None) -> float:
    if factor is not None:
        return _rounded(value * factor ** int(rng.choice((-2, -1, 1, 2))))
    kind = rng.random()
    if kind < 0.1:
        return 0.0
    if value == 0:
        return _rounded(float(10 ** rng.uniform(-3, 3)))
    if 0 < value < 1 and kind < 0.4:
        return 1 - _rounded((1 - value) * _factor(rng))
    return _rounded(value * _factor(rng))


def _changed_array(array: FloatArray, rng: np.random.Generator, factor: float | None) -> FloatArray:
    if _is_stochastic(array):
        other = np.eye(array.shape[-1])[rng.integers(array.shape[-1])]
        if array.ndim == 2 and rng.random() < 0.5:
            other = np.eye(array.shape[-1])
        share = rng.uniform() ** 2
        return np.asarray((1 - share) * array + share * other)
    if factor is not None or rng.random() < 0.3:
        size = _factor(rng) if factor is None else factor ** int(rng.choice((-2, -1, 1, 2)))
        return _rounded_array(array * size)
    if array.ndim >= 2 and array.shape[-1] == array.shape[-2]:
        scale = np.ones(array.shape[-1])
        scale[rng.integers(scale.size)] = np.sqrt(_factor(rng))
        return _rounded_array(array * np.outer(scale, scale))
    entry = np.unravel_index(rng.integers(array.size), array.shape)
    array[entry] = _changed_number(float(array[entry]), rng, None)
    return array


def _is_stochastic(array: FloatArray) -> bool:
    """Return whether rows are probabilities of two or more outcomes."""
    if array.ndim == 0 or array.shape[-1] == 1:
        return False
    return bool((array >= 0).all() and np.allclose(array.sum(axis=-1), 1.0, atol=1e-12))


def _factor(rng: np.random.Generator) -> float:
    return float(10 ** rng.normal(0, rng.choice(_DECADES)))


def _rounded(value: float, digits: int = _DIGITS) -> float:
    return float(f"{value:.{digits - 1}e}")


def _rounded_array(array: FloatArray, digits: int = _DIGITS) -> FloatArray:
    return np.vectorize(lambda value: _rounded(value, digits), otypes=[np.float64])(array)


def simpler(value: Any) -> Sequence[Any]:
    """Return values that may replace a number, the simplest first and itself last."""
    if isinstance(value, int):
        return [*(count for count in _ROUND_COUNTS if count < value), value]
    if isinstance(value, float):
        options = [0.0, 1.0, *(_rounded(value, digits) for digits in (1, 2))]
        return [*dict.fromkeys(options), value]
    if isinstance(value, Fraction):
        near = [value.limit_denominator(most) for most in (1, 2, 4, 10)]
        decimals = [Fraction(repr(_rounded(float(value), digits))) for digits in (1, 2)]
        return [*dict.fromkeys([*near, *decimals]), value]
    array = np.array(value, dtype=np.float64)
    if _is_stochastic(array):
        arrays = [np.full(array.shape, 1 / array.shape[-1])]
    else:
        arrays = [np.zeros(array.shape), *(_rounded_array(array, digits) for digits in (1, 2))]
    return [*(_like(value, each) for each in arrays), value]


# ------------------------------------------------------------ the search

_STEPS = 4
_MET = 1e-14
# The secant's other point, an eighth away. In logarithms an equation between powers is linear, so
# two points determine it.
_PROBE = 1.125


def with_equations_met(basis: Basis, setting: _S, rng: np.random.Generator) -> _S:
    """Return the setting with its algorithm's numbers moved until the equations hold.

    Parameters
    ----------
    basis : Basis
        The statement whose hypotheses are used; those that are not equations, or need a run, are
        ignored.
    setting : Setting, or LearningSetting
    rng : numpy Generator
        Chooses the number that is solved for.

    Raises
    ------
    ValueError
        If the statement is not about such a setting.
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
    """Return log(left/right); NaN if one of them is not positive."""
    values = values_in(basis, [equation], setting)
    left, right = float(evaluate(equation.lhs, values)), float(evaluate(equation.rhs, values))
    return math.log(left / right) if left > 0 and right > 0 else math.nan


def _step_sizes(setting: AnySetting) -> Iterator[SettingNumber]:
    for number in numbers_of(setting):
        if number.path.startswith("algorithm.") and isinstance(number.value, float):
            yield number


def _solved(basis: Basis, equation: sp.Rel, setting: _S, number: SettingNumber) -> _S | None:
    """Return the setting with the equation solved for a number; None if that fails.

    It takes secant steps in logarithms; the first is exact if both sides are powers of the number.
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
    """A setting that a search found.

    Attributes
    ----------
    origin : str
        The regime from which the search started.
    found : Setting, or LearningSetting
    trial : Trial
        How close the setting is to a refutation.
    verdict : Verdict or None
        The statement's verdict on the setting, if it is refuted there.
    """

    origin: str
    found: AnySetting
    trial: Trial
    verdict: Verdict | None = None

    @cached_property
    def oddities(self) -> int:
        """Number of ways in which the setting looks artificial."""
        return len(oddities(self.found))

    def setting(self) -> AnySetting:
        """Return the setting."""
        return self.found

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines with the setting's parts and numbers, and both sides with the evidence."""
        made_of = ", ".join(type(part).__name__ for part in _parts(self.found))
        numbers = (f"{n.path} = {_shown(n.value)}" for n in numbers_of(self.found))
        sides = () if self.verdict is None else (_sides(self.verdict),)
        return (f"{made_of}; found from regime {self.origin!r}", *numbers, *sides)


def _parts(setting: AnySetting) -> tuple[object, ...]:
    """Return a setting's parts: a run's three parts, or the learning problem."""
    if isinstance(setting, Setting):
        return setting.algorithm, setting.problem, setting.participation
    return (setting,)


def _sides(verdict: Verdict) -> str:
    """Return both sides and the evidence in a line; for an order, the verdict's detail."""
    evidence = f"({verdict.evidence.grade.name.lower()} evidence)"
    if verdict.relation is Relation.OF_ORDER:
        return f"{verdict.detail} {evidence}"
    return f"truth {verdict.truth:.6g}, bound {verdict.bound:.6g} {evidence}"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


class SettingSearch(Search[FoundSetting]):
    """A search that changes the numbers of given settings, continuing from the best of each."""

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
        """The setting with the largest truth/bound; None if the statement applied nowhere."""
        return self._best

    def refutation(self, *, simple: bool) -> FoundSetting | None:
        """Return the preferred refutation; if ``simple``, with round numbers."""
        if self._refuting is None:
            return None
        found = _simplified(self._statement, self._refuting) if simple else self._refuting
        return replace(found, verdict=self._statement.verdict(found.found, _SAMPLING))

    def attempts(self) -> Iterator[int]:
        """Try settings, the given ones first, yielding the number tried so far.

        Raises
        ------
        ValueError
            At the end, if the statement could be evaluated on no setting; the message is the one
            for the first setting.
        """
        for origin, setting in list(self._starts.items())[: self._budget]:
            self._take(_tried(self._statement, origin, setting))
            yield self.tried
        yield from super().attempts()
        if not self._known and self._budget >= len(self._starts):
            # "No refutation found" would hide that nothing was evaluated.
            self._statement.trial(next(iter(self._starts.values())), _SAMPLING)

    def try_more(self) -> None:
        """Try a change of a setting."""
        self._take(self._changed())

    def _changed(self) -> FoundSetting | None:
        """Return a changed setting that the statement covers, if a few attempts give one."""
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
        """Return the setting with other numbers, units or clients, or a part of another setting."""
        kind = self._rng.random()
        if kind < _RESCALED_SHARE:
            return in_other_units(setting, self._rng)
        if kind < _RESCALED_SHARE + _EXCLUDING_SHARE:
            return with_other_clients(setting, self._rng)
        if kind < _RESCALED_SHARE + _EXCLUDING_SHARE + _CROSSED_SHARE and len(self._starts) > 1:
            return self._crossed(setting)
        return changed(setting, self._rng)

    def _crossed(self, setting: AnySetting) -> AnySetting:
        """Return the setting with one part from another starting setting."""
        other = self._starts[str(self._rng.choice(list(self._starts)))]
        names = [item.name for item in fields(setting) if item.init]
        name = str(self._rng.choice(names))
        if type(other) is not type(setting):
            raise ValueError(f"starts must all be of the same kind, got {other!r}")
        return replace(setting, **{name: getattr(other, name)})

    def _parent(self) -> tuple[str, AnySetting]:
        """Return the best setting from an origin, any setting from it, or the origin itself."""
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
    """Return a trial of the setting; None if the statement is not about it or has no value."""
    try:
        with np.errstate(all="ignore"):
            return FoundSetting(origin, setting, statement.trial(setting, _SAMPLING))
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return None


def _simplified(statement: Statement, refuting: FoundSetting) -> FoundSetting:
    """Make numbers round while the setting refutes clearly and looks no more artificial."""
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
