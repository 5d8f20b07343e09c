"""Comparison of both sides of statements and of hypotheses, accounting for every rounding error."""

from __future__ import annotations

import math
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from traceback import extract_tb
from typing import Any, Protocol

import numpy as np
import sympy as sp
from flint import arb, ctx, fmpq
from sympy.core.relational import Relational

from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.engines.affine.numbers import Balls, InexactRoundError
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.enclosure.enclosed import (
    NotEnclosedError,
    Work,
    enclosed_trajectory,
    rational_trajectory,
)
from fltheory.engines.enclosure.exact_setting import NoExactTwinError, exact_setting
from fltheory.engines.guard import rounds_now
from fltheory.engines.observables import Observable
from fltheory.engines.trajectory import OVERFLOW, Trajectory
from fltheory.evidence.enclosed_values import (
    Evaluation,
    Intervals,
    UndefinedError,
    Value,
    ball,
    exact_value,
    half_width,
    intervals_of,
    margin,
    middle,
    relation_holds,
)
from fltheory.evidence.evaluation import (
    WithConstants,
    check_point_hypothesis,
    constants_of,
    theorem_values,
)
from fltheory.evidence.verdict import HypothesisCheck
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import (
    BoundedQuantity,
    PointQuantity,
    Reduction,
    RoundRange,
    RoundSymbol,
    reduced,
)
from fltheory.validation import FloatArray

_Rounds = Mapping[sp.Symbol, tuple[FloatArray, FloatArray]]
"""For each symbol, its values in all rounds and their error bounds."""

_BITS = (128, 512)
_MOST_ROUNDS = 5_000
AFFORDABLE = 2e6
_FOR_FRACTIONS = 1e5

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class EnclosedSides:
    """Truth, bound and hypotheses, compared in fractions and balls.

    Attributes
    ----------
    truth, bound : float
        Approximate values of the two sides.
    truth_error, bound_error : float
        Error bounds of these values, including the rounding to floats.
    below : bool or None
        Whether truth <= bound, or None if the two overlap.
    hypotheses : tuple of HypothesisCheck
    """

    truth: float
    truth_error: float
    bound: float
    bound_error: float
    below: bool | None
    hypotheses: tuple[HypothesisCheck, ...]

    @property
    def decided(self) -> bool:
        """Whether more digits cannot change anything."""
        return self.below is not None and all(h.holds is not None for h in self.hypotheses)


def enclosed_run(theorem: _AlongRun, setting: Setting, most: float = AFFORDABLE) -> Trajectory:
    """Return the enclosed trajectory of a setting, with the observables of a theorem.

    A run may cost ``most`` units of `Work`, by default 2e6, which is about two seconds on an idle
    core. Units are counted during the run, because neither the number of histories of an algorithm
    that counts nor the number of digits that a run loses is known beforehand.

    Raises
    ------
    NotEnclosedError
        If the run cannot be enclosed or costs too much.
    """
    found = _affordable_trajectory(setting, tuple(_observed(theorem, setting)), most)
    if isinstance(found, str):
        raise NotEnclosedError(found)
    return found


@cached_by_content(32, as_long_as=rounds_now)
def _affordable_trajectory(
    setting: Setting, observe: tuple[Observable, ...], most: float
) -> Trajectory | str:
    # Errors are returned instead of raised so that they are cached, because finding them may take
    # seconds.
    try:
        return enclosed_trajectory(setting, observe, Work(most))
    except (NotAffineError, InexactRoundError) as error:
        return f"the run: {error}"


class _Inequality(WithConstants, Protocol):
    @property
    def bound(self) -> sp.Expr: ...

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]: ...


class _AlongRun(_Inequality, Protocol):
    @property
    def quantity(self) -> BoundedQuantity: ...

    @property
    def round_symbols(self) -> tuple[RoundSymbol, ...]: ...

    @property
    def observe(self) -> Callable[[Setting], Sequence[Observable]]: ...


class _AtPoint(_Inequality, Protocol):
    @property
    def quantity(self) -> PointQuantity: ...


class _LeftSide(Protocol):
    """The bounded side of an inequality, and the run, if any, that its hypotheses involve."""

    @property
    def trajectory(self) -> Trajectory | None: ...

    @property
    def round_symbols(self) -> tuple[RoundSymbol, ...]: ...

    def value(self, twin: Setting) -> Value: ...

    def is_below(self, twin: Setting, value: Value, bound: Value) -> bool | None: ...


@dataclass(frozen=True)
class _OfRun:
    quantity: BoundedQuantity
    round_symbols: tuple[RoundSymbol, ...]
    trajectory: Trajectory

    def value(self, twin: Setting) -> Value:
        return _quantity(self.quantity, twin, self.trajectory)

    def is_below(self, twin: Setting, value: Value, bound: Value) -> bool | None:
        if value != math.inf:
            return _at_most(value, bound)
        # Values that have overflowed are proved to exceed half of OVERFLOW, and no value is
        # negative.
        share = _share_of_overflow(self.quantity, twin, self.trajectory)
        return False if bound < share * arb(OVERFLOW / 2) else None


@dataclass(frozen=True)
class _AtAPoint:
    owner: str
    quantity: PointQuantity
    trajectory: None = None
    round_symbols: tuple[()] = ()

    def value(self, twin: Setting) -> Value:
        value, _ = self.quantity.value(twin)
        if isinstance(value, float) and math.isnan(value):
            raise NoExactTwinError(f"the quantity of {self.owner} is undefined, at least in floats")
        return exact_value(f"the quantity of {self.owner}", value)

    def is_below(self, twin: Setting, value: Value, bound: Value) -> bool | None:
        return _at_most(value, bound)


def _at_most(value: Value, bound: Value) -> bool | None:
    return relation_holds(sp.Le(sp.Symbol("truth"), sp.Symbol("bound")), value, bound)


def enclosed_along(theorem: _AlongRun, setting: Setting, most: float = AFFORDABLE) -> EnclosedSides:
    """Return both sides of an inequality along a run, within a limit on units of `Work`.

    Raises
    ------
    NotEnclosedError
        If a part of one cannot be enclosed; the message says which.
    """
    _check_worth_a_run(theorem, theorem.round_symbols, setting)
    trajectory = enclosed_run(theorem, setting, most)
    if trajectory.diverged_at is not None and theorem.round_symbols:
        raise NotEnclosedError("a hypothesis on rounds whose numbers overflow")
    left = _OfRun(theorem.quantity, theorem.round_symbols, trajectory)
    sides = _sharpest(theorem, left, setting)
    return sides if sides.below is not None else _in_fractions(theorem, setting, sides)


def _in_fractions(theorem: _AlongRun, setting: Setting, sides: EnclosedSides) -> EnclosedSides:
    """Decide with exact fractions a comparison that balls leave open, such as the tie 1/4 <= 1/4.

    The balls of a tie overlap at any precision. For hypotheses, the decisions from balls are kept.
    """
    quantity = theorem.quantity
    if quantity.weights is not None:
        return sides
    try:
        run = rational_trajectory(setting, _observed(theorem, setting), Work(_FOR_FRACTIONS))
        with Balls(_BITS[0]).in_use():
            values = _given_constants(theorem.constants, setting, ctx.prec)
            bound = Evaluation(enclosed_constants(theorem, values)).of(theorem.bound)
            truth = reduced(run[quantity.field], quantity.reduction, quantity.rounds)[0]
            below = _at_most(exact_value("the truth", truth), bound)
    except (NotAffineError, InexactRoundError, UndefinedError, ArithmeticError, TypeError):
        return sides
    return replace(sides, below=below)


def _observed(theorem: _AlongRun, setting: Setting) -> Sequence[Observable]:
    with _refusing():
        return theorem.observe(exact_setting(setting))


def enclosed_at_point(claim: _AtPoint, setting: Setting) -> EnclosedSides:
    """Return both sides of an inequality without a run; raise NotEnclosedError as along a run."""
    _check_worth_a_run(claim, (), setting)
    return _sharpest(claim, _AtAPoint(claim.id, claim.quantity), setting)


def _check_worth_a_run(claim: _Inequality, of_run: Sequence[RoundSymbol], setting: Setting) -> None:
    """Raise NotEnclosedError if the bound is not exact, or an equation holds only up to rounding.

    Decimals of values computed in floats, such as 8 kappa, do not satisfy any equation exactly. Nor
    does any fraction if a schedule of step sizes contains a root.
    """
    enclosed_on(claim, setting, claim.bound)
    varying = {item.symbol for item in of_run}
    for hypothesis in claim.hypotheses:
        condition = hypothesis.condition
        if not isinstance(condition, sp.Eq) or varying & condition.free_symbols:
            continue
        left, right = (enclosed_on(claim, setting, side) for side in condition.args)
        if relation_holds(condition, left, right) is False:
            values = theorem_values(claim, constants_of(claim.constants, setting))
            if check_point_hypothesis(hypothesis, values).holds:
                raise NotEnclosedError(
                    f"the hypothesis '{hypothesis.name}', which holds but for rounding"
                )


def _sharpest(claim: _Inequality, left: _LeftSide, setting: Setting) -> EnclosedSides:
    for bits in _BITS:
        with _refusing(), Balls(bits).in_use():
            sides = _sides(claim, left, setting)
        if sides.decided:
            break
    return sides


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors of functions of exact numbers into NotEnclosedError, so that floats are tried.

    NumPy raises TypeError or AttributeError for exact numbers where it needs floats, and fractions
    raise ZeroDivisionError where floats would be infinite. A ValueError may be about the setting
    itself. It is raised again, with the user's own numbers, when floats are tried.
    """
    try:
        yield
    except ValueError as error:
        raise NotEnclosedError(str(error)) from error
    except (AttributeError, TypeError, ZeroDivisionError) as error:
        raise NotEnclosedError(f"a function does not take exact numbers: {error}") from error


def _sides(claim: _Inequality, left: _LeftSide, setting: Setting) -> EnclosedSides:
    twin = _twin(setting, ctx.prec)
    values = enclosed_constants(claim, _given_constants(claim.constants, setting, ctx.prec))
    evaluation = Evaluation(values)
    truth = left.value(twin)
    bound = _value_or_nan(evaluation, claim.bound)
    return EnclosedSides(
        truth=middle(truth),
        truth_error=half_width(truth),
        bound=middle(bound),
        bound_error=half_width(bound),
        below=left.is_below(twin, truth, bound),
        hypotheses=tuple(
            _checked(hypothesis, evaluation, left.round_symbols, left.trajectory)
            for hypothesis in claim.hypotheses
        ),
    )


@cached_by_content(64)
def _twin(setting: Setting, bits: int) -> Setting:
    """Return the exact twin; recent twins are cached, as several statements use the same twin."""
    with Balls(bits).in_use():
        return exact_setting(setting)


@cached_by_content(64)
def _given_constants(
    constants: Callable[[Setting], Mapping[sp.Symbol, Any]], setting: Setting, bits: int
) -> Mapping[sp.Symbol, Any]:
    with Balls(bits).in_use():
        twin = _twin(setting, bits)
        try:
            return constants(twin)
        except InexactRoundError as error:
            raise InexactRoundError(_float_among_constants(error)) from error


def _float_among_constants(error: InexactRoundError) -> str:
    """Return a message that names the line of the user's file that introduces a float."""
    libraries = (_PACKAGE, *map(Path, map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))))
    own = [
        line
        for line in extract_tb(error.__traceback__)
        if not any(map(Path(line.filename).is_relative_to, libraries))
        and not line.filename.startswith("<")
    ]
    if not own:
        return str(error)
    place = f"{Path(own[-1].filename).name}, line {own[-1].lineno}"
    return (
        f"a symbol's value is a float ({place}): avoid float() and math.sqrt() there; NumPy's "
        "norm and sqrt keep exact numbers exact"
    )


def enclosed_on(claim: WithConstants, setting: Setting, expression: sp.Basic) -> Value:
    """Return an expression in a statement's symbols, enclosed on a setting.

    Raises
    ------
    NotEnclosedError
        If a symbol's value is a rounded float.
    """
    with _refusing(), Balls(_BITS[0]).in_use():
        given = _given_constants(claim.constants, setting, ctx.prec)
        return _value_or_nan(Evaluation(enclosed_constants(claim, given)), expression)


def enclosed_constants(
    claim: WithConstants, given: Mapping[sp.Symbol, Any]
) -> dict[sp.Symbol, Value]:
    """Return the values of a statement's symbols on an exact twin, abbreviations included.

    Raises
    ------
    NoExactTwinError
        If a value is a float, which means that something has been rounded.
    """
    values = {
        symbol: exact_value(f"the constant {symbol} of {claim.id}", value)
        for symbol, value in given.items()
    }
    for symbol, expression in claim.definitions.items():
        values[symbol] = _value_or_nan(Evaluation(values), expression)
    return values


def _value_or_nan(evaluation: Evaluation, expression: sp.Basic) -> Value:
    try:
        return evaluation.of(expression)
    except UndefinedError:
        return arb("nan")


def _share_of_overflow(quantity: BoundedQuantity, twin: Setting, trajectory: Trajectory) -> Value:
    """Return the share of a quantity's weight on rounds whose values have overflowed."""
    infinite = np.isinf(quantity.rounds.of(trajectory[quantity.field]))
    if quantity.reduction in ("last", "max"):
        return fmpq(int(infinite[-1] if quantity.reduction == "last" else infinite.any()))
    if quantity.weights is None:
        return fmpq(int(infinite.sum()), len(infinite))
    weights = [exact_value("a weight", weight) for weight in quantity.weights(twin)]
    of_infinite = [w for w, counts in zip(weights, infinite, strict=True) if counts]
    return sum(of_infinite, fmpq(0)) / sum(weights, fmpq(0))


def _quantity(quantity: BoundedQuantity, twin: Setting, trajectory: Trajectory) -> Value:
    if trajectory.diverged_at is not None:
        if quantity.reduction == "min":
            raise NoExactTwinError("the minimum over rounds whose numbers overflow is not enclosed")
        if _share_of_overflow(quantity, twin, trajectory) > 0:
            return math.inf
    if quantity.weights is None:
        return reduced_ball(trajectory, quantity.field, quantity.reduction, quantity.rounds)
    taken = rounds_and_errors(trajectory, quantity.field, quantity.rounds)
    every = [ball(float(x), float(error)) for x, error in zip(*taken, strict=True)]
    weights = [exact_value("a weight", weight) for weight in quantity.weights(twin)]
    total = sum(weights, fmpq(0))
    if total == 0:
        return arb("nan")
    return sum((w * x for w, x in zip(weights, every, strict=True)), fmpq(0)) / total


def reduced_ball(
    trajectory: Trajectory, field: str, reduction: Reduction, rounds: RoundRange
) -> Value:
    """Reduce the enclosed values of rounds 0 to R to one ball; not to be used for ``every``."""
    centres, radii = rounds_and_errors(trajectory, field, rounds)
    if reduction == "last":
        return ball(float(centres[-1]), float(radii[-1]))
    if reduction == "mean":
        # Sums by fsum are rounded only once, however many terms there are.
        total, spread = _sums(trajectory, field, rounds)
        about = ball(total, abs(total) * 2.0**-52) + ball(0.0, spread * (1 + 2.0**-50))
        return about / len(centres)
    every = Intervals.around(centres, radii)
    low, high = (
        (every.low.max(), every.high.max())
        if reduction == "max"
        else (every.low.min(), every.high.min())
    )
    return arb(float(low)).union(arb(float(high)))


@lru_cache(maxsize=32)
def _sums(trajectory: Trajectory, field: str, rounds: RoundRange) -> tuple[float, float]:
    """Return the sums of a field and of its errors, cached for many hypotheses on long runs."""
    centres, radii = rounds_and_errors(trajectory, field, rounds)
    return math.fsum(centres.tolist()), math.fsum(radii.tolist())


def rounds_and_errors(
    trajectory: Trajectory, field: str, rounds: RoundRange
) -> tuple[FloatArray, FloatArray]:
    """Return a field over a range of rounds, with error bounds."""
    assert trajectory.rounding_error is not None
    return rounds.of(trajectory[field]), rounds.of(trajectory.rounding_error[field])


def _checked(
    hypothesis: Hypothesis,
    evaluation: Evaluation,
    symbols: Sequence[RoundSymbol],
    trajectory: Trajectory | None,
) -> HypothesisCheck:
    used = [s for s in symbols if s.symbol in hypothesis.condition.free_symbols]
    every = [symbol for symbol in used if symbol.reduction == "every"]
    if used:
        assert trajectory is not None
        once = {
            s.symbol: reduced_ball(trajectory, s.field, s.reduction, s.rounds)
            for s in used
            if s.reduction != "every"
        }
        evaluation = evaluation.at(once)
    known: _Rounds = {}
    if every:
        assert trajectory is not None
        known = {s.symbol: rounds_and_errors(trajectory, s.field, s.rounds) for s in every}
        holds, gaps = _in_every_round(hypothesis, evaluation, known)
    else:
        single, gap = _decided(hypothesis, evaluation)
        holds, gaps = [single], [gap]
    # The first of the smallest margins. NumPy treats undefined margins as smaller than all others.
    worst = int(np.argmin(gaps))
    both = _sides_in_numbers(hypothesis, evaluation.at(_in_round(known, worst)))
    at_round = every[0].rounds.first + worst if every else None
    return HypothesisCheck.of(hypothesis, _all_hold(holds), gaps[worst], at_round, both)


def _sides_in_numbers(hypothesis: Hypothesis, at: Evaluation) -> tuple[float, float]:
    condition = hypothesis.condition
    try:
        return middle(at.of(condition.lhs)), middle(at.of(condition.rhs))
    except UndefinedError:
        return math.nan, math.nan


def _in_round(known: _Rounds, place: int) -> dict[sp.Symbol, Value]:
    return {s: ball(float(x[place]), float(e[place])) for s, (x, e) in known.items()}


def _in_every_round(
    hypothesis: Hypothesis,
    evaluation: Evaluation,
    known: _Rounds,
) -> tuple[list[bool | None], list[float]]:
    """Decide a condition in each round by intervals, or by balls if intervals cannot decide."""
    holds, gaps = _by_intervals(hypothesis.condition, evaluation, known)
    unknown = [place for place, each in enumerate(holds) if each is None]
    if len(unknown) > _MOST_ROUNDS:
        raise NoExactTwinError(f"{hypothesis.condition} is undecided in {len(unknown)} rounds")
    for place in unknown:
        at_round = evaluation.at(_in_round(known, place))
        holds[place], gaps[place] = _decided(hypothesis, at_round)
    return holds, gaps


def _by_intervals(
    condition: Relational,
    evaluation: Evaluation,
    known: _Rounds,
) -> tuple[list[bool | None], list[float]]:
    count = min(len(centres) for centres, _ in known.values())
    nothing: tuple[list[bool | None], list[float]] = [None] * count, [math.nan] * count
    if isinstance(condition, sp.Eq):
        return nothing
    varying = {s: Intervals.around(centres, radii) for s, (centres, radii) in known.items()}
    try:
        left = intervals_of(condition.lhs, evaluation, varying)
        right = intervals_of(condition.rhs, evaluation, varying)
    except UndefinedError:
        return nothing
    if left is None or right is None:
        return nothing
    if isinstance(condition, sp.Ge | sp.Gt):
        left, right = right, left
    gap = right + -left
    sure, never = gap.low > 0, gap.high < 0
    holds = [True if yes else False if no else None for yes, no in zip(sure, never, strict=True)]
    with np.errstate(invalid="ignore"):
        return holds, ((gap.low + gap.high) / 2).tolist()


def _all_hold(each: Sequence[bool | None]) -> bool | None:
    if False in each:
        return False
    return None if None in each else True


def _decided(hypothesis: Hypothesis, at: Evaluation) -> tuple[bool | None, float]:
    condition = hypothesis.condition
    try:
        left, right = at.of(condition.lhs), at.of(condition.rhs)
    except UndefinedError:
        return False, float("nan")
    return relation_holds(condition, left, right), margin(condition, left, right)
