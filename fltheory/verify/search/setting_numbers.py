"""The numbers of a setting: found, changed at random, made round, whatever it is made of.

A setting is a tree of frozen dataclasses: problem, participation, algorithm and what these
hold; a learning problem is one of populations, marginals and counts. Its numbers are the fields
that are numbers or arrays of them. A part that stands in several places (step sizes that are also
weights of an average) is changed in all of them. Fractions remain fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from fltheory.engines import Setting
from fltheory.learnability.system import LearningSetting
from fltheory.participation import UniformSubset
from fltheory.participation.process import process_of
from fltheory.validation import FloatArray

_DIGITS = 3
_DECADES = (0.05, 0.4, 1.5)
_LONGEST = 3000
_ROUND_COUNTS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

# Powers of the units of length and of loss in the fields that have any.
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
        The dataclass that has it as a field.
    name : str
        Of the field.
    path : str
        Where it stands, e.g. ``algorithm.client_lr``.
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
        """What tells it from others, however many paths lead to it."""
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
            return False  # a weight of one part alone is 1
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
        If what comes out is no setting.
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

    A statement whose terms have one unit is worth the same in other units. One that mixes them is
    not, and many single numbers would have to be changed at a time to show it.

    Raises
    ------
    ValueError
        If what comes out is no setting.
    """
    length, loss = _rounded(_factor(rng)), _rounded(_factor(rng))
    values: dict[Place, Any] = {}
    for number in numbers_of(setting):
        of_length, of_loss = _UNITS.get(number.name, (0, 0))
        if of_length or of_loss:
            values[number.place] = number.value * (length**of_length * loss**of_loss)
    return with_numbers(setting, values)


def with_other_clients(setting: AnySetting, rng: np.random.Generator) -> AnySetting:
    """Return the setting with one client more, or one less, of those who never take part.

    Raises
    ------
    ValueError
        If participation excludes nobody by name, or what comes out is no setting.
    """
    process = process_of(setting.participation) if isinstance(setting, Setting) else None
    if process is None or process.uniform_draw is None:
        raise ValueError(f"setting must exclude clients by name, got {setting!r}")
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
    """Return an array as what stands in the setting: an array, or a tuple, maybe of fractions."""
    if not isinstance(value, tuple):
        return array
    if not isinstance(value[0], Fraction):
        return tuple(array.tolist())
    fractions = [_decimal(entry) for entry in array.tolist()]
    if _is_stochastic(np.array(value, dtype=np.float64)):
        fractions[-1] = 1 - sum(fractions[:-1], Fraction(0))
    return tuple(fractions)


def _decimal(value: float) -> Fraction:
    """Return a number of few digits as the fraction that it is written as."""
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
    """Tell whether rows are probabilities of two or more outcomes."""
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
    """Return what may stand for a number of a setting, the simplest first, itself last."""
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
