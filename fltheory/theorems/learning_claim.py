"""Statements on PAC learnability as data: exact figures of a learning problem, and decay rates.

They stand beside theorems on runs and claims on points: no algorithm, no rounds. A `LearningClaim`
compares two numbers, fractions wherever both sides are; a `DecayClaim` says in which order a
quantity decays with the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import sympy as sp

from fltheory.learnability import LearningSetting
from fltheory.validation import FloatArray

if TYPE_CHECKING:
    from fltheory.theorems.derivation import Derivation
    from fltheory.theorems.statement import Hypothesis
    from fltheory.theorems.units import Unit

Direction: TypeAlias = Literal["<=", "<", ">=", ">"]


@dataclass(frozen=True, eq=False)
class LearningRegime:
    """A named learning problem, made when it is first asked for.

    Attributes
    ----------
    about : str
        What is special here, in a line.
    make : callable
        Makes the problem.
    """

    about: str
    make: Callable[[], LearningSetting]

    @cached_property
    def setting(self) -> LearningSetting:
        """The problem, the same object every time."""
        return self.make()


@dataclass(frozen=True)
class LearningQuantity:
    """A number that a learning problem has.

    Attributes
    ----------
    value : callable
        A fraction, or a float and a bound on its rounding error.
    text : str
    sample : callable, optional
        Independent estimates of it, (replicas,), from the problem, their number and a generator,
        for figures.
    latex : str
        How it is typeset; by its text where there is none.
    """

    value: Callable[[Any], Fraction | tuple[float, float]]
    text: str
    sample: Callable[[Any, int, np.random.Generator], FloatArray] | None = None
    latex: str = ""


@dataclass(frozen=True)
class LearningClaim:
    """A claim ``quantity <= bound``, or in another direction, without sampling.

    Attributes
    ----------
    direction : str
        How the quantity is claimed to compare with the bound.
    constants : callable
        Values of the symbols for a problem; raises ValueError for another kind of problem.

    The other attributes are those of `Theorem`.
    """

    id: str
    reading: str
    title: str
    source: str
    quantity: LearningQuantity
    direction: Direction
    bound: sp.Expr
    hypotheses: tuple[Hypothesis, ...]
    meanings: Mapping[sp.Symbol, str]
    constants: Callable[[Any], Mapping[sp.Symbol, Any]]
    definitions: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    regimes: Mapping[str, LearningRegime] = field(default_factory=dict)
    note: str = ""
    units: Mapping[sp.Symbol, Unit] = field(default_factory=dict)
    derivation: Derivation | None = None


@dataclass(frozen=True)
class Measurement:
    """A quantity at one sample size.

    Attributes
    ----------
    value : float
    standard_error : float
        Zero where it is not sampled.
    remark : str
        What else was seen, in a few words.
    """

    value: float
    standard_error: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class DecayQuantity:
    """A number that a learning problem has at each sample size.

    Attributes
    ----------
    measure : callable
        From the problem, the size, a number of replicas and a generator.
    is_sampled : callable
        Whether it is sampled for a problem.
    text : str
    sample : callable, optional
        Independent estimates of it, (replicas,), for figures; arguments as for ``measure``.
    latex : str
        How it is typeset; by its text where there is none.
    """

    measure: Callable[[Any, int, int, np.random.Generator], Measurement]
    is_sampled: Callable[[Any], bool]
    text: str
    sample: Callable[[Any, int, int, np.random.Generator], FloatArray] | None = None
    latex: str = ""


@dataclass(frozen=True)
class DecayClaim:
    """A claim that a quantity is of some order in a number of samples.

    Attributes
    ----------
    variable : sympy symbol
        The number of samples.
    order : sympy expression
        The claimed order as a function of it; logarithms, which the claims hide, are left out.

    The other attributes are those of `LearningClaim`.
    """

    id: str
    reading: str
    title: str
    source: str
    quantity: DecayQuantity
    variable: sp.Symbol
    order: sp.Expr
    hypotheses: tuple[Hypothesis, ...]
    meanings: Mapping[sp.Symbol, str]
    constants: Callable[[Any], Mapping[sp.Symbol, Any]]
    definitions: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    regimes: Mapping[str, LearningRegime] = field(default_factory=dict)
    note: str = ""
    units: Mapping[sp.Symbol, Unit] = field(default_factory=dict)
    derivation: Derivation | None = None
