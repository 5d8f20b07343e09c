"""Left-hand sides: a quantity of a run reduced over rounds, or a number of a setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.parsing.sympy_parser import parse_expr

from fltheory import validation
from fltheory.engines import Setting
from fltheory.engines.trajectory import Trajectory
from fltheory.grammar.fields import must_be, symbol
from fltheory.grammar.units import Unit
from fltheory.validation import FloatArray

Reduction: TypeAlias = Literal["mean", "max", "min", "every", "last"]

_REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)


@dataclass(frozen=True)
class RoundRange:
    """The rounds from ``first`` to ``R + beyond_last``, inclusive.

    Raises
    ------
    ValueError
        If ``first`` is not a nonnegative integer, or ``beyond_last`` is not an integer of at most
        0.

    Examples
    --------
    >>> RoundRange(0, -1).text
    'r = 0 .. R-1'
    """

    first: int
    beyond_last: int

    def __post_init__(self) -> None:
        validation.whole_number("first", self.first, at_least=0)
        beyond = self.beyond_last
        if isinstance(beyond, bool) or not isinstance(beyond, int | np.integer) or beyond > 0:
            raise ValueError(
                "beyond_last must be a whole number of at most 0, because there is no round "
                f"after R, got {beyond!r}"
            )

    def slice(self, size: int) -> slice:
        """Return the range as a slice of an array over the rounds 0 to R."""
        return slice(self.first, max(size + self.beyond_last, 0))

    def of(self, array: FloatArray) -> FloatArray:
        """Return the range's part of an array over rounds 0 to R."""
        return array[self.slice(array.size)]

    @property
    def text(self) -> str:
        """The range in words."""
        return f"r = {self.first} .. R{f'{self.beyond_last:+d}' if self.beyond_last else ''}"


@dataclass(frozen=True)
class RoundSymbol:
    """A symbol of a hypothesis whose value depends on the trajectory.

    Attributes
    ----------
    symbol : sympy symbol
    field : str
        Name of the array in a `Trajectory`.
    reduction : str
        How the rounds become one number. With ``every``, the hypothesis must hold in each round.
    rounds : RoundRange
        The rounds for which the proof needs the hypothesis.
    meaning : str

    Raises
    ------
    ValueError
        If an argument is invalid, such as an unknown reduction.

    Examples
    --------
    The largest squared gradient before the last round, as a symbol in conditions:

    >>> largest = RoundSymbol(
    ...     sp.Symbol("G"), "squared_gradient", "max", RoundRange(0, -1), "largest ||grad F||^2"
    ... )
    >>> largest.rounds.text
    'r = 0 .. R-1'
    """

    symbol: sp.Symbol
    field: str
    reduction: Reduction
    rounds: RoundRange
    meaning: str

    def __post_init__(self) -> None:
        symbol("symbol of a round symbol", self.symbol)
        of = f"of the round symbol {self.symbol}"
        validation.text(f"field {of}", self.field)
        validation.one_of(f"reduction {of}", self.reduction, _REDUCTIONS)
        must_be(RoundRange)(f"rounds {of}", self.rounds)
        must_be(str)(f"meaning {of}", self.meaning)


@dataclass(frozen=True)
class BoundedQuantity:
    """The left-hand side: one field of a trajectory, reduced over a range of rounds.

    Without a unit, units are checked only within the bound. A mean may have ``weights``, a function
    of the setting that returns one nonnegative number for each round of the range; they need not
    sum to one. If all of them are zero, the mean is NaN. For certificates, ``weights_text`` gives
    the same weights as a formula in the statement's symbols and the round r.

    Raises
    ------
    ValueError
        If the reduction is unknown or ``every`` (a quantity is one number), weights are given for
        anything but a mean, the name of the field is empty, or ``rounds`` is not a `RoundRange`.

    Examples
    --------
    >>> distance = BoundedQuantity(
    ...     "squared_distance", "last", RoundRange(0, 0), "E||x_R - x*||^2", latex=""
    ... )
    >>> distance.rounds.text
    'r = 0 .. R'
    """

    field: str
    reduction: Reduction
    rounds: RoundRange
    text: str
    latex: str
    unit: Unit | None = None
    weights: Callable[[Setting], NDArray[Any]] | None = None
    weights_text: str = "1"

    def __post_init__(self) -> None:
        of = "of a bounded quantity"
        validation.text(f"field {of}", self.field)
        # "every" gives one number per round, but a bound is compared with a single number.
        single = tuple(item for item in _REDUCTIONS if item != "every")
        validation.one_of(f"reduction {of}", self.reduction, single)
        must_be(RoundRange)(f"rounds {of}", self.rounds)
        for name in ("text", "latex", "weights_text"):
            must_be(str)(f"{name} {of}", getattr(self, name))
        must_be(Unit, type(None))(f"unit {of}", self.unit)
        if self.weights is not None:
            validation.is_callable(f"weights {of}", self.weights)
            if self.reduction != "mean":
                raise ValueError(f"weights {of} must belong to a mean, got {self.reduction!r}")

    def of(self, trajectory: Trajectory, setting: Setting) -> float:
        """Return the quantity's value on a setting's trajectory."""
        return self._reduced(trajectory[self.field], setting)

    def error(self, errors: FloatArray, setting: Setting) -> float:
        """Return a bound on the quantity's error, given the errors of each round."""
        return self._reduced(errors, setting)

    def ends(self, lower: FloatArray, upper: FloatArray, setting: Setting) -> tuple[float, float]:
        """Return the ends of the quantity's interval, given those of each round."""
        return self._reduced(lower, setting), self._reduced(upper, setting)

    def certified_text(self, owner: str) -> Mapping[str, Any]:
        """Return the quantity in the form that the checker of certificates reads.

        Raises
        ------
        ValueError
            If the rounds have weights without a formula.
        """
        if self.weights is not None and self.weights_text == "1":
            raise ValueError(f"{owner} has no certificates: no formula gives its rounds' weights")
        return {**rule_text(self.field, self.reduction, self.rounds), "weights": self.weights_text}

    def formulas(self, names: Mapping[str, sp.Symbol]) -> tuple[sp.Basic, ...]:
        """Return the formula of the weights, if any, in symbols with the given names."""
        if self.weights is None:
            return ()
        return (parse_expr(self.weights_text, local_dict=dict(names)),)

    def _reduced(self, values: FloatArray, setting: Setting) -> float:
        if self.weights is None:
            return float(reduced(values, self.reduction, self.rounds)[0])
        taken = reduced(values, "every", self.rounds)
        weights = self.weights(setting)
        counted = weights > 0
        if not counted.any():
            return float("nan")
        return float(np.average(taken[counted], weights=weights[counted]))


def rule_text(field: str, reduction: Reduction, rounds: RoundRange) -> dict[str, Any]:
    """Return the reduction of rounds in the form that the checker of certificates reads."""
    return {"of": field, "reduction": reduction, "rounds": [rounds.first, rounds.beyond_last]}


def reduced(values: FloatArray, reduction: Reduction, rounds: RoundRange) -> FloatArray:
    """Reduce an array over rounds 0 to R; the result has length one unless ``every``.

    Raises
    ------
    ValueError
        If the reduction is unknown, or the run is too short to have a round in the range.
    """
    validation.one_of("reduction", reduction, _REDUCTIONS)
    taken = rounds.of(values)
    if taken.size == 0:
        raise ValueError(
            f"rounds must hold at least one round, got {rounds.text} of a run of "
            f"R = {values.size - 1} rounds"
        )
    reductions: Mapping[Reduction, Callable[[], FloatArray]] = {
        "every": lambda: taken,
        "last": lambda: taken[-1:],
        "mean": lambda: taken.mean(keepdims=True),
        "max": lambda: taken.max(keepdims=True),
        "min": lambda: taken.min(keepdims=True),
    }
    return reductions[reduction]()


@dataclass(frozen=True)
class Looseness:
    """How tight an inequality is at its tightest point: information beside a verdict.

    Attributes
    ----------
    over : str
        The set of points.
    largest_ratio : callable
        Returns the largest truth/bound over these points for a setting, in float64.
    """

    over: str
    largest_ratio: Callable[[Setting], float]

    def __post_init__(self) -> None:
        validation.text("over of a looseness", self.over)
        validation.is_callable("largest_ratio of a looseness", self.largest_ratio)


@dataclass(frozen=True)
class PointQuantity:
    """A left-hand side that a setting or a learning problem has without a run.

    Attributes
    ----------
    value : callable
        Returns either a fraction, or a value and a first-order bound on its rounding error, which
        is NaN if it is undefined.
    text : str
    unit : Unit or None
        None for probabilities and counts of a learning problem.
    latex : str
        LaTeX of the quantity; the text by default.
    sample : callable, optional
        Used by figures. Takes a setting, a number of replicas and a generator, and returns
        independent estimates, (replicas,).
    certified : str
        Formula of this number in the names that the checker of certificates knows.
    looseness : Looseness, optional
        Used by a claim about all points of a set, which is checked at the point where it is
        closest to failing.

    Examples
    --------
    >>> from fltheory.grammar.units import Unit
    >>> rate = PointQuantity(lambda setting: (setting.algorithm.client_lr, 0.0), "eta_c", Unit())
    >>> rate.text
    'eta_c'
    """

    value: Callable[[Any], Any]
    text: str
    unit: Unit | None = None
    latex: str = ""
    sample: Callable[[Any, int, np.random.Generator], FloatArray] | None = None
    certified: str = ""
    looseness: Looseness | None = None

    def __post_init__(self) -> None:
        validation.is_callable("value of a quantity", self.value)
        validation.text("text of a quantity", self.text)
        for name in ("latex", "certified"):
            must_be(str)(f"{name} of a quantity", getattr(self, name))
        if self.sample is not None:
            validation.is_callable("sample of a quantity", self.sample)
        must_be(Unit, type(None))("unit of a quantity", self.unit)
        must_be(Looseness, type(None))("looseness of a quantity", self.looseness)

    def certified_text(self, owner: str) -> str:
        """Return the quantity in the form that the checker of certificates reads.

        Raises
        ------
        ValueError
            If the checker does not know the quantity.
        """
        if not self.certified:
            raise ValueError(
                f"{owner} cannot be certified: its quantity, {self.text}, is not a number that the "
                "checker can compute"
            )
        return self.certified

    def formulas(self, names: Mapping[str, sp.Symbol]) -> tuple[()]:
        """Return no formulas, because the number is given by its name."""
        return ()
