"""Evaluation of a theorem's expressions in floats, with error bars on the inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Protocol

import numpy as np
import sympy as sp

from fltheory.content import cached_by_content
from fltheory.evidence.truths import Truth
from fltheory.evidence.verdict import AT_THE_LIMIT, HypothesisCheck
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import RoundSymbol, reduced
from fltheory.grammar.symbols import NumbersOfSymbols
from fltheory.validation import FloatArray

# Each side of an equation takes a few operations on decimals, which were rounded to half a unit.
_LAST_PLACES = 4 * float(np.finfo(np.float64).eps)


class WithConstants(Protocol):
    """A statement that has its own symbols."""

    @property
    def id(self) -> str:
        """The statement's id."""
        ...

    @property
    def definitions(self) -> Mapping[sp.Symbol, sp.Expr]:
        """Symbols that abbreviate expressions in other symbols."""
        ...

    @property
    def constants(self) -> NumbersOfSymbols:
        """The values of the other symbols on a setting."""
        ...


@lru_cache(maxsize=1024)
def _numeric(expression: sp.Expr) -> tuple[tuple[sp.Basic, ...], Callable[..., Any]]:
    symbols = tuple(sorted(expression.free_symbols, key=str))
    return symbols, sp.lambdify(symbols, expression, "numpy")


def evaluate(expression: sp.Expr, values: Mapping[Any, Any]) -> FloatArray:
    """Evaluate an expression; symbols may have arrays as values, which broadcast.

    If the expression is undefined (e.g. zero divided by zero), the result is NaN without a warning,
    and the caller must report that.

    Raises
    ------
    ValueError
        If symbols have no value. The message names these symbols.
    """
    symbols, function = _numeric(expression)
    try:
        numbers = [_floats(values[symbol]) for symbol in symbols]
    except KeyError:
        missing = [str(symbol) for symbol in symbols if symbol not in values]
        raise ValueError(
            "symbols must each have a number in every setting, got none for "
            f"{', '.join(missing)}; two symbols with the same name but different assumptions are "
            "different symbols"
        ) from None
    with np.errstate(all="ignore"):
        return _floats(function(*numbers))


def _floats(value: Any) -> FloatArray:
    """Return numbers as floats, which are infinite for too large numbers and NaN if not real."""
    if type(value) is float:
        return np.asarray(value)
    try:
        array = np.asarray(value, dtype=None if np.iscomplexobj(value) else np.float64)
    except OverflowError:
        return np.asarray(math.inf if value > 0 else -math.inf)
    return np.where(array.imag == 0, array.real, np.nan) if array.dtype.kind == "c" else array


@cached_by_content(64)
def constants_of(
    constants: Callable[[Any], Mapping[sp.Symbol, Any]], setting: Any
) -> Mapping[sp.Symbol, Any]:
    """Return a setting's constants, which are cached because hypotheses and readings share them."""
    return constants(setting)


def check_constants(statement: WithConstants, constants: Mapping[sp.Symbol, Any]) -> None:
    """Raise ValueError, naming the place of computation, if a symbol's value is not a real number.

    NaN and infinity are allowed, because a constant may not exist in some settings.
    """
    for symbol, value in constants.items():
        if not _is_number(value):
            raise ValueError(
                f"the value of {symbol} in {statement.id!r} must be a real number, got "
                f"{value!r:.60}{place_of(dict(statement.constants.numbers).get(symbol))}"
            )


def _is_number(value: Any) -> bool:
    # Without this check, a text could be converted to a float, and None to NaN.
    if isinstance(value, str | bytes) or np.ndim(value) > 0:
        return False
    try:
        float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return True


def place_of(function: Any) -> str:
    """Return the file and line where a function begins, in brackets, or ""."""
    code = getattr(function, "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code is not None else ""


def theorem_values(
    statement: WithConstants, constants: Mapping[sp.Symbol, float]
) -> dict[sp.Symbol, float]:
    """Return the constants with the values of the theorem's abbreviations."""
    check_constants(statement, constants)
    values: dict[sp.Symbol, float] = dict(constants)
    for symbol, expression in statement.definitions.items():
        values[symbol] = float(evaluate(expression, values))
    return values


def values_in(
    statement: WithConstants, formulas: Sequence[sp.Basic], setting: Any
) -> dict[sp.Symbol, float]:
    """Return the values of the symbols in some formulas, as others may take long to compute."""
    asked = {symbol for formula in formulas for symbol in formula.free_symbols}
    for symbol, expression in reversed(list(statement.definitions.items())):
        asked |= expression.free_symbols if symbol in asked else set()
    every = statement.constants
    numbers = tuple((symbol, number) for symbol, number in every.numbers if symbol in asked)
    values = NumbersOfSymbols(numbers, every.domain)(setting)
    check_constants(statement, values)
    for symbol, expression in statement.definitions.items():
        if symbol in asked:
            values[symbol] = float(evaluate(expression, values))
    return values


def check_hypothesis(
    hypothesis: Hypothesis,
    values: Mapping[sp.Symbol, float],
    round_symbols: Sequence[RoundSymbol],
    truth: Truth,
) -> HypothesisCheck:
    """Evaluate one hypothesis on a setting and its trajectory.

    A hypothesis that is missing from our copy of the text is left open for every setting.

    Symbols that depend on the trajectory have intervals. A condition is decided if it has the same
    result at all corners of the intervals and in the middle. The middle may differ from the corners
    if there is a pole between them.
    """
    if not hypothesis.is_known:
        return HypothesisCheck.of(hypothesis, None, math.nan)
    used = [s for s in round_symbols if s.symbol in hypothesis.condition.free_symbols]
    intervals = [_interval(symbol, truth) for symbol in used]
    middle = [reduced_value(symbol, truth) for symbol in used]
    # The middle is the first row.
    sides = [
        _sides(hypothesis, {**values, **dict(zip((s.symbol for s in used), numbers, strict=True))})
        for numbers in (middle, *(product(*intervals) if used else ()))
    ]
    margins = np.stack(np.broadcast_arrays(*(_margin(hypothesis, *both) for both in sides)))
    return _decided(hypothesis, used, margins, sides[0])


def check_point_hypothesis(
    hypothesis: Hypothesis, values: Mapping[sp.Symbol, float]
) -> HypothesisCheck:
    """Evaluate a hypothesis whose symbols do not depend on a trajectory."""
    if not hypothesis.is_known:
        return HypothesisCheck.of(hypothesis, None, math.nan)
    sides = _sides(hypothesis, values)
    return _decided(hypothesis, (), _margin(hypothesis, *sides)[None], sides)


def reduced_value(symbol: RoundSymbol, truth: Truth) -> FloatArray:
    """Return a symbol's value on a trajectory, which is an array of length one unless ``every``."""
    return reduced(truth.trajectory[symbol.field], symbol.reduction, symbol.rounds)


def _interval(symbol: RoundSymbol, truth: Truth) -> tuple[FloatArray, FloatArray]:
    # Every reduction is monotone in each of the numbers that it reduces.
    lower, upper = (
        reduced(end, symbol.reduction, symbol.rounds) for end in truth.interval(symbol.field)
    )
    return lower, upper


def _sides(
    hypothesis: Hypothesis, values: Mapping[sp.Symbol, Any]
) -> tuple[FloatArray, FloatArray]:
    condition = hypothesis.condition
    return evaluate(condition.lhs, values), evaluate(condition.rhs, values)


def _margin(hypothesis: Hypothesis, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return a condition's margin, given both sides, or NaN where it is undefined."""
    condition = hypothesis.condition
    with np.errstate(invalid="ignore"):
        if isinstance(condition, sp.Eq):
            return np.atleast_1d(
                _LAST_PLACES * np.maximum(abs(left), abs(right)) - abs(left - right)
            )
        if isinstance(condition, sp.Ge | sp.Gt):
            left, right = right, left
        gap = np.atleast_1d(right - left)
        if isinstance(condition, sp.Lt | sp.Gt):
            gap = np.where(left == right, -_just_missed(left), gap)
        return gap


def _just_missed(limit: FloatArray) -> FloatArray:
    """Return the amount by which a strict inequality fails exactly at its limit."""
    return np.where(np.isinf(limit), np.inf, AT_THE_LIMIT)


def _decided(
    hypothesis: Hypothesis,
    used: Sequence[RoundSymbol],
    margins: FloatArray,
    sides: tuple[FloatArray, FloatArray],
) -> HypothesisCheck:
    """Decide by the margins in the middle (first row) and at the corners."""
    centre = margins[0]
    undefined = np.isnan(centre)
    lowest = np.where(np.isnan(margins), -np.inf, margins).min(axis=0)
    highest = np.where(np.isnan(margins), np.inf, margins).max(axis=0)
    holds: bool | None = None
    if undefined.any() or (highest < 0).any():
        holds = False
    elif (lowest >= 0).all():
        holds = True
    worst = int(np.argmax(undefined)) if undefined.any() else int(np.argmin(centre))
    left, right = (float(np.broadcast_to(side, centre.shape)[worst]) for side in sides)
    every = [symbol for symbol in used if symbol.reduction == "every"]
    at_round = every[0].rounds.first + worst if every else None
    return HypothesisCheck.of(hypothesis, holds, float(centre[worst]), at_round, (left, right))
