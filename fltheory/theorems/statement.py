"""A convergence theorem as data.

Its bound and each hypothesis are SymPy expressions over named symbols: the one source that
is evaluated in numbers, rendered in documents and manipulated. A *reading* of a theorem is
one way to take it: ``printed`` is the statement to the letter, faults included; ``derived``
is what its own proof gives; ``repaired`` is the printed form with the fewest changes that the
proof asks for; ``tight`` is the printed form with the least constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import sympy as sp

from fltheory.engines import Observable, Setting, Trajectory
from fltheory.theorems.derivation import Derivation
from fltheory.theorems.family import Family
from fltheory.theorems.learning_claim import DecayClaim, LearningClaim
from fltheory.theorems.regime import Regime
from fltheory.theorems.units import Unit
from fltheory.validation import FloatArray

if TYPE_CHECKING:
    from fltheory.theorems.repair import Repair

Reduction: TypeAlias = Literal["mean", "max", "min", "every", "last"]


@dataclass(frozen=True)
class RoundRange:
    """Rounds ``first`` to ``R + beyond_last``, both included."""

    first: int
    beyond_last: int

    def of(self, array: FloatArray) -> FloatArray:
        """Cut the range out of an array over rounds 0 to R."""
        return array[self.first : array.size + self.beyond_last]

    @property
    def text(self) -> str:
        """The range in words."""
        return f"r = {self.first} .. R{f'{self.beyond_last:+d}' if self.beyond_last else ''}"


@dataclass(frozen=True)
class Hypothesis:
    """A condition ``left <= right``, ``left < right`` or ``left = right`` of a theorem.

    Attributes
    ----------
    name : str
        What it asks for, in a few words.
    condition : sympy relation
    source : str
        Where the paper states it.

    Raises
    ------
    ValueError
        If ``condition`` is no relation, as when SymPy has found it always true or false.
    """

    name: str
    condition: sp.core.relational.Relational
    source: str

    def __post_init__(self) -> None:
        if not isinstance(self.condition, sp.core.relational.Relational):
            raise ValueError(
                f"condition of hypothesis {self.name!r} must be a SymPy relation, "
                f"got {self.condition!r}; evaluate=False keeps SymPy from deciding it"
            )


@dataclass(frozen=True)
class RoundSymbol:
    """A symbol of a hypothesis whose value depends on the trajectory.

    Attributes
    ----------
    symbol : sympy symbol
    field : str
        Name of the array in a `Trajectory`.
    reduction : str
        How the rounds become one number; ``every`` asks for the hypothesis at each of them.
    rounds : RoundRange
        The rounds for which the proof needs it.
    meaning : str
    """

    symbol: sp.Symbol
    field: str
    reduction: Reduction
    rounds: RoundRange
    meaning: str


@dataclass(frozen=True)
class BoundedQuantity:
    """The left-hand side: one field of a trajectory, reduced over a range of rounds.

    Without a unit the bound is checked for units in itself only. A mean may have ``weights``, a
    function of the setting that returns one number that is not negative for each round of the
    range; they need not sum to one. Where all of them are zero the mean is NaN.
    """

    field: str
    reduction: Reduction
    rounds: RoundRange
    text: str
    latex: str
    unit: Unit | None = None
    weights: Callable[[Setting], FloatArray] | None = None

    def of(self, trajectory: Trajectory, setting: Setting) -> float:
        """Return its value on a setting's trajectory."""
        return self._reduced(trajectory[self.field], setting)

    def error(self, errors: FloatArray, setting: Setting) -> float:
        """Return a bound on its error from the errors of each round."""
        return self._reduced(errors, setting)

    def _reduced(self, values: FloatArray, setting: Setting) -> float:
        taken = self.rounds.of(values)
        if self.weights is None:
            return float(reduced(taken, self.reduction)[0])
        if self.reduction != "mean":
            raise ValueError(f"weights must belong to a mean, got {self.reduction!r}")
        weights = self.weights(setting)
        counted = weights > 0
        if not counted.any():
            return float("nan")
        return float(np.average(taken[counted], weights=weights[counted]))


def reduced(values: FloatArray, reduction: Reduction) -> FloatArray:
    """Reduce over rounds; the result is an array, of length one unless ``every``."""
    if reduction == "every":
        return values
    if reduction == "last":
        return values[-1:]
    if reduction == "mean":
        return values.mean(keepdims=True)
    return values.max(keepdims=True) if reduction == "max" else values.min(keepdims=True)


@dataclass(frozen=True)
class Theorem:
    """One reading of a theorem: if all hypotheses hold, ``quantity <= bound``.

    Attributes
    ----------
    id, reading, title, source : str
        Its name, how it is read, what it says in a line, and where it stands.
    quantity : BoundedQuantity
    bound : sympy expression
    hypotheses : tuple of Hypothesis
    meanings : mapping
        What each symbol stands for.
    constants : callable
        Values of the symbols for a setting; raises ValueError where the theorem does not
        speak of such a setting at all.
    definitions : mapping
        Symbols that abbreviate expressions in others.
    round_symbols : tuple of RoundSymbol
        Symbols whose values depend on the trajectory.
    observe : callable
        Observables that the round symbols need.
    regimes : mapping
        Named settings to check it on.
    note : str
        How the reading departs from others, and at which equation.
    repair : Repair or None
        For a repaired reading: the changes that make it.
    units : mapping
        The unit of each symbol; none where units are not to be checked.
    derivation : Derivation, optional
        The last steps of the proof of this very reading.
    family : Family, optional
        Settings to search for a refutation and to map the theorem over.
    """

    id: str
    reading: str
    title: str
    source: str
    quantity: BoundedQuantity
    bound: sp.Expr
    hypotheses: tuple[Hypothesis, ...]
    meanings: Mapping[sp.Symbol, str]
    constants: Callable[[Setting], Mapping[sp.Symbol, float]]
    definitions: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    round_symbols: tuple[RoundSymbol, ...] = ()
    observe: Callable[[Setting], Sequence[Observable]] = lambda setting: ()
    regimes: Mapping[str, Regime] = field(default_factory=dict)
    note: str = ""
    repair: Repair | None = None
    units: Mapping[sp.Symbol, Unit] = field(default_factory=dict)
    derivation: Derivation | None = None
    family: Family | None = None


@dataclass(frozen=True)
class RateAxis:
    """A claimed order in one variable, with all else fixed or scheduled along.

    Attributes
    ----------
    variable : sympy symbol
    order : sympy expression
        The claimed order as a function of ``variable``.
    grid : callable
        Values of the variable for a setting, in increasing order over three decades.
    schedule : callable
        The setting with the variable at a value, and all that the statement ties to it.
    hypotheses : tuple of Hypothesis
        Conditions of this claim alone.
    """

    variable: sp.Symbol
    order: sp.Expr
    grid: Callable[[Setting], tuple[int, ...]]
    schedule: Callable[[Setting, int], Setting]
    hypotheses: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True)
class RateClaim:
    """A corollary: under a schedule of step sizes a theorem's quantity decays in some order.

    Attributes
    ----------
    theorem : Theorem or PointClaim
        Whose quantity, bound and hypotheses it rests on.
    axes : tuple of RateAxis
        The claimed orders, all of which must hold.

    The other attributes are those of `Theorem`.
    """

    id: str
    reading: str
    title: str
    source: str
    theorem: Theorem | PointClaim
    axes: tuple[RateAxis, ...]
    regimes: Mapping[str, Regime] = field(default_factory=dict)
    note: str = ""
    derivation: Derivation | None = None


@dataclass(frozen=True)
class DirectionClaim(RateClaim):
    """A claim that a theorem's quantity grows, or falls, with a variable.

    It has one axis; of its ``order`` only the direction is claimed, up where it grows with the
    variable's values and down where it falls.
    """


@dataclass(frozen=True)
class PointQuantity:
    """A left-hand side that a setting has by itself, without a run.

    Attributes
    ----------
    value : callable
        Its value and a bound, to first order, on the rounding error of that; NaN where it is
        undefined.
    text : str
    unit : Unit
    latex : str
        How it is typeset; by its text where there is none.
    sample : callable, optional
        Independent estimates of it, (replicas,), from a setting, their number and a generator,
        for figures.
    """

    value: Callable[[Setting], tuple[float, float]]
    text: str
    unit: Unit
    latex: str = ""
    sample: Callable[[Setting, int, np.random.Generator], FloatArray] | None = None


@dataclass(frozen=True)
class PointClaim:
    """An inequality between numbers that a setting has by itself: no run, no rounds.

    Where it is claimed at every point of a set, its quantity and bound are taken at the worst
    point, so that one check settles them all. Attributes are those of `Theorem`.
    """

    id: str
    reading: str
    title: str
    source: str
    quantity: PointQuantity
    bound: sp.Expr
    hypotheses: tuple[Hypothesis, ...]
    meanings: Mapping[sp.Symbol, str]
    constants: Callable[[Setting], Mapping[sp.Symbol, float]]
    definitions: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    regimes: Mapping[str, Regime] = field(default_factory=dict)
    note: str = ""
    units: Mapping[sp.Symbol, Unit] = field(default_factory=dict)
    derivation: Derivation | None = None
    family: Family | None = None


Statement: TypeAlias = Theorem | RateClaim | PointClaim | LearningClaim | DecayClaim
