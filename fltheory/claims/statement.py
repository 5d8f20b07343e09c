"""The base class of all statements, with the interface common to all kinds of claims.

A convergence theorem is data: its bound and each hypothesis are SymPy expressions over named
symbols, the single source for numerical evaluation, documents and manipulation. A *reading* of a
statement is one way to interpret it: ``printed`` is the statement exactly as printed, including its
faults; ``derived`` is the statement that its own proof gives; ``repaired`` is the printed statement
with the changes that its proof requires; ``tight`` is the printed form with the smallest constants.

A kind of claim is a class that defines how it is checked, described, plotted, searched and
certified. By default, operations that make no sense for a kind are refused with a message of one
line.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import sympy as sp

from fltheory.claims.comparison import LEAST_EXCESS, Comparison, Trial, ratio_of
from fltheory.claims.curves import BoundCurve, CurveSample, Drawing, judged_curve, parts_of
from fltheory.derivations.derivation import Derivation
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.evidence.enclosed_check import AFFORDABLE, EnclosedSides
from fltheory.evidence.evaluation import (
    check_point_hypothesis,
    constants_of,
    place_of,
    theorem_values,
)
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import HypothesisCheck, Outcome, Verdict
from fltheory.grammar.assertion import Assertion, Relation
from fltheory.grammar.family import Family, SearchSpace
from fltheory.grammar.fields import Check, check_fields, regimes_of
from fltheory.grammar.hypothesis import Hypothesis, with_signs
from fltheory.grammar.quantities import BoundedQuantity, RoundSymbol
from fltheory.grammar.refutation import Refutation, Repair, StatementKind
from fltheory.grammar.regime import OwnRun, Regime
from fltheory.grammar.symbols import NumbersOfSymbols, Symbol, declared_in, whole_setting
from fltheory.grammar.units import Unit, UnitFlag, Units, unit_of
from fltheory.learnability.system import LearningSetting
from fltheory.validation import FloatArray


@dataclass(frozen=True, kw_only=True)
class Statement(ABC):
    """One reading of a statement of a paper.

    Attributes
    ----------
    id, reading, title, source : str
        The name, the reading (``printed`` by default), a one-line summary, and the place in the
        paper.
    regimes : mapping
        Named settings on which the statement is checked.
    note : str
        How the reading differs from the others, and at which equation.
    kind : StatementKind
        The statement's rank in its paper: theorem, lemma, remark, ...
    refutations : tuple of Refutation
        The faults of a refuted statement, with the reason, weight and remedy of each.
    derivation : Derivation, optional
        The last steps of the proof of this reading.
    axes : tuple of RateAxis
        The variables in which an order or a direction is claimed; empty for an inequality.
    round_symbols : tuple of RoundSymbol
        Symbols whose values depend on the trajectory.
    family : Family, optional
        The settings in which to search for a refutation and over which to map the statement.
    search_space : SearchSpace, optional
        Settings that have their own search, if the statement is about such settings.
    repair : Repair, optional
        The changes that turn the printed statement into this repaired reading.
    own_run : OwnRun, optional
        The statement's algorithm with the steps that the statement requires, on any problem, for
        comparison with other statements.
    why_not_certified : str
        Why this kind of claim has no certificate; "" if it has one.
    searched_where, search_raises : str
        The condition that a setting must meet to count in a search, and the number that a search
        maximises.
    search_budget : int
        The default number of settings that a search around regimes tries.
    """

    id: str
    reading: str = "printed"
    title: str
    source: str
    regimes: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    kind: StatementKind = StatementKind.THEOREM
    refutations: tuple[Refutation, ...] = ()
    derivation: Derivation | None = None

    # Fields that only some kinds of claims define. They are empty for the others.
    axes: tuple[Any, ...] = field(default=(), init=False, repr=False)
    round_symbols: tuple[RoundSymbol, ...] = field(default=(), init=False, repr=False)
    family: Family | None = field(default=None, init=False, repr=False)
    search_space: SearchSpace | None = field(default=None, init=False, repr=False)
    repair: Repair[Any] | None = field(default=None, init=False, repr=False)
    own_run: OwnRun | None = field(default=None, init=False, repr=False)
    why_not_certified: ClassVar[str] = ""
    searched_where: ClassVar[str] = "met every hypothesis"
    search_raises: ClassVar[str] = "truth/bound"
    search_budget: ClassVar[int] = 1000

    @property
    @abstractmethod
    def basis(self) -> Basis:
        """The owner of the symbols and hypotheses, which is this statement or its theorem."""

    @property
    @abstractmethod
    def assertions(self) -> tuple[Assertion, ...]:
        """The assertions, each with left side, relation and right side."""

    @property
    def conditions(self) -> tuple[Hypothesis, ...]:
        """All conditions: the hypotheses of the basis, followed by those of single assertions."""
        further = (h for assertion in self.assertions for h in assertion.hypotheses)
        return (*self.basis.hypotheses, *further)

    @abstractmethod
    def verdict(self, setting: Setting | LearningSetting, sampling: Sampling) -> Verdict:
        """Return the verdict on a setting.

        Raises
        ------
        ValueError
            If the statement does not cover such a setting at all.
        """

    def verdict_and_curve(
        self, setting: Setting | LearningSetting, sampling: Sampling
    ) -> tuple[Verdict, BoundCurve | None]:
        """Return the verdict, and both sides over a run or a variable, if there is one.

        The truth behind both is computed once.
        """
        return self.verdict(setting, sampling), None

    def unit_formulas(self) -> tuple[Mapping[sp.Symbol, Unit], Sequence[tuple[str, sp.Basic]]]:
        """Return the units of the symbols, and the formulas to check with their places.

        Statements about probabilities and counts have no units.
        """
        return {}, ()

    @property
    def why_not_searched(self) -> str:
        """A short reason why no setting can refute the statement; "" if a setting may."""
        return "nothing says when a setting refutes a claim of its kind"

    def check_searchable(self) -> None:
        """Raise ValueError, saying why, if no setting can refute the statement."""
        if self.why_not_searched:
            raise ValueError(
                f"theorem must be one that a setting can refute, got {self.name}: "
                f"{self.why_not_searched}"
            )

    def trial(self, setting: Any, sampling: Sampling) -> Trial:
        """Return how close a setting comes to refuting this, computing expensive parts last.

        Raises
        ------
        ValueError
            If the statement does not cover such a setting at all, or if no setting can refute it.
        """
        raise ValueError(f"theorem must be of a kind that is searched, got {self.name}")

    def for_certificate(self) -> Inequality:
        """Return the inequality that a certificate of refutation contains.

        Raises
        ------
        ValueError
            If the statement has no certificates.
        """
        raise ValueError(f"{self.id} has no certificates: {self.why_not_certified}")

    def constants_not_finite(self, regime: str) -> str:
        """Return a text that names constants that are infinite or undefined in a regime, or ""."""
        return ""

    @property
    def bound_on_run(self) -> tuple[BoundedQuantity, sp.Expr] | None:
        """The quantity of a run and its bound, with definitions substituted, or None."""
        return None

    def fields_of_run(self) -> frozenset[str]:
        """Return the names of the quantities of a run that are used; empty if no run is used."""
        return frozenset()

    def curve(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Compute truth and bound round by round, or over the claim's own variable."""
        raise ValueError(
            f"statement must be an inequality over rounds, an order or a direction, got {self.id}"
        )

    def curve_of_quantity(self, setting: Setting | LearningSetting, drawing: Drawing) -> BoundCurve:
        """Compute the quantity round by round along a run, even if the statement does not apply."""
        raise ValueError(f"statement must be an inequality over rounds, got {self.id}")

    def curve_over(
        self, settings: Sequence[Any], values: FloatArray, drawing: Drawing
    ) -> BoundCurve:
        """Compute truth and bound as one parameter varies."""
        raise ValueError(f"statement must be an inequality about an algorithm, got {self.id}")

    @property
    def name(self) -> str:
        """The statement's id and reading."""
        return f"{self.id} ({self.reading})"


@dataclass(frozen=True, kw_only=True)
class Basis(Statement):
    """A statement with its own symbols and hypotheses.

    Attributes
    ----------
    hypotheses : tuple of Hypothesis
    domain : callable
        Returns the setting in the paper's terms, by default unchanged. It raises ValueError if the
        statement does not cover such a setting at all.
    definitions : mapping
        Symbols that abbreviate expressions in other symbols.
    symbols : tuple of Symbol
        Symbols that appear in no formula of the statement, but in its texts or in a corollary's
        orders.
    read_as : mapping
        Symbols that mean something else in this reading, each mapped to a symbol that gives the
        meaning.

    The other attributes are those of `Statement`.
    """

    quantity: Any
    hypotheses: tuple[Hypothesis, ...] = ()
    domain: Callable[[Any], Any] = whole_setting
    definitions: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    symbols: tuple[sp.Symbol, ...] = ()
    read_as: Mapping[sp.Symbol, Any] = field(default_factory=dict)

    noun: ClassVar[str] = "claim"
    checks: ClassVar[Mapping[str, Check]] = {}
    """Checks of fields specific to its kind, by name."""

    def __post_init__(self) -> None:
        of = f"the {self.noun} {self.id!r}"
        check_fields(self, of, **{"regimes": regimes_of(Regime), **self.checks})

    def _formulas(self) -> tuple[sp.Basic, ...]:
        """Return the formulas that define the statement's symbols."""
        conditions = (item.condition for item in self.hypotheses)
        return (*conditions, *self.definitions, *self.definitions.values(), *self.symbols)

    @cached_property
    def _said(self) -> tuple[tuple[Symbol, Any], ...]:
        """The statement's symbols, each with the symbol that gives its meaning in this reading."""
        return tuple((one, self.read_as.get(one, one)) for one in declared_in(self._formulas()))

    @cached_property
    def meanings(self) -> Mapping[sp.Symbol, str]:
        """The meaning of each symbol."""
        return {one: as_.meaning for one, as_ in self._said if as_.meaning}

    @cached_property
    def units(self) -> Mapping[sp.Symbol, Unit]:
        """The unit of each symbol; empty if a symbol has no unit."""
        known: dict[sp.Symbol, Unit] = {
            one: as_.unit for one, as_ in self._said if as_.unit is not None
        }
        return known if len(known) == len(self._said) else {}

    @cached_property
    def quantities(self) -> Mapping[sp.Symbol, str]:
        """The formula for each symbol's value on a setting, if it has one."""
        return {one: as_.number for one, as_ in self._said if isinstance(as_.number, str)}

    @cached_property
    def constants(self) -> NumbersOfSymbols:
        """A function that returns the values of the symbols on a setting."""
        numbers = tuple((one, as_.number) for one, as_ in self._said if as_.number is not None)
        return NumbersOfSymbols(numbers, self.domain)

    @property
    def basis(self) -> Self:
        """The statement that has the symbols and hypotheses, which is this statement itself."""
        return self

    def with_symbols_of(self, formulas: Sequence[sp.Basic]) -> Self:
        """Return the statement with the symbols of further formulas added, if any are missing."""
        further = set(declared_in(formulas)) - set(declared_in(self._formulas()))
        return replace(self, symbols=(*self.symbols, *declared_in(further))) if further else self

    def constants_not_finite(self, regime: str) -> str:
        """Return a text that names the constants that are infinite or undefined in a regime."""
        given = constants_of(self.constants, self.regimes[regime].setting)
        made = dict(self.constants.numbers)
        infinite = (s for s, value in given.items() if not math.isfinite(value))
        found = [f"{s} = {float(given[s]):g}{place_of(made[s])}" for s in infinite]
        return f"its symbols give {', '.join(found)}" if found else ""

    def hypotheses_without_run(self, setting: Any) -> tuple[HypothesisCheck, ...]:
        """Evaluate, on a setting, the hypotheses that need no run.

        Raises
        ------
        ValueError
            If the statement does not cover such a setting.
        """
        values = theorem_values(self, constants_of(self.constants, setting))
        of_run = {item.symbol for item in self.round_symbols}
        return tuple(
            check_point_hypothesis(item, values)
            for item in self.hypotheses
            if not of_run & item.condition.free_symbols
        )


@dataclass(frozen=True, kw_only=True)
class Inequality(Basis):
    """An inequality, which a single setting can refute.

    Attributes
    ----------
    bound : sympy expression
    tightest : mapping
        Like ``read_as``, for constants that a paper leaves open: symbols whose values minimise the
        bound. A true statement must also hold with these values.
    """

    bound: sp.Expr
    tightest: Mapping[sp.Symbol, sp.Symbol] = field(default_factory=dict)
    family: Family | None = None
    own_run: OwnRun | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "hypotheses", with_signs(self.hypotheses))

    def _formulas(self) -> tuple[sp.Basic, ...]:
        return (self.bound, *super()._formulas())

    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """The only assertion, which is that the quantity is at most the bound."""
        quantity = self.quantity
        return (Assertion(quantity.text, quantity.latex, Relation.AT_MOST, self.bound),)

    @property
    def why_not_searched(self) -> str:
        """The hypotheses missing from our copy, which therefore nothing meets; "" if none are."""
        return lost_in(self)

    def trial(self, setting: Any, sampling: Sampling) -> Trial:
        """Evaluate the hypotheses that need no run, then both sides."""
        setting = self.spoken_of(setting)
        checks = self.hypotheses_without_run(setting)
        if not all(check.holds for check in checks):
            return Trial.unmet(checks)
        comparison = self.compared(setting, sampling)
        if not all(check.holds for check in comparison.hypotheses):
            return Trial.unmet(comparison.hypotheses)
        truth, bound = comparison.truth, comparison.bound
        told = comparison.outcome is not Outcome.UNDECIDED or math.isnan(truth - bound)
        # If the two sides cannot be distinguished, the setting is borderline, unless they have
        # underflowed.
        ratio = ratio_of(truth, bound) if told else float(truth > LEAST_EXCESS)
        return Trial.applied(ratio, comparison.outcome is Outcome.REFUTED)

    def for_certificate(self) -> Inequality:
        """Return the statement itself, or raise ValueError if it has no certificate."""
        return super().for_certificate() if self.why_not_certified else self

    def spoken_of(self, setting: Any) -> Any:
        """Return the setting; raise ValueError if the statement covers no settings of its kind."""
        return of_runs(self, setting)

    @abstractmethod
    def compared(self, setting: Setting, sampling: Sampling) -> Comparison:
        """Evaluate both sides and the hypotheses on a setting."""

    def best_compared(self, setting: Setting, sampling: Sampling) -> Comparison:
        """Compare both sides, enclosed if affordable, otherwise in floats or by sampling."""
        try:
            return Comparison.of_enclosed(self.enclosed(setting))
        except NotEnclosedError as error:
            return self.compared(setting, sampling).said_not_exact(str(error))

    @abstractmethod
    def enclosed(self, setting: Setting, most: float = AFFORDABLE) -> EnclosedSides:
        """Return both sides enclosed; NotEnclosedError says what cannot be enclosed.

        Parameters
        ----------
        setting : Setting
        most : float
            Cost limit of a run, in units of `Work`.
        """

    @abstractmethod
    def drawn_in(self, settings: Sequence[Setting], draws: int, seed: int) -> CurveSample | None:
        """Sample the quantity in each setting, or return None if it cannot be sampled."""

    def remark(self, setting: Setting) -> str:
        """Return a remark to show beside a verdict on a setting; it does not affect the verdict."""
        return ""

    def verdict(self, setting: Setting | LearningSetting, sampling: Sampling) -> Verdict:
        """Return the verdict from a comparison of both sides, enclosed if that is affordable."""
        spoken_of = self.spoken_of(setting)
        comparison = self.best_compared(spoken_of, sampling)
        found = self._verdict_of(comparison, spoken_of)
        if not self.tightest or found.outcome is not Outcome.HOLDS:
            return found
        read_as = {**self.read_as, **self.tightest}
        strict = replace(self, read_as=read_as, tightest={})
        least = strict.verdict(setting, sampling)
        if least.outcome is Outcome.HOLDS:
            return found
        why = (
            f"a constant that is left open decides: the bound may be as small as {least.bound:.4g}"
        )
        return replace(found, outcome=Outcome.UNDECIDED, detail=why)

    def _verdict_of(self, comparison: Comparison, setting: Setting) -> Verdict:
        return Verdict(
            theorem=self.id,
            reading=self.reading,
            outcome=comparison.outcome,
            evidence=comparison.evidence,
            truth=comparison.truth,
            bound=comparison.bound,
            hypotheses=comparison.hypotheses,
            detail=comparison.unseen or comparison.sides or self.remark(setting),
            relation=comparison.relation,
        )

    def curve_over(
        self, settings: Sequence[Any], values: FloatArray, drawing: Drawing
    ) -> BoundCurve:
        """Compute truth and bound as one parameter varies."""
        is_floor = self.assertions[0].relation.is_from_below
        return judged_curve(
            self.name,
            self.quantity,
            drawing.variable or "",
            values,
            [self.best_compared(one, drawing.sampling) for one in settings],
            self.drawn_in(settings, drawing.draws, drawing.sampling.seed),
            bound_name="bound from below" if is_floor else "bound",
            parts=parts_of(self, settings, drawing.parts),
        )

    def unit_formulas(self) -> tuple[Mapping[sp.Symbol, Unit], Sequence[tuple[str, sp.Basic]]]:
        """Return bound, hypotheses and definitions, with a symbol for the bounded quantity."""
        quantity = sp.Symbol(self.quantity.text)
        known = self.quantity.unit is not None
        units = {**self.units, quantity: self.quantity.unit} if known else self.units
        bound = sp.Le(quantity, self.bound, evaluate=False) if known else self.bound
        return units, (
            ("bound", bound),
            *(
                (f"hypothesis '{item.name}'", item.condition)
                for item in self.hypotheses
                if not item.is_sign  # its formula is part of another definition's
            ),
            *(
                (f"definition of {symbol}", sp.Eq(symbol, expression, evaluate=False))
                for symbol, expression in self.definitions.items()
            ),
        )


def lost_in(basis: Basis) -> str:
    """Return a text that names hypotheses missing from our copy of the paper; "" if none are."""
    lost = [hypothesis.name for hypothesis in basis.hypotheses if not hypothesis.is_known]
    return f"no setting can be checked against '{'; '.join(lost)}'" if lost else ""


def of_runs(statement: Statement, setting: Setting | LearningSetting) -> Setting:
    """Return the setting of a run.

    Raises
    ------
    ValueError
        If given a learning problem.
    """
    if not isinstance(setting, Setting):
        raise ValueError(f"setting must be a Setting for {statement.id}, got {setting!r}")
    return setting


@dataclass(frozen=True)
class StatementFlag:
    """A place in a statement where units are inconsistent."""

    place: str
    flag: UnitFlag

    def __str__(self) -> str:
        return f"{self.place}: {self.flag}"


def unit_flags(statement: Statement) -> tuple[StatementFlag, ...]:
    """Return the inconsistent units in a theorem, or in a corollary's own conditions.

    Statements on learnability are about probabilities and counts, which have no units.

    Raises
    ------
    ValueError
        If the theorem gives no unit for a symbol.
    """
    units, formulas = statement.unit_formulas()
    return tuple(
        StatementFlag(place, flag) for place, formula in formulas for flag in _flags(formula, units)
    )


def _flags(formula: sp.Basic, units: Units) -> tuple[UnitFlag, ...]:
    found = unit_of(formula, units)
    return found if isinstance(found, tuple) else ()
